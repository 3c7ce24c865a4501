-- Why a job isn't running: walks the gates of a claim in their order and answers with the first that is shut, with its
-- numbers. It only looks, and reads a bounded number of things. Which workers there are it can't know.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   leases     zset    running jobs by lease expiry
--   limits     hash    limit, task or key -> its numbers, and whether it is paused
--   gates      zset    gates that have parked lanes, by when to look at them
--   executors  zset    executors that aren't our worker, by until when each counts as alive
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   id         string  which job
-- REPLY
--   {now, word, name, value, ...}
--   word: missing | damaged (it is no job's record) | ended | running | due (it waits for a time) | pending (it waits
--         for other jobs) | paused (the queue is) | whole (the queue's own limit) | gate (a limit, lock or pause of its
--         lane) | turn (nothing is shut: what stands before it)
--   names of `running`: worker started_at attempt lease offered, cancel (1: it was asked to stop; force: by force too)
--   names of `due`: at attempt unknown (why its last holder couldn't begin it, '' if none said so)
--   names of `gate` and `whole`: gate kind held most at holders, reserved (slots of the queue that are held for jobs
--   which haven't begun), and by (where it is blocked: the field of `limits` that says so)
--   kind: paused | blocked | limit | rate | saving (what is free of a rate is kept for who came first) | lock
--   names of `turn`: lanes_ahead jobs_ahead more class needs, executors (how many of them claim here), who (some of
--   their names), and comes (1: its target is one of them)

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/executors.lua

keys.bind('prefix', 'meta', 'classes', 'leases', 'limits', 'gates', 'executors')
local arg = args.bind('now', 'id')
redis.looks = true

local now = clock.now(arg.now)
local HOLDERS_MAX, AHEAD_MAX, LEVELS_MAX, NAMES_MAX = 5, 1000, 64, 3
local FIELDS = {
  'state', 'task', 'class', 'priority', 'lane', 'entry', 'place', 'created_at', 'scheduled_at', 'finished_at',
  'started_at', 'worker', 'epoch', 'attempt', 'max_attempts', 'reason', 'offered', 'unknown_since', 'unknown_reason',
  'cancel',
}

local function answer(word, facts)
  local flat = { clock.text(now), word }
  for name, value in pairs(facts) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  return flat
end

local job, why = record.fields(arg.id, FIELDS)
if not job then
  return answer(why, {})
end
local ENDED = { completed = true, failed = true, cancelled = true }
if ENDED[job.state] then
  return answer('ended', { state = job.state, at = job.finished_at or '', reason = job.reason or '' })
elseif job.state == 'running' then
  return answer('running', {
    state = job.state,
    worker = job.worker or '',
    started_at = job.started_at or '',
    attempt = record.attempt(job),
    lease = redis.call('ZSCORE', keys.leases, job.id) or '',
    offered = record.is_offer(job) and '1' or '',
    cancel = job.cancel or '',
  })
elseif job.state == 'pending' then
  return answer('pending', { state = job.state })
elseif job.state ~= 'available' then
  return answer('due', {
    state = job.state,
    at = job.scheduled_at or '',
    attempt = record.attempt(job),
    unknown = job.unknown_since and (job.unknown_reason or '?') or '',
  })
end

local paused = redis.call('HGET', keys.meta, 'paused')
if paused then
  return answer('paused', { state = job.state, at = paused })
end

-- The facts of a gate that lets no job of a cost through, or nil. One that holds a reservation has its slot.
local function shut(id, cost, has_slot)
  local free, at = (has_slot and gate.free_with_slot or gate.free)(id, cost, now)
  if free > 0 then
    return nil
  end
  local facts = gate.shown(id, has_slot, now)
  facts.state, facts.gate, facts.at = job.state, id, at and clock.text(at) or ''
  if facts.kind == 'limit' or facts.kind == 'lock' then
    local key = id == 'queue' and keys.leases or keys.slots(id)
    facts.holders = table.concat(redis.call('ZRANGE', key, 0, HOLDERS_MAX - 1), ' ')
    facts.reserved = id == 'queue' and bound.taken(now) or nil
  end
  return facts
end

local whole = shut('queue', 1, bound.key(job.lane) ~= nil)
if whole then
  return answer('whole', whole)
end
local task_gate = job.task and gate.of_task(job.task)
local found = task_gate and shut(task_gate, 1)
if found then
  return answer('gate', found)
end
local here = lane.of(job)
for _, each in ipairs(here.gates or {}) do
  found = shut(each.id, each.cost)
  here.start = park.start(here, each.id)
  if found then
    return answer('gate', found)
  elseif gate.is_saving(here, each, now) then
    return answer('gate', { state = job.state, gate = each.id, kind = 'saving' })
  end
end

-- What a claim of its class would come by first: groups of higher levels, groups and lanes of its own before it.
local function lanes_ahead()
  local ahead = 0
  for _, priority in ipairs(redis.call('ZREVRANGE', here.levels, 0, LEVELS_MAX - 1)) do
    if priority == here.priority then
      break
    end
    ahead = ahead + redis.call('ZCARD', keys.groups(here.class, priority))
  end
  local before = redis.call('ZRANK', here.groups, here.group) or 0
  return ahead + before + (redis.call('ZRANK', here.lanes, here.name) or 0)
end

local function jobs_ahead()
  local rank = redis.call('ZRANK', here.front, job.id)
  if rank then
    return rank, 0
  end
  local front = redis.call('ZCARD', here.front)
  if here.keys or not string.find(job.entry or '', '^%d+%-%d+$') then
    return front, 0
  end
  local entries = #redis.call('XRANGE', here.body, '-', job.entry, 'COUNT', AHEAD_MAX + 1)
  return front + math.max(0, entries - 1), entries > AHEAD_MAX and 1 or 0
end

local ahead, more = jobs_ahead()
local wants = redis.call('HGET', keys.classes, here.class) or ''
local target = needs.target_name(wants)
return answer('turn', {
  state = job.state,
  task = job.task or '',
  lanes_ahead = lanes_ahead(),
  jobs_ahead = ahead,
  more = more,
  class = here.class,
  needs = wants,
  executors = executors.count(now),
  who = table.concat(executors.alive(now, NAMES_MAX), ' '),
  comes = target and executors.is_alive(target, now) and 1 or 0,
})
