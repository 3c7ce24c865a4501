-- Give a reservation back: an unbound one, or one whose job lives no more. The same call again is answered as before.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   leases        zset    running jobs by lease expiry
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   reservations  zset    reservations that aren't bound, by their end
--   gates         zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now    ms      '' = the server's clock; a test passes a time
--   token  string  which reservation
--   call   string  names this call
-- REPLY
--   {'released'}      its slot is free
--   {'unknown'}       there is no such reservation, or it lapsed, or was released before
--   {'conflict', id}  it is bound, and its job lives

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/admission.lua

keys.bind('prefix', 'meta', 'leases', 'limits', 'reservations', 'gates')
local arg = args.bind('now', 'token', 'call')

local now = clock.now(arg.now)
if not admission.is_token(arg.token) then
  error('token cannot be ' .. arg.token, 0)
end

redis.call('ZREM', keys.reservations, '')
local hash = keys.reservation(arg.token)
local found = redis.call('HMGET', hash, 'key', 'job', 'released', 'word')
local key, id = found[1], found[2]
if found[3] then
  return { found[3] == arg.call and 'released' or 'unknown' }
elseif not key or (not id and not admission.till(arg.token, now)) then
  return { 'unknown' }
elseif id and found[4] ~= 'existing' and admission.is_alive(id) then
  return { 'conflict', id }
end
admission.drop(key, arg.token)
redis.call('HSET', hash, 'released', arg.call)
redis.call('PEXPIRE', hash, bound.KNOWN_MS)
admission.freed(now)
return { 'released' }
