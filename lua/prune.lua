-- Remove ended jobs whose time has passed, in one bounded step, and bodies of lanes that stayed empty for a minute.
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
--   number  how many were touched; as many as the limit means there may be more

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
local EMPTY_MS = 60000

state.begin()
local touched = retention.step(now, limit)
local lanes = redis.call('ZRANGEBYSCORE', keys.empty, '-inf', clock.text(now - EMPTY_MS), 'LIMIT', 0, limit)
for _, name in ipairs(lanes) do
  redis.call('ZREM', keys.empty, name)
  -- The mark is as old as the lane's last emptying only while the lane is empty: one that has work is marked anew.
  if redis.call('EXISTS', keys.front(name)) == 0 and redis.call('XLEN', keys.body(name)) == 0 then
    redis.call('DEL', keys.body(name))
  end
end
return math.max(touched, #lanes)
