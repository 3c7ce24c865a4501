-- Take back jobs whose lease expired: available again, or failed once attempts are exhausted. Takes nothing while
-- it is quiet after an outage, in which holders could not renew. As it is called every second, it also tells whether
-- anything is due, so that nobody needs to ask.
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
--   lease_ms   ms      one lease: how long it stays quiet after an outage
--   limit      count   at most so many jobs
-- REPLY
--   {quiet_ms, due, id, state, ...}  how long nothing will be taken yet (0: not quiet); '1' if there is something for
--                                    promote or expire, else '0'; what was moved where

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
-- @include lib/due.lua
-- @include lib/lease.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'lease_ms', 'limit')

local now = clock.now(arg.now)
local lease_ms, limit = lease.length(arg.lease_ms), args.number(arg.limit, 'limit', 0)
local meta = redis.call('HMGET', keys.meta, 'seen', 'quiet_until')

state.begin()
local quiet_until = lease.stamp(now, lease_ms, meta[1], meta[2])
if quiet_until > now then
  return { clock.text(quiet_until - now), due.any(now) and '1' or '0' }
end

local answer = { '0', due.any(now) and '1' or '0' }
local ids = redis.call('ZRANGEBYSCORE', keys.leases, '-inf', clock.text(now), 'LIMIT', 0, limit)
for _, id in ipairs(ids) do
  local job, why = record.fields(id, record.CORE)
  if why == 'damaged' then
    redis.call('ZREM', keys.leases, id)
    state.condemn(id, now)
    answer[#answer + 1] = id
    answer[#answer + 1] = 'failed'
  elseif job and job.state == 'running' then
    lease.lost(job, now, 'reap', 'lease expired: worker ' .. (job.worker or '?'))
    answer[#answer + 1] = id
    answer[#answer + 1] = job.state
  else
    -- A lease without a running job: only the mark is wrong.
    redis.call('ZREM', keys.leases, id)
    answer[#answer + 1] = id
    answer[#answer + 1] = 'dropped'
  end
end
state.flush(now)
return answer
