-- Let a schedule fire no more until it is resumed.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   schedules  zset    schedules by when the leader is to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    the schedule
-- REPLY
--   word  'paused', 'already', or 'missing'

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'schedules')
local arg = args.bind('now', 'name')

local this, now = schedule.read(arg.name), clock.now(arg.now)
if not this then
  return 'missing'
elseif this.paused then
  return 'already'
end
redis.call('HDEL', this.key, '')
redis.call('HSET', this.key, 'paused', clock.text(now), 'revision', schedule.revised(this, now))
return 'paused'
