-- Whose turn it is. Within a level groups (fairness keys) share by weight: each has a finish tag, which grows by what
-- it was given over its weight, and the one with the lowest is next. The tag belongs to the key, not to its lanes, and
-- outlives them until the level's time has passed it, or a key with one job at a time would take every second turn.
-- Each level has its own time and tags: what a key was given at another level, or in a class of other workers, must
-- hold nobody up here. (Start-time fair queueing: P. Goyal, H. Vin, H. Cheng, 1996.)
--
-- Where a queue lets its lanes age, a lane counts as one level higher for each such time that its head has waited.

local fair = { now = 0, age_ms = nil, weights = {}, weighted = nil, levels = {} }

-- What one job of weight 1 adds to a tag: divisible by the small weights. Tags are whole numbers. The level's time
-- stands among its tags, under a name that no key has.
local COST, TURNS_MAX, LEVELS_MAX, FORGET_MAX, TIME, IDLE_MS = 240, 64, 64, 16, '*', 86400000

function fair.begin(age_ms, now)
  local number = record.number(age_ms)
  fair.age_ms, fair.now = number and number > 0 and number or nil, now
end

local function cost_of(group)
  if fair.weighted == nil then
    fair.weighted = redis.call('EXISTS', keys.weights) == 1
  end
  if not fair.weighted then
    return COST
  end
  local cost = fair.weights[group]
  if not cost then
    local weight = record.number(redis.call('HGET', keys.weights, group), 1)
    cost = weight > 0 and math.max(1, math.floor(COST / weight + 0.5)) or COST
    fair.weights[group] = cost
  end
  return cost
end

-- What this claim has seen of a level: how many groups it has, its time and the tags of some.
local function level_of(class, priority)
  local name = class .. ':' .. priority
  local level = fair.levels[name]
  if not level then
    local tags, groups = keys.tags(class, priority), keys.groups(class, priority)
    level = { tags = tags, groups = groups, seen = {}, charged = {}, last = 0 }
    fair.levels[name] = level
  end
  return level
end

-- How many jobs a group may have in its turn. Few groups get long turns, so that a claim need not go round for each.
local function turn(level, group, start, second, want)
  if not second then
    return want
  end
  level.size = level.size or redis.call('ZCARD', level.groups)
  local even = math.floor(want / level.size)
  local ahead = math.floor((second - start) / cost_of(group))
  return math.max(1, math.min(want, math.max(even, ahead)))
end

local function next_is(here, start, turns, is_plain, others)
  here.start, here.turn, here.plain, here.others = start, turns, is_plain, others
  return here
end

-- From where on a group of a score would be served. A level that has lost its time has that of the next key.
local function start_of(level, group, score, second)
  if not level.seen[group] then
    local tags = redis.call('ZMSCORE', level.tags, group, TIME)
    level.seen[group] = record.number(tags[1], 0)
    level.time = level.time or record.number(tags[2])
  end
  return math.max(score, level.seen[group], level.time or second or 0)
end

-- The lane of a level that is next, with `turn`, how many of its jobs at most; or nil. `want` is how many there is room
-- for.
local function next_lane(class, priority, want)
  local level = level_of(class, priority)
  for _ = 1, TURNS_MAX do
    local rows = redis.call('ZRANGE', level.groups, 0, 1, 'WITHSCORES')
    local group, score, second = rows[1], tonumber(rows[2] or nil), tonumber(rows[4] or nil)
    if not group then
      local here = lane.strayed(class, priority)
      return here and next_is(here, 0, want, true)
    end
    local here = lane.first(class, priority, group)
    if not here then
      redis.call('ZREM', level.groups, group)
    elseif not (second or here.keys) then
      return next_is(here, 0, want, true)
    else
      local start = start_of(level, group, score, second)
      if not second or start == score or start <= second then
        return next_is(here, start, turn(level, group, start, second, want), false, second ~= nil)
      end
      -- Met below its tag: not its turn.
      redis.call('ZADD', level.groups, start, group)
    end
  end
  return nil
end

-- As `next_lane`; a level that leads nowhere is forgotten.
local function next_of(class, priority, want)
  local here = (priority == bound.LEVEL or lane.is_priority(priority)) and next_lane(class, priority, want)
  if here then
    here.level = tonumber(priority)
    return here
  end
  if redis.call('EXISTS', keys.groups(class, priority)) == 0 then
    redis.call('ZREM', keys.levels(class), priority)
  end
  return nil
end

-- The lane that a claim should take from next among the best levels of a class, each raised by how long its next lane
-- has waited.
local function oldest(class, want)
  local found
  for _, priority in ipairs(redis.call('ZREVRANGE', keys.levels(class), 0, LEVELS_MAX - 1)) do
    local here = next_of(class, priority, want)
    if here then
      here.level = here.level + math.floor(math.max(0, fair.now - here.at) / fair.age_ms)
      if not found or here.level > found.level then
        found = here
      end
    end
  end
  return found
end

-- The lane that a claim should take from next in a class, or nil, with its `level`; `top`: the class's highest, if that
-- is known. Levels that lead nowhere are forgotten, so many at a time.
function fair.best(class, want, top)
  if fair.age_ms then
    return oldest(class, want)
  end
  for _ = 1, LEVELS_MAX do
    local priority = top or lane.top(class)
    top = nil
    local here = priority and next_of(class, priority, want)
    if here or not priority then
      return here
    end
  end
  return nil
end

-- As `best`, among jobs that hold a reservation alone.
function fair.bound(class, want)
  return redis.call('ZSCORE', keys.levels(class), bound.LEVEL) and next_lane(class, bound.LEVEL, want) or nil
end

-- Where lanes age, each class is asked: the next lane may stand at any level.
function fair.oldest(classes, fits, want)
  local found
  for _, class in ipairs(classes) do
    local here = fits(class) > 0 and fair.best(class, math.min(want, fits(class)))
    if here and (not found or here.level > found.level) then
      found = here
    end
  end
  return found
end

-- So many jobs of a lane were given out in its turn: its key's tag grows, and it is later by its start.
function fair.charge(here, amount)
  if amount == 0 or here.plain then
    return
  end
  local level = level_of(here.class, here.priority)
  local tag = here.start + amount * cost_of(here.group)
  level.time, level.last = math.max(level.time or 0, here.start), math.max(level.last, tag)
  level.charged[here.group], level.seen[here.group], here.tag = tag, tag, tag
end

-- Keeps tags and times, and forgets tags that their level's time has passed, so many a call; those of a level that was
-- idle for long all go. A level with nobody waiting is done with all that it gave: its time goes to the last tag.
function fair.flush()
  for _, level in pairs(fair.levels) do
    if level.last > 0 then
      local time = redis.call('EXISTS', level.groups) == 1 and level.time or level.last
      local rows = { time, TIME }
      for group, tag in pairs(level.charged) do
        rows[#rows + 1] = tag
        rows[#rows + 1] = group
      end
      redis.call('ZADD', level.tags, 'GT', unpack(rows))
      local passed = redis.call('ZRANGEBYSCORE', level.tags, '-inf', '(' .. clock.text(time), 'LIMIT', 0, FORGET_MAX)
      if #passed > 0 then
        redis.call('ZREM', level.tags, unpack(passed))
      end
      redis.call('PEXPIRE', level.tags, IDLE_MS)
    end
  end
  fair.levels = {}
end
