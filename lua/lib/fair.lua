-- Whose turn it is. Within a level groups (fairness keys) share by weight: each has a finish tag, which grows by what
-- it was given over its weight, and the one with the lowest is next. The tag belongs to the key, not to its lanes, and
-- outlives them until the level's time has passed it, or a key with one job at a time would take every second turn.
-- Each level has its own time and tags: what a key was given at another level, or in a class of other workers, must
-- hold nobody up here. (Start-time fair queueing: P. Goyal, H. Vin, H. Cheng, 1996.)
--
-- Where a queue lets its lanes age, a lane counts as one level higher for each such time that its head has waited.

local fair = { now = 0, age_ms = nil, weights = {}, weighted = nil, levels = {}, tops = {} }

-- What one job of weight 1 adds to a tag: divisible by the small weights. Tags are whole numbers. The level's time
-- stands among its tags, under a name that no key has.
local COST, LEVELS_MAX, FORGET_MAX, TIME, IDLE_MS = 240, 64, 16, '*', 86400000
local TURNS_MAX, ROWS_MAX = 64, 64

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

-- What this claim has seen of a level: how many groups it has, its time, the tags of some, and `rows`: its next groups
-- with their scores, in order, so that a claim of many groups reads them once.
local function level_of(class, priority)
  local name = class .. ':' .. priority
  local level = fair.levels[name]
  if not level then
    local tags, groups = keys.tags(class, priority), keys.groups(class, priority)
    level = { tags = tags, groups = groups, seen = {}, charged = {}, served = {}, last = 0, rows = {} }
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

-- Reads the next groups, after all that this claim did is written.
local function read_rows(level, want)
  lane.flush(fair.now)
  local flat = redis.call('ZRANGE', level.groups, 0, math.min(want, ROWS_MAX), 'WITHSCORES')
  level.rows, level.served = {}, {}
  for i = 1, #flat, 2 do
    level.rows[#level.rows + 1] = { group = flat[i], score = tonumber(flat[i + 1]) }
  end
end

-- Reads the tags of all rows that have none yet.
local function read_tags(level)
  local names = {}
  for _, row in ipairs(level.rows) do
    if not level.seen[row.group] then
      names[#names + 1] = row.group
    end
  end
  names[#names + 1] = TIME
  local tags = redis.call('ZMSCORE', level.tags, unpack(names))
  level.time = level.time or record.number(tags[#names])
  for i = 1, #names - 1 do
    level.seen[names[i]] = record.number(tags[i], 0)
  end
end

local function is_before(row, other)
  return row.score < other.score or (row.score == other.score and row.group < other.group)
end

-- Puts a row in its place among those that were read; behind the last, only the server knows where.
local function insert(level, row)
  local rows = level.rows
  if rows[#rows] and is_before(row, rows[#rows]) then
    local at = #rows
    while at > 1 and is_before(row, rows[at - 1]) do
      at = at - 1
    end
    table.insert(rows, at, row)
  end
end

-- From where on a group of a score would be served. A level that has lost its time has that of the next key.
local function start_of(level, row, second)
  if not level.seen[row.group] then
    read_tags(level)
  end
  return math.max(row.score, level.seen[row.group], level.time or second or 0)
end

-- The lane of a level that is next, with `turn`, how many of its jobs at most; or nil. `want` is how many there is room
-- for.
local function next_lane(class, priority, want)
  local level = level_of(class, priority)
  for _ = 1, TURNS_MAX do
    if #level.rows < 2 or level.served[level.rows[1].group] then
      read_rows(level, want)
    end
    local row, second = level.rows[1], level.rows[2] and level.rows[2].score
    if not row then
      local here = lane.strayed(class, priority)
      return here and next_is(here, 0, want, true)
    end
    local here = lane.first(class, priority, row.group)
    if not here then
      redis.call('ZREM', level.groups, row.group)
      table.remove(level.rows, 1)
    elseif not (second or here.keys) then
      return next_is(here, 0, want, true)
    else
      local start = start_of(level, row, second)
      if not second or start == row.score or start <= second then
        return next_is(here, start, turn(level, row.group, start, second, want), false, second ~= nil)
      end
      -- Met below its tag: not its turn.
      redis.call('ZADD', level.groups, start, row.group)
      table.remove(level.rows, 1)
      row.score = start
      insert(level, row)
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

-- The lane that a claim should take from next in a class, or nil; `top`: its highest level. Levels that lead nowhere
-- are forgotten, so many at a time.
local function best(class, want, top)
  local priority = top
  for _ = 1, LEVELS_MAX do
    local here = priority and next_of(class, priority, want)
    if here or not priority then
      return here
    end
    priority = lane.top(class)
  end
  return nil
end

-- Writes what this claim did, and passes on what that left free: then what was seen before holds no more.
local function look_anew()
  lane.flush(fair.now)
  if gate.pass_on(fair.now) then
    fair.tops = {}
    for _, level in pairs(fair.levels) do
      level.rows = {}
    end
  end
end

-- Where lanes age, each class is asked: the next lane may stand at any level.
local function oldest_of(classes, fits, want)
  local found
  look_anew()
  for _, class in ipairs(classes) do
    local here = fits(class) > 0 and oldest(class, math.min(want, fits(class)))
    if here and (not found or here.level > found.level) then
      found = here
    end
  end
  return found
end

-- Looks for the highest level of each class. What was seen of one holds until a lane of it is taken from.
local function look_at_tops(classes, fits)
  local anew = #lane.left > 0
  for _, class in ipairs(classes) do
    anew = anew or (fits(class) > 0 and fair.tops[class] == nil)
  end
  if anew then
    look_anew()
    for _, class in ipairs(classes) do
      if fits(class) > 0 and fair.tops[class] == nil then
        fair.tops[class] = lane.top(class) or false
      end
    end
  end
end

-- The best lane of the classes that what is free suffices for, or nil: highest priority; at the same level the first
-- class named. `fits` tells how many jobs of a class there is room for.
function fair.next(classes, fits, want)
  if fair.age_ms then
    return oldest_of(classes, fits, want)
  end
  while true do
    local chosen, highest
    look_at_tops(classes, fits)
    for _, class in ipairs(classes) do
      local level = fits(class) > 0 and fair.tops[class]
      level = level and record.number(level, 512)
      if level and (not highest or level > highest) then
        chosen, highest = class, level
      end
    end
    if not chosen then
      return nil
    end
    local here = best(chosen, math.min(want, fits(chosen)), fair.tops[chosen])
    if here and tonumber(here.priority) >= highest then
      fair.tops[chosen] = (here.siblings or here.others) and here.priority or nil
      return here
    end
    fair.tops[chosen] = here and here.priority or false
  end
end

-- As `next`, where the queue is full: of those that hold a slot of it already, by a reservation.
function fair.next_bound(classes, fits, want)
  for _, class in ipairs(classes) do
    local room = fits(class)
    local here = room > 0 and redis.call('ZSCORE', keys.levels(class), bound.LEVEL)
    here = here and next_lane(class, bound.LEVEL, math.min(want, room))
    if here then
      return here
    end
  end
  return nil
end

-- A lane had its turn, in which so many jobs of it were given out: its key's tag grows, and it is later by its start.
-- What there is of its group afterwards stands at its tag, if any is left.
function fair.charge(here, amount)
  local level = level_of(here.class, here.priority)
  if level.rows[1] and level.rows[1].group == here.group then
    table.remove(level.rows, 1)
  end
  if amount == 0 or here.plain then
    return
  end
  local tag = here.start + amount * cost_of(here.group)
  level.time, level.last = math.max(level.time or 0, here.start), math.max(level.last, tag)
  level.charged[here.group], level.seen[here.group], here.tag = tag, tag, tag
  level.served[here.group] = true
  insert(level, { group = here.group, score = tag })
end

-- Keeps tags and times, and forgets tags that their level's time has passed, so many a call; those of a level that was
-- idle for long all go. A level with nobody waiting is done with all that it gave: its time goes to the last tag.
function fair.flush()
  lane.flush(fair.now)
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
