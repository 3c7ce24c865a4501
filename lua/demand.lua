-- What a queue asks of its workers: how many jobs wait for one and run, how many ever arrived and completed. Those that
-- wait are counted lane by lane, a thousand lanes at most.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   leases     zset    running jobs by lease expiry
--   stats      hash    totals by state and task
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
-- REPLY
--   {now, waiting, running, arrived, completed, run_ms}
--   waiting: none while the queue is paused
--   arrived: how often a job was begun, and how many wait
--   the totals are 0 where there are more tasks than are summed up

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/lanes.lua

keys.bind('prefix', 'meta', 'classes', 'scheduled', 'retryable', 'leases', 'stats', 'gates')
local arg = args.bind('now')
redis.looks = true

local FIELDS_MAX = 5000
local now = clock.now(arg.now)
local at = clock.text(now)
local waiting = redis.call('ZCOUNT', keys.scheduled, '-inf', at) + redis.call('ZCOUNT', keys.retryable, '-inf', at)
waiting = waiting + lanes.waiting()
local totals = { running = 0, completed = 0, run_ms = 0 }
if redis.call('HLEN', keys.stats) <= FIELDS_MAX then
  local flat = redis.call('HGETALL', keys.stats)
  for i = 1, #flat, 2 do
    local what = string.match(flat[i], '^(%S+) ')
    if totals[what] then
      totals[what] = totals[what] + record.number(flat[i + 1], 0)
    end
  end
end
local arrived = clock.text(totals.running + waiting)
if redis.call('HGET', keys.meta, 'paused') then
  waiting = 0
end
local running = redis.call('ZCARD', keys.leases)
return { at, waiting, running, arrived, clock.text(totals.completed), clock.text(totals.run_ms) }
