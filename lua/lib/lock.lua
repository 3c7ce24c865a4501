-- Named locks: who holds one until when, and the line of those who wait for it.
--
-- A waiter stands in the line by its place (time of arrival) and is present until a time that each of its calls sets
-- anew. A free lock is for the first who is present, and for nobody else: so it goes round in order. Whoever finds
-- the lock free tells that one; what is told is a hint, and a waiter looks again after LOOK_MS in any case.

local lock = {}

local LONGEST_MS = 86400000
local LOOK_MS = 3000 -- a waiter looks again at least so often
local PRESENT_MS = 5000 -- and is taken for dead, and its turn passes, so long after it last looked
local LINE_MS = 60000
local RELEASED_MS = 60000 -- how long a release that is sent again is known for what it is
local FENCE_MS = 604800000
local DEAD_MAX = 100

-- How long a lock may be asked for. One of no time would be a removal that says yes.
function lock.length(text)
  return args.number(text, 'ttl_ms', 1, LONGEST_MS)
end

function lock.of(name)
  return { name = name, key = keys.lock(name), line = keys.line(name), present = keys.present(name) }
end

-- Reads who holds it. What says that it ends later than any lock can was written by nobody of us.
local FIELDS = { 'token', 'until', 'fence', 'owner', 'job', 'released' }

function lock.read(name, now)
  local this = lock.of(name)
  local values = redis.call('HMGET', this.key, unpack(FIELDS))
  local ends_at = record.number(values[2], 0)
  this.fence, this.released = record.grown(values[3]), values[6]
  if values[1] and ends_at > now and ends_at <= now + LONGEST_MS then
    this.token, this.ends_at, this.owner, this.job = values[1], ends_at, values[4] or '', values[5] or ''
  end
  return this
end

-- The lock is held for at least so long from now on; in the record and among all locks. Never for less than before:
-- a call that comes late, after another, must not shorten what its holder was promised.
function lock.hold(this, ttl_ms, now, ...)
  local ends_at = math.max(this.ends_at or 0, now + ttl_ms)
  redis.call('HSET', this.key, 'until', clock.text(ends_at), ...)
  redis.call('PEXPIRE', this.key, ends_at - now + RELEASED_MS)
  redis.call('ZADD', keys.locks, clock.text(ends_at), this.name)
  local last = tonumber(redis.call('ZREVRANGE', keys.locks, 0, 0, 'WITHSCORES')[2])
  redis.call('PEXPIRE', keys.locks, math.min(math.max(last - now, 0), LONGEST_MS) + LINE_MS)
end

-- A fence higher than every one before, of whatever lock: it outlives them all, and a server that lost it begins with
-- the time, which is higher too.
function lock.next_fence(this, now)
  local fence = math.max(record.grown(redis.call('HGET', keys.fence, 'last')) + 1, this.fence + 1, now)
  redis.call('HSET', keys.fence, 'last', clock.text(fence))
  redis.call('PEXPIRE', keys.fence, FENCE_MS + math.min(fence - now, FENCE_MS))
  return clock.text(fence)
end

-- Stands in the line, at its end unless it stood there before.
function lock.stand(this, token, place, now)
  place = record.number(place)
  if not place then
    local last = redis.call('ZREVRANGE', this.line, 0, 0, 'WITHSCORES')[2]
    place = math.max(now, record.grown(last) + 1)
  end
  redis.call('ZADD', this.line, clock.text(place), token)
  redis.call('HSET', this.present, token, clock.text(now + PRESENT_MS))
  redis.call('PEXPIRE', this.line, LINE_MS)
  redis.call('PEXPIRE', this.present, LINE_MS)
  return clock.text(place)
end

function lock.leave(this, token)
  local left = redis.call('ZREM', this.line, token)
  redis.call('HDEL', this.present, token)
  return left == 1
end

-- The first in the line who is present, and until when; nil if nobody waits. The dead before it are struck out, so
-- many at a time: '' if there are more of them.
function lock.first(this, now)
  for _ = 1, DEAD_MAX do
    local token = redis.call('ZRANGE', this.line, 0, 0)[1]
    if not token then
      return nil
    end
    local present_until = record.number(redis.call('HGET', this.present, token), 0)
    if present_until > now and present_until <= now + PRESENT_MS then
      return token, present_until
    end
    lock.leave(this, token)
  end
  return '', now
end

-- Tells the first in the line that the lock may be free.
function lock.tell(first)
  if first and first ~= '' then
    redis.call('PUBLISH', keys.turn(first), '1')
  end
end

-- When a waiter is to look again: the first in the line as soon as the lock ends, one who stands behind somebody that
-- doesn't take the free lock as soon as that one counts as dead, the others now and then.
function lock.look_ms(this, token, first, present_until, now)
  if not this.token then
    return math.max(1, math.min(LOOK_MS, present_until - now + 1))
  end
  return first == token and math.max(1, math.min(LOOK_MS, this.ends_at - now + 1)) or LOOK_MS
end

-- Keeps the record for a while, so that its holder's release is known if it is sent again. One that was taken away has
-- been released by nobody of that token, which is told so.
function lock.free(this, token)
  redis.call('HDEL', this.key, 'token', 'until')
  redis.call('ZREM', keys.locks, this.name)
  if token ~= '' then
    redis.call('HSET', this.key, 'released', token)
  end
  redis.call('PEXPIRE', this.key, RELEASED_MS)
end

-- Locks that ended and were never released, so many at a time.
function lock.ended(now, count)
  return redis.call('ZRANGEBYSCORE', keys.locks, '-inf', clock.text(now), 'LIMIT', 0, count)
end

-- Forgets some of them.
local ENDED_MAX = 100

function lock.sweep(now)
  local ended = lock.ended(now, ENDED_MAX)
  if #ended > 0 then
    redis.call('ZREM', keys.locks, unpack(ended))
  end
end
