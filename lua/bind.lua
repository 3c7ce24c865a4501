-- Turn a reservation into exactly one waiting job, which holds its slot until its first attempt is over. The same
-- content again is the same call, also after the job has ended. A server at maxmemory refuses it, whole, as it does
-- `enqueue`: the reservation stays.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   classes       hash    class -> what it needs of a worker
--   scheduled     zset    jobs by due time
--   retryable     zset    failed jobs by the end of their backoff
--   expiring      zset    waiting jobs that have `expires`, by that time
--   leases        zset    running jobs by lease expiry
--   pending       zset    jobs that wait for other jobs
--   completed     zset    by time of entry
--   failed        zset    by time of entry
--   cancelled     zset    by time of entry
--   prune         zset    ended jobs by the time they may go
--   events        stream  one entry a call and kind of transition
--   stats         hash    totals by state and task
--   empty         zset    lanes whose body ran empty, by when
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   gates         zset    gates that have parked lanes, by when to look at them
--   kinds         hash    task -> executor kind, as the workers declared it
--   reservations  zset    reservations that aren't bound, by their end
-- ARGV
--   now    ms      '' = the server's clock; a test passes a time
--   token  string  which reservation
--   print  string  tells this content from another
--   ...              one job, as `enqueue` takes it
-- REPLY
--   {'ok', word, id}    available | scheduled: this job was made; existing | replaced: as `enqueue` says it of another
--                       job, whose id it is. Beside an existing one none was made, and the slot is free
--   {'unknown'}         there is no such reservation, or it lapsed
--   {'conflict', id}    it was bound, with other content; to that job
--   {'duplicate', id, key, owner}  the job met the owner of its unique key, and says that this is an error
--   {'classes', needs, most}  the queue has as many classes as it may

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
-- @include lib/birth.lua
-- @include lib/admission.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates', 'kinds', 'reservations'
)
local arg = args.bind('now', 'token', 'print')

local now = clock.now(arg.now)
local token, at = arg.token, arg.rest
if not admission.is_token(token) or birth.after(at) ~= #ARGV + 1 then
  error('a reservation is bound to one job', 0)
end

local found = redis.call('HMGET', keys.reservation(token), 'key', 'print', 'word', 'job')
local key = found[1]
-- A repeat writes too: WAIT on its connection then tells who has what the first call wrote.
if found[2] == arg.print and found[3] then
  redis.call('ZREM', keys.reservations, '')
  redis.call('HSET', keys.reservation(token), 'print', arg.print)
  return { 'ok', found[3], found[4] or '' }
elseif found[2] then
  return { 'conflict', found[4] or '' }
elseif not key or not admission.till(token, now) or bound.holder(key) ~= token then
  return { 'unknown' }
end

-- Nothing is made beside a job that exists, and nothing needs the slot.
local function give_up(id)
  admission.drop(key, token)
  redis.call('HSET', keys.reservation(token), 'job', id, 'print', arg.print, 'word', 'existing')
  redis.call('PEXPIRE', keys.reservation(token), bound.KNOWN_MS)
  admission.freed(now)
  return { 'ok', 'existing', id }
end

if redis.call('EXISTS', keys.job(ARGV[at])) == 1 then
  return give_up(ARGV[at])
end
local job = birth.read(at, #ARGV + 1, now)
local met, owner, instead = meet.decide(job, now)
if met == 'duplicate' then
  return { 'duplicate', ARGV[at], job.unique.key, owner }
elseif met and not instead then
  return give_up(owner)
end
job = instead or job
local refusal = birth.refusal(job, ARGV[at + 4])
if refusal then
  return refusal
end
job.lane = bound.with(job.lane, key)
if not lane.is_keys(job.lane) then
  error('job ' .. job.id .. ' cannot have so many keys', 0)
end

-- A job that this one replaces may have held a slot of its own.
local old = job.replaces and bound.key(job.replaces.lane)
local word = met or (job.due and 'scheduled' or 'available')
birth.write({ job }, now)
local before, id = bound.holder(old or '')
if old and id == job.id then
  bound.free(old, before)
end
admission.bind(key, token, job.id, arg.print, word, now)
return { 'ok', word, job.id }
