-- See that a claim finds lanes that have work, and no others; and that somebody is woken for them.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   empty      zset    lanes whose body ran empty, by when
--   limits     hash    limit, task or key -> its numbers, and whether it is paused
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  a lane each: class, priority, keys ('' for a plain one)
-- REPLY
--   number  how many of the classes have work

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/wake.lua
-- @include lib/lane.lua

keys.bind('prefix', 'meta', 'classes', 'empty', 'limits', 'gates')
local arg = args.bind('now')

local now = clock.now(arg.now)
local MEMBERS_MAX = 1000

-- Takes out what isn't ours, so many members a call.
local function tidy(here)
  for _, name in ipairs(redis.call('ZRANGE', here.lanes, 0, MEMBERS_MAX - 1)) do
    if name ~= here.name and not lane.belongs(name, here.class, here.priority, here.group) then
      redis.call('ZREM', here.lanes, name)
    end
  end
  for _, group in ipairs(redis.call('ZRANGE', here.groups, 0, MEMBERS_MAX - 1)) do
    if redis.call('EXISTS', keys.lanes(here.class, here.priority, group)) == 0 then
      redis.call('ZREM', here.groups, group)
    end
  end
end

args.groups(arg, 3)
redis.call('ZREM', keys.empty, '')
for i = arg.rest, #ARGV, 3 do
  local here = lane.named(ARGV[i], ARGV[i + 1], ARGV[i + 2] ~= '' and ARGV[i + 2] or nil)
  tidy(here)
  lane.touch(here, (bound.level(here.keys) or lane.is_priority(here.priority)) and now or nil, true)
end
local classes = lane.flush(now)
for _, class in ipairs(classes) do
  needs.enter(class, nil, now)
  wake.set(class, now)
end
return #classes
