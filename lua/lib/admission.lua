-- Reservations: slots of the queue's capacity that are taken before there is a job. One is known by its token
-- (`reservation:<token>`) and holds a key (`reserved:<key>`); unbound it stands in `reservations` by its end, bound in
-- `slots:+` (lib/bound.lua), and its job decides how long.

local admission = {}

local LATER_MS, HELD_MS = 60000, 2592000000 -- TTLs collect garbage: after a lapse, and while its job lives

function admission.is_token(text)
  return #text <= 128 and string.find(text, '^[%w._:-]+$') ~= nil
end

function admission.is_key(text)
  return #text <= 64 and string.find(text, '^[%w._~@+/%%-]+$') ~= nil
end

-- Whether there is such a job, and it hasn't ended.
function admission.is_alive(id)
  local job = record.fields(id, { 'state' })
  return job ~= nil and not bound.over(job)
end

-- Until when an unbound reservation holds, or nil.
function admission.till(token, now)
  local till = tonumber(redis.call('ZSCORE', keys.reservations, token) or nil)
  return till and till > now and till or nil
end

-- Whether whoever holds a key does so rightly.
function admission.lives(key, token, id, now)
  if id ~= '' then
    return bound.job(key, id) ~= nil
  end
  return admission.till(token, now) ~= nil
end

-- Whether a token that holds a slot of the queue does so rightly, and its key with it. What has lapsed waits for its
-- sweep.
function admission.stands(token, is_unbound, now)
  local found = redis.call('HMGET', keys.reservation(token), 'key', 'job')
  local key, id = found[1] or nil, found[2] or nil
  if is_unbound and not admission.till(token, now) then
    return true
  end
  local lives = key and (is_unbound or (id and bound.job(key, id)))
  return lives and bound.holder(key) == token, lives and key, id
end

-- How many slots of the queue are taken.
function admission.occupied(now)
  return redis.call('ZCARD', keys.leases) + bound.taken(now)
end

-- A slot for a key that nobody holds.
function admission.grant(key, token, ttl_ms, now)
  local till = now + ttl_ms
  redis.call('ZADD', keys.reservations, clock.text(till), token)
  redis.call('DEL', keys.reservation(token))
  redis.call('HSET', keys.reservation(token), 'key', key, 'created_at', clock.text(now), 'expires_at', clock.text(till))
  redis.call('PEXPIRE', keys.reservation(token), clock.text(ttl_ms + LATER_MS))
  redis.call('SET', keys.reserved(key), token, 'PX', clock.text(ttl_ms + LATER_MS))
  return till
end

-- From now on this job holds the slot; `print` and `word`: what was asked, and what came of it.
function admission.bind(key, token, id, print, word, now)
  redis.call('ZREM', keys.reservations, token)
  redis.call('ZADD', keys.slots(bound.SLOTS), clock.text(now), token)
  redis.call('SET', keys.reserved(key), token .. ' ' .. id)
  redis.call('HSET', keys.reservation(token), 'job', id, 'print', print, 'word', word)
  redis.call('PEXPIRE', keys.reservation(token), HELD_MS)
end

-- Takes a slot back, whoever held it; the key only if it is still this one's.
function admission.drop(key, token)
  redis.call('ZREM', keys.reservations, token)
  redis.call('ZREM', keys.slots(bound.SLOTS), token)
  if key and bound.holder(key) == token then
    redis.call('DEL', keys.reserved(key))
  end
end

-- Takes back what lapsed unbound, so many a call. Returns how many it were.
function admission.sweep(now, most)
  local lapsed = redis.call('ZRANGEBYSCORE', keys.reservations, '-inf', clock.text(now), 'LIMIT', 0, most)
  for _, token in ipairs(lapsed) do
    admission.drop(redis.call('HGET', keys.reservation(token), 'key') or nil, token)
  end
  return #lapsed
end

-- Something was taken back: claims are led to what waited for a slot of the queue.
function admission.freed(now)
  gate.reopen('queue', 1, now)
  for class in pairs(lane.unparked) do
    wake.set(class, now)
  end
end
