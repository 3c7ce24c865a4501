-- Put a schedule by hand: new, or in the place of the one of that name. What was put by hand beats what code declares.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   schedules  zset    schedules by when the leader is to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  name, rule, overlap, queue, task, template
-- REPLY
--   word  new | changed | same

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'schedules')
local arg = args.bind('now')

local said, now = schedule.said(arg.rest), clock.now(arg.now)
redis.call('ZREM', keys.schedules, '')
local this = schedule.read(said.name)
if this and this.origin == 'api' and schedule.same(this, said) then
  redis.call('ZADD', keys.schedules, 'NX', 0, said.name)
  return 'same'
end
schedule.write(this, said, 'api', now, now)
return this and 'changed' or 'new'
