-- What jobs need of a worker, as classes: `async` is one, an executor kind alone; `async;label.gpu=a100;takes.cpu=2` is
-- a narrow one: the kind and a requirement text (taskq/needs.py), or its SHA1 where that is long or has other
-- characters. The queue's `classes` tell what each stands for. One that lost its place there gets it back with the next
-- of its jobs that becomes available; only what makes jobs refuses a new one.

-- @include lib/wake.lua

local needs = { changed = false }

-- So many a queue; those with a target have lane sets of their own, and a bound of their own.
local NARROW_MAX, TARGETED_MAX = 256, 1024
local TEXT_MAX, READABLE_MAX = 2048, 120
local PLAIN = '^[%w=;,._-]+$'

-- The executor kind of a class, and whether it asks for more than that.
function needs.kind(class)
  return string.match(class, '^%a+')
end

function needs.is_narrow(class)
  return string.find(class, ';', 1, true) ~= nil
end

-- The class of a kind and a requirement text, and whether the text stands in its name.
function needs.class(kind, text)
  if #text > TEXT_MAX or not string.find(text, '=', 1, true) then
    error('no requirement: ' .. string.sub(text, 1, 80), 0)
  elseif #text <= READABLE_MAX and string.find(text, PLAIN) then
    return kind .. ';' .. text, true
  end
  return kind .. ';' .. redis.sha1hex(text), false
end

-- The same needs under another executor kind.
function needs.under(kind, class)
  return kind .. string.sub(class, #needs.kind(class) + 1)
end

-- What a class stands for. Of a hashed one a job's record tells.
local function requirement(class, id)
  local text = string.match(class, ';(.*)$')
  if text and not string.find(text, '=', 1, true) then
    text = redis.pcall('HGET', keys.job(id or ''), 'needs')
    text = type(text) == 'string' and text or '?'
  end
  return 'executor=' .. needs.kind(class) .. (text and ';' .. text or '')
end

-- Enters a class. Whether it was not there. `id`: a job of that class. Those who may serve a narrow one wait for the
-- marker of its executor kind: whoever learns of a new version passes it on.
function needs.enter(class, id, now)
  if not needs.is_narrow(class) then
    if redis.call('HSETNX', keys.classes, class, 'executor=' .. class) == 0 then
      return false
    end
  elseif redis.call('HEXISTS', keys.classes, class) == 1 then
    return false
  else
    redis.call('HSET', keys.classes, class, requirement(class, id))
    wake.set(needs.kind(class), now)
  end
  if not needs.changed then -- one version a call
    needs.changed = true
    redis.call('HINCRBY', keys.meta, 'class_version', 1)
  end
  return true
end

-- The target that a requirement names, or nil.
function needs.target(text)
  return string.match(';' .. text, ';target=([^;]*)$')
end

-- The same as people write it, or nil.
function needs.target_name(text)
  local target = needs.target(text)
  return target and (string.gsub(target, '%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

-- The class of the same kind and needs but for the target, and what the record must say of them, if anything.
function needs.untargeted(class, text)
  local kind, rest = needs.kind(class), string.gsub(string.gsub(text, 'target=[^;]*$', ''), ';$', '')
  if rest == '' then
    return kind, nil
  end
  local other, told = needs.class(kind, rest)
  return other, not told and rest or nil
end

-- The number of classes that a queue may have, if `more` new ones have no room beside those of this one; or nil.
function needs.full(targeted, more)
  local count = more
  for _, text in ipairs(redis.call('HVALS', keys.classes)) do
    if (needs.target(text) ~= nil) == targeted then
      count = count + 1
    end
  end
  local most = targeted and TARGETED_MAX or NARROW_MAX
  return count > most and most or nil
end
