-- A leader leads no more, by its own will: the next one needn't wait for the end of its term.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leader     hash    who leads, its term, until when
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the node
--   term       number  its term
-- REPLY
--   0|1  whether it led in that term

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/leader.lua

keys.bind('prefix', 'leader')
local arg = args.bind('now', 'node', 'term')

redis.call('HDEL', keys.leader, '')
local now = clock.now(arg.now)
if not leader.holds(arg.node, arg.term, now) then
  return 0
end
redis.call('HSET', keys.leader, 'until', clock.text(now))
return 1
