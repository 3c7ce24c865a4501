-- Take back reservations that hold a slot for nothing, in one bounded step: unbound ones that lapsed or are older than
-- they may be, bound ones whose job neither waits nor is in its first attempt.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   leases        zset    running jobs by lease expiry
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   reservations  zset    reservations that aren't bound, by their end
--   gates         zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now       ms      '' = the server's clock; a test passes a time
--   which     word    unbound | bound
--   older_ms  ms      unbound ones that are as old go though they haven't lapsed; '' = those that lapsed alone
--   skip      count   where to begin: as many as were left by the steps before
--   limit     count   so many are looked at
-- REPLY
--   {dropped, looked}  fewer looked at than the limit: that was the end

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/admission.lua

keys.bind('prefix', 'meta', 'leases', 'limits', 'reservations', 'gates')
local arg = args.bind('now', 'which', 'older_ms', 'skip', 'limit')

local now = clock.now(arg.now)
local skip, limit = args.number(arg.skip, 'skip', 0), args.number(arg.limit, 'limit', 1, 250)
local before = arg.older_ms ~= '' and now - args.number(arg.older_ms, 'older_ms', 0) or -1
local all = args.word(arg.which, { unbound = true, bound = true }, 'which') == 'bound' and keys.slots(bound.SLOTS)
  or keys.reservations

-- Whether an unbound one still holds its slot.
local function holds(till, created_at)
  return till > now and record.number(created_at, now) > before
end

-- Whether a bound one does; what else was lost of it comes back.
local function keeps(token, since, key, id)
  local job = id and bound.job(key, id)
  local holder = job and bound.holder(key)
  if not job or (holder and holder ~= token) then
    return false
  end
  if not holder then
    redis.call('SET', keys.reserved(key), token .. ' ' .. id)
  end
  if job.state == 'running' and since > 0 then
    redis.call('ZADD', all, 'XX', '-' .. clock.text(now), token)
  end
  return true
end

redis.call('ZREM', keys.reservations, '')
local rows = redis.call('ZRANGE', all, skip, skip + limit - 1, 'WITHSCORES')
local dropped = 0
for i = 1, #rows, 2 do
  local token, score = rows[i], tonumber(rows[i + 1])
  local found = redis.call('HMGET', keys.reservation(token), 'key', 'job', 'created_at')
  local key = found[1] or nil
  local left
  if all == keys.reservations then
    left = holds(score, found[3])
  else
    left = key and keeps(token, score, key, found[2])
  end
  if not left then
    admission.drop(key, token)
    dropped = dropped + 1
  end
end
if dropped > 0 then
  admission.freed(now)
end
return { dropped, #rows / 2 }
