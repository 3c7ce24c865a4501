-- Jobs that wait for a time: scheduled, and retryable after their backoff.

local due = {}

-- The time of the earliest and its id, or nil.
function due.next()
  local earliest, id
  for _, set in ipairs({ 'scheduled', 'retryable' }) do
    local first = redis.call('ZRANGE', keys[set], 0, 0, 'WITHSCORES')
    local at = tonumber(first[2] or nil)
    if at and (not earliest or at < earliest) then
      earliest, id = at, first[1]
    end
  end
  return earliest, id
end

-- Whether anything has come due: a waiting job's time, the end of a backoff, or `expires`.
function due.any(now)
  for _, set in ipairs({ 'scheduled', 'retryable', 'expiring' }) do
    local first = redis.call('ZRANGE', keys[set], 0, 0, 'WITHSCORES')
    if first[1] and tonumber(first[2]) <= now then
      return true
    end
  end
  return false
end

local function promote_one(id, set, now)
  local job, why = record.fields(id, record.CORE)
  if why == 'damaged' then
    redis.call('ZREM', keys[set], id)
    state.condemn(id, now)
  elseif not job or job.state ~= set then
    -- An id whose record is gone or stands elsewhere: only this mark is wrong.
    redis.call('ZREM', keys[set], id)
  elseif record.expired(job, now) then
    state.move(job, 'cancelled', now, { 'reason', 'expired' })
  else
    state.move(job, 'available', now, {})
  end
end

-- Moves up to `limit` jobs whose time has come. Returns how many, and the classes that got work.
function due.promote(now, limit, quiet)
  local moved = 0
  for _, set in ipairs({ 'scheduled', 'retryable' }) do
    if moved < limit then
      local ids = redis.call('ZRANGEBYSCORE', keys[set], '-inf', clock.text(now), 'LIMIT', 0, limit - moved)
      for _, id in ipairs(ids) do
        promote_one(id, set, now)
      end
      moved = moved + #ids
    end
  end
  local classes = {}
  if moved > 0 then
    classes = state.flush(now, quiet)
  end
  return moved, classes
end

-- Whether it was the node of this worker that handed a job back: it would only do so again.
function due.handed_back(id, worker)
  local told = redis.pcall('HMGET', keys.job(id), 'unknown_since', 'worker')
  return told[1] and told[2] and string.match(told[2], '^(.*)%.') == string.match(worker, '^(.*)%.')
end
