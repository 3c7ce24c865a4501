-- Put running jobs off, as their holder: to run again after a delay, the attempt refunded.
--
-- A snooze is the job's own wish and may repeat. `unknown` hands back a job that this worker can't run (a task or
-- arguments it doesn't know, as in a rolling deploy); once that has gone on for the grace, the job fails.
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
--   grace_ms   ms      how long a job may be handed back as unknown
--   ...                  a job: id, epoch, kind (snooze | unknown), delay in ms, reason
-- REPLY
--   {word, ...}  a job: scheduled | failed | cancelled, ok (the same was answered before), lost, gone

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
local arg = args.bind('now', 'worker', 'grace_ms')

local now = clock.now(arg.now)
local grace_ms = args.number(arg.grace_ms, 'grace_ms', 0)
local KINDS = { snooze = true, unknown = true }

local function verb_at(at)
  args.word(ARGV[at + 2], KINDS, 'kind')
  args.number(ARGV[at + 3], 'delay', 0)
  return 'snooze'
end

local held, words = lease.gather(arg, 5, verb_at, record.CORE)

state.begin()
for _, job in ipairs(held) do
  local kind, delay_ms, reason = ARGV[job.at + 2], tonumber(ARGV[job.at + 3]), ARGV[job.at + 4]
  local since = record.number(job.unknown_since, now)
  local more = { 'ended', lease.ended(job.epoch, 'snooze') }
  local function set(field, value)
    more[#more + 1] = field
    more[#more + 1] = value
  end
  if job.cancel then
    set('reason', 'cancelled while running')
    state.move(job, 'cancelled', now, more)
  elseif kind == 'unknown' and now - since >= grace_ms then
    set('reason', reason)
    state.move(job, 'failed', now, more)
  else
    set('attempt', math.max(0, record.attempt(job) - 1))
    set('scheduled_at', clock.text(now + delay_ms))
    if kind == 'unknown' then
      set('unknown_since', clock.text(since))
      set('unknown_reason', reason)
    elseif job.unknown_since or job.released then
      -- It ran here: what is counted in a row begins anew.
      redis.call('HDEL', job.key, 'unknown_since', 'unknown_reason', 'released')
    end
    state.move(job, 'scheduled', now, more, now + delay_ms)
  end
  words[job.answer] = job.state
end
state.flush(now)
return words
