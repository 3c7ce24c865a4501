-- Executors that aren't our worker: until when each counts as alive, by its claims, starts and renewals alone. They
-- stand in no registry; this tells whether a target that no node is may still come for its jobs.

local executors = {}

-- As long as a node lives after a beat (taskq/presence.py).
local LIVE_MS, FORGOTTEN_MAX, TTL_MS = 30000, 100, 90000000 -- longer than any lease

-- One was heard of, and holds something for so long. Never counted back: an offer may outlast the next claim.
function executors.heard(worker, now, term_ms)
  local over = redis.call('ZRANGEBYSCORE', keys.executors, '-inf', clock.text(now), 'LIMIT', 0, FORGOTTEN_MAX)
  if #over > 0 then
    redis.call('ZREM', keys.executors, unpack(over))
  end
  redis.call('ZADD', keys.executors, 'GT', clock.text(now + math.max(LIVE_MS, term_ms)), worker)
  redis.call('PEXPIRE', keys.executors, TTL_MS)
end

-- A claim, if it is one of theirs: our workers number their claims, take no offers, and are called after their node.
function executors.claims(worker, call, now, lease_ms, offer_ms)
  if call ~= '' or offer_ms > 0 or not string.find(worker, '.', 1, true) then
    executors.heard(worker, now, math.max(lease_ms, offer_ms))
  end
end

-- These renewed: of those who are executors it is noted. `workers`: a list, each once.
function executors.renewed(workers, now, lease_ms)
  local rows, till = {}, clock.text(now + math.max(LIVE_MS, lease_ms))
  for _, worker in ipairs(workers) do
    rows[#rows + 1] = till
    rows[#rows + 1] = worker
  end
  if #rows > 0 then
    redis.call('ZADD', keys.executors, 'XX', 'GT', unpack(rows))
  end
end

-- Whether one is alive; and how many are.
function executors.is_alive(worker, now)
  return record.number(redis.call('ZSCORE', keys.executors, worker), 0) > now
end

function executors.count(now)
  return redis.call('ZCOUNT', keys.executors, '(' .. clock.text(now), '+inf')
end

-- The names of those alive, at most so many.
function executors.alive(now, most)
  return redis.call('ZRANGEBYSCORE', keys.executors, '(' .. clock.text(now), '+inf', 'LIMIT', 0, most)
end
