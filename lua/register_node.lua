-- A node begins, or begins again because its record was lost or it was taken for dead: each time it is one incarnation
-- further, of a node that was made when it first said so.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the node
--   ttl_ms     ms      how long the record stays without another beat
--   alive_ms   ms      how old the last beat of a node may be that lives
--   incarnation number  the last that the node knows of itself; 0 at first
--   created_at ms      when it first registered, if it knows; else 0
--   fields     count   how many pairs of field and value follow
--   ...                  that many pairs of field and value, then groups of five: task, queue, executor kind, options
--                        of its jobs, what else is to be told of it (JSON text both, '' = none)
-- REPLY
--   {incarnation, created_at}

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/node.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'node', 'ttl_ms', 'alive_ms', 'incarnation', 'created_at', 'fields')

local INCARNATION_MAX = 1000000000
local now = clock.now(arg.now)
local incarnation = args.number(arg.incarnation, 'incarnation', 0, INCARNATION_MAX)
local created_at = args.number(arg.created_at, 'created_at', 0)
local place = keys.node(arg.node)
local known = redis.call('HMGET', place, 'incarnation', 'created_at')
local before = record.number(known[1], 0)
if before > incarnation and before < INCARNATION_MAX then
  incarnation = before
end
if created_at == 0 then
  created_at = record.number(known[2], now)
end
redis.call('DEL', place)
local words = { clock.text(incarnation + 1), clock.text(created_at) }
node.say(arg, now, arg.rest, { 'incarnation', words[1], 'created_at', words[2] })
node.know(arg, now, arg.rest)
return words
