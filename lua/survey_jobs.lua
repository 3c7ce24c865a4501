-- What stands under ids and where they stand, all at one moment, for `taskq fsck` to compare.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   expiring   zset    waiting jobs that have `expires`, by that time
--   leases     zset    running jobs by lease expiry
--   pending    zset    jobs that wait for other jobs
--   completed  zset    by time of entry
--   failed     zset    by time of entry
--   cancelled  zset    by time of entry
--   prune      zset    ended jobs by the time they may go
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   fields     count   how many names of fields follow
--   ...                  those names, then a row each: id, and where it was seen: a lane ('' for none) and its entry
-- REPLY
--   {now, {type, {value, ...}, {place, score, ...}}, ...}  a row each. Type `none`: there is no record. Values are in
--                          the order of the names. Places: the sets above, `front:<lane>`, `body:<lane>` (its entry),
--                          `unowned`, if it should own this unique key and nobody does; `slots:<gate>`, where it was
--                          seen there; and `slotless`, if it runs and has no slot of this gate

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/once.lua

keys.bind(
  'prefix', 'meta', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed', 'cancelled',
  'prune'
)
local arg = args.bind('now', 'fields')
redis.looks = true

local SETS = {
  'pending', 'scheduled', 'retryable', 'leases', 'completed', 'failed', 'cancelled', 'prune', 'expiring',
}
local names, now = {}, clock.now(arg.now)
for i = 1, args.number(arg.fields, 'fields', 1, 100) do
  names[i] = ARGV[arg.rest + i - 1]
end

local TOLD = { 'class', 'priority', 'entry', 'lane', 'state', 'once', 'epoch', 'created_at' }

local function places_of(id, seen_in, seen_at)
  local places = {}
  local function stands(place, at)
    if at and places[place] ~= at then
      places[place] = at
      places[#places + 1] = place
      places[#places + 1] = at
    end
  end
  for _, set in ipairs(SETS) do
    stands(set, redis.call('ZSCORE', keys[set], id))
  end
  local function look(name, entry)
    stands('front:' .. name, redis.call('ZSCORE', keys.front(name), id))
    stands('body:' .. name, lane.holds(keys.body(name), entry, id) and entry)
  end
  local told = redis.pcall('HMGET', keys.job(id), unpack(TOLD))
  look(lane.of({ class = told[1], priority = told[2], lane = told[4] }).name, told[3])
  local gate_id = string.match(seen_in, '^slots:(.+)$')
  if gate_id then
    stands(seen_in, redis.call('ZSCORE', keys.slots(gate_id), id))
  elseif seen_in ~= '' then
    look(seen_in, seen_at)
  end
  for _, each in ipairs(told[5] == 'running' and lane.is_keys(told[4]) and lane.gates(told[4]) or {}) do
    if each.slots and not redis.call('ZSCORE', keys.slots(each.id), id) then
      stands('slotless', each.id)
    end
  end
  local job = { state = told[5], once = told[6], epoch = told[7] or nil, created_at = told[8] or nil }
  local missed = told[6] and once.missed(job, now)
  if missed then
    stands('unowned', missed.key)
  end
  return places
end

local answer = { clock.text(now) }
for i = arg.rest + #names, #ARGV, 3 do
  local key = keys.job(ARGV[i])
  local kind = redis.call('TYPE', key).ok
  local values = kind == 'hash' and redis.call('HMGET', key, unpack(names)) or {}
  answer[#answer + 1] = { kind, values, places_of(ARGV[i], ARGV[i + 1], ARGV[i + 2]) }
end
return answer
