-- Free a key, and the slot that it holds, when an attempt is over: also of a reservation that no job was bound to, for
-- nothing of it lives yet. A key that nobody holds, or that a living job holds, is left alone.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   leases        zset    running jobs by lease expiry
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   reservations  zset    reservations that aren't bound, by their end
--   gates         zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now  ms      '' = the server's clock; a test passes a time
--   key  string  which, encoded
-- REPLY
--   number  1 if something was freed, else 0

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/admission.lua

keys.bind('prefix', 'meta', 'leases', 'limits', 'reservations', 'gates')
local arg = args.bind('now', 'key')

local now = clock.now(arg.now)
redis.call('ZREM', keys.reservations, '')
local token, id = bound.holder(arg.key)
if not token or (id ~= '' and bound.job(arg.key, id)) then
  return 0
end
admission.drop(arg.key, token)
admission.freed(now)
return 1
