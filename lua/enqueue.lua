-- Add jobs to a queue, all or none. A job whose id exists is left alone: the same call sent again adds nothing and
-- answers as the first did. The only script that a server at maxmemory refuses, so it opens with a growing write.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   expiring   zset    waiting jobs that have `expires`, by that time
--   leases     zset    running jobs by lease expiry
--   pending    zset    jobs that wait for other jobs
--   completed  zset    by time of entry
--   failed     zset    by time of entry
--   cancelled  zset    by time of entry
--   prune      zset    ended jobs by the time they may go
--   events     stream  one entry a call and kind of transition
--   stats      hash    totals by state and task
--   empty      zset    lanes whose body ran empty, by when
--   kinds      hash    task -> executor kind, as the workers declared it
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   exists     word    'raise': refuse the whole call if any id exists; else 'existing'
--   ...                  a job: id, token ('' for ids that are unique by themselves), task, executor ('' unknown),
--                        priority, due, expires ('' | '+ms from now' | 'ms'), n, then n pairs of field and value
-- REPLY
--   {'ok', word, ...}   a job: available | scheduled (created), existing
--   {'exists', id}      with 'raise' only; nothing was added

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/event.lua
-- @include lib/stats.lua
-- @include lib/retention.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/state.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'kinds'
)
local arg = args.bind('now', 'exists')

local now = clock.now(arg.now)
local kinds, jobs, words, seen, damaged = {}, {}, {}, {}, {}

local function class_of(task, executor)
  local kind = kinds[task]
  if kind == nil then
    kind = redis.call('HGET', keys.kinds, task)
    kind = lane.is_class(kind) and kind
    kinds[task] = kind
  end
  return kind or (executor ~= '' and executor) or 'async'
end

-- What the first call with this token was told, whatever became of the job since; nil if there is no such job.
local function answer(id, token, due)
  if seen[id] then
    return 'existing'
  end
  local found = redis.pcall('HMGET', keys.job(id), 'state', 'token', 'created_at')
  if found.err or (not found[1] and (found[2] or found[3])) then
    damaged[#damaged + 1] = id
    return 'existing'
  elseif not found[1] then
    return nil
  elseif (found[2] or '') ~= token then
    return 'existing'
  end
  local created_at = record.number(found[3], 0)
  return (clock.at(due, created_at) or 0) > created_at and 'scheduled' or 'available'
end

local at = arg.rest
while ARGV[at] do
  local id, token, task = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  args.number(ARGV[at + 4], 'priority', -512, 511)
  local count = args.number(ARGV[at + 7], 'number of fields', 0)
  if not ARGV[at + 7 + 2 * count] then
    error('job ' .. id .. ' has fewer fields than it says', 0)
  end
  local word = answer(id, token, ARGV[at + 5])
  if word == 'existing' and arg.exists == 'raise' then
    return { 'exists', id }
  end
  if not word then
    local due = clock.at(ARGV[at + 5], now)
    local job = { id = id, task = task, priority = ARGV[at + 4], class = class_of(task, ARGV[at + 3]) }
    job.expires = clock.at(ARGV[at + 6], now)
    job.created_at = clock.text(now)
    job.due = due and due > now and due or nil
    job.more = { 'task', task, 'created_at', job.created_at, unpack(ARGV, at + 8, at + 7 + 2 * count) }
    job.token = token
    word = job.due and 'scheduled' or 'available'
    jobs[#jobs + 1] = job
  end
  seen[id] = true
  words[#words + 1] = word
  at = at + 8 + 2 * count
end

for _, id in ipairs(damaged) do
  state.condemn(id, now)
end
-- A repeat changes nothing, but it writes: WAIT on its connection then tells who has what the first call wrote, on
-- another connection perhaps. A mark that comes and goes; the first removal opens the way at maxmemory.
if #jobs == 0 then
  redis.pcall('ZREM', keys.leases, '')
  redis.pcall('ZADD', keys.leases, 0, '')
  redis.pcall('ZREM', keys.leases, '')
end

local new_class = false
local registered = {}
for _, job in ipairs(jobs) do
  local more = job.more
  local function set(field, value)
    more[#more + 1] = field
    more[#more + 1] = value
  end
  if job.priority ~= '0' then set('priority', job.priority) end
  if job.class ~= 'async' then set('class', job.class) end
  if job.token ~= '' then set('token', job.token) end
  if job.due then set('scheduled_at', clock.text(job.due)) end
  if job.expires then
    job.expires_at = clock.text(job.expires)
    set('expires_at', job.expires_at)
  end
  state.create(job, job.due and 'scheduled' or 'available', now, more, job.due)
  if not registered[job.class] then
    registered[job.class] = true
    if redis.call('HSETNX', keys.classes, job.class, 'executor=' .. job.class) == 1 then
      new_class = true
    end
  end
end
if new_class then
  redis.call('HINCRBY', keys.meta, 'class_version', 1)
  wake.all(now)
end
state.flush(now)
return { 'ok', unpack(words) }
