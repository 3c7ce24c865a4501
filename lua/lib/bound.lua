-- Jobs that were made for a reservation, and hold its slot of the queue until their first attempt is over. The lane of
-- such a job has the gate `+<key>`, which is never shut, and stands above all priorities: a claim serves it though the
-- queue is full. `reserved:<key>` names the reservation that holds a key, and its job once it is bound; `slots:+` has
-- the bound ones, by when they were, with a minus before the time at which their job began.

-- KNOWN_MS: so long a reservation is known after its slot is free: who sends again is told what came of it.
local bound = { LEVEL = '512', SLOTS = '+', KNOWN_MS = 86400000 }

-- The key of the reservation that these keys of a lane name, or nil.
function bound.key(text)
  return text and string.match(text, '[:,]%+([^,]+)')
end

-- Where such a lane stands, or nil if it is none.
function bound.level(text)
  return bound.key(text) and bound.LEVEL
end

-- The other gates, each behind a comma.
function bound.others(gates)
  return gates == '' and '' or (string.gsub(',' .. gates, ',%+[^,]*', ''))
end

-- Keys of a lane with the gate of a reservation, and without.
function bound.with(text, key)
  local group, gates = string.match(text or '-:', '^([^:]*):(.*)$')
  return group .. ':+' .. key .. bound.others(gates)
end

function bound.without(text)
  local group, gates = string.match(text, '^([^:]*):(.*)$')
  local others = string.sub(bound.others(gates), 2)
  return group == '-' and others == '' and '' or group .. ':' .. others
end

-- Who holds a key: its token, and the id of its job or ''. Nil if nobody does.
function bound.holder(key)
  return string.match(redis.call('GET', keys.reserved(key)) or '', '^(%S+) ?(%S*)$')
end

function bound.over(job)
  return job.state == 'completed' or job.state == 'failed' or job.state == 'cancelled'
end

-- The job that a bound reservation keeps its slot for, or nil: it waits, or is in its first attempt.
function bound.job(key, id)
  local job = record.fields(id, { 'state', 'lane' })
  return job and not bound.over(job) and bound.key(job.lane) == key and job or nil
end

-- Whether a key is held for a job that isn't there any more.
function bound.is_left(key)
  local _, id = bound.holder(key)
  return id ~= nil and id ~= '' and not bound.job(key, id)
end

-- How many slots of the queue are taken for jobs that haven't begun; and when the next of them lapses, or nil.
function bound.taken(now)
  local unbound = redis.call('ZCOUNT', keys.prefix .. 'reservations', '(' .. clock.text(now), '+inf')
  return unbound + redis.call('ZCOUNT', keys.slots(bound.SLOTS), '(0', '+inf')
end

function bound.lapse(now)
  local after = '(' .. clock.text(now)
  local key = keys.prefix .. 'reservations'
  return tonumber(redis.call('ZRANGEBYSCORE', key, after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or nil)
end

-- What a bound reservation held is free.
function bound.free(key, token)
  redis.call('DEL', keys.reserved(key))
  redis.call('ZREM', keys.slots(bound.SLOTS), token)
  redis.call('PEXPIRE', keys.reservation(token), bound.KNOWN_MS)
end

-- A bound job begins: from now on its lease is its slot.
function bound.begins(job, now)
  local token, id = bound.holder(bound.key(job.lane))
  if id == job.id then
    redis.call('ZADD', keys.slots(bound.SLOTS), 'XX', '-' .. clock.text(now), token)
  end
end

-- Its first attempt is over, or it ends without one: another takes a slot like any job.
function bound.leaves(job, more)
  local key = bound.key(job.lane)
  local token, id = bound.holder(key)
  if id == job.id then
    bound.free(key, token)
  end
  job.lane = bound.without(job.lane)
  more[#more + 1] = 'lane'
  more[#more + 1] = job.lane
end
