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
--   limits     hash    limit, task or key -> its numbers, and whether it is paused
--   gates      zset    gates that have parked lanes, by when to look at them
--   kinds      hash    task -> executor kind, as the workers declared it
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   exists     word    'raise': refuse the whole call if any id exists; else 'existing'
--   ...                  a job: id, token ('' for ids that are unique by themselves), task, executor ('' unknown),
--                        needs ('' none), priority, due, expires ('' | '+ms from now' | 'ms'), lane ('' plain), once
--                        ('' nothing), n, then n pairs of field and value
-- REPLY
--   {'ok', word, ...}   a job: available | scheduled (created), existing; and where its unique key was another's,
--                       'existing <id>' or 'replaced <id>', and that job's id
--   {'exists', id}      with 'raise' only; nothing was added
--   {'duplicate', id, key, owner}  a job that says so met the owner of its key; nothing was added
--   {'classes', needs, most}  the queue has as many classes as it may, of those with a target or of the others;
--                             nothing was added

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/event.lua
-- @include lib/stats.lua
-- @include lib/retention.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/state.lua
-- @include lib/birth.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates', 'kinds'
)
local arg = args.bind('now', 'exists')

local now = clock.now(arg.now)
local jobs, words, seen, damaged = {}, {}, {}, {}

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
  local id, after = ARGV[at], birth.after(at)
  local word = answer(id, ARGV[at + 1], ARGV[at + 6])
  if word == 'existing' and arg.exists == 'raise' then
    return { 'exists', id }
  end
  if not word then
    local job = birth.read(at, after, now)
    local met, owner, instead = meet.decide(job, now)
    if met == 'duplicate' then
      return { 'duplicate', id, job.unique.key, owner }
    end
    local refusal = met ~= 'existing' and birth.refusal(job, ARGV[at + 4])
    if refusal then
      return refusal
    end
    word = met and met .. ' ' .. owner or job.due and 'scheduled' or 'available'
    jobs[#jobs + 1] = instead or (not met and job or nil)
  end
  seen[id] = true
  words[#words + 1] = word
  at = after
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

birth.write(jobs, now)
return { 'ok', unpack(words) }
