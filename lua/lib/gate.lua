-- Gates: what a lane's jobs must pass to run, beside a free slot of a worker. A gate is a limit by concurrency (a set
-- of the ids that hold a slot), by rate (GCRA), both, a job lock (concurrency of one), or a pause; `limits` has its
-- numbers.
--
-- Slots are taken in the claim, and released by whatever takes the job out of `running`: by membership, so that a
-- release twice frees nothing twice. A lane whose gate is shut is parked under it. What opens a gate leads claims to as
-- many of the parked lanes as may run; a lane that leaves without taking its slot passes that on. So for each gate and
-- class the smaller of what is free and what is parked is never out of the claims' way.

-- @include lib/bucket.lua
-- @include lib/park.lua

local gate = { freed = {}, order = {}, left = false }

local OPENS_MAX, LOOKS_MAX, CLASSES_MAX, AGAIN_MS = 64, 16, 256, 30000
local ALL_LANES = 'queue'
local HUGE = 9007199254740992

-- How many hold a slot.
local function holders(id, spec, now)
  if not spec.held then
    local whole = id == ALL_LANES
    spec.held = redis.call('ZCARD', whole and keys.leases or keys.slots(id)) + (whole and bound.taken(now) or 0)
  end
  return spec.held
end

-- Whether a gate is shut whatever it has free, and until when if that is known.
local function is_shut(spec, now)
  if spec.paused then
    return true
  end
  local till = spec.shut_until
  return till and till > now, till
end

-- How many jobs of a cost the gate lets through now, and when it is to be looked at again though nobody leaves.
function gate.free(id, cost, now)
  local spec = terms.of(id)
  local shut, till = is_shut(spec, now)
  if shut then
    return 0, till
  end
  local free, look_at = HUGE, nil
  if spec.most then
    free = math.max(0, spec.most - holders(id, spec, now))
  end
  if spec.per_us then
    local allowed, at = bucket.tokens(id, spec, cost, now)
    free, look_at = math.min(free, allowed), at
  end
  return free, look_at
end

-- As `free`, for jobs that have their slot of it already.
function gate.free_with_slot(id, cost, now)
  local spec = terms.of(id)
  local most = spec.most
  spec.most = nil
  local free, look_at = gate.free(id, cost, now)
  spec.most = most
  return free, look_at
end

-- What shuts a gate, for those who look.
function gate.shown(id, has_slot, now)
  local spec = terms.of(id)
  local full = spec.most and not has_slot and holders(id, spec, now) >= spec.most
  local kind = spec.paused and 'paused' or (spec.shut_until or 0) > now and 'blocked' or full and 'limit' or 'rate'
  if string.sub(id, 1, 1) == '!' then
    kind = 'lock'
  end
  local by = kind == 'blocked' and spec.until_of or nil
  return { kind = kind, held = spec.most and holders(id, spec, now) or 0, most = spec.most or '', by = by }
end

-- The name of a lock of this job that another holds, or nil.
function gate.taken_lock(job, now)
  local gates = lane.is_keys(job.lane) and lane.gates(job.lane) or {}
  for _, each in ipairs(gates) do
    if string.sub(each.id, 1, 1) == '!' and gate.free(each.id, 1, now) == 0 then
      return string.sub(each.id, 2)
    end
  end
  return nil
end

-- Whether a lane that comes first under this gate waits for more than what there is of its rate. Whoever comes after it
-- must not take that away for ever.
function gate.is_saving(here, each, now)
  local spec = terms.of(each.id)
  local ahead = spec.per_us and park.ahead(here, each.id)
  local cost = ahead and park.cost(ahead, each.id) or 1
  return cost > each.cost and bucket.tokens(each.id, spec, cost, now) == 0
end

-- How many jobs of this lane may run now. If none, it is parked.
function gate.room(here, now)
  local room = HUGE
  for _, each in ipairs(terms.that_count(here.gates)) do
    local free, look_at = gate.free(each.id, each.cost, now)
    local saving = free > 0 and gate.is_saving(here, each, now)
    if free == 0 or saving then
      park.put(here, each.id)
      gate.look(each.id, not saving and look_at or nil, now)
      return 0
    end
    room = math.min(room, free)
  end
  return room
end

-- These jobs of the lane begin to run.
function gate.take(here, ids, now)
  for _, each in ipairs(terms.that_count(here.gates)) do
    local spec = terms.of(each.id)
    if each.slots then
      local rows = {}
      for _, id in ipairs(ids) do
        rows[#rows + 1] = clock.text(now)
        rows[#rows + 1] = id
      end
      holders(each.id, spec, now)
      spec.held = spec.held + redis.call('ZADD', keys.slots(each.id), unpack(rows))
    end
    bucket.spend(each.id, spec, bucket.cost(spec, each.cost) * #ids, now)
  end
end

-- A job holds no slot of a gate any more, once `flush` comes.
function gate.vacate(id, job_id)
  local ids = gate.freed[id]
  if not ids then
    ids = {}
    gate.freed[id] = ids
    gate.order[#gate.order + 1] = id
  end
  ids[#ids + 1] = job_id
end

-- A job runs no more: what it held is free once `flush` comes.
function gate.give(job)
  local gates = lane.is_keys(job.lane) and lane.gates(job.lane) or {}
  for _, each in ipairs(gates) do
    if each.slots then
      gate.vacate(each.id, job.id)
    end
  end
end

-- Whether another lane, with a cost, may be led to after those that were: each takes what it will, as if it had run.
local function purse(id, spec, now)
  local spent = 0
  return function(cost)
    if not spec.per_us then
      return true
    end
    spent = spent + bucket.cost(spec, cost)
    return bucket.tokens(id, spec, 1, now) >= spent
  end
end

-- Leads claims to so many lanes of each class under a gate, as far as it is open. Returns when to look at it again, if
-- that is known, and how many it lets through.
function gate.reopen(id, most, now)
  local classes = lane.any_parked() and redis.call('ZRANGE', keys.parks(id), 0, CLASSES_MAX - 1) or {}
  if #classes == 0 then
    return nil
  end
  local free, look_at = gate.free(id, 1, now)
  local amount, spec, first_at = math.min(most, free, OPENS_MAX), terms.of(id), nil
  if amount == 0 then
    return look_at, free
  end
  if id == ALL_LANES then
    for _, class in ipairs(classes) do
      lane.unparked[class] = true
    end
    lane.forget(id, classes)
    return look_at, free
  end
  for _, class in ipairs(classes) do
    local waits_for = park.lead_out(id, class, amount, purse(id, spec, now))
    if waits_for and spec.per_us then
      local _, at = bucket.tokens(id, spec, waits_for, now)
      first_at = math.min(first_at or at, at)
    end
  end
  return first_at or look_at, free
end

-- When the next gate is to be looked at, or nil. One that stands later than any is put was put before the clock was
-- set back.
function gate.next(now)
  local at = tonumber(redis.call('ZRANGE', keys.gates, 0, 0, 'WITHSCORES')[2] or nil)
  if at then
    local last = redis.call('ZREVRANGE', keys.gates, 0, 0, 'WITHSCORES')
    if tonumber(last[2]) > now + AGAIN_MS then
      redis.call('ZADD', keys.gates, now, last[1])
      return now
    end
  end
  return at
end

-- A gate that has lanes waiting, or a mark that will pass, is looked at then, and every half a minute; the earliest
-- such wish counts, for what waits under it waits for different times. Once it was looked at only the next one does.
function gate.look(id, at, now)
  redis.call('ZADD', keys.gates, 'LT', clock.text(math.min(at or HUGE, now + AGAIN_MS)), id)
end

local function look_next(id, at, now)
  redis.call('ZADD', keys.gates, clock.text(math.min(at, now + AGAIN_MS)), id)
end

-- Opens the gates whose time has come, so many a call.
function gate.due(now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.gates, '-inf', clock.text(now), 'LIMIT', 0, LOOKS_MAX)) do
    local look_at, free = gate.reopen(id, OPENS_MAX, now)
    local spec = terms.of(id)
    local shut, till = is_shut(spec, now)
    terms.tidy(spec, now)
    if redis.call('EXISTS', keys.parks(id)) == 1 then
      look_next(id, free and free > OPENS_MAX and now or look_at or HUGE, now)
    elseif shut and till then
      look_next(id, till, now)
    else
      redis.call('ZREM', keys.gates, id)
    end
  end
end

-- How many jobs the queue as a whole may begin now, and how many with those that hold a reservation.
function gate.queue(now)
  return gate.free(ALL_LANES, 1, now), gate.free_with_slot(ALL_LANES, 1, now)
end

-- So many began. Whether that shut the queue: then a claim leaves word of its classes, for whoever opens it, and wakes
-- nobody else in vain.
function gate.shuts_queue(classes, amount, now)
  local spec = terms.of(ALL_LANES)
  if amount > 0 then
    bucket.spend(ALL_LANES, spec, amount, now)
  end
  spec.held = nil
  local free, look_at = gate.free(ALL_LANES, 1, now)
  if free > 0 then
    return false
  end
  for _, class in ipairs(classes) do
    redis.call('ZADD', keys.parks(ALL_LANES), 0, class)
  end
  gate.look(ALL_LANES, look_at or bound.lapse(now), now)
  return true
end

-- The gate of a task that was paused or limited while it had jobs, if it has one.
local tasks = {}

function gate.of_task(task)
  local id = tasks[task]
  if id == nil then
    id = '*' .. terms.encoded(task)
    if redis.call('HEXISTS', keys.limits, id) == 0 then
      id = false
    end
    tasks[task] = id
  end
  return id
end

-- A lane that left the claims' way without taking its slot passes that on. Returns whether others came.
function gate.pass_on(now)
  local left = lane.left
  lane.left = {}
  for _, here in ipairs(left) do
    for _, each in ipairs(here.gates) do
      gate.reopen(each.id, 1, now)
    end
  end
  return next(lane.led) ~= nil
end

-- Frees the slots of what ended, and leads claims to what waited for them. The classes that got work are in
-- `lane.unparked`.
function gate.flush(now)
  for _, id in ipairs(gate.order) do
    local amount = redis.call('ZREM', keys.slots(id), unpack(gate.freed[id]))
    if amount > 0 then
      terms.of(id).held = nil
      gate.reopen(id, amount, now)
    end
  end
  if gate.left then
    gate.reopen(ALL_LANES, 1, now)
  end
  gate.freed, gate.order, gate.left = {}, {}, false
  gate.pass_on(now)
end
