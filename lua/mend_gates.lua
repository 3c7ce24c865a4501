-- See that under gates stand the lanes that wait for them, that who opens a gate finds them, and that reservations hold
-- their slot and key, or neither. The gate `+` stands for the reservations.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   classes       hash    class -> what it needs of a worker
--   leases        zset    running jobs by lease expiry
--   empty         zset    lanes whose body ran empty, by when
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   gates         zset    gates that have parked lanes, by when to look at them
--   reservations  zset    reservations that aren't bound, by their end
-- ARGV
--   now  ms  '' = the server's clock; a test passes a time
--   ...        a row each: gate, class
-- REPLY
--   number  how many members were taken away

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/admission.lua

keys.bind('prefix', 'meta', 'classes', 'leases', 'empty', 'limits', 'gates', 'reservations')
local arg = args.bind('now')

local MEMBERS_MAX = 1000
local now = clock.now(arg.now)
local taken = 0

-- A key that nobody holds goes back to the reservation that lives.
local function hold(key, token, id)
  if id then
    redis.call('SET', keys.reserved(key), token .. ' ' .. id)
  else
    redis.call('SET', keys.reserved(key), token, 'PX', clock.text(math.max(1, admission.till(token, now) - now)))
  end
end

local function mend_reservations()
  for _, set in ipairs({ keys.reservations, keys.slots(bound.SLOTS) }) do
    for _, token in ipairs(redis.call('ZRANGE', set, 0, MEMBERS_MAX - 1)) do
      local is_unbound = set == keys.reservations
      local sound, key, id = admission.stands(token, is_unbound, now)
      if not sound and key and not bound.holder(key) then
        hold(key, token, not is_unbound and id)
      elseif not sound then
        redis.call('ZREM', set, token)
        taken = taken + 1
      end
    end
  end
  admission.freed(now)
end

local function mend_gate(id, class)
  local parked = keys.parked(id, class)
  for _, name in ipairs(redis.call('ZRANGE', parked, 0, MEMBERS_MAX - 1)) do
    if not park.waits(name, id, class) then
      redis.call('ZREM', parked, name)
      taken = taken + 1
      local here = lane.from(name)
      if here then
        lane.touch(here, now, true)
      end
    end
  end
  if redis.call('EXISTS', parked) == 1 then
    redis.call('ZADD', keys.parks(id), 0, class)
  elseif id ~= 'queue' then
    lane.forget_empty(id, class)
  end
  if redis.call('EXISTS', keys.parks(id)) == 1 then
    redis.call('ZADD', keys.gates, 'LT', clock.text(now), id)
  end
end

args.groups(arg, 2)
redis.call('ZREM', keys.gates, '')
for i = arg.rest, #ARGV, 2 do
  if ARGV[i] == bound.SLOTS then
    mend_reservations()
  else
    mend_gate(ARGV[i], ARGV[i + 1])
  end
end
for _, class in ipairs(lane.flush(now)) do
  needs.enter(class, nil, now)
  wake.set(class, now)
end
gate.flush(now)
for class in pairs(lane.unparked) do
  wake.set(class, now)
end
return taken
