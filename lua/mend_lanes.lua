-- See that a claim finds lanes that have work, and no others; and that somebody is woken for them.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   empty      zset    lanes whose body ran empty, by when
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  a lane each: class, priority
-- REPLY
--   number  how many of the classes have work

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/wake.lua
-- @include lib/lane.lua

keys.bind('prefix', 'meta', 'classes', 'empty')
local arg = args.bind('now')

local now = clock.now(arg.now)
local MEMBERS_MAX = 1000

-- Takes out what isn't ours, so many members a call.
local function only(key, ours)
  for _, member in ipairs(redis.call('ZRANGE', key, 0, MEMBERS_MAX - 1)) do
    if member ~= ours then
      redis.call('ZREM', key, member)
    end
  end
end

args.groups(arg, 2)
redis.call('ZREM', keys.empty, '')
for i = arg.rest, #ARGV, 2 do
  local here = lane.named(ARGV[i], ARGV[i + 1])
  only(here.groups, here.group)
  only(here.lanes, here.name)
  here.since, here.taken = lane.is_priority(here.priority) and now or nil, true
end
local classes = lane.flush(now)
for _, class in ipairs(classes) do
  if redis.call('HSETNX', keys.classes, class, 'executor=' .. class) == 1 then
    redis.call('HINCRBY', keys.meta, 'class_version', 1)
  end
  wake.set(class, now)
end
return #classes
