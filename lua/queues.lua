-- Every queue of the namespace.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   queues     set     every queue of the namespace
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
-- REPLY
--   {name, ...}  in no order

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'queues')
local arg = args.bind('now')
redis.looks = true

local names = {}
for _, name in ipairs(redis.call('SMEMBERS', keys.queues)) do
  if #name <= 64 and string.find(name, '^[a-z0-9][a-z0-9._-]*$') then -- what else stands there is none of ours
    names[#names + 1] = name
  end
end
return names
