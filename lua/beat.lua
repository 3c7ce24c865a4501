-- A node says that it lives, and which tasks it can run. Its record goes by itself when it stops saying so.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the node
--   ttl_ms     ms      how long the record stays without another beat
--   fields     count   how many pairs of field and value follow
--   ...                  that many pairs of field and value, then triples of task, queue, executor kind
-- REPLY
--   'ok'

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'node', 'ttl_ms', 'fields')

local now = clock.now(arg.now)
local ttl_ms = tonumber(arg.ttl_ms)
local tasks_at = arg.rest + 2 * tonumber(arg.fields)
local TASK_TTL_MS = 86400000

redis.call('ZREMRANGEBYSCORE', keys.nodes, '-inf', clock.text(now - ttl_ms))
local record = keys.node(arg.node)
redis.call('HSET', record, 'id', arg.node, 'last_seen', clock.text(now), unpack(ARGV, arg.rest, tasks_at - 1))
redis.call('PEXPIRE', record, ttl_ms)
redis.call('ZADD', keys.nodes, now, arg.node)
for i = tasks_at, #ARGV, 3 do
  local task = keys.task(ARGV[i])
  local seen = clock.text(now)
  redis.call('HSET', task, 'queue', ARGV[i + 1], 'executor', ARGV[i + 2], 'node', arg.node, 'last_seen', seen)
  redis.call('PEXPIRE', task, TASK_TTL_MS)
end
return 'ok'
