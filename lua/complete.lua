-- End running jobs well, as their holder. A result may be kept with each.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   expiring   zset    waiting jobs that have `expires`, by that time
--   leases     zset    running jobs by lease expiry
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
--   ...                  a job: id, epoch, result ('' = none)
-- REPLY
--   {word, ...}  a job: ok | lost (another holds it, or nobody) | gone (no such job any more) |
--                offered (start it first)

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
  'prefix', 'meta', 'scheduled', 'retryable', 'expiring', 'leases', 'completed', 'failed', 'cancelled', 'prune',
  'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'worker')

local now = clock.now(arg.now)
local held, words = lease.gather(arg, 3, 'complete', record.FINISH)

state.begin()
for _, job in ipairs(held) do
  local more, result = { 'ended', lease.ended(job.epoch, 'complete') }, ARGV[job.at + 2]
  if result ~= '' then
    if job.keep_result == '0' then
      more[3], more[4] = 'dropped', '1'
    else
      more[3], more[4] = 'result', result
      job.has_result = true
    end
  end
  state.move(job, 'completed', now, more)
end
state.flush(now)
return words
