-- Whether a claim finds lanes, for `taskq fsck` to compare: what stands in them, and what leads to them.
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
--   {paused, {waiting, body, empty, levels, groups, lanes, foreign, class, marker}, ...}  0 or 1 each; but `waiting` is
--           how many jobs wait in the lane, and `foreign` how many members beside ours there are on the way to it

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua

keys.bind('prefix', 'meta', 'classes', 'empty')
local arg = args.bind('now')
redis.looks = true

local function there(score)
  return score and 1 or 0
end

args.groups(arg, 2)
local answer = { redis.call('HEXISTS', keys.meta, 'paused') }
for i = arg.rest, #ARGV, 2 do
  local here = lane.named(ARGV[i], ARGV[i + 1])
  local groups = there(redis.call('ZSCORE', here.groups, here.group))
  local lanes = there(redis.call('ZSCORE', here.lanes, here.name))
  answer[#answer + 1] = {
    lane.length(here),
    redis.call('EXISTS', here.body),
    there(redis.call('ZSCORE', keys.empty, here.name)),
    there(redis.call('ZSCORE', here.levels, here.priority)),
    groups,
    lanes,
    redis.call('ZCARD', here.groups) - groups + redis.call('ZCARD', here.lanes) - lanes,
    redis.call('HEXISTS', keys.classes, here.class),
    redis.call('EXISTS', keys.wake(here.class)),
  }
end
return answer
