-- Take in what a node's first worker said of this queue: which executor each task needs, and the retention
-- and the limits in code, which an operator's own beat. Or the limits of a call, which those in code beat too.
--
-- Of two versions of the code that run beside each other the one that was said first later counts: each says it again
-- every minute, and the numbers must not change with each.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   kinds      hash    task -> executor kind, as the workers declared it
--   limits     hash    limit -> its numbers
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   retained   count   how many pairs of retention settings follow
--   limited    count   how many pairs of limits follow those
--   by         word    code | call (limits that no worker's code declares here; of each number the last call's counts)
--   age_ms     ms      how long ago this code said it first
--   ...                  that many pairs of setting and value, of limit and numbers, then pairs of task and executor
--                        kind
-- REPLY
--   {version, limit, numbers, ...}  the class version; limits of which other code said other numbers later, which count

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/wake.lua

keys.bind('prefix', 'meta', 'classes', 'kinds', 'limits', 'gates')
local arg = args.bind('now', 'retained', 'limited', 'by', 'age_ms')

args.word(arg.by, { code = true, call = true }, 'by')
local now, SCANNED = clock.now(arg.now), 250
local said_at = now - args.number(arg.age_ms, 'age_ms', 0)
local limits_at = arg.rest + 2 * args.number(arg.retained, 'retained', 0)
local tasks_at = limits_at + 2 * args.number(arg.limited, 'limited', 0)
redis.call('HDEL', keys.meta, '')
local kept = redis.call('HMGET', keys.meta, 'retention_overridden', 'retention_at')
local retained_at = tonumber(kept[2] or nil) or 0
if limits_at > arg.rest and not kept[1] and (said_at >= retained_at or retained_at > now) then
  redis.call('HSET', keys.meta, 'retention_at', clock.text(said_at))
  for i = arg.rest, limits_at - 1, 2 do
    redis.call('HSET', keys.meta, ARGV[i], ARGV[i + 1])
  end
end

local function has(told, word)
  return string.find(' ' .. told .. ' ', ' ' .. word .. ' ', 1, true)
end

-- Other numbers may open what waits: those who claim next look at it.
local function look_at(limit)
  local waiting = redis.call('ZSCAN', keys.gates, 0, 'MATCH', limit .. '=*', 'COUNT', SCANNED)[2]
  local rows = redis.call('EXISTS', keys.parks(limit)) == 1 and { clock.text(now), limit } or {}
  for at = 1, #waiting, 2 do
    rows[#rows + 1] = clock.text(now)
    rows[#rows + 1] = waiting[at]
  end
  if #rows > 0 then
    redis.call('ZADD', keys.gates, unpack(rows))
    wake.all(now)
  end
end

-- What a field says beside who said it and when; and when.
local function numbers_of(told)
  return (string.gsub(told, ' at=%d+', '')), tonumber(string.match(told, ' at=(%d+)') or nil) or 0
end

-- The words of a call, and of those before it what this one says nothing of: each call knows the limits of its own task
-- alone, and tasks may share a name, one for how many at once and one for a rate.
local function of_calls(told, numbers)
  local words = {}
  for _, kind in ipairs({ ' c=%S+', ' r=%S+' }) do
    words[#words + 1] = string.match(' ' .. numbers, kind) or string.match(' ' .. told, kind)
  end
  return string.sub(table.concat(words) .. ' by=call', 2)
end

local later = {}

local function take_in(limit, numbers)
  local told = redis.call('HGET', keys.limits, limit)
  local words = arg.by == 'call' and of_calls(told or '', numbers) or numbers
  local before, at = numbers_of(told or '')
  if told and arg.by == 'call' and not has(told, 'by=call') then
    return
  elseif arg.by == 'code' and before ~= words and at > said_at and at <= now and not has(before, 'by=call') then
    later[#later + 1] = limit
    later[#later + 1] = before
  elseif before ~= words or (arg.by == 'code' and said_at > at) then
    redis.call('HSET', keys.limits, limit, arg.by == 'code' and words .. ' at=' .. clock.text(said_at) or words)
    if told and before ~= words then
      look_at(limit)
    end
  end
end

for i = limits_at, tasks_at - 1, 2 do
  take_in(ARGV[i], ARGV[i + 1])
end
for i = tasks_at, #ARGV, 2 do
  redis.call('HSET', keys.kinds, ARGV[i], ARGV[i + 1])
end
return { tonumber(redis.call('HGET', keys.meta, 'class_version') or nil) or 0, unpack(later) }
