-- What kinds of keys stand under names of this queue, and how long they live, for `taskq fsck` to compare.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  names, without the prefix
-- REPLY
--   {type, ttl_ms, ...}  for each; the TTL as PTTL gives it: -1 for ever, -2 for no key

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'meta')
local arg = args.bind('now')
redis.looks = true

args.groups(arg, 1)
local answer = {}
for i = arg.rest, #ARGV do
  local key = keys.prefix .. ARGV[i]
  answer[#answer + 1] = redis.call('TYPE', key).ok
  answer[#answer + 1] = redis.call('PTTL', key)
end
return answer
