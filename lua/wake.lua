-- Set the markers on which idle workers block: somebody should claim. Said by a worker that stops waiting, which
-- may have taken a marker with it.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  classes
-- REPLY
--   'ok'

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/wake.lua

keys.bind('prefix', 'meta')
local arg = args.bind('now')

local now = clock.now(arg.now)
redis.call('HDEL', keys.meta, '')
for i = arg.rest, #ARGV do
  wake.set(ARGV[i], now)
end
return 'ok'
