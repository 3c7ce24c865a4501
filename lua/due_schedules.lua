-- What the leader is to look at now: schedules whose time has come, and queues for which firings wait to be relayed.
-- One that may not fire now (paused, over, declared by nobody any more) is looked at again later; one that nobody has
-- declared for a day, counted while somebody led, is forgotten.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leader     hash    who leads, its term, until when
--   schedules  zset    schedules by when the leader is to look at them
--   outboxes   zset    queues that firings are on their way to, by when to relay them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the leader
--   term       number  its term
--   limit      count   at most so many schedules
-- REPLY
--   {'lost'}                                         it leads no more
--   {'ok', now, look_ms, {queue, ...}, schedule, ...}  look_ms: when the next one's time comes, at most a second
--                                                    schedule: {name, rule, queue, after, runs, revision}

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/leader.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'leader', 'schedules', 'outboxes')
local arg = args.bind('now', 'node', 'term', 'limit')

local PARK_MS, STUCK_MS, LOOK_MS, GONE_MS, QUEUES_MAX = 60000, 1000, 1000, 86400000, 100
local limit = args.number(arg.limit, 'limit', 1, 1000)
local now = clock.now(arg.now)
redis.call('HDEL', keys.leader, '')
if not leader.holds(arg.node, arg.term, now) then
  return { 'lost' }
end

-- Whether it is to fire now; else it is put off or forgotten.
local function is_due(this)
  if schedule.unseen(this, now) then
    if this.unseen_ms >= GONE_MS then
      schedule.forget(this.name)
    else
      redis.call('HSET', this.key, 'unseen_ms', clock.text(this.unseen_ms + PARK_MS))
      schedule.look(this.name, now + PARK_MS)
    end
  elseif this.paused or this.over then
    schedule.look(this.name, now + PARK_MS)
  elseif schedule.stuck(this.queue) then
    schedule.look(this.name, now + STUCK_MS)
  else
    return true
  end
  return false
end

local rows = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', keys.schedules, '-inf', clock.text(now), 'LIMIT', 0, limit)) do
  local this = schedule.read(name)
  if not this then
    redis.call('ZREM', keys.schedules, name)
  elseif is_due(this) then
    local after, runs, revision = clock.text(this.after), clock.text(this.runs), clock.text(this.revision)
    rows[#rows + 1] = { name, this.rule, this.queue, after, runs, revision }
  end
end
local queues = redis.call('ZRANGEBYSCORE', keys.outboxes, '-inf', clock.text(now), 'LIMIT', 0, QUEUES_MAX)
local later = '(' .. clock.text(now)
local following = redis.call('ZRANGEBYSCORE', keys.schedules, later, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local look_ms = math.min(LOOK_MS, (tonumber(following[2] or nil) or math.huge) - now)
return { 'ok', clock.text(now), math.ceil(look_ms), queues, unpack(rows) }
