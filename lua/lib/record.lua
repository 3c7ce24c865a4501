-- Reading of job records. A record is a hash of words and decimal numbers; payload and result are bytes that no
-- script looks into. A key that isn't a hash is damage: `read` and `fields` answer nil and 'damaged'.

local record = {}

-- What every change of state needs to know of a job.
record.CORE = {
  'state', 'task', 'class', 'priority', 'epoch', 'worker', 'attempt', 'max_attempts', 'entry', 'place',
  'created_at', 'expires_at', 'keep', 'keep_result', 'waited', 'cancel', 'released', 'on_lease_lost',
  'unknown_since',
}

-- What finishing a running job needs: the shorter the list, the cheaper the hottest script.
record.FINISH = { 'state', 'epoch', 'worker', 'task', 'keep', 'keep_result', 'waited' }

local function place_of_death(reply)
  if string.find(reply.err, 'WRONGTYPE', 1, true) then
    return nil, 'damaged'
  end
  error(reply.err, 0)
end

-- The whole record: as a table with `id`, and flat as the server gave it.
function record.read(id)
  local key = keys.job(id)
  local flat = redis.pcall('HGETALL', key)
  if flat.err then
    return place_of_death(flat)
  end
  if #flat == 0 then
    return nil, 'missing'
  end
  local job = { id = id, key = key }
  for i = 1, #flat, 2 do
    job[flat[i]] = flat[i + 1]
  end
  job.id, job.key = id, key
  return job, flat
end

-- Some fields of a record, as a table with `id`.
function record.fields(id, names)
  local key = keys.job(id)
  local values = redis.pcall('HMGET', key, unpack(names))
  if values.err then
    return place_of_death(values)
  end
  local job = { id = id, key = key, state = false, task = false }
  for i = 1, #names do
    local value = values[i]
    if value then
      job[names[i]] = value
    end
  end
  if not job.state then
    return nil, redis.call('EXISTS', key) == 1 and 'damaged' or 'missing'
  end
  return job
end

-- A maximum that is missing or not positive means the default.
function record.max_attempts(job)
  local max = tonumber(job.max_attempts or '3') or 3
  return max > 0 and max or 3
end

function record.attempt(job)
  return tonumber(job.attempt or '0') or 0
end

-- One entry of a job's list of errors, for those that a script writes itself. Only our own words go in:
-- user data never passes through cjson, which changes it.
function record.error(kind, message, now, worker)
  return cjson.encode({ type = kind, message = message, at = now, worker = worker })
end
