-- Stop handing out jobs of this queue, everywhere, from the next claim on. Running jobs finish.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
-- REPLY
--   0|1  whether that changed anything

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'meta')
local arg = args.bind('now')

redis.call('HDEL', keys.meta, '')
return redis.call('HSETNX', keys.meta, 'paused', clock.text(clock.now(arg.now)))
