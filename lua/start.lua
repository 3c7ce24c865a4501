-- Make leases of offers, as their holder: from now on the jobs run. The same again only renews. An offer whose time has
-- passed is given back here and now: nobody starts it late.
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
--   executors  zset    executors that aren't our worker, by until when each counts as alive
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   worker     id      who says so
--   lease_ms   ms      how long the right lasts from now
--   ...                  a job: id, epoch
-- REPLY
--   {word, ...}  a job: ok | lost (its time had passed, or another holds it, or nobody) | gone (no such job any more)

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
-- @include lib/lease.lua
-- @include lib/executors.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates', 'executors'
)
local arg = args.bind('now', 'worker', 'lease_ms')

local now = clock.now(arg.now)
local lease_ms = lease.length(arg.lease_ms)
local FIELDS = { 'lease', unpack(record.CORE) }
local held, words = lease.gather(arg, 2, 'start', FIELDS)

state.begin()
local scores = {}
for _, job in ipairs(held) do
  local more, offered = {}, record.is_offer(job)
  if offered and record.number(redis.call('ZSCORE', keys.leases, job.id), now + 1) <= now then
    lease.lapsed(job, now, 'lapse')
    words[job.answer] = 'lost'
  else
    scores[#scores + 1] = clock.text(now + lease_ms)
    scores[#scores + 1] = job.id
    if offered then
      lease.grant(job, more, job.epoch, now, lease_ms, 0, '')
      more[#more + 1] = 'offered'
      more[#more + 1] = '-' .. clock.text(now)
      event.note('started', job.id)
      job.offered = more[#more]
      once.leave(job, 'running')
    elseif lease.differs(job, lease_ms) then
      more = { 'lease', clock.text(lease_ms) }
    end
    if #more > 0 then
      redis.call('HSET', job.key, unpack(more))
    end
  end
end
if #scores > 0 then
  redis.call('ZADD', keys.leases, unpack(scores))
  executors.heard(arg.worker, now, lease_ms)
end
state.flush(now)
return words
