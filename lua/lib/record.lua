-- Reading of job records. A record is a hash of words and decimal numbers; payload and result are bytes that no
-- script looks into. What is no record, a key that isn't a hash or that names no state of ours, is damage: `read` and
-- `fields` answer nil and 'damaged'. `record.damage` says why a job that has one can't run all the same.

local record = {}
local find = string.find

-- What every change of state needs to know of a job.
record.CORE = {
  'state', 'task', 'class', 'priority', 'epoch', 'worker', 'attempt', 'max_attempts', 'entry', 'place',
  'created_at', 'expires_at', 'keep', 'keep_result', 'waited', 'cancel', 'released', 'on_lease_lost',
  'unknown_since', 'lane', 'lock_wait', 'lock_until', 'once', 'offered', 'lapsed', 'started_at',
}

-- What `retry` and `cancel` need: also by what the same call, sent again, is known.
record.HANDLED = { 'said', unpack(record.CORE) }

-- What finishing a running job needs: the shorter the list, the cheaper the hottest script.
record.FINISH = { 'state', 'epoch', 'worker', 'task', 'keep', 'keep_result', 'waited', 'lane', 'once', 'offered' }

local KNOWN = {
  pending = true, scheduled = true, available = true, running = true, retryable = true, completed = true,
  failed = true, cancelled = true,
}

function record.known(state)
  return KNOWN[state] == true
end

-- Fields that hold whole numbers, and the first number that is no time of ours.
local WHOLE = {
  attempt = true, max_attempts = true, epoch = true, created_at = true, scheduled_at = true, expires_at = true,
  unknown_since = true, released = true, timeout = true, hard_timeout = true, keep = true, keep_result = true,
}
local YEAR_10000 = 253402300800000

-- A maximum below zero means the default, and an empty field none.
local function can_be(name, text)
  if find(text, '^%d+$') then
    return #text < 15 or (#text == 15 and tonumber(text) < YEAR_10000)
  end
  return text == '' or (name == 'max_attempts' and record.number(text) ~= nil)
end

local function place_of_death(reply)
  if string.find(reply.err, 'WRONGTYPE', 1, true) then
    return nil, 'damaged'
  end
  error(reply.err, 0)
end

-- A number of a record or a setting: whole, of 15 digits at most, as we write them. Anything else is `otherwise`: Lua
-- would read nan, inf and 0x10 too, and a set refuses them as scores in the middle of a script.
function record.number(text, otherwise)
  if type(text) == 'number' then
    return text
  elseif type(text) == 'string' and #text < 17 and find(text, '^%-?%d+$') then
    return tonumber(text)
  end
  return otherwise
end

-- The whole record: as a table with `id`, and flat as the server gave it; that too, as the third, if it is damaged.
function record.read(id)
  local key = keys.job(id)
  local flat = redis.pcall('HGETALL', key)
  if flat.err then
    return place_of_death(flat)
  end
  if #flat == 0 then
    return nil, 'missing'
  end
  -- Named at once, the usual fields cost one allocation; this is the hottest loop of all.
  local job = {
    state = nil, task = nil, payload = nil, created_at = nil, entry = nil, taken = nil, epoch = nil, attempt = nil,
    id = nil, key = nil, unfit = nil,
  }
  local unfit
  for i = 1, #flat, 2 do
    local name, value = flat[i], flat[i + 1]
    job[name] = value
    if WHOLE[name] and not can_be(name, value) then
      unfit = name
    end
  end
  job.id, job.key, job.unfit = id, key, unfit
  if not KNOWN[job.state] then
    return nil, 'damaged', flat
  end
  return job, flat
end

-- What was read, for those who look: flat; of what is no hash only that it is damaged; empty for nothing.
function record.shown(job, flat, remains)
  if job then
    return flat
  end
  return flat == 'damaged' and (remains or { 'state', 'damaged' }) or {}
end

-- Some fields of a record, as a table with `id`.
function record.fields(id, names)
  local key = keys.job(id)
  local values = redis.pcall('HMGET', key, unpack(names))
  if values.err then
    return place_of_death(values)
  end
  local job = { id = id, key = key, state = false, task = false, epoch = nil, worker = nil, at = nil, answer = nil }
  for i = 1, #names do
    local value = values[i]
    if value then
      job[names[i]] = value
    end
  end
  if not KNOWN[job.state] then
    return nil, (job.state or redis.call('EXISTS', key) == 1) and 'damaged' or 'missing'
  end
  return job
end

-- As `shown`, without what may be large; `omitted` says so.
local LARGE = { payload = true, result = true, progress = true }

function record.outline(id)
  local names = redis.pcall('HKEYS', keys.job(id))
  if names.err or #names == 0 then
    return record.shown(record.read(id))
  end
  local flat = { 'omitted', '1' }
  for _, name in ipairs(names) do
    if not LARGE[name] then
      flat[#flat + 1] = name
      flat[#flat + 1] = redis.call('HGET', keys.job(id), name)
    end
  end
  return flat
end

local QUEUE = (string.match(KEYS[1], '{(.-)}:$') or '') .. ':'
local ID = '^' .. string.gsub(QUEUE, '[-.]', '%%%0') .. '[%w._-]+$'

-- Why a job that `read` gave can't be run, or nil: what workers and readers need of it is missing, or nothing that
-- can be.
function record.damage(job)
  local id = job.id
  if #id > #QUEUE + 64 or not find(id, ID) then
    return 'its id is none of this queue'
  elseif not job.task or job.task == '' then
    return 'it has no field task'
  elseif job.unfit then
    return 'the field ' .. job.unfit .. ' is no number that can be'
  end
end

-- A maximum that is missing or not positive means the default.
function record.max_attempts(job)
  local max = job.max_attempts and record.number(job.max_attempts, 3) or 3
  return max > 0 and max or 3
end

-- Whether somebody has begun to run it. The time of a first start isn't written, since its epoch tells it; it is empty
-- where there was none yet though there is an epoch, because it was only offered, or was retried by hand.
function record.begun(job)
  return job.epoch and job.started_at ~= ''
end

-- When its last offer was started, or 0.
function record.started_offer(job)
  return job.offered and record.number(string.match(job.offered, '^%-(.+)$'), 0) or 0
end

-- Whether it is a worker's to start, but not started: the epoch is only offered.
function record.is_offer(job)
  return job.state == 'running' and job.offered ~= nil and job.offered == job.epoch
end

-- Whether a job should have started by now and didn't.
function record.expired(job, now)
  return job.expires_at and not record.begun(job) and record.number(job.expires_at, now + 1) <= now
end

-- Whether a job has waited for its lock for as long as it may.
function record.locked_out(job, now)
  return job.state == 'available' and job.lock_until and record.number(job.lock_until, now + 1) <= now
end

function record.attempt(job)
  return job.attempt and math.max(0, record.number(job.attempt, 0)) or 0
end

-- One entry of a job's list of errors, for those that a script writes itself. Only our own words go in:
-- user data never passes through cjson, which changes it.
function record.error(kind, message, now, worker)
  return cjson.encode({ type = kind, message = message, at = now, worker = worker })
end

-- A number that only grows (a term, a fence, a revision), of which the next one must be told apart: 0 for what can't be
-- one of ours.
local GROWN_MAX = 4503599627370496

function record.grown(text)
  local number = record.number(text, 0)
  return number >= 0 and number <= GROWN_MAX and number or 0
end

-- Notes beside other fields what a call of this name is answered with.
function record.say(more, token, word)
  if token ~= '' then
    more[#more + 1] = 'said'
    more[#more + 1] = token .. ' ' .. word
  end
  return more
end

-- The word that this very call was answered with before, whatever became of the job since; nil if it is new.
function record.answered(job, token)
  local said = token ~= '' and job and job.said or ''
  if string.sub(said, 1, #token + 1) == token .. ' ' then
    return string.sub(said, #token + 2)
  end
  return nil
end
