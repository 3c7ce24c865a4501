-- Whether what is parked under gates waits there rightly, and would be led to when they open, for `taskq fsck` to
-- compare. The gate `+` stands for the reservations.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   leases        zset    running jobs by lease expiry
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   gates         zset    gates that have parked lanes, by when to look at them
--   reservations  zset    reservations that aren't bound, by their end
-- ARGV
--   now  ms  '' = the server's clock; a test passes a time
--   ...        a row each: gate, class
-- REPLY
--   {{waiting, foreign, led, entered}, ...}  how many lanes wait rightly (of `+`: reservations hold their slot), how
--           many members stand beside them, whether who opens the gate finds the class, whether `parks` has it: 0 or 1

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/admission.lua

keys.bind('prefix', 'meta', 'leases', 'limits', 'gates', 'reservations')
local arg = args.bind('now')
redis.looks = true

local MEMBERS_MAX = 1000
local now = clock.now(arg.now)

local function of_reservations()
  local sound, lost = 0, 0
  for _, set in ipairs({ keys.reservations, keys.slots(bound.SLOTS) }) do
    for _, token in ipairs(redis.call('ZRANGE', set, 0, MEMBERS_MAX - 1)) do
      if admission.stands(token, set == keys.reservations, now) then
        sound = sound + 1
      else
        lost = lost + 1
      end
    end
  end
  return { sound, lost, 1, 1 }
end

local function of_gate(id, class)
  local waiting, foreign = 0, 0
  for _, name in ipairs(redis.call('ZRANGE', keys.parked(id, class), 0, MEMBERS_MAX - 1)) do
    if park.waits(name, id, class) then
      waiting = waiting + 1
    else
      foreign = foreign + 1
    end
  end
  local entered = redis.call('ZSCORE', keys.parks(id), class)
  local led = entered and redis.call('ZSCORE', keys.gates, id)
  return { waiting, foreign, led and 1 or 0, entered and 1 or 0 }
end

args.groups(arg, 2)
local answer = {}
for i = arg.rest, #ARGV, 2 do
  answer[#answer + 1] = ARGV[i] == bound.SLOTS and of_reservations() or of_gate(ARGV[i], ARGV[i + 1])
end
return answer
