-- Take in the schedules that a node's code declares. One that is new, or whose rule is another, begins now; the same
-- again only says that it is still wanted. Of two declarations the later one counts, whenever it is repeated, so that
-- two versions of a program that run beside each other don't take turns.
--
-- KEYS
--   prefix       string  what every key of this queue starts with
--   schedules    zset    schedules by when the leader is to look at them
-- ARGV
--   now          ms      '' = the server's clock; a test passes a time
--   declared_at  ms      what the first call for this hello answered; '' for that first one
--   ...                    a schedule: name, rule, overlap, queue, task, template
-- REPLY
--   {declared_at, word, ...}  a schedule: new | changed | same | older (another version said it later) | api (it was
--                             put by hand, which beats code)

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'schedules')
local arg = args.bind('now', 'declared_at')

args.groups(arg, 6)
local now = clock.now(arg.now)
local declared_at = now
if arg.declared_at ~= '' then
  declared_at = args.number(arg.declared_at, 'declared_at', 0)
end
local declared = {}
for at = arg.rest, #ARGV, 6 do
  declared[#declared + 1] = schedule.said(at)
end
redis.call('ZREM', keys.schedules, '')

local function declare(said)
  local this = schedule.read(said.name)
  if not this then
    schedule.write(nil, said, 'code', declared_at, now)
    return 'new'
  elseif this.origin == 'api' then
    return 'api'
  end
  local unseen = schedule.unseen(this, now)
  local word = 'same'
  if schedule.same(this, said) then
    local latest = clock.text(math.max(this.declared_at, declared_at))
    redis.call('HSET', this.key, 'declared_at', latest, 'seen', clock.text(now))
    redis.call('ZADD', keys.schedules, 'NX', 0, said.name)
  elseif declared_at <= this.declared_at and not unseen then
    return 'older'
  else
    schedule.write(this, said, 'code', declared_at, now)
    word = 'changed'
  end
  redis.call('HDEL', this.key, 'unseen_ms')
  if unseen then
    schedule.look(said.name, 0)
  end
  return word
end

local answer = { clock.text(declared_at) }
for _, said in ipairs(declared) do
  answer[#answer + 1] = declare(said)
end
return answer
