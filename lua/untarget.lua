-- Free waiting jobs of a target that can't run them, in one bounded step: they go to the class without it, at their
-- place; those that asked for it fail. Jobs that are due later are met here once they are. Only a leader knows that a
-- target is lost.
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
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   class      text    of jobs with a target
--   why        word    lost (it is gone) | busy (it takes nothing now: those that would fail wait on)
--   limit      count   at most so many jobs
--   term       number  of the leader
-- REPLY
--   {'ok', moved, failed, looked}  when fewer than the limit were looked at, none is left
--   {'lost'}                       a later leader has written here; nothing was done

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
-- @include lib/lanes.lua
-- @include lib/state.lua
-- @include lib/tenure.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed', 'failed',
  'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates'
)
local arg = args.bind('now', 'class', 'why', 'limit', 'term')

-- How many of those that wait on are passed over in a call.
local KEPT_MAX = 1000
local now = clock.now(arg.now)
local limit = args.number(arg.limit, 'limit', 1, 250)
args.word(arg.why, { lost = true, busy = true }, 'reason')
local told = string.match(arg.class, ';(.*=.*)$')
if not lane.is_class(arg.class) or not needs.is_narrow(arg.class) or (told and not needs.target(told)) then
  error('class ' .. arg.class .. ' has no target', 0)
end
local term = args.number(arg.term, 'term', 1)
if tenure.is_over(term, now) then
  return { 'lost' }
end
local CARED = { 'needs', 'on_target_lost', unpack(record.CORE) }
local moved, failed, looked, kept = 0, 0, 0, 0
local freed = {} -- the classes that jobs went to

-- What a job needs beside the target, or nil where that can't be known.
local function untargeted(job)
  local text = told or job.needs
  if not text or not needs.target(text) then
    return nil
  end
  return needs.untargeted(arg.class, text)
end

local function free(job)
  local class, text = untargeted(job)
  if not class or job.on_target_lost == 'fail' then
    local target = needs.target_name(told or job.needs or '')
    state.move(job, 'failed', now, { 'reason', 'target lost: ' .. (target or '?') })
    failed = failed + 1
    return
  end
  job.class, moved, freed[class] = class, moved + 1, true
  if text then
    redis.sure('HSET', job.key, 'class', class, 'needs', text, 'entry', '')
  else
    redis.sure('HSET', job.key, 'class', class, 'entry', '')
    redis.call('HDEL', job.key, 'needs')
  end
  lane.restore(job, record.number(job.place) or record.number(job.created_at, now))
end

-- What stands at a place of a lane leaves it, unless it is to wait on.
local function look(here, id, entry)
  local job, why = record.fields(id, CARED)
  if job and job.state == 'available' and job.on_target_lost == 'fail' and arg.why == 'busy' then
    kept = kept + 1
    return
  end
  looked = looked + 1
  lane.remove({ id = id, class = here.class, priority = here.priority, lane = here.keys, entry = entry })
  if why == 'damaged' then
    state.condemn(id, now)
  elseif job and job.state == 'available' and lane.of(job) == here then
    job.taken = true
    free(job)
  end
end

state.begin()
tenure.note(term)
lanes.each_of(arg.class, function(here)
  local heads = lane.heads(here, limit - looked + (arg.why == 'busy' and KEPT_MAX - kept or 0))
  for i, id in ipairs(heads) do
    if looked == limit or kept == KEPT_MAX then
      return false
    end
    local entry = i > heads.front and heads.entries[i - heads.front][1] or nil
    look(here, id, entry)
  end
  return looked < limit and kept < KEPT_MAX
end)
for class in pairs(freed) do
  if not needs.is_narrow(class) then -- a narrow one `flush` enters; of this one there may never have been a job
    needs.enter(class, nil, now)
  end
end
state.flush(now)
return { 'ok', moved, failed, looked }
