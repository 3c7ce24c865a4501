-- Run jobs again by hand: failed, completed, cancelled or retryable ones become available now, as if new: attempt
-- 0, errors and result cleared. All or none, or each for itself.
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
--   limits     hash    limit, task or key -> its numbers, and whether it is paused
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   partial    0|1     1: an answer for each id, whatever the others are
--   token      string  names the call: sent again it changes nothing and is answered as before; '' for none
--   ...                  ids
-- REPLY
--   {'ok', word, ...}      a job: available (now) | waiting (it was already) | missing | the state that forbids it
--                         | 'duplicate <id>' (another living job owns its unique key)
--   {'refused', id, word}  without `partial`: the first that cannot be retried; nothing was done

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

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'partial', 'token')

local now = clock.now(arg.now)
local words, jobs, seen = {}, {}, {}

args.groups(arg, 1)
for i = arg.rest, #ARGV do
  local job = record.fields(ARGV[i], record.HANDLED)
  local done = record.answered(job, arg.token)
  local may = not done and job and (state.ends(job.state) or job.state == 'retryable')
  local owner = may and once.bars(job, now)
  may = may and not owner
  local word = done or owner and 'duplicate ' .. owner or may and 'available' or job and job.state or 'missing'
  if arg.partial ~= '1' and not may and not done then
    return { 'refused', ARGV[i], word }
  end
  if may and not seen[job.id] then
    seen[job.id] = true
    jobs[#jobs + 1] = job
  end
  -- One that is available already was not made so by this call.
  words[#words + 1] = (not may and not done and word == 'available') and 'waiting' or word
end

-- What the earlier life left behind.
local STALE = {
  'result', 'reason', 'finished_at', 'cancel', 'scheduled_at', 'expires_at', 'released', 'unknown_since',
  'unknown_reason', 'progress', 'dropped', 'lapsed',
}

state.begin()
for _, job in ipairs(jobs) do
  local stale = { unpack(STALE) }
  for _, field in ipairs(redis.call('HKEYS', keys.job(job.id))) do
    if string.sub(field, 1, 6) == 'error:' then
      stale[#stale + 1] = field
    end
  end
  if job.expires_at then
    redis.call('ZREM', keys.expiring, job.id)
    job.expires_at = nil
  end
  redis.call('HDEL', keys.job(job.id), unpack(stale))
  if job.retakes then
    once.take(job.retakes, job.id, now)
  end
  state.move(job, 'available', now, record.say({ 'attempt', '0', 'started_at', '' }, arg.token, 'available'))
end
state.flush(now)
return { 'ok', unpack(words) }
