-- Take in what a node's first worker said of this queue: which executor each task needs, and the retention
-- and the limits in code, which an operator's own beat.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   kinds      hash    task -> executor kind, as the workers declared it
--   limits     hash    limit -> its numbers
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   retained   count   how many pairs of retention settings follow
--   limited    count   how many pairs of limits follow those
--   ...                  that many pairs of setting and value, of limit and numbers, then pairs of task and executor
--                        kind
-- REPLY
--   number  the class version

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'meta', 'kinds', 'limits')
local arg = args.bind('now', 'retained', 'limited')

local limits_at = arg.rest + 2 * args.number(arg.retained, 'retained', 0)
local tasks_at = limits_at + 2 * args.number(arg.limited, 'limited', 0)
redis.call('HDEL', keys.meta, '')
local overridden = redis.call('HGET', keys.meta, 'retention_overridden')
if not overridden then
  for i = arg.rest, limits_at - 1, 2 do
    redis.call('HSET', keys.meta, ARGV[i], ARGV[i + 1])
  end
end
for i = limits_at, tasks_at - 1, 2 do
  local told = redis.call('HGET', keys.limits, ARGV[i]) or ''
  if not string.find(' ' .. told .. ' ', ' op=1 ', 1, true) then
    redis.call('HSET', keys.limits, ARGV[i], ARGV[i + 1])
  end
end
for i = tasks_at, #ARGV, 2 do
  redis.call('HSET', keys.kinds, ARGV[i], ARGV[i + 1])
end
return tonumber(redis.call('HGET', keys.meta, 'class_version') or nil) or 0
