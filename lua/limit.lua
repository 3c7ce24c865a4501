-- Change what an operator says of one limit, task, fairness key, or of the queue as a whole; and look at once at what
-- waits for it, so that raising, resuming and unblocking take effect now. Of the keys of a limit so many are looked at
-- a call: it is called again with the cursor that it answers.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   leases     zset    running jobs by lease expiry
--   limits     hash    limit, task or key -> its numbers, and whether it is paused
--   gates      zset    gates that have parked lanes, by when to look at them
--   kinds      hash    task -> executor kind, as the workers declared it
--   stats      hash    totals by state and task
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   entry      string  <limit> | <limit>=<key> | *<task> | @<fairness key> | queue
--   cursor     number  '' = change it; else only look on from there
--   task       name    '' = whatever it is; else this task must be one that a worker of the queue declared, or of which
--                        it has had a job
--   ...                  words and values, '' takes a word away: c (how many at once, or none) | r (a rate as
--                        <limit>/<period ms>/<burst>, or none) | until ('+ms from now' | 'ms') | paused (1) | age (of
--                        the queue: ms after which a waiting lane gains a level)
-- REPLY
--   {changed, cursor, declared}  whether that changed anything; '0' when all that waits for it was looked at; whether
--   code declares the limit
--   {'unknown'}  nobody knows that task here: nothing was changed

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/gate.lua

keys.bind('prefix', 'meta', 'classes', 'leases', 'limits', 'gates', 'kinds', 'stats')
local arg = args.bind('now', 'entry', 'cursor', 'task')

local now = clock.now(arg.now)
local ENTRY_MAX, SCANNED = 600, 250
local id = arg.entry
local of_name = string.match(id, '^[%w._~/%%-][%w._~@+/%%-]*$') and id ~= 'queue'
local of_key = string.match(id, '^[%w._~/%%-][%w._~@+/%%-]*=[%w._~@+/%%-]+$')
if #id > ENTRY_MAX or not (of_name or of_key or string.match(id, '^[*@][%w._~@+/%%-]+$') or id == 'queue') then
  error('entry cannot be ' .. id, 0)
end

local function is_known(task)
  return redis.call('HEXISTS', keys.kinds, task) == 1 or redis.call('HEXISTS', keys.stats, 'enqueued ' .. task) == 1
end

if arg.task ~= '' and not is_known(arg.task) then
  return { 'unknown' }
end

-- What code declares of a limit stays beside what an operator says, and holds again when that is taken away.
local field = of_name and 'op:' .. id or id

local function read(word, value)
  if value == '' then
    return nil
  elseif word == 'paused' then
    return clock.text(now)
  elseif word == 'until' then
    return clock.text(clock.at(value, now))
  elseif value == 'none' then
    return value
  elseif word == 'c' then
    return clock.text(args.number(value, 'concurrency', 0))
  elseif not terms.rate(value) then
    error('rate cannot be ' .. value, 0)
  end
  return value
end

local SAID = { c = true, r = true, ['until'] = true, paused = true }
local before = redis.call('HGET', keys.limits, field)
local words = terms.words(before or nil)
local was_paused = words.paused ~= nil
local age_ms
for i = arg.rest, #ARGV, 2 do
  local word, value = ARGV[i], ARGV[i + 1] or ''
  if word == 'age' and id == 'queue' then
    age_ms = value == '' and 0 or args.number(value, 'age', 1)
  elseif word ~= 'paused' or value == '' or not was_paused then
    args.word(word, SAID, 'word')
    words[word] = read(word, value)
  end
end

local changed = 0

local function change()
  redis.call('HDEL', keys.limits, '')
  terms.put(field, words)
  if redis.call('HGET', keys.limits, field) ~= before then
    changed = 1
  end
  local is_paused = words.paused ~= nil
  if is_paused ~= was_paused then
    redis.call('HINCRBY', keys.meta, 'pauses', is_paused and 1 or -1)
  end
  if age_ms == 0 then
    changed = math.max(changed, redis.call('HDEL', keys.meta, 'age_ms'))
  elseif age_ms then
    local old = redis.call('HGET', keys.meta, 'age_ms')
    redis.call('HSET', keys.meta, 'age_ms', clock.text(age_ms))
    changed = old == clock.text(age_ms) and changed or 1
  end
  if redis.call('EXISTS', keys.parks(id)) == 1 then
    redis.call('ZADD', keys.gates, clock.text(now), id)
  elseif words['until'] then
    gate.look(id, record.number(words['until']), now) -- a mark that will pass is taken away then
  else
    redis.call('ZREM', keys.gates, id)
  end
end

local cursor = '0'
if arg.cursor == '' then
  change()
else
  cursor = clock.text(args.number(arg.cursor, 'cursor', 0))
  redis.call('ZREM', keys.gates, '')
end
if of_name then
  local found = redis.call('ZSCAN', keys.gates, cursor, 'MATCH', id .. '=*', 'COUNT', SCANNED)
  cursor = found[1]
  for i = 1, #found[2], 2 do
    redis.call('ZADD', keys.gates, clock.text(now), found[2][i])
  end
end
gate.due(now)
for class in pairs(lane.unparked) do
  wake.set(class, now)
end
-- Claims open the rest: now, or by a timer that is to ring sooner than the workers know.
if gate.next(now) or age_ms then
  wake.all(now)
end
return { changed, cursor, redis.call('HEXISTS', keys.limits, id) }
