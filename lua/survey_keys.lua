-- What kinds of keys stand under names of this queue, and how long they live, for `taskq fsck` to compare.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  names, without the prefix
-- REPLY
--   {type, ttl_ms, ...}  for each: its type, or 'unowned' for a unique or reserved key that no job
--                        owns and that would stay; the TTL as PTTL gives it: -1 for ever, -2 for no key

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/once.lua
-- @include lib/bound.lua

keys.bind('prefix', 'meta')
local arg = args.bind('now')
redis.looks = true

args.groups(arg, 1)
local answer = {}
for i = arg.rest, #ARGV do
  local key = keys.prefix .. ARGV[i]
  local kind, ttl_ms = redis.call('TYPE', key).ok, redis.call('PTTL', key)
  local unique = kind == 'string' and ttl_ms == -1 and string.match(ARGV[i], '^unique:(.*)$')
  local reserved = kind == 'string' and ttl_ms == -1 and string.match(ARGV[i], '^reserved:(.*)$')
  local unowned = unique and not once.owner(unique, clock.now(arg.now)) or reserved and bound.is_left(reserved)
  answer[#answer + 1] = unowned and 'unowned' or kind
  answer[#answer + 1] = ttl_ms
end
return answer
