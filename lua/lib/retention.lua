-- How long ended jobs stay. Each has a time in `prune` by which it may go; beyond a number of jobs the oldest go
-- earlier, but never before the least time that makes a repeated call and a waiting result safe. Removal is in
-- bounded steps, inside the scripts that end jobs and by the janitor.

local retention = {}

local LEAST_MS = 15000
local LEAST_WITH_RESULT_MS = 300000
local HARD_CAP = 1000000
local DEFAULTS = {
  keep_completed = 86400000,
  keep_failed = 1209600000,
  keep_cancelled = 1209600000,
  max_completed = 10000,
  max_failed = 100000,
}
local NAMES = { 'keep_completed', 'keep_failed', 'keep_cancelled', 'max_completed', 'max_failed' }
local MAX = { completed = 'max_completed', failed = 'max_failed' }

local settings

local function setting(name)
  if not settings then
    settings = {}
    local values = redis.call('HMGET', keys.meta, unpack(NAMES))
    for i, each in ipairs(NAMES) do
      settings[each] = record.number(values[i], DEFAULTS[each])
    end
  end
  return settings[name]
end

local plain = {}

-- When an ended job may next lose something; nil if it asked to keep nothing at all.
function retention.due(job, ended_as, finished_at, has_result)
  if not (job.keep or has_result) then
    -- The same for all such jobs of a batch.
    local at = plain[ended_as]
    if not at then
      at = finished_at + math.max(setting('keep_' .. ended_as), LEAST_MS)
      plain[ended_as] = at
    end
    return at
  end
  if job.keep == '0' then
    return nil
  end
  local keep = math.max(record.number(job.keep) or setting('keep_' .. ended_as), LEAST_MS)
  if has_result then
    local result = record.number(job.keep_result)
    keep = result and math.min(keep, math.max(result, 1)) or math.max(keep, LEAST_WITH_RESULT_MS)
  end
  return finished_at + keep
end

-- Of ids that stand in the set of an ended state those whose job is in no other state. The others lose only that mark.
function retention.ended(ids, set)
  local over = {}
  for _, id in ipairs(ids) do
    local named = redis.pcall('HGET', keys.job(id), 'state')
    if named ~= set and record.known(named) then
      redis.call('ZREM', keys[set], id)
    else
      over[#over + 1] = id
    end
  end
  return over
end

-- A record that goes within the millisecond of its last claim takes its epoch with it. Its id may come again at once,
-- and epochs must not repeat: from now on they begin above this one.
function retention.remember(epoch, now)
  local last = record.number(epoch, 0)
  if last >= now and last > record.number(redis.call('HGET', keys.meta, 'epoch_floor'), 0) then
    redis.call('HSET', keys.meta, 'epoch_floor', clock.text(last))
  end
end

-- Removes ended jobs for good. `sets` are the ended states they may stand in.
function retention.remove(ids, sets)
  if #ids == 0 then
    return
  end
  for _, set in ipairs(sets) do
    redis.call('ZREM', keys[set], unpack(ids))
  end
  redis.call('ZREM', keys.prune, unpack(ids))
  local records = {}
  for i, id in ipairs(ids) do
    records[i] = keys.job(id)
  end
  redis.call('UNLINK', unpack(records))
end

local ENDED = { 'completed', 'failed', 'cancelled' }
local IS_ENDED = { completed = true, failed = true, cancelled = true }

-- Whether an id in `prune` shall go. A result may go before its record: then it does, and the record gets its own time.
local function is_over(id, now)
  local key = keys.job(id)
  local found = redis.pcall('HMGET', key, 'state', 'finished_at', 'keep', 'keep_result')
  local ended_as, finished_at = found[1], record.number(found[2])
  if ended_as and not IS_ENDED[ended_as] then
    -- A job that lives: only this mark is wrong.
    redis.call('ZREM', keys.prune, id)
    return false
  end
  if not (ended_as and finished_at and found[4]) or redis.call('HEXISTS', key, 'result') == 0 then
    return true
  end
  local at = finished_at + math.max(record.number(found[3]) or setting('keep_' .. ended_as), LEAST_MS)
  if at <= now then
    return true
  end
  redis.call('HDEL', key, 'result')
  redis.call('HSET', key, 'dropped', '1')
  redis.call('ZADD', keys.prune, at, id)
  return false
end

local function by_time(now, limit)
  local gone = {}
  local ids = redis.call('ZRANGEBYSCORE', keys.prune, '-inf', clock.text(now), 'LIMIT', 0, limit)
  for _, id in ipairs(ids) do
    if is_over(id, now) then
      gone[#gone + 1] = id
    end
  end
  retention.remove(gone, ENDED)
  return #ids
end

local function by_number(set, now, limit)
  local size = redis.call('ZCARD', keys[set])
  local over = size - setting(MAX[set])
  if over <= 0 then
    return 0
  end
  local gone = {}
  local oldest = redis.call('ZRANGE', keys[set], 0, math.min(over, limit) - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    local age = now - tonumber(oldest[i + 1])
    local least = LEAST_MS
    if age < LEAST_WITH_RESULT_MS and redis.pcall('HEXISTS', keys.job(oldest[i]), 'result') == 1 then
      least = LEAST_WITH_RESULT_MS
    end
    if age < least and size <= HARD_CAP then
      break
    end
    gone[#gone + 1] = oldest[i]
  end
  retention.remove(retention.ended(gone, set), { set })
  return #gone
end

-- One bounded step. Returns how many jobs it touched; as many as the limit means there may be more.
function retention.step(now, limit)
  local touched = by_time(now, limit)
  if touched < limit then
    touched = touched + by_number('completed', now, limit - touched)
  end
  if touched < limit then
    touched = touched + by_number('failed', now, limit - touched)
  end
  return touched
end
