-- Take in what a node's first worker said of this queue: which executor each task needs, and the retention
-- and the limits in code, which an operator's own beat. Or the limits of a call, which those in code beat too.
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
--   by         word    code | call (limits that no code declares; the last call's count)
--   ...                  that many pairs of setting and value, of limit and numbers, then pairs of task and executor
--                        kind
-- REPLY
--   number  the class version

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/wake.lua

keys.bind('prefix', 'meta', 'classes', 'kinds', 'limits', 'gates')
local arg = args.bind('now', 'retained', 'limited', 'by')

args.word(arg.by, { code = true, call = true }, 'by')
local now, SCANNED = clock.now(arg.now), 250
local limits_at = arg.rest + 2 * args.number(arg.retained, 'retained', 0)
local tasks_at = limits_at + 2 * args.number(arg.limited, 'limited', 0)
redis.call('HDEL', keys.meta, '')
local overridden = redis.call('HGET', keys.meta, 'retention_overridden')
if not overridden then
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

for i = limits_at, tasks_at - 1, 2 do
  local told = redis.call('HGET', keys.limits, ARGV[i])
  local words = arg.by == 'call' and ARGV[i + 1] .. ' by=call' or ARGV[i + 1]
  local beaten = told and (has(told, 'op=1') or (arg.by == 'call' and not has(told, 'by=call')))
  if told ~= words and not beaten then
    redis.call('HSET', keys.limits, ARGV[i], words)
    if told then
      look_at(ARGV[i])
    end
  end
end
for i = tasks_at, #ARGV, 2 do
  redis.call('HSET', keys.kinds, ARGV[i], ARGV[i + 1])
end
return tonumber(redis.call('HGET', keys.meta, 'class_version') or nil) or 0
