-- Fire a schedule now, by hand, beside its times. The same call again, with the same token, is answered as the first
-- was. As `fire` it opens with a growing write.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   outboxes   zset    queues that firings are on their way to, by when to relay them
--   queues     set     every queue of the namespace
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    the schedule
--   token      text    names the call
-- REPLY
--   {word, nominal, queue}  word: 'ok', 'missing', or 'stuck': too much is on its way to its queue already

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'outboxes', 'queues')
local arg = args.bind('now', 'name', 'token')

local this, now = schedule.read(arg.name), clock.now(arg.now)
if not this then
  return { 'missing', '', '' }
end
local token, nominal = string.match(this.ran or '', '^(%S+) (%d+)$')
if token == arg.token then
  return { 'ok', nominal, this.queue }
elseif schedule.stuck(this.queue) then
  return { 'stuck', '', this.queue }
end
-- Always later than the last one, also when the clock was set back: the queue knows it by that.
local moment = math.max(now, record.number(nominal, 0) + 1)
if moment % 1000 == 0 then
  moment = moment + 1 -- it must be no time of a rule
end
nominal = clock.text(moment)
schedule.send(this, 'manual', nominal, '0', redis.call('HGET', this.key, 'template') or '', now)
schedule.sent(this, now)
redis.call('HSET', this.key, 'ran', arg.token .. ' ' .. nominal)
return { 'ok', nominal, this.queue }
