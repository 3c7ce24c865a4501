-- Lanes: the waiting jobs of one class, priority and set of keys, in order. The only code that knows how a lane is
-- stored: a body (stream) for fresh jobs, a front (sorted set) for returned ones, which a claim empties first; and,
-- above the lanes, the levels and groups that lead a claim to the best of them.
--
-- A body that ran empty is kept for a while, because a deleted and re-made stream can repeat an id.

local lane = { known = {}, order = {} }

-- Without a fairness key all lanes of a level stand in one group.
local NO_KEY = '-'

-- As enqueue takes it and a set names it: another spelling would be another lane.
function lane.is_priority(text)
  local number = record.number(text)
  return number and number >= -512 and number <= 511 and clock.text(number) == text
end

function lane.named(class, priority)
  local name = class .. ':' .. priority
  local found = lane.known[name]
  if not found then
    found = {
      name = name,
      class = class,
      priority = priority,
      group = NO_KEY,
      body = keys.body(name),
      front = keys.front(name),
      lanes = keys.lanes(class, priority, NO_KEY),
      groups = keys.groups(class, priority),
      levels = keys.levels(class),
    }
    lane.known[name] = found
    lane.order[#lane.order + 1] = found
  end
  return found
end

-- Whether a text can be the name of a class: an executor kind, and what else is needed.
local EXECUTORS = { async = true, thread = true, process = true }

function lane.is_class(text)
  return text and EXECUTORS[string.match(text, '^%a+')] and string.find(text, '^[%w=;,._-]+$') ~= nil
end

function lane.of(job)
  local class = lane.is_class(job.class) and job.class or 'async'
  return lane.named(class, lane.is_priority(job.priority) and job.priority or '0')
end

-- At the end of the body. Returns the entry, which the record keeps.
function lane.append(job, now)
  local here = lane.of(job)
  here.since = here.since or now
  return redis.call('XADD', here.body, '*', 'id', job.id)
end

-- To the front, at the job's original place; that may be the lane's new head, or stand before an older body.
function lane.restore(job, place)
  local here = lane.of(job)
  here.since, here.taken = here.since or place, true
  redis.call('ZADD', here.front, place, job.id)
end

-- Whether a body has this entry, and it is of this job.
function lane.holds(body, entry, id)
  if not entry or #entry > 24 or not string.find(entry, '^%d+%-%d+$') then
    return false
  end
  local found = redis.call('XRANGE', body, entry, entry)[1]
  return found ~= nil and found[2][2] == id
end

function lane.remove(job)
  local here = lane.of(job)
  here.taken = true
  if lane.holds(here.body, job.entry, job.id) then
    redis.call('XDEL', here.body, job.entry)
  else
    redis.call('ZREM', here.front, job.id)
  end
end

-- Trims the first `count` of these entries off a body: XTRIM MINID keeps what is not below an id, so it is given the
-- next one.
local function trim(here, entries, count)
  local ms, sequence = string.match(entries[count][1], '^(%d+)-(%d+)$')
  if #sequence <= 15 then
    redis.call('XTRIM', here.body, 'MINID', ms .. '-' .. string.format('%.0f', tonumber(sequence) + 1))
    return
  end
  for i = 1, count do -- an id that isn't ours, which can't be counted on from
    redis.call('XDEL', here.body, entries[i][1])
  end
end

-- Up to `count` ids at the head, the front first. They stay there until `drop`.
function lane.heads(here, count)
  local heads = redis.call('ZRANGE', here.front, 0, count - 1)
  heads.front = #heads
  if #heads < count then
    heads.entries = redis.call('XRANGE', here.body, '-', '+', 'COUNT', count - #heads)
    for i = 1, #heads.entries do
      heads[heads.front + i] = heads.entries[i][2][2]
    end
  end
  return heads
end

-- Takes the first `used` of these heads out of the lane.
function lane.drop(here, heads, used)
  here.taken = true
  if used > 0 and heads.front > 0 then
    redis.call('ZREMRANGEBYRANK', here.front, 0, math.min(used, heads.front) - 1)
  end
  if used > heads.front then
    trim(here, heads.entries, used - heads.front)
  end
end

-- Where the head of a lane stands in time, or nil if the lane is empty.
local function head(here)
  local first = redis.call('ZRANGE', here.front, 0, 0, 'WITHSCORES')
  if first[2] then
    return tonumber(first[2])
  end
  local entry = redis.call('XRANGE', here.body, '-', '+', 'COUNT', 1)[1]
  if not entry then
    return nil
  end
  local times = redis.pcall('HMGET', keys.job(entry[2][2]), 'place', 'created_at')
  -- 0 for a record gone or damaged: its turn comes, and it goes.
  return record.number(times[1]) or record.number(times[2], 0)
end

-- Puts a lane that was taken from in its right position, or out of the sets that lead to it.
local function settle(here, now)
  local at = head(here)
  if at then
    redis.call('ZADD', here.lanes, at, here.name)
    return true
  end
  redis.call('ZREM', here.lanes, here.name)
  if redis.call('EXISTS', here.lanes) == 0 then
    redis.call('ZREM', here.groups, here.group)
    if redis.call('EXISTS', here.groups) == 0 then
      redis.call('ZREM', here.levels, here.priority)
    end
  end
  redis.call('ZADD', keys.empty, now, here.name)
  return false
end

-- Brings levels, groups and lanes up to date. Returns the classes that got work, each once.
function lane.flush(now)
  local classes, seen = {}, {}
  for _, here in ipairs(lane.order) do
    local filled = here.since
    if here.taken then
      filled = settle(here, now) and filled
    elseif filled then
      redis.call('ZADD', here.lanes, 'LT', filled, here.name)
    end
    if filled then
      redis.call('ZADD', here.groups, 'NX', 0, here.group)
      redis.call('ZADD', here.levels, 'NX', here.priority, here.priority)
      if not seen[here.class] then
        seen[here.class] = true
        classes[#classes + 1] = here.class
      end
    end
    here.since, here.taken = nil, nil
  end
  return classes
end

-- Whether groups and lanes lead to a lane with work. If a key was lost, or holds what no lane is called, they are made
-- to if there is work; else nothing leads there any more, or every claim would stop at it.
local function leads(here)
  local group = redis.call('ZRANGE', here.groups, 0, 0)[1]
  local lanes = group and keys.lanes(here.class, here.priority, group)
  local name = group and redis.call('ZRANGE', lanes, 0, 0)[1]
  if name == here.name then
    return true
  end
  if name then
    redis.call('ZREM', lanes, name)
  end
  local at = head(here)
  if at then
    redis.call('ZADD', here.groups, 'NX', 0, here.group)
    redis.call('ZADD', here.lanes, at, here.name)
    return true
  end
  redis.call('ZREM', here.lanes, here.name)
  redis.call('ZREM', here.groups, group or here.group)
  return false
end

-- The lane a claim should take from next at the best level of a class, or nil. Levels that lead nowhere are forgotten,
-- so many at a time.
local LEVELS_MAX = 64

function lane.best(class)
  for _ = 1, LEVELS_MAX do
    local priority = redis.call('ZREVRANGE', keys.levels(class), 0, 0)[1]
    if not priority then
      return nil
    end
    local here = lane.named(class, priority)
    if lane.is_priority(priority) and leads(here) then
      return here
    end
    redis.call('ZREM', here.levels, priority)
  end
  return nil
end

function lane.length(here)
  return redis.call('ZCARD', here.front) + redis.call('XLEN', here.body)
end

-- Calls `visit` for each lane with work, in claiming order within a class, until it answers false.
function lane.each(visit)
  for _, class in ipairs(redis.call('HKEYS', keys.classes)) do
    for _, priority in ipairs(redis.call('ZREVRANGE', keys.levels(class), 0, -1)) do
      for _, group in ipairs(redis.call('ZRANGE', keys.groups(class, priority), 0, 999)) do
        for _, name in ipairs(redis.call('ZRANGE', keys.lanes(class, priority, group), 0, 999)) do
          local here = lane.named(class, priority)
          if name == here.name and not visit(here) then
            return
          end
        end
      end
    end
  end
end

-- Some ids of a lane, in order. A stream has no offset: `skip` is read over, so it has a bound.
local SKIP_MAX = 2000

function lane.page(here, skip, count)
  local ids = redis.call('ZRANGE', here.front, skip, skip + count - 1)
  if #ids < count then
    local over = math.max(0, skip - redis.call('ZCARD', here.front))
    if over > SKIP_MAX then
      error('offset cannot be so deep: of a lane the first ' .. SKIP_MAX .. ' jobs can be shown', 0)
    end
    local entries = redis.call('XRANGE', here.body, '-', '+', 'COUNT', over + count - #ids)
    for i = over + 1, #entries do
      ids[#ids + 1] = entries[i][2][2]
    end
  end
  return ids
end
