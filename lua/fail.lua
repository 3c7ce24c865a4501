-- End an attempt of running jobs badly, as their holder: to be retried after a delay while attempts are left, or
-- for good. The error joins the job's list. A job whose cancel was asked isn't retried.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
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
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   worker     id      who says so
--   ...                  a job: id, epoch, verb (retry | fail), delay in ms, error (JSON text), reason
-- REPLY
--   {word, ...}  a job: retryable | failed | cancelled, ok (the same was answered before), lost, gone

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/event.lua
-- @include lib/stats.lua
-- @include lib/retention.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/state.lua
-- @include lib/lease.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty'
)
local arg = args.bind('now', 'worker')

local now = clock.now(arg.now)
local VERBS = { retry = true, fail = true }
local words, held = {}, {}

for i = arg.rest, #ARGV, 6 do
  local job, word = lease.proven(ARGV[i], ARGV[i + 1], arg.worker, 'fail', record.CORE)
  if job and not held[job.id] then
    held[job.id] = true
    local verb, delay_ms = args.word(ARGV[i + 2], VERBS, 'verb'), args.number(ARGV[i + 3], 'delay', 0)
    held[#held + 1] = { job, verb, delay_ms, ARGV[i + 4], ARGV[i + 5], #words + 1 }
  end
  words[#words + 1] = word or 'ok'
end

state.begin()
for _, each in ipairs(held) do
  local job, verb, delay_ms, failure, reason, place = unpack(each)
  local attempt = record.attempt(job)
  local more = { 'ended', lease.ended(job.epoch, 'fail') }
  lease.attempt_ended(job, failure, more)
  if verb == 'retry' and job.cancel then
    more[#more + 1] = 'reason'
    more[#more + 1] = 'cancelled while running'
    state.move(job, 'cancelled', now, more)
  elseif verb == 'retry' and attempt < record.max_attempts(job) then
    more[#more + 1] = 'scheduled_at'
    more[#more + 1] = clock.text(now + delay_ms)
    state.move(job, 'retryable', now, more, now + delay_ms)
  else
    more[#more + 1] = 'reason'
    more[#more + 1] = reason
    state.move(job, 'failed', now, more)
  end
  words[place] = job.state
end
state.flush(now)
return words
