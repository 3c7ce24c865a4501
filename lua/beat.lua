-- A node says that it lives, and which tasks it can run. One that isn't known, or was taken for dead, must register.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the node
--   ttl_ms     ms      how long the record stays without another beat
--   alive_ms   ms      how old the last beat of a node may be that lives
--   fields     count   how many pairs of field and value follow
--   ...                  that many pairs of field and value, then groups of five: task, queue, executor kind, options
--                        of its jobs, what else is to be told of it (JSON text both, '' = none)
-- REPLY
--   'ok' | 'unknown' | 'dead'  nothing was written but for 'ok'

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/node.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'node', 'ttl_ms', 'alive_ms', 'fields')

local now = clock.now(arg.now)
local known = redis.call('HMGET', keys.node(arg.node), 'state', 'incarnation')
if not known[1] or not known[2] then
  return 'unknown'
elseif known[1] == 'dead' then
  return 'dead'
end
node.say(arg, now, arg.rest)
node.know(arg, now, arg.rest)
return 'ok'
