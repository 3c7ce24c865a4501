-- Hold a lock for at least so long from now on. Only its holder can, while it holds it.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   locks      zset    locks that are held, by when they end
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    the lock
--   token      text    whose
--   ttl_ms     ms      how long; less than is left already changes nothing
-- REPLY
--   'ok'    it is
--   'lost'  it ended, was released, or is another's; nothing was done

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lock.lua

keys.bind('prefix', 'locks')
local arg = args.bind('now', 'name', 'token', 'ttl_ms')

local ttl_ms = lock.length(arg.ttl_ms)
local now = clock.now(arg.now)
local this = lock.read(arg.name, now)
if this.token ~= arg.token then
  return 'lost'
end
redis.call('HDEL', this.key, '')
lock.hold(this, ttl_ms, now)
return 'ok'
