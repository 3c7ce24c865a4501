-- Parking: lanes that wait under a shut gate, out of every claim's way, best priority first, then whose group has had
-- least. What opens the gate leads claims back to them, in that order.

local park = {}

local TAGS = 4398046511104

local function parks_at(here)
  return (511 - tonumber(here.priority)) * TAGS + math.min(here.start, TAGS - 1)
end

-- Parks a lane under a shut gate: one that was served stands behind those that weren't.
function park.put(here, id)
  lane.lead_away(here)
  here.siblings, here.sole, here.others = nil, nil, nil
  lane.some_parked = true
  redis.call('ZADD', keys.parked(id, here.class), parks_at(here), here.name)
  redis.call('ZADD', keys.parks(id), 0, here.class)
  lane.left[#lane.left + 1] = here
end

-- Where its group stands, for those who look at a lane that no claim has met.
function park.start(here, id)
  local parked = redis.call('ZSCORE', keys.parked(id, here.class), here.name)
  return parked and parked % TAGS or tonumber(redis.call('ZSCORE', here.groups, here.group) or 0)
end

-- The lane of this one's class that is first under a gate, if this one would park behind it.
function park.ahead(here, id)
  local first = redis.call('ZRANGE', keys.parked(id, here.class), 0, 0, 'WITHSCORES')
  local at, mine = tonumber(first[2] or nil), parks_at(here)
  if at and (at < mine or (at == mine and first[1] < here.name)) then
    return lane.from(first[1])
  end
  return nil
end

-- What a job of a lane takes of a gate's rate.
function park.cost(here, id)
  for _, each in ipairs(here.gates or {}) do
    if each.id == id then
      return each.cost
    end
  end
  return 1
end

-- Whether a lane of that name stands rightly under a gate: it has work and that gate, and nothing leads to it.
function park.waits(name, id, class)
  local here = lane.from(name)
  if not here or here.class ~= class or not lane.head(here) or redis.call('ZSCORE', here.lanes, name) then
    return false
  end
  for _, each in ipairs(here.gates or {}) do
    if each.id == id then
      return true
    end
  end
  return false
end

-- Leads claims to so many lanes of a class that are parked under a gate, in order, as far as there is enough for each:
-- `affords` is told its cost. Returns the cost of the first for which there isn't, the least one if others are left.
local ROUNDS_MAX = 64

function park.lead_out(id, class, most, affords)
  local parked, waits_for = keys.parked(id, class), nil
  for _ = 1, ROUNDS_MAX do -- more than once only where lanes without work are met
    local names = redis.call('ZRANGE', parked, 0, most - 1)
    for _, name in ipairs(names) do
      local here = lane.from(name)
      local at = here and lane.head(here)
      if at and not affords(park.cost(here, id)) then
        waits_for = park.cost(here, id)
        break
      end
      redis.call('ZREM', parked, name)
      if at then
        lane.lead_to(here, at)
        lane.unparked[class] = true
        most = most - 1
      end
    end
    if waits_for or most == 0 or #names == 0 then
      break
    end
  end
  return waits_for or (not lane.forget_empty(id, class) and 1 or nil)
end
