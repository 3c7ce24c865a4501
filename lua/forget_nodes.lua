-- Nodes that have been silent for long are forgotten. So are those whose last beat lies in the future: the server's
-- clock went back, and a node that lives says so again.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   silent_ms  ms      how old, or how far in the future, the last beat may be
--   limit      count   at most so many
-- REPLY
--   number  how many were forgotten

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'silent_ms', 'limit')

redis.call('ZREM', keys.nodes, '')
local now, silent_ms = clock.now(arg.now), args.number(arg.silent_ms, 'silent_ms', 1)
local limit, forgotten = args.number(arg.limit, 'limit', 1, 1000), 0
local function forget(from, to)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.nodes, from, to, 'LIMIT', 0, limit - forgotten)) do
    redis.call('DEL', keys.node(id))
    redis.call('ZREM', keys.nodes, id)
    forgotten = forgotten + 1
  end
end
forget('-inf', '(' .. clock.text(now - silent_ms))
forget('(' .. clock.text(now + silent_ms), '+inf')
return forgotten
