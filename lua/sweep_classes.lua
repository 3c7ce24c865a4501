-- Forget narrow classes of which no job waits, if that was so at the last call too. One that is needed again comes back
-- with the next of its jobs, wherever that one is meanwhile; so none is lost, and those that come and go stay.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   limit      count   at most so many are answered, and so many go
--   ...                  the classes that the last call of the same caller answered
-- REPLY
--   {swept, class, ...}  how many went, and those of which no job waits now

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/record.lua
-- @include lib/needs.lua

keys.bind('prefix', 'meta', 'classes', 'gates')
local arg = args.bind('now', 'limit')

local GATES_MAX, CLASSES_MAX = 1000, 2000
local limit = args.number(arg.limit, 'limit', 0, 250)

-- The classes that have lanes parked under a gate, or nil where there are too many gates to know.
local function parked()
  if redis.call('ZCARD', keys.gates) > GATES_MAX then
    return nil
  end
  local found = {}
  for _, id in ipairs(redis.call('ZRANGE', keys.gates, 0, GATES_MAX - 1)) do
    local classes = redis.call('ZRANGE', keys.parks(id), 0, CLASSES_MAX)
    if #classes > CLASSES_MAX then
      return nil
    end
    for _, class in ipairs(classes) do
      found[class] = true
    end
  end
  return found
end

local waits = parked()
if not waits then
  return { 0 }
end
local before, gone, markers, idle = {}, {}, {}, {}
for i = arg.rest, #ARGV do
  before[ARGV[i]] = true
end
for _, class in ipairs(redis.call('HKEYS', keys.classes)) do
  if needs.is_narrow(class) and not waits[class] and redis.call('EXISTS', keys.levels(class)) == 0 then
    if before[class] and #gone < limit then
      gone[#gone + 1], markers[#markers + 1] = class, keys.wake(class)
    elseif #idle < limit then
      idle[#idle + 1] = class
    end
  end
end
if #gone > 0 then
  redis.call('HDEL', keys.classes, unpack(gone))
  redis.call('UNLINK', unpack(markers))
  redis.call('HINCRBY', keys.meta, 'class_version', 1)
end
return { #gone, unpack(idle) }
