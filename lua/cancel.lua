-- Cancel jobs, all or none (or each for itself). A waiting job is cancelled at once, and so is one only offered;
-- a running one is asked to stop, which its holder hears with its next renewal.
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
--   running    0|1     1: ask running jobs to stop; 0: refuse them
--   force      0|1     1: its worker may be replaced to stop it
--   partial    0|1     1: an answer for each id, whatever the others are
--   token      string  names the call: sent again it changes nothing and is answered as before; '' for none
--   ...                  ids
-- REPLY
--   {'ok', word, ...}      a job: removed | requested | too_late | missing | running (refused)
--   {'refused', id, word, state}  without `partial`: the first that cannot be cancelled; nothing was done

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
local arg = args.bind('now', 'running', 'force', 'partial', 'token')

local now = clock.now(arg.now)
local words, jobs, seen = {}, {}, {}

local function word_for(job)
  if not job then
    return 'missing'
  elseif state.ends(job.state) then
    return 'too_late'
  elseif job.state ~= 'running' or record.is_offer(job) then
    return 'removed'
  end
  return arg.running == '1' and 'requested' or 'running'
end

args.groups(arg, 1)
for i = arg.rest, #ARGV do
  local job = record.fields(ARGV[i], record.HANDLED)
  local done = record.answered(job, arg.token)
  local word = done or word_for(job)
  if arg.partial ~= '1' and word ~= 'removed' and word ~= 'requested' then
    return { 'refused', ARGV[i], word, job and job.state or '' }
  end
  if job and not done and not seen[job.id] then
    seen[job.id] = true
    jobs[#jobs + 1] = { job, word }
  end
  words[#words + 1] = word
end

state.begin()
for _, each in ipairs(jobs) do
  local job, word = unpack(each)
  if word == 'removed' then
    state.move(job, 'cancelled', now, record.say({ 'reason', 'cancelled' }, arg.token, word))
  elseif word == 'requested' then
    local how = (arg.force == '1' or job.cancel == 'force') and 'force' or '1'
    redis.call('HSET', keys.job(job.id), unpack(record.say({ 'cancel', how }, arg.token, word)))
    event.note('cancelling', job.id)
  end
end
state.flush(now)
return { 'ok', unpack(words) }
