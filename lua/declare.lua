-- Take in what a node's first worker said of this queue: which executor each task needs, and the retention in code,
-- which an operator's own beats.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   kinds      hash    task -> executor kind, as the workers declared it
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   retained   count   how many pairs of retention settings follow
--   ...                  that many pairs of setting and value, then pairs of task and executor kind
-- REPLY
--   number  the class version

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'meta', 'kinds')
local arg = args.bind('now', 'retained')

local tasks_at = arg.rest + 2 * tonumber(arg.retained)
redis.call('HDEL', keys.meta, '')
local overridden = redis.call('HGET', keys.meta, 'retention_overridden')
if not overridden then
  for i = arg.rest, tasks_at - 1, 2 do
    redis.call('HSET', keys.meta, ARGV[i], ARGV[i + 1])
  end
end
for i = tasks_at, #ARGV, 2 do
  redis.call('HSET', keys.kinds, ARGV[i], ARGV[i + 1])
end
return tonumber(redis.call('HGET', keys.meta, 'class_version') or nil) or 0
