-- What a node says of itself and of the tasks that it can run. A record outlives its node: what stands in it is judged
-- by the last beat.

local node = {}

-- What follows `fields`: pairs of field and value, then groups of five for tasks.
local function tasks_at(arg, first)
  return first + 2 * args.number(arg.fields, 'fields', 0, 100)
end

-- `more`: fields besides those of the call.
function node.say(arg, now, first, more)
  local place, last = keys.node(arg.node), tasks_at(arg, first) - 1
  redis.call('ZREM', keys.nodes, '')
  redis.call('HSET', place, 'id', arg.node, 'last_seen', clock.text(now), unpack(ARGV, first, last))
  if more then
    redis.call('HSET', place, unpack(more))
  end
  redis.call('PEXPIRE', place, args.number(arg.ttl_ms, 'ttl_ms', 1))
  redis.call('ZADD', keys.nodes, now, arg.node)
end

-- Where living nodes serve a task from two queues, the first by name stands, so that everybody is answered alike,
-- and the other beside it.
local TASK_TTL_MS = 86400000

local function knows(arg, now, task, queue, executor, options, about)
  local seen = clock.text(now)
  local known = redis.call('HMGET', task, 'queue', 'node')
  local other, whose = known[1], known[2]
  local disputed = false
  if other and whose and other ~= queue and whose ~= arg.node then
    local beat = record.number(redis.call('HGET', keys.node(whose), 'last_seen'))
    disputed = beat and beat >= now - args.number(arg.alive_ms, 'alive_ms', 1) or false
  end
  if disputed then
    redis.call('HSET', task, 'also', other < queue and queue or other, 'also_seen', seen)
  end
  if not disputed or queue < other then
    redis.call(
      'HSET', task, 'queue', queue, 'executor', executor, 'options', options, 'about', about, 'node', arg.node,
      'last_seen', seen
    )
    redis.call('PEXPIRE', task, TASK_TTL_MS)
  end
end

function node.know(arg, now, first)
  for i = tasks_at(arg, first), #ARGV, 5 do
    knows(arg, now, keys.task(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4])
  end
end
