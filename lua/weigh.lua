-- Say how many turns a fairness key gets for one of another's, or look at what was said.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   weights    hash    fairness key -> its weight
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   cursor     number  where to look on: 0, or what the last call answered
--   ...                  fairness keys and weights to set; '' takes one away
-- REPLY
--   {cursor, key, weight, ...}  some of all weights; '0' when all were told

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'weights')
local arg = args.bind('now', 'cursor')

local WEIGHT_MAX, NAME_MAX, SCANNED = 240, 200, 250
local cursor = clock.text(args.number(arg.cursor, 'cursor', 0))
args.groups(arg, 2)
for i = arg.rest, #ARGV, 2 do
  if #ARGV[i] > NAME_MAX or not string.find(ARGV[i], '^[%w._~@+/%%-]+$') then
    error('fairness key cannot be ' .. ARGV[i], 0)
  elseif ARGV[i + 1] ~= '' then
    args.number(ARGV[i + 1], 'weight', 1, WEIGHT_MAX)
  end
end

if #ARGV >= arg.rest then
  redis.call('HDEL', keys.weights, '')
end
for i = arg.rest, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', keys.weights, ARGV[i])
  else
    redis.call('HSET', keys.weights, ARGV[i], ARGV[i + 1])
  end
end
local found = redis.call('HSCAN', keys.weights, cursor, 'COUNT', SCANNED)
return { found[1], unpack(found[2]) }
