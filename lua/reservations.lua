-- Show reservations that hold a slot: unbound ones, those that last longest first, then those that are bound.
--
-- KEYS
--   prefix        string  what every key of this queue starts with
--   meta          hash    pause, retention, the outage stamp, class version
--   leases        zset    running jobs by lease expiry
--   limits        hash    limit, task or key -> its numbers, and whether it is paused
--   reservations  zset    reservations that aren't bound, by their end
-- ARGV
--   now    ms      '' = the server's clock; a test passes a time
--   skip   count   pass over so many
--   limit  count   at most so many
-- REPLY
--   {total, {token, key, created_at, expires_at, job, state}, ...}  of what isn't known ''; state: that of the job

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/admission.lua

keys.bind('prefix', 'meta', 'leases', 'limits', 'reservations')
local arg = args.bind('now', 'skip', 'limit')
redis.looks = true

local now = clock.now(arg.now)
local skip, limit = args.number(arg.skip, 'skip', 0), args.number(arg.limit, 'limit', 1, 1000)
local after = '(' .. clock.text(now)
local unbound = redis.call('ZCOUNT', keys.reservations, after, '+inf')
local answer = { unbound + redis.call('ZCARD', keys.slots(bound.SLOTS)) }

local function show(these)
  for _, token in ipairs(these) do
    local row = { token }
    for i, value in ipairs(redis.call('HMGET', keys.reservation(token), 'key', 'created_at', 'expires_at', 'job')) do
      row[i + 1] = value or ''
    end
    local job = row[5] ~= '' and record.fields(row[5], { 'state' })
    row[6] = job and job.state or ''
    answer[#answer + 1] = row
  end
end

if skip < unbound then
  show(redis.call('ZREVRANGEBYSCORE', keys.reservations, '+inf', after, 'LIMIT', skip, limit))
end
local left = limit + 1 - #answer
if left > 0 then
  local from = math.max(0, skip - unbound)
  show(redis.call('ZRANGE', keys.slots(bound.SLOTS), from, from + left - 1))
end
return answer
