-- End an attempt of running jobs badly, as their holder: to be retried after a delay while attempts are left, or
-- for good. The error joins the job's list. A job whose cancel was asked is cancelled.
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
--   ...                  a job: id, epoch, verb (retry | fail), delay in ms, error (JSON text), reason
-- REPLY
--   {word, ...}  a job: retryable | failed | cancelled, ok (the same was answered before), lost, gone,
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
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'worker')

local now = clock.now(arg.now)
local VERBS = { retry = true, fail = true }

local function verb_at(at)
  args.number(ARGV[at + 3], 'delay', 0)
  return args.word(ARGV[at + 2], VERBS, 'verb')
end

local held, words = lease.gather(arg, 6, verb_at, record.CORE)

state.begin()
for _, job in ipairs(held) do
  local delay_ms, failure, reason = tonumber(ARGV[job.at + 3]), ARGV[job.at + 4], ARGV[job.at + 5]
  words[job.answer] = lease.failed(job, now, job.verb, job.verb == 'retry' and delay_ms or nil, failure, reason)
end
state.flush(now)
return words
