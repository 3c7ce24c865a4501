-- Put jobs where their state says, and nowhere else. What is right stays as it is, so a call may come late or twice. A
-- running job without a lease gets one of one lease's time: a holder that lives renews it, of one that is dead it is
-- reaped.
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
--   lease_ms   ms      one lease
--   ...                  a row each: id, and where it was seen: a lane ('' for none) and its entry
-- REPLY
--   {word, ...}  a row each: sound (nothing was to be done) | mended | condemned (no record: now a failed job) | gone

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
local arg = args.bind('now', 'lease_ms')

local now = clock.now(arg.now)
local lease_ms = lease.length(arg.lease_ms)
local LEASE_MAX_MS = 86400000
local STANDS_IN = {
  pending = 'pending', scheduled = 'scheduled', retryable = 'retryable', running = 'leases', completed = 'completed',
  failed = 'failed', cancelled = 'cancelled',
}
local FIELDS = { 'scheduled_at', 'finished_at', unpack(record.CORE) }
local changed

-- A call that answers how much it changed.
local function call(...)
  local count = redis.call(...)
  changed = changed or count > 0
  return count
end

-- Out of every set but the one where it belongs.
local function leave_others(id, set)
  for _, other in pairs(STANDS_IN) do
    if other ~= set then
      call('ZREM', keys[other], id)
    end
  end
end

-- Into its set, at a time, unless it stands there.
local function stand_in(set, id, at)
  if not redis.call('ZSCORE', keys[set], id) then
    call('ZADD', keys[set], at, id)
  end
end

-- In the lane where it was seen it stands rightly only if that is its place.
local function leave_lane(id, seen_in, seen_at, place)
  if string.find(seen_in, '^slots:') then
    return
  end
  local class, priority, text = string.match(seen_in, '^([^:]+):([^:]+):(.+)$')
  if not class then
    class, priority = string.match(seen_in, '^(.+):(.-)$')
  end
  if not class then
    return
  end
  local here, left = lane.named(class, priority, text), 0
  if place ~= here.body .. seen_at and lane.holds(here.body, seen_at, id) then
    left = call('XDEL', here.body, seen_at)
  end
  if place ~= here.front then
    left = left + call('ZREM', here.front, id)
  end
  if left > 0 then
    lane.touch(here, nil, true)
  end
end

-- A running job holds a slot of each of its gates, and nobody else does. `seen_in`: where the id was seen.
local function mend_slots(id, job, seen_in)
  local seen_at, own = string.match(seen_in, '^slots:(.+)$'), {}
  for _, each in ipairs(job and job.state == 'running' and lane.is_keys(job.lane) and lane.gates(job.lane) or {}) do
    own[each.id] = true
    if each.slots and not redis.call('ZSCORE', keys.slots(each.id), id) then
      call('ZADD', keys.slots(each.id), clock.text(now), id)
    end
  end
  if seen_at and not own[seen_at] and redis.call('ZSCORE', keys.slots(seen_at), id) then
    gate.vacate(seen_at, id)
    changed = true
  end
end

-- A waiting job's place in its lane: its entry, or the front; there it goes if it stands in neither.
local function place_in_lane(job)
  local here = lane.of(job)
  if not here.keys and lane.holds(here.body, job.entry, job.id) then
    return here.body .. job.entry
  end
  if not redis.call('ZSCORE', here.front, job.id) then
    lane.restore(job, record.number(job.place) or record.number(job.created_at, now))
    redis.call('HSET', job.key, 'entry', '')
    changed = true
  end
  return here.front
end

local function mend_running(id)
  local till = tonumber(redis.call('ZSCORE', keys.leases, id) or nil)
  if not till or till > now + LEASE_MAX_MS then
    redis.call('ZADD', keys.leases, now + lease_ms, id)
    changed = true
  end
end

-- A time of a record that can be one.
local function time_of(text)
  local at = record.number(text)
  return at and at >= 0 and at or nil
end

local function mend_ended(job)
  local at = time_of(job.finished_at)
  if not at then
    at = now
    call('HSET', job.key, 'finished_at', clock.text(now))
  end
  stand_in(job.state, job.id, at)
  local has_result = redis.call('HEXISTS', job.key, 'result') == 1
  stand_in('prune', job.id, clock.text(retention.due(job, job.state, at, has_result) or now))
end

local function mend_expiry(job)
  local expires_at = not record.begun(job) and time_of(job.expires_at) or nil
  local stands = tonumber(redis.call('ZSCORE', keys.expiring, job.id) or nil)
  local lock_until = job.state == 'available' and time_of(job.lock_until)
  if lock_until and not (stands and stands >= lock_until) then
    expires_at = math.min(lock_until, expires_at or lock_until)
  elseif lock_until then
    return
  end
  if not expires_at or job.state == 'running' or state.ends(job.state) then
    call('ZREM', keys.expiring, job.id)
  elseif stands ~= expires_at then
    redis.call('ZADD', keys.expiring, expires_at, job.id)
    changed = true
  end
end

local function mend_key(job)
  local missed = once.missed(job, now)
  if missed then
    once.take(missed, job.id, now)
    changed = true
  end
end

local function mend(job, seen_in, seen_at)
  local set, place = STANDS_IN[job.state], nil
  leave_others(job.id, set)
  if job.state == 'available' then
    place = place_in_lane(job)
  end
  leave_lane(job.id, lane.of(job).name, job.entry or '', place)
  leave_lane(job.id, seen_in, seen_at, place)
  if state.ends(job.state) then
    mend_ended(job)
  else
    call('ZREM', keys.prune, job.id)
  end
  if job.state == 'running' then
    mend_running(job.id)
  elseif job.state == 'scheduled' or job.state == 'retryable' then
    stand_in(set, job.id, time_of(job.scheduled_at) or now)
  elseif job.state == 'pending' then
    stand_in(set, job.id, time_of(job.created_at) or now)
  end
  mend_expiry(job)
  mend_slots(job.id, job, seen_in)
  mend_key(job)
end

args.groups(arg, 3)
state.begin()
local words = {}
for i = arg.rest, #ARGV, 3 do
  local id, seen_in, seen_at = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local job, why = record.fields(id, FIELDS)
  changed = false
  if job then
    mend(job, seen_in, seen_at)
    words[#words + 1] = changed and 'mended' or 'sound'
  else
    leave_others(id)
    call('ZREM', keys.prune, id)
    call('ZREM', keys.expiring, id)
    local told = redis.pcall('HMGET', keys.job(id), 'class', 'priority', 'entry', 'lane')
    leave_lane(id, lane.of({ class = told[1], priority = told[2], lane = told[4] }).name, told[3] or '')
    leave_lane(id, seen_in, seen_at)
    mend_slots(id, nil, seen_in)
    if why == 'damaged' then
      state.condemn(id, now)
    end
    words[#words + 1] = why == 'damaged' and 'condemned' or 'gone'
  end
  if changed then
    event.note('mended', id)
    stats.add('mended', job and job.task or '?', 1)
  end
end
for _, class in ipairs(state.flush(now)) do
  needs.enter(class, nil, now)
end
return words
