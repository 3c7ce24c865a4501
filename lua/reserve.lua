-- Take a slot of the queue's capacity before there is a job, or say why there is none. The same token again is the same
-- call.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   leases        zset    running jobs by lease expiry
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   reservations  zset    reservations that aren't bound, by their end
--   gates         zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now      ms      '' = the server's clock; a test passes a time
--   token    string  names the reservation
--   key      string  what it is for, encoded; at most one reservation holds it
--   most     number  how many slots there are
--   outside  number  how many of them are taken by what this queue doesn't know of
--   ttl_ms   ms      how long it holds unbound
-- REPLY
--   {'reserved', ms}         granted, until then
--   {'duplicate', token}     that reservation holds the key: it can still be bound, or its job waits or is in its first
--                            attempt; told before the other
--   {'no_capacity', number}  so many slots are taken

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/admission.lua

keys.bind('prefix', 'meta', 'leases', 'limits', 'reservations', 'gates')
local arg = args.bind('now', 'token', 'key', 'most', 'outside', 'ttl_ms')

local now = clock.now(arg.now)
local most = args.number(arg.most, 'most', 1)
local outside = args.number(arg.outside, 'outside', 0)
local SWEEP_MAX, TTL_MAX = 8, 86400000
local ttl_ms = args.number(arg.ttl_ms, 'ttl_ms', 1, TTL_MAX)
if not admission.is_token(arg.token) or not admission.is_key(arg.key) then
  error('token or key cannot be ' .. arg.token .. ', ' .. arg.key, 0)
end

redis.call('ZREM', keys.reservations, '')
admission.sweep(now, SWEEP_MAX)
local token, id = bound.holder(arg.key)
if token and admission.lives(arg.key, token, id, now) then
  if token == arg.token then
    return { 'reserved', admission.till(token, now) or now }
  end
  return { 'duplicate', token }
elseif token then
  admission.drop(arg.key, token)
end
local occupied = outside + admission.occupied(now)
if occupied >= most then
  return { 'no_capacity', occupied }
end
return { 'reserved', admission.grant(arg.key, arg.token, ttl_ms, now) }
