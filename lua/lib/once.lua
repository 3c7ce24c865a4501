-- Once only: the keys that jobs own, `unique:<key>`, each a string: the owner's id, and until when if it lapses.
--
-- A record's `once` is `<key> <how> <conflict>`. How long the key is held: `finished` (until the job ends), `started`
-- (until it starts), `within/<ms>` (until it ends, at most so long), `debounce/<ms>/<most ms or ->` (until it starts),
-- `throttle/<ms>` (so long, whatever becomes of the job). What a call meets that finds it held: `existing`, `raise` or
-- `replace`. A key whose owner is gone or has ended holds nobody up: the owner's record is asked, not the key alone.

local once = { retaken = {} }

local LONGEST = 256
local CONFLICTS = { existing = true, raise = true, replace = true }
local OVER = { completed = true, failed = true, cancelled = true }
local LAPSE_LATER_MS = 1000 -- a TTL collects garbage, the time in the value decides

-- The parts of such a text, or nil for what is none.
function once.read(text)
  if not text or text == '' or #text > LONGEST then
    return nil
  end
  local key, how, conflict = string.match(text, '^([%w%%._~@+/:-]+) (%S+) (%a+)$')
  if not key or not CONFLICTS[conflict] then
    return nil
  end
  local this = { key = key, conflict = conflict }
  if how == 'finished' or how == 'started' then
    this.how = how
    return this
  end
  local name, ms, most = string.match(how, '^(%a+)/(%d+)/?(.*)$')
  this.how, this.ms, this.most = name, record.number(ms), record.number(most)
  if this.ms and (name == 'within' or name == 'throttle' or name == 'debounce') then
    return this
  end
  return nil
end

-- Who owns a key, as far as it knows: an id, and whether that needs no living job.
local function holder(key, now)
  local id, till, how = string.match(redis.call('GET', keys.unique(key)) or '', '^(%S+) ?(%d*) ?(%a*)$')
  if not id or (till ~= '' and record.number(till, 0) <= now) then
    return nil
  end
  return id, how == 'throttle'
end

-- Whether this living job, whose id a key names, holds it.
local function holds(job, key)
  local its = once.read(job.once)
  if not its or its.key ~= key or OVER[job.state] then
    return false
  end
  return job.state ~= 'running' or record.is_offer(job) or its.how == 'finished' or its.how == 'within'
end

-- The living job that owns a key, or of a throttled one whatever is left of it; nil if nobody does.
function once.owner(key, now)
  local id, throttled = holder(key, now)
  if throttled then
    return { id = id, state = 'throttled' }
  end
  local job = id and record.fields(id, record.CORE)
  return job and holds(job, key) and job or nil
end

-- The key, taken apart, of a living job that should own it and whose key nobody owns; else nil.
function once.missed(job, now)
  local this = once.read(job.once)
  if not this or OVER[job.state] or this.how == 'throttle' then
    return nil
  elseif this.how == 'within' then -- since when it was held only the key knew: not later than this
    this.ms = record.number(job.created_at, 0) + this.ms - now
    return this.ms > 0 and not once.owner(this.key, now) and this or nil
  end
  return (this.how == 'finished' or not job.epoch) and not once.owner(this.key, now) and this or nil
end

-- Gives the key to this job, from now on.
function once.take(this, id, now)
  local key = keys.unique(this.key)
  if this.how == 'within' or this.how == 'throttle' then
    local value = id .. ' ' .. clock.text(now + this.ms) .. (this.how == 'throttle' and ' throttle' or '')
    redis.call('SET', key, value, 'PX', clock.text(this.ms + LAPSE_LATER_MS))
  else
    redis.call('SET', key, id)
  end
end

-- A job starts or ends, and lets go of its key, unless that is somebody else's by now. One only offered doesn't.
function once.leave(job, to)
  if to == 'running' and job.offered and job.offered == job.epoch then
    return
  end
  local this = once.read(job.once)
  if not this or this.how == 'throttle' or (to == 'running' and this.how ~= 'started' and this.how ~= 'debounce') then
    return
  end
  local key = keys.unique(this.key)
  local value = redis.call('GET', key)
  if value and string.match(value, '^%S+') == job.id then
    redis.call('DEL', key)
  end
end

-- Whether a job that runs again by hand may: nil, or the id of another living job that owns its key.
function once.bars(job, now)
  local this = once.read(job.once)
  if not this or this.how == 'throttle' then
    return nil
  end
  local owner = once.retaken[this.key] or once.owner(this.key, now)
  if owner and owner.id ~= job.id then
    return owner.id
  end
  once.retaken[this.key] = job
  job.retakes = this
  return nil
end
