-- How many jobs of this queue are in each state. Those available are counted lane by lane, a thousand lanes at most.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   leases     zset    running jobs by lease expiry
--   pending    zset    jobs that wait for other jobs
--   completed  zset    by time of entry
--   failed     zset    by time of entry
--   cancelled  zset    by time of entry
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
-- REPLY
--   {name, number, ...}  the eight states, `paused` (when, or 0), `pauses` (how many of its tasks and fairness keys
--   are paused) and `lanes` (how many were counted)

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/lanes.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'leases', 'pending', 'completed', 'failed', 'cancelled',
  'gates'
)
local arg = args.bind('now')
redis.looks = true

local answer = {}
for _, name in ipairs({ 'pending', 'scheduled', 'retryable', 'completed', 'failed', 'cancelled' }) do
  answer[#answer + 1] = name
  answer[#answer + 1] = redis.call('ZCARD', keys[name])
end
local waiting, seen = lanes.waiting()
local held_up = redis.call('HMGET', keys.meta, 'paused', 'pauses')
local paused = held_up[1]
for _, value in ipairs({ 'running', redis.call('ZCARD', keys.leases), 'available', waiting, 'lanes', seen }) do
  answer[#answer + 1] = value
end
local pauses = record.number(held_up[2], 0)
answer[#answer + 1] = 'pauses'
answer[#answer + 1] = math.max(0, pauses)
answer[#answer + 1] = 'paused'
answer[#answer + 1] = paused and record.number(paused, 1) or 0
return answer
