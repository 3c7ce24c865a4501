-- What became of firings that were relayed to their queue: each goes into its run, and the message goes. One that waits
-- for the last run's job (queued) stays, and is relayed again later. Without any: the queue couldn't be reached, and is
-- tried again in a while.
--
-- KEYS
--   prefix    string  what every key of this queue starts with
--   outboxes  zset    queues that firings are on their way to, by when to relay them
-- ARGV
--   now       ms      '' = the server's clock; a test passes a time
--   queue     name    where they went
--   again_ms  ms      when to relay what is left
--   ...                 a message: entry, schedule, kind, nominal, word, and the job's id or why there is none
-- REPLY
--   {run, ...}  as each stands now: `<nominal> <kind> <fired_at> <term> <word> <rest>`; '' for one that is forgotten

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/schedule.lua

keys.bind('prefix', 'outboxes')
local arg = args.bind('now', 'queue', 'again_ms')

args.groups(arg, 6)
local again_ms = args.number(arg.again_ms, 'again_ms', 0, 86400000)
local box, now = keys.outbox(arg.queue), clock.now(arg.now)
redis.call('ZREM', keys.outboxes, '')

-- Whether the entry is this very message: a stream that was lost may have given its id to another.
local function stands(at)
  local entry, found = ARGV[at], {}
  if string.find(entry, '^%d+%-%d+$') then
    local flat = (redis.call('XRANGE', box, entry, entry)[1] or { '', {} })[2]
    for i = 1, #flat, 2 do
      found[flat[i]] = flat[i + 1]
    end
  end
  for i, field in ipairs({ 'schedule', 'kind', 'nominal' }) do
    if (found[field] or '') ~= ARGV[at + i] then
      return false
    end
  end
  return true
end

local answer = {}
for at = arg.rest, #ARGV, 6 do
  local word = ARGV[at + 4]
  if not stands(at) then
    word = nil -- told before: the first word counts
  elseif word ~= 'queued' then
    redis.call('XDEL', box, ARGV[at])
  end
  answer[#answer + 1] = schedule.told(ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], word, ARGV[at + 5])
end
if redis.call('XLEN', box) == 0 then
  redis.call('UNLINK', box)
  redis.call('ZREM', keys.outboxes, arg.queue)
else
  redis.call('ZADD', keys.outboxes, clock.text(now + again_ms), arg.queue)
end
return answer
