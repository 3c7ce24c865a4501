-- Give a job another priority. One that waits in a lane goes to the front of that of the new level, at its place; one
-- that runs or waits for something else keeps it for its next time in a lane.
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
--   id         id      which job
--   priority   number  -512 ... 511
-- REPLY
--   string  missing | the state it is in: of an ended one nothing was changed

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
local arg = args.bind('now', 'id', 'priority')

local now = clock.now(arg.now)
local priority = clock.text(args.number(arg.priority, 'priority', -512, 511))
if not lane.is_priority(priority) or priority ~= arg.priority then
  error('priority cannot be ' .. arg.priority, 0)
end
local job = record.fields(arg.id, record.CORE)
if not job then
  return 'missing'
elseif state.ends(job.state) or (job.priority or '0') == priority then
  return job.state
end

state.begin()
if job.state == 'available' then
  lane.remove(job)
end
job.priority = priority
if priority == '0' then
  redis.call('HDEL', job.key, 'priority')
else
  redis.call('HSET', job.key, 'priority', priority)
end
if job.state == 'available' then
  lane.restore(job, record.number(job.place) or record.number(job.created_at, now))
  redis.call('HSET', job.key, 'entry', '')
end
event.note('reprioritised', job.id)
state.flush(now)
return job.state
