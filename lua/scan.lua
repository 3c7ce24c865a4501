-- One slice of the server's keys. Only `taskq fsck` asks for it: everything else knows where to look.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   cursor     text    '0' to begin; what the last slice gave to go on
--   count      count   about so many keys are looked at
--   match      text    a pattern; only keys like it are answered
-- REPLY
--   {cursor, key, ...}  '0' after the last slice; a key may come twice

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'meta')
local arg = args.bind('now', 'cursor', 'count', 'match')
redis.looks = true

local count = args.number(arg.count, 'count', 1, 10000)
local slice = redis.call('SCAN', arg.cursor, 'MATCH', arg.match, 'COUNT', count)
table.insert(slice[2], 1, slice[1])
return slice[2]
