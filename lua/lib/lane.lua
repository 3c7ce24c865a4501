-- Lanes: the waiting jobs of one class, priority and set of keys, in order. The only code that knows how a lane is
-- stored. A plain lane has a body (stream) for fresh jobs and a front (sorted set) for returned ones, which a claim
-- empties first; a lane with keys has a front alone, because a stream with one entry takes kilobytes.
--
-- `lib/lead.lua` is the other half: what leads a claim to them. A body that ran empty is kept for a while, because a
-- deleted and re-made stream can repeat an id.

-- @include lib/needs.lua
-- @include lib/bound.lua
-- @include lib/terms.lua

local lane = { known = {}, order = {}, left = {}, led = {}, unparked = {}, counted = 0, fresh = 0 }

-- Without a fairness key all lanes of a level stand in one group.
lane.NO_KEY = '-'

-- A question about a text whose answer is kept: a claim of many lanes asks the same of the same few.
local function asked_once(ask)
  local answers = {}
  return function(text)
    local answer = text and answers[text]
    if answer == nil then
      answer = ask(text) or false
      if text then
        answers[text] = answer
      end
    end
    return answer
  end
end

-- As enqueue takes it and a set names it: another spelling would be another lane.
lane.is_priority = asked_once(function(text)
  local number = record.number(text)
  return number and number >= -512 and number <= 511 and clock.text(number) == text
end)

-- Whether a text can be the name of a class: an executor kind, and what else is needed.
local EXECUTORS = { async = true, thread = true, process = true }

lane.is_class = asked_once(function(text)
  return text and EXECUTORS[string.match(text, '^%a+')] and string.find(text, '^[%w=;,._-]+$') ~= nil
end)

-- Whether a text can be the keys of a lane: <fairness key or ->:<gate>,<gate>, each encoded by who enqueues.
local KEYS_MAX = 2048

lane.is_keys = asked_once(function(text)
  return text and #text <= KEYS_MAX and string.find(text, '^[%w._~@+/%%-]+:[%w._~@+/%%=,!*#-]*$') ~= nil
end)

-- What a job must pass to run, in order; `cost` is what it takes of a rate. The last is its fairness key, which can be
-- paused and has no slots.
lane.gates = asked_once(function(text)
  local found = {}
  local group, gates = string.match(text, '^([^:]*):(.*)$')
  for each in string.gmatch(gates ~= '' and bound.others(gates) or '', '[^,]+') do
    local id, cost = string.match(each, '^(.-)#(%d+)$')
    found[#found + 1] = { id = id or each, cost = cost and math.max(1, tonumber(cost)) or 1, slots = true }
  end
  if group ~= lane.NO_KEY then
    found[#found + 1] = { id = '@' .. group, cost = 1, slots = false }
  end
  return #found > 0 and found
end)

-- Where the lanes of a class and priority are led to from.
local levels_known = {}

local function way_of(level, class, priority)
  local found = levels_known[level]
  if not found then
    found = { groups = keys.groups(class, priority), levels = keys.levels(class) }
    levels_known[level] = found
  end
  return found
end

-- The lane of a class, a priority, and keys: nil for a plain one.
function lane.named(class, priority, text)
  local level = class .. ':' .. priority
  local name = text and level .. ':' .. text or level
  local found = lane.known[name]
  if not found then
    local group, above = text and string.match(text, '^[^:]*') or lane.NO_KEY, way_of(level, class, priority)
    found = {
      name = name,
      class = class,
      priority = priority,
      keys = text,
      group = group,
      gates = lane.is_keys(text) and lane.gates(text) or false,
      body = keys.body(name),
      front = keys.front(name),
      lanes = keys.lanes(class, priority, group),
      groups = above.groups,
      levels = above.levels,
    }
    lane.known[name] = found
  end
  return found
end

-- Notes that a lane was taken from (its index is read anew), or that it got work that stands there `since`.
function lane.touch(here, since, taken)
  if not here.touched then
    here.touched = true
    lane.order[#lane.order + 1] = here
  end
  here.since = here.since or since
  here.taken = here.taken or taken
  here.head_known = false
end

-- The lane that a name says, or nil where no lane of ours is called so.
function lane.from(name)
  local class, priority, text = string.match(name, '^([^:]+):([^:]+):(.+)$')
  if not class then
    class, priority = string.match(name, '^([^:]+):([^:]+)$')
  end
  local level = bound.level(text) or lane.is_priority(priority) and priority
  if lane.is_class(class) and level == priority and (not text or lane.is_keys(text)) then
    return lane.named(class, priority, text)
  end
  return nil
end

function lane.of(job)
  local class = lane.is_class(job.class) and job.class or 'async'
  local text = lane.is_keys(job.lane) and job.lane or nil
  return lane.named(class, bound.level(text) or lane.is_priority(job.priority) and job.priority or '0', text)
end

-- How many jobs wait in lanes with keys is counted for those who look: of such lanes there may be too many to ask.
local function tally(here, amount)
  if here.keys then
    lane.counted = lane.counted + amount
  end
end

-- At the end. Returns the entry in the body, which the record keeps, or '' in a lane without one. What one call adds
-- within a millisecond keeps its order.
local PARTS = 1024

function lane.append(job, now)
  local here = lane.of(job)
  lane.touch(here, now)
  if not here.keys then
    return redis.call('XADD', here.body, '*', 'id', job.id)
  end
  tally(here, redis.call('ZADD', here.front, now + lane.fresh % PARTS / PARTS, job.id))
  lane.fresh = lane.fresh + 1
  return ''
end

-- To the front, at the job's original place; that may be the lane's new head, or stand before an older body.
function lane.restore(job, place)
  local here = lane.of(job)
  lane.touch(here, place, true)
  tally(here, redis.call('ZADD', here.front, place, job.id))
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
  lane.touch(here, nil, true)
  if not here.keys and lane.holds(here.body, job.entry, job.id) then
    redis.call('XDEL', here.body, job.entry)
  else
    tally(here, -redis.call('ZREM', here.front, job.id))
  end
end

-- Trims the first `count` of these entries off a body: XTRIM MINID keeps what is not below an id, so it is given the
-- next one.
local function trim(here, entries, used)
  local ms, sequence = string.match(entries[used][1], '^(%d+)-(%d+)$')
  if #sequence <= 15 then
    redis.call('XTRIM', here.body, 'MINID', ms .. '-' .. string.format('%.0f', tonumber(sequence) + 1))
    return
  end
  for i = 1, used do -- an id that isn't ours, which can't be counted on from
    redis.call('XDEL', here.body, entries[i][1])
  end
end

-- Of a lane that has a front alone: also when the next one behind those came.
local function keyed_heads(here, most)
  local rows, heads = redis.call('ZRANGE', here.front, 0, most, 'WITHSCORES'), {}
  for i = 1, math.min(#rows, 2 * most), 2 do
    heads[#heads + 1] = rows[i]
  end
  heads.front, heads.behind = #heads, tonumber(rows[2 * most + 2] or nil)
  return heads
end

-- Up to `most` ids at the head, the front first. They stay there until `drop`.
function lane.heads(here, most)
  if here.keys then
    return keyed_heads(here, most)
  end
  local heads = redis.call('ZRANGE', here.front, 0, most - 1)
  heads.front = #heads
  if #heads < most then
    heads.entries = redis.call('XRANGE', here.body, '-', '+', 'COUNT', most - #heads)
    for i = 1, #heads.entries do
      heads[heads.front + i] = heads.entries[i][2][2]
    end
  end
  return heads
end

-- Takes the first `used` of these heads out of the lane.
function lane.drop(here, heads, used)
  lane.touch(here, nil, true)
  if here.keys and used == #heads then
    here.head_known, here.head_at = true, heads.behind
  end
  if used > 0 and heads.front > 0 then
    tally(here, -redis.call('ZREMRANGEBYRANK', here.front, 0, math.min(used, heads.front) - 1))
  end
  if used > heads.front then
    trim(here, heads.entries, used - heads.front)
  end
end

-- Where the head of a lane stands in time, or nil if the lane is empty.
function lane.head(here)
  local first = redis.call('ZRANGE', here.front, 0, 0, 'WITHSCORES')
  if first[2] then
    return tonumber(first[2])
  end
  local entry = not here.keys and redis.call('XRANGE', here.body, '-', '+', 'COUNT', 1)[1]
  if not entry then
    return nil
  end
  local times = redis.pcall('HMGET', keys.job(entry[2][2]), 'place', 'created_at')
  -- 0 for a record gone or damaged: its turn comes, and it goes.
  return record.number(times[1]) or record.number(times[2], 0)
end

function lane.length(here)
  return redis.call('ZCARD', here.front) + (here.keys and 0 or redis.call('XLEN', here.body))
end

-- Some ids of a lane, in order. A stream has no offset: `skip` is read over, so it has a bound.
local SKIP_MAX = 2000

function lane.page(here, skip, most)
  local ids = redis.call('ZRANGE', here.front, skip, skip + most - 1)
  if #ids < most and not here.keys then
    local over = math.max(0, skip - redis.call('ZCARD', here.front))
    if over > SKIP_MAX then
      error('offset cannot be so deep: of a lane the first ' .. SKIP_MAX .. ' jobs can be shown', 0)
    end
    local entries = redis.call('XRANGE', here.body, '-', '+', 'COUNT', over + most - #ids)
    for i = over + 1, #entries do
      ids[#ids + 1] = entries[i][2][2]
    end
  end
  return ids
end

-- @include lib/lead.lua
