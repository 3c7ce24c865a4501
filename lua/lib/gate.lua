-- Gates: what a lane's jobs must pass to run, beside a free slot of a worker. A gate is a limit by concurrency (a set
-- of the ids that hold a slot), by rate (GCRA), both, a job lock (concurrency of one), or a pause; `limits` has its
-- numbers.
--
-- Slots are taken in the claim, and released by whatever takes the job out of `running`: by membership, so that a
-- release twice frees nothing twice. A lane whose gate is shut is parked under it. What opens a gate leads claims to as
-- many of the parked lanes as may run; a lane that leaves without taking its slot passes that on. So for each gate and
-- class the smaller of what is free and what is parked is never out of the claims' way.

local gate = { specs = {}, freed = {}, order = {}, left = false }

local OPENS_MAX, LOOKS_MAX, CLASSES_MAX, AGAIN_MS = 64, 16, 256, 30000
local ALL_LANES = 'queue'
local HUGE = 9007199254740992

local function read_into(text, spec)
  for word, value in string.gmatch(text or '', '(%a+)=(%S+)') do
    if word == 'r' then
      local limit, period, burst = string.match(value, '^(%d+)/(%d+)/(%d+)$')
      limit, period, burst = tonumber(limit), tonumber(period), tonumber(burst)
      if limit and limit > 0 and period > 0 and burst > 0 then
        spec.per_us, spec.burst = period * 1000 / limit, burst
      end
    elseif word == 'c' then
      spec.most = record.number(value, spec.most)
    elseif word == 'until' then
      spec.shut_until = record.number(value, 0)
    elseif word == 'paused' then
      spec.paused = true
    end
  end
end

-- The numbers of a gate: those of its name, and over them its own.
local function spec_of(id)
  local spec = gate.specs[id]
  if not spec then
    spec = {}
    gate.specs[id] = spec
    local mark = string.sub(id, 1, 1)
    if mark == '!' then
      spec.most = 1
    elseif mark == '@' or mark == '*' or id == ALL_LANES then
      read_into(redis.call('HGET', keys.limits, id), spec)
    else
      local name = string.match(id, '^([^=]*)=')
      local numbers = redis.call('HMGET', keys.limits, name or id, id)
      read_into(numbers[1], spec)
      if name then
        read_into(numbers[2], spec)
      end
    end
  end
  return spec
end

-- How many hold a slot.
local function holders(id, spec, now)
  if not spec.held then
    local whole = id == ALL_LANES
    spec.held = redis.call('ZCARD', whole and keys.leases or keys.slots(id)) + (whole and bound.taken(now) or 0)
  end
  return spec.held
end

-- How many jobs of a cost a rate lets through now, and when it lets one more.
local function tokens(id, spec, cost, now)
  local now_us, burst = now * 1000, math.max(spec.burst, cost)
  if not spec.tat then
    -- Never later than it could have been set: a clock that was set back holds nobody for long.
    spec.tat = math.min(record.number(redis.call('GET', keys.rate(id)), 0), now_us + burst * spec.per_us)
  end
  local base = math.max(spec.tat, now_us)
  local free = math.max(0, math.floor((now_us + burst * spec.per_us - base) / (spec.per_us * cost) + 0.000001))
  local next_us = base + ((free + 1) * cost - burst) * spec.per_us
  return free, math.max(now + 1, math.ceil(next_us / 1000))
end

-- How many jobs of a cost the gate lets through now, and when it is to be looked at again though nobody leaves.
function gate.free(id, cost, now)
  local spec = spec_of(id)
  if spec.paused then
    return 0
  elseif spec.shut_until and spec.shut_until > now then
    return 0, spec.shut_until
  end
  local free, look_at = HUGE, nil
  if spec.most then
    free = math.max(0, spec.most - holders(id, spec, now))
  end
  if spec.per_us then
    local allowed, at = tokens(id, spec, cost, now)
    free, look_at = math.min(free, allowed), at
  end
  return free, look_at
end

-- As `free`, for jobs that have their slot of it already.
function gate.free_with_slot(id, cost, now)
  local spec = spec_of(id)
  local most = spec.most
  spec.most = nil
  local free, look_at = gate.free(id, cost, now)
  spec.most = most
  return free, look_at
end

-- What shuts a gate, for those who look.
function gate.shown(id, has_slot, now)
  local spec = spec_of(id)
  local full = spec.most and not has_slot and holders(id, spec, now) >= spec.most
  local kind = spec.paused and 'paused' or (spec.shut_until or 0) > now and 'blocked' or full and 'limit' or 'rate'
  if string.sub(id, 1, 1) == '!' then
    kind = 'lock'
  end
  return { kind = kind, held = spec.most and holders(id, spec, now) or 0, most = spec.most or '' }
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

-- How many jobs of this lane may run now. If none, it is parked.
function gate.room(here, now)
  local room = HUGE
  for _, each in ipairs(here.gates) do
    local free, look_at = gate.free(each.id, each.cost, now)
    if free == 0 then
      lane.park(here, each.id, look_at, now)
      return 0
    end
    room = math.min(room, free)
  end
  return room
end

local function spend(id, spec, cost, now)
  if spec.per_us then
    tokens(id, spec, cost, now)
    spec.tat = math.max(spec.tat, now * 1000) + cost * spec.per_us
    local ttl_ms = math.ceil(spec.tat / 1000) - now + 1000
    redis.call('SET', keys.rate(id), string.format('%.0f', spec.tat), 'PX', clock.text(ttl_ms))
  end
end

-- These jobs of the lane begin to run.
function gate.take(here, ids, now)
  for _, each in ipairs(here.gates or {}) do
    local spec = spec_of(each.id)
    if each.slots then
      local rows = {}
      for _, id in ipairs(ids) do
        rows[#rows + 1] = clock.text(now)
        rows[#rows + 1] = id
      end
      holders(each.id, spec, now)
      spec.held = spec.held + redis.call('ZADD', keys.slots(each.id), unpack(rows))
    end
    spend(each.id, spec, each.cost * #ids, now)
  end
end

-- A job runs no more: what it held is free once `flush` comes.
function gate.give(job)
  local gates = lane.is_keys(job.lane) and lane.gates(job.lane) or {}
  for _, each in ipairs(gates) do
    if each.slots then
      local ids = gate.freed[each.id]
      if not ids then
        ids = {}
        gate.freed[each.id] = ids
        gate.order[#gate.order + 1] = each.id
      end
      ids[#ids + 1] = job.id
    end
  end
end

-- Leads claims to so many lanes of each class under a gate, as far as it is open. Returns when to look at it again, if
-- that is known, and how many it lets through.
function gate.reopen(id, most, now)
  local classes = redis.call('ZRANGE', keys.parks(id), 0, CLASSES_MAX - 1)
  if #classes == 0 then
    return nil
  end
  local free, look_at = gate.free(id, 1, now)
  local amount = math.min(most, free, OPENS_MAX)
  for _, class in ipairs(amount > 0 and classes or {}) do
    if id == ALL_LANES then
      lane.unparked[class] = true
      redis.call('ZREM', keys.parks(id), class)
    else
      lane.unpark(id, class, amount)
    end
  end
  return look_at, free
end

-- When the next gate is to be looked at, or nil.
function gate.next()
  return tonumber(redis.call('ZRANGE', keys.gates, 0, 0, 'WITHSCORES')[2] or nil)
end

-- Opens the gates whose time has come, so many a call.
function gate.due(now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.gates, '-inf', clock.text(now), 'LIMIT', 0, LOOKS_MAX)) do
    local look_at, free = gate.reopen(id, OPENS_MAX, now)
    if redis.call('EXISTS', keys.parks(id)) == 0 then
      redis.call('ZREM', keys.gates, id)
    else
      local again = free and free > OPENS_MAX and now or look_at or now + AGAIN_MS
      redis.call('ZADD', keys.gates, clock.text(again), id)
    end
  end
end

-- How many jobs the queue as a whole may begin now, and how many with those that hold a reservation. A claim that it
-- stops leaves word of its classes, for whoever frees a slot.
function gate.queue(classes, now)
  local free, look_at = gate.free(ALL_LANES, 1, now)
  if free == 0 then
    look_at = look_at or bound.lapse(now)
    for _, class in ipairs(classes) do
      redis.call('ZADD', keys.parks(ALL_LANES), 0, class)
    end
    redis.call('ZADD', keys.gates, clock.text(math.min(look_at or now + AGAIN_MS, now + AGAIN_MS)), ALL_LANES)
  end
  return free, gate.free_with_slot(ALL_LANES, 1, now)
end

function gate.spend_queue(amount, now)
  if amount > 0 then
    spend(ALL_LANES, spec_of(ALL_LANES), amount, now)
  end
end

-- The gate of a task that was paused or limited while it had jobs, if it has one.
local tasks = {}

function gate.of_task(task)
  local id = tasks[task]
  if id == nil then
    id = '*' .. string.gsub(task, '[^%w._~@+/-]', function(c)
      return string.format('%%%02X', string.byte(c))
    end)
    if redis.call('HEXISTS', keys.limits, id) == 0 then
      id = false
    end
    tasks[task] = id
  end
  return id
end

-- Frees the slots of what ended, and leads claims to what waited for them. The classes that got work are in
-- `lane.unparked`.
function gate.flush(now)
  for _, id in ipairs(gate.order) do
    local amount = redis.call('ZREM', keys.slots(id), unpack(gate.freed[id]))
    if amount > 0 then
      spec_of(id).held = nil
      gate.reopen(id, amount, now)
    end
  end
  if gate.left then
    gate.reopen(ALL_LANES, 1, now)
  end
  gate.freed, gate.order, gate.left = {}, {}, false
  local left = lane.left
  lane.left = {}
  for _, here in ipairs(left) do
    for _, each in ipairs(here.gates) do
      gate.reopen(each.id, 1, now)
    end
  end
end
