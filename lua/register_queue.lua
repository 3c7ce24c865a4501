-- Note that a queue exists, before its first job.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   queues     set     every queue of the namespace
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   queue      name    the queue
-- REPLY
--   0|1  whether it is new

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'queues')
local arg = args.bind('now', 'queue')

redis.call('SREM', keys.queues, '')
return redis.call('SADD', keys.queues, arg.queue)
