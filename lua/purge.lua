-- Cancel waiting jobs of some states, in one bounded step. Running jobs are left alone.
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
--   ...                  states: available, scheduled, retryable, pending
-- REPLY
--   {cancelled, looked}  how many; when fewer than the limit were looked at, nothing is left

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
-- @include lib/lanes.lua
-- @include lib/state.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'limit')

local now = clock.now(arg.now)
local limit = args.number(arg.limit, 'limit', 0)
local WAITING = { available = true, scheduled = true, retryable = true, pending = true }
for i = arg.rest, #ARGV do
  args.word(ARGV[i], WAITING, 'state')
end
local looked, done = 0, 0

-- Returns whether the id stood where it should.
local function cancel(id, from, taken)
  looked = looked + 1
  local job, why = record.fields(id, record.CORE)
  if why == 'damaged' then
    state.condemn(id, now)
  end
  if not job or job.state ~= from then
    return false
  end
  job.taken = taken
  state.move(job, 'cancelled', now, { 'reason', 'purged' })
  done = done + 1
  return true
end

local function purge_lane(here)
  if looked >= limit then
    return false
  end
  local heads = lane.heads(here, limit - looked)
  lane.drop(here, heads, #heads)
  for _, id in ipairs(heads) do
    cancel(id, 'available', true)
  end
  return looked < limit
end

state.begin()
for i = arg.rest, #ARGV do
  local from = ARGV[i]
  if from == 'available' then
    lanes.each(purge_lane)
    state.flush(now, true)
  elseif looked < limit then
    for _, id in ipairs(redis.call('ZRANGE', keys[from], 0, limit - looked - 1)) do
      if not cancel(id, from, false) then
        redis.call('ZREM', keys[from], id)
      end
    end
  end
end
state.flush(now, true)
return { done, looked }
