-- The only writer of a job's state. A move takes the job out of the structure of its old state and puts it into
-- that of the new one; both are gathered and written at once by `flush`, so that a batch costs a few calls.
--
-- A script reads and checks everything first, then calls `begin`, then moves, then calls `flush`.

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

local function gather(into, key, ...)
  local list = into[key]
  if not list then
    list = {}
    into[key] = list
  end
  for i = 1, select('#', ...) do
    list[#list + 1] = (select(i, ...))
  end
end

local function leave(job, to)
  local from = job.state
  if from == 'running' then
    gather(state.leaving, keys.leases, job.id)
  elseif from == 'available' then
    if not job.taken then
      lane.remove(job)
    end
  else
    gather(state.leaving, keys[from], job.id)
  end
  if ENDS_IN[from] then
    gather(state.leaving, keys.prune, job.id)
  end
  if WAITS_IN[from] and job.expires_at and not WAITS_IN[to] then
    gather(state.leaving, keys.expiring, job.id)
  end
end

-- The fields that say where the job now waits.
local function enter(job, to, now, option)
  if to == 'available' then
    if option == 'restore' then
      local place = tonumber(job.place or job.created_at or now)
      lane.restore(job, place)
      return { 'entry', '' }
    end
    local fields = { 'entry', lane.append(job, now) }
    if job.created_at and tonumber(job.created_at) ~= now then
      fields[3], fields[4] = 'place', clock.text(now)
    end
    return fields
  end
  if to == 'running' then
    gather(state.entering, keys.leases, now + option, job.id)
    return { 'entry', '' }
  end
  local at = now
  if to == 'scheduled' or to == 'retryable' then
    at = option
    state.due[#state.due + 1] = job
  end
  gather(state.entering, keys[to], clock.text(at), job.id)
  return {}
end

-- Ended: it stays for its time, or goes at once; who waits for it is told.
local function finish(job, to, now, more)
  local has_result = false
  for i = 1, #more, 2 do
    if more[i] == 'result' then
      has_result = true
    end
  end
  local at = retention.due(job, to, now, has_result)
  state.ended = state.ended + 1
  if job.waited then
    redis.call('PUBLISH', keys.done(job.id), to)
  end
  if not at then
    redis.call('UNLINK', keys.job(job.id))
    return false
  end
  gather(state.entering, keys[to], clock.text(now), job.id)
  gather(state.entering, keys.prune, clock.text(at), job.id)
  return true
end

-- Moves `job` (a table from lib/record.lua) to another state and writes `more` (field, value, ...) beside it.
-- `option`: to running, the lease in ms; to scheduled and retryable, the due time in ms; to available, 'restore'
-- for a job that goes back to its original place.
function state.move(job, to, now, more, option)
  if not state.allows(job.state, to) then
    error('a ' .. tostring(job.state) .. ' job cannot become ' .. to, 0)
  end
  leave(job, to)
  local stays = true
  if ENDS_IN[to] then
    stays = finish(job, to, now, more)
    more[#more + 1] = 'finished_at'
    more[#more + 1] = clock.text(now)
  else
    local fields = enter(job, to, now, option)
    for i = 1, #fields do
      more[#more + 1] = fields[i]
    end
    if WAITS_IN[to] and job.expires_at and not WAITS_IN[job.state] then
      gather(state.entering, keys.expiring, job.expires_at, job.id)
    end
  end
  if stays then
    redis.call('HSET', keys.job(job.id), 'state', to, unpack(more))
  end
  event.note(to, job.id)
  stats.note(job, to, now)
  job.state = to
end

-- A job that did not exist before.
function state.create(job, to, now, more, option)
  local fields = enter(job, to, now, option)
  for i = 1, #fields do
    more[#more + 1] = fields[i]
  end
  if job.expires_at then
    gather(state.entering, keys.expiring, job.expires_at, job.id)
  end
  redis.call('HSET', keys.job(job.id), 'state', to, unpack(more))
  event.note(to, job.id)
  stats.add('enqueued ' .. job.task, 1)
end

-- What stands in a lane but is no job record: a failed job with that id takes its place, so that somebody sees it.
function state.condemn(id, now)
  redis.call('DEL', keys.job(id))
  local job = { id = id, state = 'available', taken = true }
  local more = { 'task', '?', 'created_at', clock.text(now), 'reason', 'BadRecord: this was no job record' }
  state.move(job, 'failed', now, more)
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
      wake.set(job.class or 'async', now)
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
