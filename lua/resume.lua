-- Hand out jobs of this queue again.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
-- REPLY
--   0|1  whether that changed anything

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/wake.lua

keys.bind('prefix', 'meta', 'classes')
local arg = args.bind('now')

local changed = redis.call('HDEL', keys.meta, 'paused')
wake.all(clock.now(arg.now))
return changed
