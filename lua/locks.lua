-- The locks that are held, those that end first before the others.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   locks      zset    locks that are held, by when they end
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    only this one; '' = all
--   offset     count   how many to skip
--   limit      count   at most so many
-- REPLY
--   {total, {name, waiting, {field, value, ...}}, ...}  waiting: how many stand in its line

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lock.lua

keys.bind('prefix', 'locks')
local arg = args.bind('now', 'name', 'offset', 'limit')
redis.looks = true

local COUNTED_MAX = 1000
local offset, limit = args.number(arg.offset, 'offset', 0), args.number(arg.limit, 'limit', 1, 1000)
local now = clock.now(arg.now)
local names, total = { arg.name }, nil
if arg.name == '' then
  total = math.max(0, redis.call('ZCARD', keys.locks) - #lock.ended(now, COUNTED_MAX))
  names = redis.call('ZRANGEBYSCORE', keys.locks, '(' .. clock.text(now), '+inf', 'LIMIT', offset, limit)
end

local answer = { total or 0 }
for _, name in ipairs(names) do
  local this = lock.read(name, now)
  if this.token then
    answer[#answer + 1] = { name, redis.call('ZCARD', this.line), redis.call('HGETALL', this.key) }
  end
end
answer[1] = total or #answer - 1
return answer
