-- Tell nodes what to do: each reads it within a second or two, and does it if it is the one that is meant. What only a
-- leader may say carries its term.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   control    stream  what nodes were told to do
--   leader     hash    who leads, its term, until when
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   verb       word    drain | resume | stop | scale
--   to         text    a node, or * for all
--   by         text    who says so, for people; with a term the node that leads
--   more       text    what the verb needs, as JSON; '' = nothing
--   term       number  its term, '' = anybody may say so
-- REPLY
--   ok | lost (it doesn't lead in that term, and nothing was written)

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/leader.lua

keys.bind('prefix', 'control', 'leader')
local arg = args.bind('now', 'verb', 'to', 'by', 'more', 'term')

local VERBS = { drain = true, resume = true, stop = true, scale = true }
local ORDERS_KEPT, TTL_MS = 1000, 3600000
args.word(arg.verb, VERBS, 'verb')
if arg.to == '' then
  error('to cannot be empty', 0)
end
local now = clock.now(arg.now)
if arg.term ~= '' and not leader.holds(arg.by, arg.term, now) then
  return 'lost'
end
redis.call('XTRIM', keys.control, 'MAXLEN', '~', ORDERS_KEPT)
redis.call(
  'XADD', keys.control, 'MAXLEN', '~', ORDERS_KEPT, '*', 'verb', arg.verb, 'to', arg.to, 'by', arg.by, 'more', arg.more,
  'at', clock.text(now)
)
redis.call('PEXPIRE', keys.control, TTL_MS)
return 'ok'
