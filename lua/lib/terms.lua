-- What is said of limits, tasks and fairness keys: the words of a field of `limits`, and the numbers of a gate that
-- follow from the fields which speak of it. Code says `<name>`, an operator `op:<name>`, `<name>=<key>`, `*<task>`,
-- `@<fairness key>` and `queue`.

local terms = { specs = {} }

-- How many fields speak of a task, and how many of a fairness key: where none does, none is looked for.
local COUNTED = { ['*'] = true, ['@'] = true }

-- What a field of `limits` says, as a table: c r until paused. A number of code or of its name that is not to hold
-- here is `none`.
function terms.words(text)
  local words = {}
  for word, value in string.gmatch(text or '', '(%a+)=(%S+)') do
    words[word] = value
  end
  return words
end

-- Writes a field, or takes it away if it says nothing more.
local WORDS = { 'c', 'r', 'until', 'paused' }

function terms.put(field, words)
  local text = {}
  for _, word in ipairs(WORDS) do
    if words[word] then
      text[#text + 1] = word .. '=' .. words[word]
    end
  end
  local more = #text > 0 and redis.call('HSET', keys.limits, field, table.concat(text, ' '))
    or -redis.call('HDEL', keys.limits, field)
  local mark = string.sub(field, 1, 1)
  if more ~= 0 and COUNTED[mark] and redis.call('HINCRBY', keys.limits, mark, more) <= 0 then
    redis.call('HDEL', keys.limits, mark)
  end
end

-- The rate that a word says, as it is in a limit, a period in ms and a burst; or nil. One that would take longer than a
-- century to fill is less deep than it says: how far it is spent stands as a time, which must be one that can be read.
local CENTURY_MS = 3153600000000

function terms.rate(text)
  local limit, period, burst = string.match(text or '', '^(%d+)/(%d+)/(%d+)$')
  limit, period, burst = record.number(limit), record.number(period), record.number(burst)
  if limit and period and burst and limit > 0 and period > 0 and burst > 0 then
    period = math.min(period, CENTURY_MS * limit)
    return limit, period, math.min(burst, math.max(1, math.floor(CENTURY_MS * limit / period)))
  end
  return nil
end

local function read_into(field, text, spec)
  local words = terms.words(text)
  if words.c == 'none' then
    spec.most = nil
  elseif words.c then
    spec.most = record.number(words.c, spec.most)
  end
  local limit, period, burst = terms.rate(words.r)
  if limit then
    spec.per_us, spec.burst = period * 1000 / limit, burst
  elseif words.r == 'none' then
    spec.per_us = nil
  end
  local till = record.number(words['until'])
  if till then
    if till >= (spec.shut_until or 0) then
      spec.shut_until, spec.until_of = till, field
    end
    spec.shut_by[#spec.shut_by + 1] = field
  end
  spec.paused = spec.paused or words.paused ~= nil
end

local function speaks_of_keys()
  if terms.keys == nil then
    terms.keys = redis.call('HEXISTS', keys.limits, '@') == 1
  end
  return terms.keys
end

-- Those gates of a lane of which something may be said: its fairness key comes last.
local NONE = {}

function terms.that_count(gates)
  local last = gates[#gates]
  if last.slots or speaks_of_keys() then
    return gates
  end
  return #gates == 1 and NONE or { unpack(gates, 1, #gates - 1) }
end

-- The numbers of a gate: those that code gives its name, over them those of an operator, and over them its own.
function terms.of(id)
  local spec = terms.specs[id]
  if not spec then
    spec = { shut_by = {} }
    terms.specs[id] = spec
    local mark = string.sub(id, 1, 1)
    if mark == '!' then
      spec.most = 1
    elseif mark == '@' or mark == '*' or id == 'queue' then
      read_into(id, redis.call('HGET', keys.limits, id), spec)
    else
      local name = string.match(id, '^[^=]*')
      local fields = { name, 'op:' .. name, id ~= name and id or nil }
      for i, text in ipairs(redis.call('HMGET', keys.limits, unpack(fields))) do
        read_into(fields[i], text, spec)
      end
    end
  end
  return spec
end

-- Takes away marks `until` that have passed.
function terms.tidy(spec, now)
  for _, field in ipairs(spec.shut_by) do
    local words = terms.words(redis.call('HGET', keys.limits, field) or nil)
    if record.number(words['until'], now + 1) <= now then
      words['until'] = nil
      terms.put(field, words)
    end
  end
end

-- A text as it stands in names: as taskq/lanes.py has it.
local NAME_MAX = 64

function terms.encoded(text)
  local name = string.gsub(text, '[^%w._~@+/-]', function(c)
    return string.format('%%%02X', string.byte(c))
  end)
  return #name > NAME_MAX and '~' .. redis.sha1hex(name) or name
end
