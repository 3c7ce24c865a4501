-- Nodes, by id: those that live, all that are known, or one.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      only this one, whether it lives or not; '' = any
--   alive_ms   ms      how old the last beat may be; '' = any age
--   limit      count   at most so many
--   offset     count   how many to skip
-- REPLY
--   {total, now, {{field, value, ...}, ...}}

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'node', 'alive_ms', 'limit', 'offset')
redis.looks = true

local NODES_MAX = 10000
local now = clock.now(arg.now)
local ids = { arg.node }
if arg.node == '' then
  local since = arg.alive_ms == '' and '-inf' or clock.text(now - args.number(arg.alive_ms, 'alive_ms', 1))
  ids = redis.call('ZRANGEBYSCORE', keys.nodes, since, '+inf', 'LIMIT', 0, NODES_MAX)
  table.sort(ids)
end
local answer, first = {}, args.number(arg.offset, 'offset', 0)
for i = first + 1, math.min(#ids, first + args.number(arg.limit, 'limit', 1, 1000)) do
  local flat = redis.call('HGETALL', keys.node(ids[i]))
  if #flat > 0 then
    answer[#answer + 1] = flat
  end
end
return { #ids, clock.text(now), answer }
