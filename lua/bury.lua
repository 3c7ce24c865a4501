-- Give back what a dead worker held, said by the node that saw it die. Marks the worker gone, so that a claim of it
-- that is still on its way is refused; returns what its last claim remembers even if it never began. Then somebody
-- is woken: the dead worker may have taken a marker with it.
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
--   worker     id      the dead
--   why        word    what ended it, such as SIGKILL
--   ...                  a job: id, epoch, verb (lost: the attempt counts | ended: so it does, and the reason says that
--                        only the answer to its finish was missing | refund | timeout), delay in ms (timeout)
-- REPLY
--   {id, state, ...}  every job that was given back, and where it went

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
local arg = args.bind('now', 'worker', 'why')

local now = clock.now(arg.now)
local GONE_TTL_MS = 3600000
local VERBS = { lost = true, ended = true, refund = true, timeout = true }
local memory = keys.claimed(arg.worker)
local held, answer = {}, {}

local function add(id, epoch, verb, delay_ms)
  if held[id] then
    return
  end
  local job = lease.proven(id, epoch, arg.worker, 'bury', record.CORE)
  if job then
    held[id] = true
    held[#held + 1] = { job, verb, delay_ms }
  end
end

args.groups(arg, 4)
for i = arg.rest, #ARGV, 4 do
  add(ARGV[i], ARGV[i + 1], args.word(ARGV[i + 2], VERBS, 'verb'), args.number(ARGV[i + 3], 'delay', 0))
end
local given = redis.call('HGETALL', memory)
for i = 1, #given, 2 do
  if given[i] ~= 'request' and given[i] ~= 'gone' then
    add(given[i], given[i + 1], 'refund', 0)
  end
end

redis.call('DEL', memory)
redis.call('HSET', memory, 'gone', '1')
redis.call('PEXPIRE', memory, GONE_TTL_MS)

for _, each in ipairs(held) do
  local job, verb, delay_ms = unpack(each)
  if verb == 'timeout' then
    local message = 'hard timeout: worker ' .. arg.worker .. ' was replaced'
    local failure = record.error('JobTimeout', message, now, arg.worker)
    lease.failed(job, now, 'bury', delay_ms, failure, message)
  elseif verb == 'lost' or verb == 'ended' then
    local message = 'worker died: ' .. arg.worker .. ' (' .. arg.why .. ')'
    lease.lost(job, now, 'bury', verb == 'lost' and message or message .. '; its code had ended')
  else
    lease.give_back(job, now, 'bury', 'released', {})
  end
  answer[#answer + 1] = job.id
  answer[#answer + 1] = job.state
end
state.flush(now)
wake.all(now)
return answer
