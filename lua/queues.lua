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

return redis.call('SMEMBERS', keys.queues)
