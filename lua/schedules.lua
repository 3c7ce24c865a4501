-- Schedules, those that are looked at first before the others; or the one of a name, with its template.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   schedules  zset    schedules by when the leader is to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    only this one; '' = all
--   offset     count   how many to skip
--   limit      count   at most so many
--   runs       count   how many of its last runs to give, at most 100
-- REPLY
--   {total, now, {name, {field, value, ...}, {run, ...}}, ...}

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'schedules')
local arg = args.bind('now', 'name', 'offset', 'limit', 'runs')
redis.looks = true

local SHOWN = {
  'rule', 'queue', 'task', 'origin', 'declared_at', 'seen', 'created_at', 'paused', 'over', 'after', 'next', 'last',
  'runs',
}
local offset, limit = args.number(arg.offset, 'offset', 0), args.number(arg.limit, 'limit', 1, 1000)
local runs = args.number(arg.runs, 'runs', 0, 100)
local names = { arg.name }
if arg.name == '' then
  names = redis.call('ZRANGE', keys.schedules, offset, offset + limit - 1)
else
  SHOWN[#SHOWN + 1] = 'template' -- it may be large
end
local answer = { 0, clock.text(clock.now(arg.now)) }
for _, name in ipairs(names) do
  local values = redis.call('HMGET', keys.schedule(name), unpack(SHOWN))
  local flat = {}
  for i, field in ipairs(SHOWN) do
    if values[i] then
      flat[#flat + 1], flat[#flat + 2] = field, values[i]
    end
  end
  if schedule.stands(values[1], values[2]) then
    answer[#answer + 1] = { name, flat, schedule.runs(name, runs) }
  end
end
answer[1] = arg.name == '' and redis.call('ZCARD', keys.schedules) or #answer - 2
return answer
