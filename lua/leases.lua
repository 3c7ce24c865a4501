-- Show who holds which job, and until when: a page of the leases, those that end first before the others; or the jobs
-- named, whatever their state. Changes nothing.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leases     zset    running jobs by lease expiry
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   offset     count   skip so many
--   limit      count   at most so many, 1,000 at most
--   ...                  ids: only these
-- REPLY
--   {now, total, id, expiry, {field, value, ...}, ...}
--   expiry: '' without a lease that can be
--   no fields: no such job, or damaged

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua

keys.bind('prefix', 'leases')
local arg = args.bind('now', 'offset', 'limit')
redis.looks = true

local now = clock.now(arg.now)
local offset, limit = args.number(arg.offset, 'offset', 0), args.number(arg.limit, 'limit', 0, 1000)
local FIELDS = {
  'state', 'task', 'epoch', 'attempt', 'worker', 'poller', 'offered', 'lease', 'started_at', 'cancel', 'backoff',
  'class', 'needs',
}
local rows = {}
if #ARGV >= arg.rest then
  args.groups(arg, 1)
  for i = arg.rest, #ARGV do
    rows[#rows + 1] = ARGV[i]
    rows[#rows + 1] = redis.call('ZSCORE', keys.leases, ARGV[i]) or ''
  end
elseif limit > 0 then
  rows = redis.call('ZRANGE', keys.leases, offset, offset + limit - 1, 'WITHSCORES')
end

local answer = { clock.text(now), redis.call('ZCARD', keys.leases) }
for i = 1, #rows, 2 do
  local job, flat = record.fields(rows[i], FIELDS), {}
  for _, name in ipairs(FIELDS) do
    if job and job[name] then
      flat[#flat + 1] = name
      flat[#flat + 1] = job[name]
    end
  end
  answer[#answer + 1] = rows[i]
  answer[#answer + 1] = record.number(rows[i + 1], '')
  answer[#answer + 1] = flat
end
return answer
