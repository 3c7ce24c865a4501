-- Give back, for its executor, what it was only offered: in one bounded step over what runs. Nothing that was started
-- is touched, whoever asks: only its lease ends that. Only a leader knows how an executor is.
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
--   worker     id      to whom the jobs were offered
--   why        word    gone (as if it had let the offers lapse) | busy (it can't start them now; no fault of the jobs)
--   offset     count   skip so many of what runs
--   limit      count   look at most at so many, 250 at most
--   term       number  of the leader
-- REPLY
--   {'ok', given_back, next}  `next`: the offset to go on with, or -1 at the end
--   {'lost'}                  a later leader has written here; nothing was done

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
-- @include lib/tenure.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'worker', 'why', 'offset', 'limit', 'term')

local now = clock.now(arg.now)
local offset, limit = args.number(arg.offset, 'offset', 0), args.number(arg.limit, 'limit', 1, 250)
args.word(arg.why, { gone = true, busy = true }, 'reason')
local term = args.number(arg.term, 'term', 1)
if tenure.is_over(term, now) then
  return { 'lost' }
end

local ids, given_back = redis.call('ZRANGE', keys.leases, offset, offset + limit - 1), 0
state.begin()
tenure.note(term)
for _, id in ipairs(ids) do
  local job = record.fields(id, record.CORE)
  if job and job.state == 'running' and job.worker == arg.worker and record.is_offer(job) then
    if arg.why == 'gone' then
      lease.lapsed(job, now, 'withdraw')
    else
      lease.give_back(job, now, 'withdraw', 'released', {})
    end
    given_back = given_back + 1
  end
end
state.flush(now)
return { 'ok', given_back, #ids == limit and offset + limit - given_back or -1 }
