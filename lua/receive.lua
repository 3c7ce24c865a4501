-- Take in firings that were relayed to this queue: each becomes a job, once for each nominal time, however often it is
-- relayed and by whom. Whether one is left out because the last run's job hasn't ended is decided here, where that job
-- is. As enqueue it is refused by a server at maxmemory, whole: a call that makes jobs opens with a growing write.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version, the highest term
--   classes    hash    class -> what it needs of a worker
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   expiring   zset    waiting jobs that have `expires`, by that time
--   leases     zset    running jobs by lease expiry
--   pending    zset    jobs that wait for other jobs
--   completed  zset    by time of entry
--   failed     zset    by time of entry
--   cancelled  zset    by time of entry
--   prune      zset    ended jobs by the time they may go
--   events     stream  one entry a call and kind of transition
--   stats      hash    totals by state and task
--   empty      zset    lanes whose body ran empty, by when
--   limits     hash    limit, task or key -> its numbers, and whether it is paused
--   gates      zset    gates that have parked lanes, by when to look at them
--   kinds      hash    task -> executor kind, as the workers declared it
--   fired      hash    schedule -> its last nominal times here, its last job
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   term       number  of the leader that relays; '' = somebody else relays what he caused himself
--   ...                  a message: schedule, kind ('due' | 'manual'), nominal, fired_at, overlap; then its job, as for
--                        enqueue: id, token (''), task, executor, needs, priority, due, expires, lane, once, n,
--                        then n pairs
-- REPLY
--   {'lost'}                 a later leader has written here; nothing was done
--   {'ok', word, rest, ...}  a message: 'fired' and the job's id; 'existing' and its id, or '' if it is gone;
--                            'skipped', 'queued' (it waits for the last run's job: relay it again) or 'refused', and
--                            why

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/event.lua
-- @include lib/stats.lua
-- @include lib/retention.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/state.lua
-- @include lib/birth.lua
-- @include lib/fired.lua
-- @include lib/tenure.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates', 'kinds', 'fired'
)
local arg = args.bind('now', 'term')

local MESSAGES_MAX = 100
local now = clock.now(arg.now)
local term = arg.term ~= '' and args.number(arg.term, 'term', 0)
if term and tenure.is_over(term, now) then
  return { 'lost' }
end

local jobs, answer = {}, { 'ok' }
local at, count = arg.rest, 0
while ARGV[at] do
  local job_at = at + 5
  local after = birth.after(job_at)
  args.number(ARGV[at + 2], 'nominal', 0)
  args.number(ARGV[at + 3], 'fired_at', 0)
  count = count + 1
  if count > MESSAGES_MAX then
    error('a call carries at most ' .. MESSAGES_MAX .. ' messages', 0)
  end
  local message = { kind = ARGV[at + 1], nominal = tonumber(ARGV[at + 2]), id = ARGV[job_at] }
  message.fired_at, message.overlap = tonumber(ARGV[at + 3]), ARGV[at + 4]
  local word, rest, new = fired.decide(fired.read(ARGV[at]), message, now)
  if new then
    local job = birth.read(job_at, after, now)
    if birth.refusal(job, ARGV[job_at + 4]) then
      word, rest = 'refused', 'the queue has as many classes of needs as it may'
    else
      local met, owner, instead = meet.decide(job, now)
      if met then
        word, rest = fired.met(fired.read(ARGV[at]), met, owner)
      end
      jobs[#jobs + 1] = instead or (not met and job or nil)
    end
  end
  answer[#answer + 1] = word
  answer[#answer + 1] = rest
  at = after
end

if #jobs > 0 then
  birth.write(jobs, now)
else
  state.begin()
end
fired.write(now)
if term then
  tenure.note(term)
end
return answer
