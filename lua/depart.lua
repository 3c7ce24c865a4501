-- A node takes its leave.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the node
-- REPLY
--   0|1  whether it was known

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'node')

redis.call('DEL', keys.node(arg.node))
return redis.call('ZREM', keys.nodes, arg.node)
