-- Recurring work: what is known of each schedule, its last runs, and the messages by which a firing reaches its queue.
--
-- `schedules` has every schedule by the time at which the leader is to look at it; 0 stands for at once. Times are
-- computed by the leader; what it read before it fires is proved by `revision`, which grows with each change.

local schedule = {}

local RUNS_MAX = 100
local WAITING_MAX = 1000
schedule.UNSEEN_MS = 150000

-- Fields are read by this list, and stand in the table under the same names.
local FIELDS = {
  'rule', 'overlap', 'queue', 'task', 'origin', 'declared_at', 'seen', 'paused', 'over', 'revision', 'after', 'runs',
  'unseen_ms', 'said', 'ran',
}

-- What has no rule, or no queue, is no schedule.
function schedule.stands(rule, queue)
  return rule and queue
end

-- A schedule, or nil.
function schedule.read(name)
  local this = { name = name, key = keys.schedule(name) }
  local values = redis.call('HMGET', this.key, unpack(FIELDS))
  for i, field in ipairs(FIELDS) do
    this[field] = values[i]
  end
  if not schedule.stands(this.rule, this.queue) then
    return nil
  end
  for _, field in ipairs({ 'declared_at', 'seen', 'revision', 'after', 'runs', 'unseen_ms' }) do
    this[field] = record.grown(this[field])
  end
  return this
end

-- The leader looks at it then.
function schedule.look(name, at)
  redis.call('ZADD', keys.schedules, clock.text(at), name)
end

function schedule.forget(name)
  redis.call('ZREM', keys.schedules, name)
  redis.call('UNLINK', keys.schedule(name), keys.runs(name))
end

-- The next revision: what was read under an older one is no longer true.
function schedule.revised(this, now)
  return clock.text(math.max(this and this.revision + 1 or 0, now))
end

-- Whether no worker's code declares it any more, so far as one can know.
function schedule.unseen(this, now)
  return this.origin ~= 'api' and now - this.seen > schedule.UNSEEN_MS
end

-- Writes what was said of a schedule: one that is new, or whose rule is another, begins now, without a burst.
function schedule.write(this, said, origin, declared_at, now)
  local key, text = keys.schedule(said.name), clock.text(now)
  redis.call(
    'HSET', key, 'rule', said.rule, 'overlap', said.overlap, 'queue', said.queue, 'task', said.task, 'template',
    said.template, 'origin', origin, 'declared_at', clock.text(declared_at), 'seen', text, 'revision',
    schedule.revised(this, now)
  )
  if not this then
    redis.call('HSET', key, 'created_at', text)
  end
  if not this or this.rule ~= said.rule then
    redis.call('HDEL', key, 'over', 'next')
    redis.call('HSET', key, 'after', text, 'runs', '0')
    schedule.look(said.name, 0)
  else
    redis.call('ZADD', keys.schedules, 'NX', 0, said.name)
  end
end

-- What was said, from ARGV[at] on.
function schedule.said(at)
  local said = { name = ARGV[at], rule = ARGV[at + 1], overlap = ARGV[at + 2], queue = ARGV[at + 3] }
  said.task, said.template = ARGV[at + 4], ARGV[at + 5]
  if said.name == '' or said.rule == '' or said.queue == '' then
    error('a schedule has a name, a rule and a queue', 0)
  end
  return said
end

-- Whether the same stands there already.
function schedule.same(this, said)
  for _, field in ipairs({ 'rule', 'overlap', 'queue', 'task' }) do
    if this[field] ~= said[field] then
      return false
    end
  end
  return redis.call('HGET', this.key, 'template') == said.template
end

-- Whether its queue has so many firings on their way that no more can join them.
function schedule.stuck(queue)
  return redis.call('XLEN', keys.outbox(queue)) >= WAITING_MAX
end

-- A firing: a message to the queue, and a run that tells of it. The first write is a growing one: a server at
-- maxmemory refuses it, and so the time stays due.
function schedule.send(this, kind, nominal, term, template, now)
  local fired_at = clock.text(now)
  redis.call(
    'XADD', keys.outbox(this.queue), '*', 'schedule', this.name, 'kind', kind, 'nominal', nominal, 'fired_at', fired_at,
    'term', term, 'overlap', this.overlap or 'allow', 'template', template
  )
  local run = table.concat({ nominal, kind, fired_at, term, 'sent', '' }, ' ')
  redis.call('LPUSH', keys.runs(this.name), run)
end

-- After the last of some: the runs are bounded, and somebody relays.
function schedule.sent(this, now)
  redis.call('LTRIM', keys.runs(this.name), 0, RUNS_MAX - 1)
  redis.call('ZADD', keys.outboxes, 'NX', clock.text(now), this.queue)
  redis.call('SADD', keys.queues, this.queue)
end

-- Writes what became of a firing into its run. Returns the run as it stands then, '' if it is forgotten.
local told = {} -- a schedule's runs, read once a call

function schedule.told(name, kind, nominal, word, rest)
  local key, opening = keys.runs(name), nominal .. ' ' .. kind .. ' '
  local runs = told[name] or redis.call('LRANGE', key, 0, RUNS_MAX - 1)
  told[name] = runs
  for i, run in ipairs(runs) do
    if string.sub(run, 1, #opening) == opening then
      local fired_at, term = string.match(run, '^%S+ %S+ (%S+) (%S+)')
      if word and fired_at then
        run = table.concat({ nominal, kind, fired_at, term, word, rest }, ' ')
        redis.call('LSET', key, i - 1, run)
        runs[i] = run
      end
      return run
    end
  end
  return ''
end

function schedule.runs(name, limit)
  return limit < 1 and {} or redis.call('LRANGE', keys.runs(name), 0, limit - 1)
end
