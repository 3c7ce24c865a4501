-- What a queue remembers of the schedules that fire into it: the last nominal time of each, so that a time fires once,
-- and the last run's job, so that runs needn't overlap. It stays for a week after a firing; what is relayed later
-- than that is refused, since nobody could tell any more whether it came before.
--
-- In `fired` a schedule is `<due> <manual> <at> <queued> <came to> <came to> <job>`: the last nominal time that was
-- due, the last one of those that were asked for by hand, when that was, the one that waits for the last job (0: none),
-- what the first two came to, and the last job ('-': none).

local fired = { known = {}, names = {}, made = {} }

local KEPT_MS = 604800000
local LATE_MS = 518400000
local SWEPT = 3

local function parse(name, text)
  local words = {}
  for word in string.gmatch(text or '', '%S+') do
    words[#words + 1] = word
  end
  local this = { name = name, job = words[7] or '-' }
  this.due, this.manual = record.number(words[1], 0), record.number(words[2], 0)
  this.at, this.queued = record.number(words[3], 0), record.number(words[4], 0)
  this.words = { due = words[5] or 'existing', manual = words[6] or 'existing' }
  return this
end

function fired.read(name)
  local this = fired.known[name]
  if not this then
    this = parse(name, redis.call('HGET', keys.fired, name))
    fired.known[name] = this
    fired.names[#fired.names + 1] = name
  end
  return this
end

-- Whether the last run's job hasn't ended.
local function goes_on(this)
  if this.fresh then
    return true
  elseif this.job == '-' then
    return false
  end
  local found = redis.pcall('HGET', keys.job(this.job), 'state')
  return record.known(found) and not state.ends(found)
end

-- What a message that is known already came to: as it was answered before, as far as that can be told.
local function again(this, message)
  local there = redis.call('EXISTS', keys.job(message.id)) == 1
  if there then
    return 'fired', message.id
  elseif message.nominal == this[message.kind] and this.words[message.kind] == 'skipped' then
    return 'skipped', 'the last run had not ended'
  end
  return 'existing', ''
end

-- What becomes of a message, the rest of the answer, and whether its job is to be made.
function fired.decide(this, message, now)
  local kind, nominal = message.kind, message.nominal
  if kind ~= 'due' and kind ~= 'manual' then
    return 'refused', 'it is of no known kind'
  elseif now - message.fired_at > LATE_MS then
    return 'refused', 'it was on its way for longer than six days'
  end
  local waits = this.queued == nominal
  if nominal <= this[kind] and not waits then
    return again(this, message)
  end
  this[kind], this.at = math.max(this[kind], nominal), now
  local word, rest = 'fired', message.id
  if message.overlap ~= 'allow' and goes_on(this) then
    if message.overlap == 'queue-one' and (waits or this.queued == 0) then
      this.queued, word, rest = nominal, 'queued', 'job ' .. this.job .. ' has not ended'
    else
      word, rest = 'skipped', 'job ' .. this.job .. ' has not ended'
    end
  elseif fired.made[message.id] or redis.call('EXISTS', keys.job(message.id)) == 1 then
    this.queued = waits and 0 or this.queued
    return 'existing', message.id -- what is remembered here was lost, and the record wasn't
  end
  if word == 'fired' then
    this.queued = waits and 0 or this.queued
    this.job, this.fresh = message.id, true
    fired.made[message.id] = true
  end
  if nominal == this[kind] then
    this.words[kind] = word
  end
  return word, rest, word == 'fired'
end

-- The job that was to be made met the owner of its unique key, which is now the last run's job. Returns the answer.
function fired.met(this, met, owner)
  this.job = owner
  this.words.due, this.words.manual = 'existing', 'existing'
  if met == 'duplicate' then
    return 'refused', 'job ' .. owner .. ' owns its unique key'
  end
  return 'existing', owner
end

-- Writes what was decided; forgets some of what is over.
function fired.write(now)
  local flat = {}
  for _, name in ipairs(fired.names) do
    local this = fired.known[name]
    local numbers = { clock.text(this.due), clock.text(this.manual), clock.text(this.at), clock.text(this.queued) }
    local text = table.concat(numbers, ' ')
    flat[#flat + 1] = name
    flat[#flat + 1] = table.concat({ text, this.words.due, this.words.manual, this.job }, ' ')
  end
  if #flat > 0 then
    redis.call('HSET', keys.fired, unpack(flat))
    local some = redis.call('HRANDFIELD', keys.fired, SWEPT, 'WITHVALUES')
    for i = 1, #some, 2 do
      if now - parse(some[i], some[i + 1]).at > KEPT_MS then
        redis.call('HDEL', keys.fired, some[i])
      end
    end
    redis.call('PEXPIRE', keys.fired, KEPT_MS)
  end
end
