-- The nodes that beat within a time, by id.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   within_ms  ms      how long ago the last beat may be
--   limit      count   at most so many jobs
-- REPLY
--   {{field, value, ...}, ...}

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'within_ms', 'limit')
redis.looks = true

local now = clock.now(arg.now)
local answer = {}
local since = clock.text(now - tonumber(arg.within_ms))
for _, id in ipairs(redis.call('ZRANGEBYSCORE', keys.nodes, since, '+inf', 'LIMIT', 0, tonumber(arg.limit))) do
  local flat = redis.call('HGETALL', keys.node(id))
  if #flat > 0 then
    answer[#answer + 1] = flat
  end
end
return answer
