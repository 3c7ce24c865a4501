-- What is said of the limits, tasks and fairness keys of this queue, how many jobs hold them now and how many lanes
-- wait for them: those that have an entry, so many a call, and in the first call those that lanes wait for; or those
-- named.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   leases     zset    running jobs by lease expiry
--   limits     hash    limit, task or key -> its numbers, and whether it is paused
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   cursor     number  0, or what the last call answered
--   ...                  ids: only these, at most 250
-- REPLY
--   {cursor, now, age_ms, {id, declared, said, held, parked, free, next, reserved}, ...}  '0' when all was told;
--   age_ms: 0 if lanes don't age; declared, said: words of code and of an operator; parked: lanes; free: -1 for no
--   bound; next: when to look at it again, or 0; reserved: slots of the queue held for jobs which haven't begun

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua

keys.bind('prefix', 'meta', 'leases', 'limits', 'gates')
local arg = args.bind('now', 'cursor')
redis.looks = true

local now = clock.now(arg.now)
local cursor = clock.text(args.number(arg.cursor, 'cursor', 0))
local SCANNED, GATES_MAX, SHOWN_MAX, MANY = 100, 250, 256, 1000000000
local told = {}
local answer = {}

local function parked(id)
  local count = 0
  for _, class in ipairs(redis.call('ZRANGE', keys.parks(id), 0, SHOWN_MAX - 1)) do
    count = count + (id == 'queue' and 1 or redis.call('ZCARD', keys.parked(id, class)))
  end
  return count
end

local function tell(id)
  if told[id] then
    return
  end
  told[id] = true
  local numbers = redis.call('HMGET', keys.limits, id, 'op:' .. id)
  local of_name = string.match(id, '^[^@*!=]+$') and id ~= 'queue'
  local declared, spoken = numbers[1] or '', numbers[2] or ''
  if not of_name then
    declared, spoken = '', declared
  end
  local held = redis.call('ZCARD', id == 'queue' and keys.leases or keys.slots(id))
  local free, look_at = gate.free(id, 1, now)
  answer[#answer + 1] = {
    id, declared, spoken, held, parked(id), free > MANY and -1 or free, look_at and clock.text(look_at) or '0',
    id == 'queue' and bound.taken(now) or 0,
  }
end

local function named()
  args.groups(arg, 1)
  for i = arg.rest, #ARGV do
    tell(ARGV[i])
  end
  return '0'
end

local function all()
  local found = redis.call('HSCAN', keys.limits, cursor, 'COUNT', SCANNED)
  for i = 1, #found[2], 2 do
    local id = string.match(found[2][i], '^op:(.+)$') or found[2][i]
    if id ~= '*' and id ~= '@' then
      tell(id)
    end
  end
  if cursor == '0' then
    for _, id in ipairs(redis.call('ZRANGE', keys.gates, 0, GATES_MAX - 1)) do
      tell(id)
    end
  end
  return found[1]
end

local next_cursor = #ARGV >= arg.rest and named() or all()
local age_ms = record.number(redis.call('HGET', keys.meta, 'age_ms'), 0)
return { next_cursor, clock.text(now), age_ms, unpack(answer) }
