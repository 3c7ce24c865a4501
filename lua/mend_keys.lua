-- Put keys aside that are of the wrong kind for their name, give short-lived ones that would stay the time they should
-- have, and take unique and reserved keys away that no job owns.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  a key each: its name without the prefix, the type it should have ('' = any), its TTL in ms
--                        ('' = it may stay)
-- REPLY
--   {word, ...}  a key each: sound | aside | expires | removed

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/once.lua
-- @include lib/bound.lua

keys.bind('prefix', 'meta')
local arg = args.bind('now')

args.groups(arg, 3)
redis.call('HDEL', keys.meta, '')
local words = {}
for i = arg.rest, #ARGV, 3 do
  local key, wanted, ttl_ms = keys.prefix .. ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local kind, word = redis.call('TYPE', key).ok, 'sound'
  local stays = kind == 'string' and redis.call('PTTL', key) == -1
  local unique, reserved = string.match(ARGV[i], '^unique:(.*)$'), string.match(ARGV[i], '^reserved:(.*)$')
  if kind ~= 'none' and wanted ~= '' and kind ~= wanted then
    redis.put_aside(key)
    word = 'aside'
  elseif ttl_ms ~= '' and redis.call('PTTL', key) == -1 then
    redis.call('PEXPIRE', key, args.number(ttl_ms, 'ttl', 1))
    word = 'expires'
  elseif stays and unique and not once.owner(unique, clock.now(arg.now)) then
    redis.call('DEL', key)
    word = 'removed'
  elseif stays and reserved and bound.is_left(reserved) then
    redis.call('DEL', key)
    word = 'removed'
  end
  words[#words + 1] = word
end
return words
