-- Remove a schedule and its runs. One that workers' code still declares isn't: it would be back within a minute.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   schedules  zset    schedules by when the leader is to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    the schedule
-- REPLY
--   word  'removed', 'missing', or 'declared': nothing was done

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'schedules')
local arg = args.bind('now', 'name')

local this, now = schedule.read(arg.name), clock.now(arg.now)
if this and this.origin ~= 'api' and not schedule.unseen(this, now) then
  return 'declared'
end
schedule.forget(arg.name)
return this and 'removed' or 'missing'
