-- What is known of a task: its queue, its executor kind, the options of its jobs, and when a node last said that it
-- can run it; `also` and `also_seen`, if living nodes named another queue too.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   nodes      zset    nodes by last beat
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   task       name    the task
-- REPLY
--   {field, value, ...}  empty if no node declared it for a day; `now` is the server's time

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua

keys.bind('prefix', 'nodes')
local arg = args.bind('now', 'task')
redis.looks = true

local flat = redis.call('HGETALL', keys.task(arg.task))
if #flat > 0 then
  flat[#flat + 1] = 'now'
  flat[#flat + 1] = clock.text(clock.now(arg.now))
end
return flat
