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
--   ...                  that many pairs of field and value, then groups of four: task, queue, executor kind, options
--                        of its jobs (JSON text, '' = none)
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

-- Where living nodes serve a task from two queues, the first by name stands, so that everybody is answered alike,
-- and the other beside it.
local function declare(task, queue, executor, options)
  local seen = clock.text(now)
  local known = redis.call('HMGET', task, 'queue', 'node')
  local other, node = known[1], known[2]
  local disputed = other and node and other ~= queue and node ~= arg.node
    and redis.call('EXISTS', keys.node(node)) == 1
  if disputed then
    redis.call('HSET', task, 'also', other < queue and queue or other, 'also_seen', seen)
  end
  if not disputed or queue < other then
    redis.call(
      'HSET', task, 'queue', queue, 'executor', executor, 'options', options, 'node', arg.node, 'last_seen', seen
    )
    redis.call('PEXPIRE', task, TASK_TTL_MS)
  end
end

for i = tasks_at, #ARGV, 4 do
  declare(keys.task(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
return 'ok'
