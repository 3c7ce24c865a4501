-- Give running jobs back untouched, as their holder: to the front of their lane, at their place, the attempt
-- refunded. An executor kind moves a job that was claimed under the wrong one. A job whose cancel was asked is
-- cancelled instead.
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
--   worker     id      who says so
--   ...                  a job: id, epoch, executor kind ('' = as it is)
-- REPLY
--   {word, ...}  a job: available | failed | cancelled, ok (the same was answered before), lost, gone

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

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'worker')

local now = clock.now(arg.now)
local held, words = lease.gather(arg, 3, 'release', record.CORE)

state.begin()
for _, job in ipairs(held) do
  local kind, more, held_as = ARGV[job.at + 2], {}, lane.is_class(job.class) and job.class or 'async'
  if kind ~= '' and kind ~= needs.kind(held_as) then
    job.class = needs.under(kind, held_as)
    more[1], more[2] = 'class', job.class
    needs.enter(job.class, job.id, now)
  end
  words[job.answer] = lease.give_back(job, now, 'release', 'released', more)
end
state.flush(now)
return words
