-- Whether a claim finds lanes, for `taskq fsck` to compare: what stands in them, and what leads to them.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   empty      zset    lanes whose body ran empty, by when
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  a lane each: class, priority, keys ('' for a plain one)
-- REPLY
--   {paused, {waiting, body, empty, levels, groups, lanes, foreign, class, parked, marker}, ...}  0 or 1; `waiting` is
--           how many jobs wait in the lane, and `foreign` how many members beside ours there are on the way to it

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua

keys.bind('prefix', 'meta', 'classes', 'empty', 'gates')
local arg = args.bind('now')
redis.looks = true

local function there(score)
  return score and 1 or 0
end

-- How many of a group's members are no lanes of it, and of a level's no groups with lanes; so many are looked at.
local MEMBERS_MAX = 1000

local function foreign(here)
  local found = 0
  for _, group in ipairs(redis.call('ZRANGE', here.groups, 0, MEMBERS_MAX - 1)) do
    if group ~= here.group and redis.call('EXISTS', keys.lanes(here.class, here.priority, group)) == 0 then
      found = found + 1
    end
  end
  for _, name in ipairs(redis.call('ZRANGE', here.lanes, 0, MEMBERS_MAX - 1)) do
    if name ~= here.name and not lane.belongs(name, here.class, here.priority, here.group) then
      found = found + 1
    end
  end
  return found
end

args.groups(arg, 3)
local answer = { redis.call('HEXISTS', keys.meta, 'paused') }
for i = arg.rest, #ARGV, 3 do
  local here = lane.named(ARGV[i], ARGV[i + 1], ARGV[i + 2] ~= '' and ARGV[i + 2] or nil)
  -- Of a level and a group others may make use too.
  local waiting = lane.length(here)
  local alone = redis.call('ZCARD', here.lanes) <= there(redis.call('ZSCORE', here.lanes, here.name))
  local last = alone and redis.call('ZCARD', here.groups) <= there(redis.call('ZSCORE', here.groups, here.group))
  answer[#answer + 1] = {
    waiting,
    redis.call('EXISTS', here.body),
    there(redis.call('ZSCORE', keys.empty, here.name)),
    (waiting > 0 or last) and there(redis.call('ZSCORE', here.levels, here.priority)) or 0,
    (waiting > 0 or alone) and there(redis.call('ZSCORE', here.groups, here.group)) or 0,
    there(redis.call('ZSCORE', here.lanes, here.name)),
    foreign(here),
    redis.call('HEXISTS', keys.classes, here.class),
    lane.parked(here) and 1 or 0,
    redis.call('EXISTS', keys.wake(here.class)),
  }
end
return answer
