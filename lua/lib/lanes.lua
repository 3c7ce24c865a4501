-- Walking over the lanes of a queue, for those who look and for a purge: those that claims are led to, in claiming
-- order within a class, then those that are parked.

local lanes = {}

local LANES_MAX, GATES_MAX, UNDER_MAX = 1000, 1000, 256

local function visit_all(names, visit)
  for _, name in ipairs(names) do
    local here = lane.from(name)
    if here and not visit(here) then
      return false
    end
  end
  return true
end

local function each_open_of(class, visit)
  for _, priority in ipairs(redis.call('ZREVRANGE', keys.levels(class), 0, -1)) do
    for _, group in ipairs(redis.call('ZRANGE', keys.groups(class, priority), 0, LANES_MAX - 1)) do
      local names = redis.call('ZRANGE', keys.lanes(class, priority, group), 0, LANES_MAX - 1)
      if not visit_all(names, visit) then
        return false
      end
    end
  end
  return true
end

local function each_open(visit)
  for _, class in ipairs(redis.call('HKEYS', keys.classes)) do
    if not each_open_of(class, visit) then
      return false
    end
  end
  return true
end

local function each_under(id, class, visit)
  return visit_all(redis.call('ZRANGE', keys.parked(id, class), 0, LANES_MAX - 1), visit)
end

-- Calls `visit` for each lane that is parked, until it answers false.
function lanes.each_parked(visit)
  for _, id in ipairs(redis.call('ZRANGE', keys.gates, 0, GATES_MAX - 1)) do
    for _, class in ipairs(redis.call('ZRANGE', keys.parks(id), 0, UNDER_MAX - 1)) do
      if not each_under(id, class, visit) then
        return false
      end
    end
  end
  return true
end

-- Calls `visit` for each lane of a class with work, until it answers false.
function lanes.each_of(class, visit)
  if not each_open_of(class, visit) then
    return false
  end
  for _, id in ipairs(redis.call('ZRANGE', keys.gates, 0, GATES_MAX - 1)) do
    if redis.call('ZSCORE', keys.parks(id), class) and not each_under(id, class, visit) then
      return false
    end
  end
  return true
end

-- Calls `visit` for each lane with work, until it answers false.
function lanes.each(visit)
  return each_open(visit) and lanes.each_parked(visit)
end

-- How many jobs wait in lanes, and in how many lanes they do, of which so many are looked at. Plain lanes are counted
-- as they are; there are few. What waits in lanes with keys is a number that is kept.
function lanes.waiting()
  local seen, jobs = 0, math.max(0, record.number(redis.call('HGET', keys.meta, 'keyed'), 0))
  lanes.each(function(here)
    seen = seen + 1
    if not here.keys then
      jobs = jobs + lane.length(here)
    end
    return seen < LANES_MAX
  end)
  return jobs, seen
end
