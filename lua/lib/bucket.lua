-- Rates (GCRA): how far each is spent stands as one time, its theoretical arrival time, in µs. Exact over any window, a
-- burst is what may start at once after a quiet time, and a refused job spends nothing.

local bucket = {}

local TINY = 0.000001

local function keep_rate(id, spec, now)
  local ttl_ms = math.ceil(spec.tat / 1000) - now + 1000
  redis.call('SET', keys.rate(id), string.format('%.0f', spec.tat), 'PX', clock.text(ttl_ms))
end

-- How far a rate is spent: until when in µs (its theoretical arrival time). Never later than it could be now: a clock
-- that was set back, and a rate that was slower, hold nobody for long.
local function spent_till(id, spec, now)
  local most = now * 1000 + spec.burst * spec.per_us
  if not spec.tat then
    spec.tat = record.number(redis.call('GET', keys.rate(id)), 0)
    if spec.tat > most + 1 and not redis.looks then
      spec.tat = most
      keep_rate(id, spec, now)
    end
  end
  return math.max(math.min(spec.tat, most), now * 1000)
end

-- What a job takes of a rate: all of a burst that was made smaller than its cost.
function bucket.cost(spec, cost)
  return spec.per_us and math.min(cost, spec.burst) or 1
end

-- How many jobs of a cost a rate lets through now, and when it lets one more.
function bucket.tokens(id, spec, cost, now)
  local base = spent_till(id, spec, now)
  cost = bucket.cost(spec, cost)
  local left_us = now * 1000 + spec.burst * spec.per_us - base
  local free = math.max(0, math.floor(left_us / (spec.per_us * cost) + TINY))
  local next_us = base + ((free + 1) * cost - spec.burst) * spec.per_us
  return free, math.max(now + 1, math.ceil(next_us / 1000 - TINY))
end

function bucket.spend(id, spec, cost, now)
  if spec.per_us then
    spec.tat = spent_till(id, spec, now) + cost * spec.per_us
    keep_rate(id, spec, now)
  end
end
