-- Who leads.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leader     hash    who leads, its term, until when
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
-- REPLY
--   {node, term, since, until}  node: '' if nobody leads; term: the last there was, 0 if none; since and until: ms

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/leader.lua

keys.bind('prefix', 'leader')
local arg = args.bind('now')

redis.looks = true
local this = leader.read(clock.now(arg.now))
return { this.node or '', clock.text(this.term), clock.text(record.number(this.since, 0)), clock.text(this.ends) }
