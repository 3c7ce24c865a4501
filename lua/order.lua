-- Tell nodes what to do: each reads it within a second or two, and does it if it is the one that is meant.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   control    stream  what nodes were told to do
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   verb       word    drain | resume | stop | scale
--   to         text    a node, or * for all
--   by         text    who says so, for people
--   more       text    what the verb needs, as JSON; '' = nothing
-- REPLY
--   'ok'

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'control')
local arg = args.bind('now', 'verb', 'to', 'by', 'more')

local VERBS = { drain = true, resume = true, stop = true, scale = true }
local ORDERS_KEPT, TTL_MS = 1000, 3600000
args.word(arg.verb, VERBS, 'verb')
if arg.to == '' then
  error('to cannot be empty', 0)
end
redis.call('XTRIM', keys.control, 'MAXLEN', '~', ORDERS_KEPT)
redis.call(
  'XADD', keys.control, 'MAXLEN', '~', ORDERS_KEPT, '*', 'verb', arg.verb, 'to', arg.to, 'by', arg.by, 'more', arg.more,
  'at', clock.text(clock.now(arg.now))
)
redis.call('PEXPIRE', keys.control, TTL_MS)
return 'ok'
