-- Delete ended jobs of some states for good, in one bounded step, oldest first.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   leases     zset    running jobs by lease expiry
--   completed  zset    by time of entry
--   failed     zset    by time of entry
--   cancelled  zset    by time of entry
--   prune      zset    ended jobs by the time they may go
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   older_ms   ms      only those that ended at least so long ago
--   before     ms      only those that ended before this instant; '' for any
--   limit      count   at most so many jobs
--   ...                  states: completed, failed, cancelled
-- REPLY
--   number  how many were deleted; fewer than the limit means there is nothing left

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

keys.bind('prefix', 'meta', 'leases', 'completed', 'failed', 'cancelled', 'prune')
local arg = args.bind('now', 'older_ms', 'before', 'limit')

local now = clock.now(arg.now)
local limit = args.number(arg.limit, 'limit', 0)
local done, YOUNG_MS = 0, 60000

local last = now - args.number(arg.older_ms, 'older_ms', 0)
if arg.before ~= '' then
  last = math.min(last, args.number(arg.before, 'before', 0) - 1)
end
last = clock.text(last)
local STATES = { completed = true, failed = true, cancelled = true }
for i = arg.rest, #ARGV do
  args.word(ARGV[i], STATES, 'state')
end

state.begin()
for i = arg.rest, #ARGV do
  if done < limit then
    local ids = redis.call('ZRANGEBYSCORE', keys[ARGV[i]], '-inf', last, 'LIMIT', 0, limit - done)
    local since = clock.text(now - YOUNG_MS)
    local young = redis.call('ZRANGEBYSCORE', keys[ARGV[i]], since, last, 'LIMIT', 0, limit - done)
    for _, id in ipairs(young) do
      retention.remember(redis.pcall('HGET', keys.job(id), 'epoch'), now)
    end
    retention.remove(retention.ended(ids, ARGV[i]), { ARGV[i] })
    done = done + #ids
  end
end
return done
