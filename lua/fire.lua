-- Fire a schedule, or settle that nothing fires: its next time, the runs and the messages to its queue are written in
-- one, by the leader alone, and only if nobody changed the schedule since it was read. So each of its times is fired
-- once, whoever dies. The same call again is answered as the first was. A server at maxmemory refuses it while there is
-- something to fire: its first write is a growing one, and the times stay due.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leader     hash    who leads, its term, until when
--   schedules  zset    schedules by when the leader is to look at them
--   outboxes   zset    queues that firings are on their way to, by when to relay them
--   queues     set     every queue of the namespace
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the leader
--   term       number  its term
--   name       text    the schedule
--   revision   number  as it was read
--   after      ms      up to when all its times are settled by this
--   next       ms      its next time; '' = there is none any more, '-' = the leader can't tell
--   look       ms      when to look at it again
--   ...                  the nominal times to fire, oldest first
-- REPLY
--   word  'ok', 'lost': it leads no more, 'changed': somebody changed it, or it is gone; nothing was done

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/leader.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'leader', 'schedules', 'outboxes', 'queues')
local arg = args.bind('now', 'node', 'term', 'name', 'revision', 'after', 'next', 'look')

args.groups(arg, 1)
args.number(arg.after, 'after', 0)
local look = args.number(arg.look, 'look', 0)
local times = {}
for at = arg.rest, #ARGV do
  times[#times + 1] = clock.text(args.number(ARGV[at], 'a nominal time', 0))
end
local now = clock.now(arg.now)
local said = table.concat({ arg.term, arg.revision, arg.after }, ' ')

if not leader.holds(arg.node, arg.term, now) then
  return 'lost'
end
local this = schedule.read(arg.name)
if not this then
  return 'changed'
elseif this.said == said then
  return 'ok'
elseif clock.text(this.revision) ~= arg.revision then
  return 'changed'
end

if #times > 0 then
  local template = redis.call('HGET', this.key, 'template') or ''
  for _, nominal in ipairs(times) do
    schedule.send(this, 'due', nominal, arg.term, template, now)
  end
  schedule.sent(this, now)
  redis.call('HSET', this.key, 'last', times[#times], 'runs', clock.text(this.runs + #times))
else
  redis.call('HDEL', this.key, '')
end
if arg.next == '' then
  redis.call('HDEL', this.key, 'next')
  redis.call('HSET', this.key, 'over', '1')
elseif arg.next ~= '-' then
  redis.call('HSET', this.key, 'next', arg.next)
end
redis.call('HSET', this.key, 'after', arg.after, 'revision', clock.text(this.revision + 1), 'said', said)
schedule.look(arg.name, look)
return 'ok'
