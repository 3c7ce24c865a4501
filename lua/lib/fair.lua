-- Whose turn it is. Within a level groups (fairness keys) share by weight: each has a finish tag, which grows by what
-- it was given over its weight, and the one with the lowest is next. The tag belongs to the key, not to its lanes, and
-- outlives them until virtual time has passed it, or a key with one job at a time would take every second turn.
-- (Start-time fair queueing: P. Goyal, H. Vin, H. Cheng, 1996.)

local fair = { vtime = 0, read = 0, weights = {}, weighted = nil, tags = {}, charged = {}, sizes = {} }

-- What one job of weight 1 adds to a tag: divisible by the small weights. Tags are whole numbers.
local COST, TURNS_MAX, LEVELS_MAX, FORGET_MAX = 240, 64, 64, 16

-- `vtime` is the tag of whoever was served last, as `meta` has it.
function fair.begin(vtime)
  fair.vtime = math.max(0, record.number(vtime, 0))
  fair.read = fair.vtime
end

local function cost_of(group)
  if fair.weighted == nil then
    fair.weighted = redis.call('EXISTS', keys.weights) == 1
  end
  local cost = fair.weighted and fair.weights[group] or COST
  if fair.weighted and not fair.weights[group] then
    local weight = tonumber(redis.call('HGET', keys.weights, group) or 1) or 1
    cost = weight > 0 and math.max(1, math.floor(COST / weight + 0.5)) or COST
    fair.weights[group] = cost
  end
  return cost
end

-- How many jobs a group may have in its turn. Few groups get long turns, so that a claim need not go round for each.
local function turn(groups, group, start, second, want)
  if not second then
    return want
  end
  fair.sizes[groups] = fair.sizes[groups] or redis.call('ZCARD', groups)
  local even = math.floor(want / fair.sizes[groups])
  local ahead = math.floor((second - start) / cost_of(group))
  return math.max(1, math.min(want, math.max(even, ahead)))
end

-- The lane of a level that is next, with `turn`, how many of its jobs at most; or nil. `want` is how many there is room
-- for.
local function next_lane(class, priority, want)
  local groups = keys.groups(class, priority)
  for _ = 1, TURNS_MAX do
    local rows = redis.call('ZRANGE', groups, 0, 1, 'WITHSCORES')
    local group, second = rows[1], tonumber(rows[4])
    if not group then
      local here = lane.strayed(class, priority)
      if here then
        here.start, here.turn, here.plain = 0, want, true
      end
      return here
    end
    local here = lane.first(class, priority, group)
    if not here then
      redis.call('ZREM', groups, group)
    elseif not (second or here.keys) then
      here.start, here.turn, here.plain = 0, want, true
      return here
    else
      local tag = fair.tags[group] or record.number(redis.call('ZSCORE', keys.tags, group), 0)
      fair.tags[group] = tag
      local start = math.max(tonumber(rows[2]), tag, fair.vtime)
      if not second or start == tonumber(rows[2]) or start <= second then
        here.start, here.turn, here.plain = start, turn(groups, group, start, second, want), false
        here.others = second ~= nil
        return here
      end
      -- Met below its tag: not its turn.
      redis.call('ZADD', groups, start, group)
    end
  end
  return nil
end

-- The lane that a claim should take from next at the best level of a class, or nil; `top`: its highest, if that is
-- known. Levels that lead nowhere are forgotten, so many at a time.
function fair.best(class, want, top)
  for _ = 1, LEVELS_MAX do
    local priority = top or lane.top(class)
    top = nil
    if not priority then
      return nil
    end
    local here = (priority == bound.LEVEL or lane.is_priority(priority)) and next_lane(class, priority, want)
    if here then
      return here
    end
    if redis.call('EXISTS', keys.groups(class, priority)) == 0 then
      redis.call('ZREM', keys.levels(class), priority)
    end
  end
  return nil
end

-- As `best`, among jobs that hold a reservation alone.
function fair.bound(class, want)
  return redis.call('ZSCORE', keys.levels(class), bound.LEVEL) and next_lane(class, bound.LEVEL, want) or nil
end

-- So many jobs of a lane were given out in its turn.
function fair.charge(here, amount)
  if amount == 0 or here.plain then
    return
  end
  local tag = here.start + amount * cost_of(here.group)
  fair.vtime = math.max(fair.vtime, here.start)
  if fair.charged[here.group] == nil then
    fair.charged[#fair.charged + 1] = here.group
    fair.charged[here.group] = true
  end
  fair.tags[here.group], here.tag = tag, tag
end

-- Keeps tags and time, and forgets tags that it has passed, so many a call.
function fair.flush()
  local rows = {}
  for _, group in ipairs(fair.charged) do
    rows[#rows + 1] = fair.tags[group]
    rows[#rows + 1] = group
  end
  if #rows > 0 then
    redis.call('ZADD', keys.tags, unpack(rows))
  end
  if fair.vtime > fair.read then
    redis.call('HSET', keys.meta, 'vtime', clock.text(fair.vtime))
    local passed = redis.call('ZRANGEBYSCORE', keys.tags, '-inf', clock.text(fair.vtime), 'LIMIT', 0, FORGET_MAX)
    if #passed > 0 then
      redis.call('ZREM', keys.tags, unpack(passed))
    end
    fair.read = fair.vtime
  end
end
