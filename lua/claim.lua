-- Take the right to run waiting jobs, best first, and hand the worker all it needs to run them.
--
-- Repeatable: one claim of a worker is under way, numbered; the same number again gets what of that batch still
-- runs, its leases renewed. Due jobs are promoted on the way, so that a worker's own timer is enough to start them.
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
--   weights    hash    fairness key -> its weight
--   executors  zset    executors that aren't our worker, by until when each counts as alive
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   worker     id      who says so
--   request    number  this claim of the worker; grows by one
--   lease_ms   ms      how long the right lasts
--   limit      count   at most so many jobs
--   offer_ms   ms      0 = they start now; else each is an offer, to be started (`start`) within this time
--   poller     text    who of the worker asks; written beside it
--   call       text    '' = numbered by `request`; else it names this call, and only this name is the same claim again
--   pools      count   how many pools follow
--   ...                  that many pools, each its name and what is free of it: an executor kind and its slots, by
--                        which the class of the jobs is called that need nothing else, or '+' and a resource; then
--                        each narrow class that it serves: class, n, then n pairs of pool and what a job takes of it
-- REPLY
--   {word, jobs, next_ms, version, at_ms}
--   word: ok | paused (nothing is handed out) | gone (the worker was declared dead) | stale (a newer request was seen)
--   jobs: {id, epoch, attempt, {field, value, ...}}
--   next_ms: ms until something is due that this worker should claim for, or -1
--   version: changes when the queue got a class it did not have
--   at_ms: the time here, from which the leases count

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
-- @include lib/fair.lua
-- @include lib/state.lua
-- @include lib/lease.lua
-- @include lib/due.lua
-- @include lib/executors.lua
-- @include lib/pools.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates', 'weights', 'executors'
)
local arg = args.bind(
  'now', 'worker', 'request', 'lease_ms', 'limit', 'offer_ms', 'poller', 'call', 'pools'
)

local now = clock.now(arg.now)
local lease_ms, limit = lease.length(arg.lease_ms), args.number(arg.limit, 'limit', 0)
local request = args.number(arg.request, 'request', 0)
local offer_ms = args.number(arg.offer_ms, 'offer_ms', 0, 86400000)
local STEPS_MAX, LOOKED_MAX, PROMOTE_MAX, OTHERS_LATER_MS, MOVED_MAX = 128, 250, 100, 50, 100
local REPLY_BYTES_MAX, HANDED_BACK_LATER_MS = 1048576, 1000
pools.read(arg.rest, args.number(arg.pools, 'number of pools', 0, 1000))
local classes, fits = pools.classes, pools.fits

-- Of a call with a name of its own only a repetition must be known, and nobody sends one after so long.
local memory = keys.claimed(arg.call == '' and arg.worker or arg.worker .. '/' .. arg.call)
local MEMORY_TTL_MS = arg.call == '' and 3600000 or 60000
local last = redis.call('HMGET', memory, 'request', 'gone')

-- Work of these classes that others should claim: where the queue is full, what holds a slot of it already.
local function pass_on(full)
  for _, class in ipairs(classes) do
    local levels = keys.levels(class)
    local has_work = not full and redis.call('EXISTS', levels) == 1
    if has_work or (full and redis.call('ZSCORE', levels, bound.LEVEL)) then
      wake.set(class, now)
    end
  end
end

if last[2] then
  -- It was buried, and may have taken a marker since.
  state.begin()
  pass_on()
  return { 'gone', {}, -1, 0, now }
end
local last_request = record.number(last[1], 0)
if request < last_request then
  return { 'stale', {}, -1, 0, now }
end

local META = { 'paused', 'seen', 'quiet_until', 'timer_at', 'timer_worker', 'class_version', 'age_ms', 'epoch_floor' }
local meta = redis.call('HMGET', keys.meta, unpack(META))
local version = record.number(meta[6], 0)
local jobs, bytes = {}, 0

-- Epochs grow, also over records that are gone.
local epoch_floor = math.max(now, record.number(meta[8], 0) + 1)

local function hand_out(job, flat, attempt)
  jobs[#jobs + 1] = { job.id, job.epoch, attempt, flat }
end

-- One worker is told the exact time of what is due next, the others a little later: they needn't all come. Of what it
-- handed back a worker is told much later, so that one which knows the task comes first.
local function next_ms()
  local at, id = due.next()
  local gate_at = gate.next(now)
  if gate_at and gate_at <= now then
    wake.all(now) -- more were due than one call looks at
  end
  if gate_at and not (at and at <= gate_at) then
    at, id = gate_at, nil
  end
  if not at then
    return -1
  end
  local told = record.number(meta[4])
  if told ~= at or meta[5] == arg.worker or now > at + 1000 then
    if told ~= at then
      if id and at > now and due.handed_back(id, arg.worker) then
        return at - now + HANDED_BACK_LATER_MS
      end
      redis.call('HSET', keys.meta, 'timer_at', clock.text(at), 'timer_worker', arg.worker)
    end
    return math.max(0, at - now)
  end
  return math.max(0, at - now) + OTHERS_LATER_MS
end

-- The same request again: what of its batch this worker still holds.
if request == last_request then
  state.begin()
  local given = redis.call('HGETALL', memory)
  for i = 1, #given, 2 do
    if given[i] ~= 'request' then
      local job, flat = record.read(given[i])
      if job and job.state == 'running' and job.epoch == given[i + 1] and job.worker == arg.worker then
        redis.call('ZADD', keys.leases, now + (record.is_offer(job) and offer_ms or lease_ms), job.id)
        hand_out(job, flat, record.attempt(job))
      end
    end
  end
  return { 'ok', jobs, next_ms(), version, now }
end

redis.call('DEL', memory)
executors.claims(arg.worker, arg.call, now, lease_ms, offer_ms)
lease.stamp(now, lease_ms, meta[2], meta[3])
if meta[1] then
  redis.call('HSET', memory, 'request', request)
  redis.call('PEXPIRE', memory, MEMORY_TTL_MS)
  return { 'paused', {}, -1, version, now }
end

local _, promoted = due.promote(now, PROMOTE_MAX, true)
gate.due(now)
for class in pairs(lane.unparked) do
  promoted[#promoted + 1] = class
end
local whole = redis.call('HMGET', keys.limits, 'queue', '*', '@')
terms.keys = whole[3] and true or false
local unbound = limit -- so many of those that hold no reservation
if whole[1] then
  local free_slots, others = gate.queue(now)
  unbound, limit = math.min(limit, free_slots), math.min(limit, others)
end
fair.begin(meta[7], now)

-- A job whose task was paused or limited after it came waits from now on in a lane that has to pass that gate.
local moved = 0

local function divert(job)
  local mark = whole[2] and gate.of_task(job.task)
  local group, gates = string.match(lane.is_keys(job.lane) and job.lane or '-:', '^([^:]*):(.*)$')
  if not mark or string.find(',' .. gates .. ',', ',' .. mark .. ',', 1, true) then
    return false
  end
  moved = moved + 1
  job.lane = group .. ':' .. mark .. (gates ~= '' and ',' .. gates or '')
  redis.call('HSET', job.key, 'lane', job.lane, 'entry', '')
  lane.restore(job, record.number(job.place) or record.number(job.created_at, now))
  return true
end

-- What stands in a lane is claimed, unless it may no longer run; that is settled here and now. Returns its epoch, or
-- 'full' if the reply would become too large with it, or too much was moved: then it stays where it is.
local function start(id)
  local job, flat = record.read(id)
  if flat == 'missing' then
    return nil
  end
  if flat == 'damaged' then
    state.condemn(id, now)
    return nil
  end
  if job.state ~= 'available' then
    return nil
  end
  job.taken = true
  local damage = record.damage(job)
  if damage then
    state.move(job, 'failed', now, { 'reason', 'BadRecord: ' .. damage })
    return nil
  end
  if record.expired(job, now) then
    state.move(job, 'cancelled', now, { 'reason', 'expired' })
    return nil
  end
  if whole[2] and moved >= MOVED_MAX then
    return 'full'
  elseif whole[2] and divert(job) then
    return nil
  end
  local size = #(job.payload or '')
  if #jobs > 0 and bytes + size > REPLY_BYTES_MAX then
    return 'full'
  end
  local attempt = record.attempt(job) + 1
  if attempt > record.max_attempts(job) then
    state.move(job, 'failed', now, { 'reason', 'attempts exhausted' })
    return nil
  end
  local epoch = clock.text(math.max(job.epoch and record.number(job.epoch, 0) + 1 or now, epoch_floor))
  local more = { 'epoch', epoch, 'attempt', attempt, 'worker', arg.worker }
  local term = lease.grant(job, more, epoch, now, lease_ms, offer_ms, arg.poller)
  job.epoch, job.attempt = epoch, attempt
  bytes = bytes + size
  state.move(job, 'running', now, more, term)
  hand_out(job, flat, attempt)
  return epoch
end

local memo = { 'request', request }
local looked, full = 0, false

-- Takes up to so many jobs from the head of a lane.
local function take(here, most)
  local heads = lane.heads(here, most)
  local used, ids = 0, {}
  while used < #heads and not full do
    local epoch = start(heads[used + 1])
    full = epoch == 'full'
    if not full then
      used = used + 1
      if epoch then
        ids[#ids + 1] = heads[used]
        memo[#memo + 1] = heads[used]
        memo[#memo + 1] = epoch
      end
    end
  end
  lane.drop(here, heads, used)
  looked = looked + used
  pools.use(here.class, #ids)
  if here.priority ~= bound.LEVEL then
    unbound = unbound - #ids
  end
  if here.gates and #ids > 0 then
    gate.take(here, ids, now)
  end
  fair.charge(here, #ids)
end

for _ = 1, STEPS_MAX do
  local want = math.min(limit - #jobs, LOOKED_MAX - looked)
  local here = want > 0 and not full and (unbound > 0 and fair.next or fair.next_bound)(classes, fits, want)
  if not here then
    break
  elseif here.priority ~= bound.LEVEL then
    want = math.min(want, unbound)
  end
  local room = here.gates and gate.room(here, now) or want
  if room > 0 then
    take(here, math.min(want, fits(here.class), here.turn, room))
  else
    fair.charge(here, 0) -- it was parked
  end
end
fair.flush()
for _, class in ipairs(state.flush(now, true)) do
  promoted[#promoted + 1] = class
end
local shut = whole[1] and gate.shuts_queue(classes, #jobs, now)

-- Work left for others: what we stopped short of, and what we promoted for classes that aren't ours.
for _, class in ipairs(promoted) do
  if not pools.serves(class) then
    wake.set(class, now)
  end
end
pass_on(shut)

redis.call('HSET', memory, unpack(memo))
redis.call('PEXPIRE', memory, MEMORY_TTL_MS)
return { 'ok', jobs, next_ms(), version, now }
