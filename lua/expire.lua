-- Cancel waiting jobs that no worker has started by their `expires`, and fail those that have waited for their lock for
-- as long as they may while another held it.
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
--   limit      count   at most so many jobs
-- REPLY
--   number  how many were looked at; as many as the limit means there may be more

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
local arg = args.bind('now', 'limit')

local now = clock.now(arg.now)
local limit = args.number(arg.limit, 'limit', 0)
state.begin()
local ids = redis.call('ZRANGEBYSCORE', keys.expiring, '-inf', clock.text(now), 'LIMIT', 0, limit)
for _, id in ipairs(ids) do
  local job = record.fields(id, record.CORE)
  if job and record.expired(job, now) and job.state ~= 'running' and state.allows(job.state, 'cancelled') then
    state.move(job, 'cancelled', now, { 'reason', 'expired' })
  elseif job and record.locked_out(job, now) then
    local lock = gate.taken_lock(job, now)
    if lock then
      local waited = string.format('%.14g', record.number(job.lock_wait, 0) / 1000)
      state.move(job, 'failed', now, { 'reason', 'lock ' .. lock .. ' was not free within ' .. waited .. ' s' })
    else
      -- Free by now: it waits for a worker.
      redis.call('ZADD', keys.expiring, now + math.max(1000, record.number(job.lock_wait, 1000)), id)
    end
  else
    redis.call('ZREM', keys.expiring, id)
  end
end
state.flush(now)
return #ids
