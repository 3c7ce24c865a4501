-- What leads a claim to lanes: per class its levels, per level its groups, per group its lanes; and the parked ones,
-- which nothing leads to until what shut their gate opens. Part of `lane`, which knows what stands in them.

-- What the sets of a level are to become, gathered lane by lane, so that many lanes cost a few calls: groups that go,
-- groups that have their tag, and groups that are there at least. One that goes may come again by another of its lanes.
local function plan_of(plans, here)
  local plan = plans[here.groups]
  if not plan then
    plan = { here = here, gone = {}, tagged = {}, there = { 'NX' } }
    plans[here.groups] = plan
    plans[#plans + 1] = plan
  end
  return plan
end

local function plan_to(plans, here, at, only)
  if only then
    redis.call('ZADD', here.lanes, only, at, here.name)
  else
    redis.call('ZADD', here.lanes, at, here.name)
  end
  local plan = plan_of(plans, here)
  local rows = here.tag and plan.tagged or plan.there
  rows[#rows + 1] = here.tag or 0
  rows[#rows + 1] = here.group
end

-- Returns whether anything led there.
local function plan_away(plans, here)
  local left = redis.call('ZREM', here.lanes, here.name)
  local sole = here.sole and not lane.led[here.lanes]
  if sole or (not here.siblings and redis.call('EXISTS', here.lanes) == 0) then
    local plan = plan_of(plans, here)
    plan.gone[#plan.gone + 1], plan.others = here.group, here.others
  end
  return left == 1
end

local function carry_out(plans)
  for _, plan in ipairs(plans) do
    local here, filled = plan.here, #plan.tagged > 0 or #plan.there > 1
    if #plan.gone > 0 then
      redis.call('ZREM', here.groups, unpack(plan.gone))
    end
    if #plan.tagged > 0 then
      redis.call('ZADD', here.groups, unpack(plan.tagged))
    end
    if #plan.there > 1 then
      redis.call('ZADD', here.groups, unpack(plan.there))
    end
    if filled then
      redis.call('ZADD', here.levels, 'NX', here.priority, here.priority)
    elseif not (plan.others and #plan.gone == 1) and redis.call('EXISTS', here.groups) == 0 then
      redis.call('ZREM', here.levels, here.priority)
    end
  end
end

-- At once, for one lane.
function lane.lead_to(here, at)
  local plans = {}
  plan_to(plans, here, at)
  lane.led[here.lanes] = true
  carry_out(plans)
end

function lane.lead_away(here)
  local plans = {}
  local left = plan_away(plans, here)
  carry_out(plans)
  return left
end

-- Whether any lane of this queue is parked, or a claim left word under the queue's own gate.
function lane.any_parked()
  if lane.some_parked == nil then
    lane.some_parked = redis.call('EXISTS', keys.gates) == 1
  end
  return lane.some_parked
end

-- The gate that a lane is parked under, or nil.
function lane.parked(here)
  for _, gate in ipairs(here.gates and lane.any_parked() and here.gates or {}) do
    if redis.call('ZSCORE', keys.parked(gate.id, here.class), here.name) then
      return gate.id
    end
  end
  return nil
end

-- Classes from which nothing waits under a gate any more are forgotten there, and the gate with the last of them. One
-- with a mark is not: who looks at it once that has passed takes the mark away, and then the gate.
function lane.forget(id, classes)
  redis.call('ZREM', keys.parks(id), unpack(classes))
  if redis.call('EXISTS', keys.parks(id)) == 0 and not terms.of(id).shut_until then
    redis.call('ZREM', keys.gates, id)
  end
end

-- So it is with a class whose last parked lane is gone from under a gate. Returns whether it was.
function lane.forget_empty(id, class)
  if redis.call('EXISTS', keys.parked(id, class)) == 1 then
    return false
  end
  lane.forget(id, { class })
  return true
end

-- Puts a lane that was taken from in its right position, or out of the sets that lead to it. Returns whether a claim
-- finds work there.
local function settle(plans, here, now)
  local at = here.head_at
  if not here.head_known then
    at = lane.head(here)
  end
  if at and not lane.parked(here) then
    plan_to(plans, here, at)
    return true
  elseif at then
    return false
  end
  if plan_away(plans, here) and here.gates and lane.any_parked() then
    lane.left[#lane.left + 1] = here
  end
  for _, gate in ipairs(here.gates and lane.any_parked() and here.gates or {}) do
    if redis.call('ZREM', keys.parked(gate.id, here.class), here.name) == 1 then
      lane.forget_empty(gate.id, here.class)
    end
  end
  if not here.keys then
    redis.call('ZADD', keys.empty, now, here.name)
  end
  return false
end

-- Brings levels, groups and lanes up to date. Returns the classes that got work, each once; those that the sweep
-- dropped meanwhile are entered again.
function lane.flush(now)
  local classes, seen, plans = {}, {}, {}
  for _, here in ipairs(lane.order) do
    local filled = here.since
    if here.taken then
      filled = settle(plans, here, now) and filled
    elseif filled and lane.parked(here) then
      filled = nil
    elseif filled then
      plan_to(plans, here, filled, 'LT')
    end
    if filled and not seen[here.class] then
      seen[here.class] = true
      classes[#classes + 1] = here.class
      if needs.is_narrow(here.class) then
        needs.enter(here.class, lane.heads(here, 1)[1], now)
      end
    end
  end
  carry_out(plans)
  for _, here in ipairs(lane.order) do
    here.since, here.taken, here.touched, here.head_known = nil, nil, nil, false
    here.tag, here.siblings, here.sole, here.others = nil, nil, nil, nil
  end
  lane.order, lane.led = {}, {}
  return classes
end

-- Keeps the number of jobs in lanes with keys, once a call.
function lane.count()
  if lane.counted ~= 0 then
    redis.call('HINCRBY', keys.meta, 'keyed', lane.counted)
    lane.counted = 0
  end
end

-- Whether a lane of that name belongs to a group; if so, the lane.
function lane.belongs(name, class, priority, group)
  local here = lane.from(name)
  return here and here.class == class and here.priority == priority and here.group == group and here
end

-- The highest level of a class, or nil. It may lead nowhere.
function lane.top(class)
  return redis.call('ZREVRANGE', keys.levels(class), 0, 0)[1]
end

-- The lane of a group that comes first, or nil: what leads there and isn't one of ours is taken out, so many at a time.
local STALE_MAX = 64

function lane.first(class, priority, group)
  local lanes = keys.lanes(class, priority, group)
  for _ = 1, STALE_MAX do
    local names = redis.call('ZRANGE', lanes, 0, 1, 'WITHSCORES')
    if not names[1] then
      return nil
    end
    local here = lane.belongs(names[1], class, priority, group)
    if here then
      here.at, here.siblings, here.sole = tonumber(names[2]), names[3] ~= nil, names[3] == nil
      return here
    end
    redis.call('ZREM', lanes, names[1])
  end
  return nil
end

-- A plain lane that has work and to which nothing leads, because a key was lost. It is led to again.
function lane.strayed(class, priority)
  local here = lane.named(class, priority)
  local at = lane.head(here)
  if at then
    lane.lead_to(here, at)
    here.at = at
    return here
  end
  lane.lead_away(here)
  return nil
end
