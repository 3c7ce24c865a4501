-- The leader marks nodes whose last beat is too old. It touches no lease: only a lease's own end takes a job back.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
--   leader     hash    who leads, its term, until when
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      who leads
--   term       number  its term
--   alive_ms   ms      how old the last beat of a node may be that lives
--   limit      count   at most so many are looked at
-- REPLY
--   {'ok', node, ...}  those that were marked now
--   {'lost'}           this node doesn't lead in that term, and nothing was written

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/leader.lua

keys.bind('prefix', 'nodes', 'leader')
local arg = args.bind('now', 'node', 'term', 'alive_ms', 'limit')

redis.call('ZREM', keys.nodes, '')
local now = clock.now(arg.now)
if not leader.holds(arg.node, arg.term, now) then
  return { 'lost' }
end
local before = '(' .. clock.text(now - args.number(arg.alive_ms, 'alive_ms', 1))
local limit = args.number(arg.limit, 'limit', 1, 1000)
local answer = { 'ok' }
for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.nodes, '-inf', before, 'LIMIT', 0, limit)) do
  local state = redis.call('HGET', keys.node(id), 'state')
  if state and state ~= 'dead' then
    redis.call('HSET', keys.node(id), 'state', 'dead')
    answer[#answer + 1] = id
  end
end
return answer
