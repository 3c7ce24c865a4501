-- The only writer of a job's state. A move takes the job out of the structure of its old state and puts it into
-- that of the new one; both are gathered and written at once by `flush`, so that a batch costs a few calls.
--
-- A script reads and checks everything first, then calls `begin`, then moves, then calls `flush`.

-- @include lib/once.lua

local state = { ended = 0, leaving = {}, entering = {}, due = {} }

-- Compared with taskq/state.py by a test.
local ALLOWED = {
  pending = { available = true, scheduled = true, cancelled = true },
  scheduled = { available = true, cancelled = true, failed = true },
  available = { running = true, cancelled = true, failed = true },
  running = {
    completed = true, retryable = true, failed = true, available = true,
    scheduled = true, pending = true, cancelled = true,
  },
  retryable = { available = true, cancelled = true },
  completed = { available = true },
  failed = { available = true },
  cancelled = { available = true },
}
local WAITS_IN = { scheduled = true, retryable = true, pending = true, available = true }
local ENDS_IN = { completed = true, failed = true, cancelled = true }

function state.allows(from, to)
  return ALLOWED[from] ~= nil and ALLOWED[from][to] == true
end

function state.ends(name)
  return ENDS_IN[name] == true
end

-- The first write of every script but enqueue: a removal, even one that removes nothing, opens a server that is
-- at maxmemory to the writes after it.
function state.begin()
  redis.call('ZREM', keys.leases, '')
end

local function gone_from(key, id)
  local list = state.leaving[key]
  if not list then
    list = {}
    state.leaving[key] = list
  end
  list[#list + 1] = id
end

local function stands_in(key, score, id)
  local list = state.entering[key]
  if not list then
    list = {}
    state.entering[key] = list
  end
  local n = #list
  list[n + 1], list[n + 2] = score, id
end

local function leave(job, to)
  local from = job.state
  if from == 'running' then
    gone_from(keys.leases, job.id)
    gate.left = true
    if job.lane then
      gate.give(job)
    end
  elseif from == 'available' then
    if not job.taken then
      lane.remove(job)
    end
  else
    gone_from(keys[from], job.id)
  end
  if ENDS_IN[from] then
    gone_from(keys.prune, job.id)
  end
  if WAITS_IN[from] and (job.expires_at or job.lock_until) and not WAITS_IN[to] then
    gone_from(keys.expiring, job.id)
  elseif from == 'running' and WAITS_IN[to] and not record.begun(job) and record.number(job.expires_at) then
    -- It was only offered.
    stands_in(keys.expiring, job.expires_at, job.id)
  end
end

-- A job that is available waits for its lock for so long at most.
local function arm(job, now, more)
  local wait = job.lock_wait and record.number(job.lock_wait)
  if wait then
    local till = now + wait
    job.lock_until = clock.text(till)
    more[#more + 1] = 'lock_until'
    more[#more + 1] = job.lock_until
    local expires_at = not record.begun(job) and record.number(job.expires_at) or till
    stands_in(keys.expiring, clock.text(math.min(till, expires_at)), job.id)
  end
end

-- Puts the job into the structure of a state that isn't an end. Returns the fields that say where in it.
local function enter(job, to, now, option, more)
  if to == 'running' then
    stands_in(keys.leases, clock.text(now + option), job.id)
    return 'entry', ''
  elseif to ~= 'available' then
    local at = now
    if to ~= 'pending' then
      at = option
      state.due[#state.due + 1] = job
    end
    stands_in(keys[to], clock.text(at), job.id)
    return 'entry', ''
  end
  arm(job, now, more)
  if option == 'restore' then
    lane.restore(job, record.number(job.place) or record.number(job.created_at, now))
    return 'entry', ''
  end
  local entry, text = lane.append(job, now), clock.text(now)
  if job.created_at and job.created_at ~= text then
    return 'entry', entry, 'place', text
  end
  return 'entry', entry
end

-- Ended: it stays for its time, or goes at once; who waits for it is told. Returns when, if the record stays.
local function finish(job, to, now)
  local at, id = retention.due(job, to, now, job.has_result), job.id
  state.ended = state.ended + 1
  if job.waited then
    redis.call('PUBLISH', keys.done(id), to)
  end
  if not at then
    redis.call('UNLINK', job.key)
    retention.remember(job.epoch, now)
    return false
  end
  local text = clock.text(now)
  stands_in(keys[to], text, id)
  stands_in(keys.prune, clock.text(at), id)
  return text
end

-- `more` comes last, because a call takes only the last list whole. The record was read, or is new and was seen to be.
local function write(job, to, more, field, value, field2, value2)
  if field2 then
    redis.sure('HSET', job.key, 'state', to, field, value, field2, value2, unpack(more))
  elseif #more == 2 then
    redis.sure('HSET', job.key, 'state', to, field, value, more[1], more[2])
  else
    redis.sure('HSET', job.key, 'state', to, field, value, unpack(more))
  end
end

-- Moves `job` (a table from lib/record.lua) to another state and writes `more` (field, value, ...) beside it.
-- `option`: to running, the lease in ms; to scheduled and retryable, the due time in ms; to available, 'restore'
-- for a job that goes back to its original place. A job that ends with a result says so in `has_result`.
function state.move(job, to, now, more, option)
  local from = job.state
  local allowed = ALLOWED[from]
  if not (allowed and allowed[to]) then
    error('a ' .. tostring(from) .. ' job cannot become ' .. to, 0)
  end
  leave(job, to)
  if job.lane and bound.key(job.lane) then
    if to == 'running' then
      bound.begins(job, now)
    elseif from == 'running' or ENDS_IN[to] then
      bound.leaves(job, more)
      gate.left = true
    end
  end
  if ENDS_IN[to] then
    local at = finish(job, to, now)
    if at then
      write(job, to, more, 'finished_at', at)
    end
  else
    write(job, to, more, enter(job, to, now, option, more))
  end
  if job.once and (ENDS_IN[to] or to == 'running') then
    once.leave(job, to)
  end
  event.note(to, job.id)
  stats.note(job, to, now)
  job.state = to
end

-- A job that did not exist before.
function state.create(job, to, now, more, option)
  job.key = keys.job(job.id)
  write(job, to, more, enter(job, to, now, option, more))
  if job.expires_at and not job.lock_until then
    stands_in(keys.expiring, job.expires_at, job.id)
  end
  event.note(to, job.id)
  stats.add('enqueued', job.task, 1)
end

-- Another call takes a waiting job's place, under its id: what that one was to do goes; what tells of its holders, and
-- by what its call is known, stays. In the same lane it keeps its place.
local STAYS = {
  state = true, entry = true, place = true, token = true, epoch = true, ended = true, waited = true, said = true,
}

function state.replace(old, job, to, now, more, option)
  job.key = old.key
  local fields, said = redis.call('HKEYS', job.key), {}
  if old.epoch then
    more[#more + 1], more[#more + 2] = 'started_at', ''
  end
  if old.state == to and to == 'available' and lane.of(old) == lane.of(job) then
    arm(job, now, more)
    redis.sure('HSET', job.key, unpack(more))
  else
    write(job, to, more, enter(job, to, now, option, more))
    leave(old, to)
    event.note(to, job.id)
  end
  for i = 1, #more, 2 do
    said[more[i]] = true
  end
  for _, field in ipairs(fields) do
    if not said[field] and not STAYS[field] then
      redis.call('HDEL', job.key, field)
    end
  end
  if old.expires_at or old.lock_until then
    gone_from(keys.expiring, job.id)
  end
  if job.expires_at and not job.lock_until then
    stands_in(keys.expiring, job.expires_at, job.id)
  end
  event.note('replaced', job.id)
end

-- What stands where a job should but is no job record becomes a failed job, so that somebody sees it. Fields that can
-- be read stay. The caller takes the id out of where it stood.
function state.condemn(id, now)
  local job = { id = id, key = keys.job(id), state = 'available', taken = true }
  local more = { 'reason', 'BadRecord: it names no state' }
  if redis.call('TYPE', job.key).ok ~= 'hash' then
    redis.put_aside(job.key)
    more = { 'created_at', clock.text(now), 'reason', 'BadRecord: this was no job record' }
  else
    local found = redis.call('HMGET', job.key, 'once', 'lane')
    job.once, job.lane = found[1] or nil, found[2] or nil
  end
  state.move(job, 'failed', now, more)
  redis.call('HSETNX', job.key, 'task', '?')
end

-- Whoever waits for the next due time must hear of an earlier one.
local function tell_of_earlier(now)
  local first = {}
  for _, set in ipairs({ 'scheduled', 'retryable' }) do
    if state.entering[keys[set]] then
      first[redis.call('ZRANGE', keys[set], 0, 0)[1] or ''] = true
    end
  end
  for _, job in ipairs(state.due) do
    if first[job.id] then
      wake.set(lane.of(job).class, now)
    end
  end
end

-- Writes what the moves gathered. Returns the classes that got work. A claim passes `quiet`: it does the work itself.
function state.flush(now, quiet)
  for key, members in pairs(state.leaving) do
    redis.call('ZREM', key, unpack(members))
  end
  for key, pairs_ in pairs(state.entering) do
    redis.call('ZADD', key, unpack(pairs_))
  end
  local classes = lane.flush(now)
  lane.count()
  gate.flush(now)
  for class in pairs(lane.unparked) do
    classes[#classes + 1] = class
  end
  lane.unparked = {}
  if not quiet then
    for _, class in ipairs(classes) do
      wake.set(class, now)
    end
  end
  if #state.due > 0 then
    tell_of_earlier(now)
  end
  event.flush()
  stats.flush(now)
  if state.ended > 0 then
    retention.step(now, 2 * state.ended + 2)
  end
  state.leaving, state.entering, state.due, state.ended = {}, {}, {}, 0
  return classes
end
