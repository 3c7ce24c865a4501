-- Names of every key of one hash tag. KEYS carries the prefix and each fixed key that the script may write, so
-- that a cluster can refuse what isn't all here; keys named after a job, lane, class or worker are built from
-- the prefix. Mirrors taskq/keys.py; a test compares the two.

-- @include lib/server.lua

local keys = {}

function keys.bind(...)
  local names = { ... }
  for i = 1, #names do
    keys[names[i]] = KEYS[i]
  end
end

function keys.job(id)
  return keys.prefix .. 'job:' .. id
end

function keys.levels(class)
  return keys.prefix .. 'levels:' .. class
end

function keys.groups(class, priority)
  return keys.prefix .. 'groups:' .. class .. ':' .. priority
end

function keys.lanes(class, priority, group)
  return keys.prefix .. 'lanes:' .. class .. ':' .. priority .. ':' .. group
end

function keys.body(lane)
  return keys.prefix .. 'body:' .. lane
end

function keys.front(lane)
  return keys.prefix .. 'front:' .. lane
end

function keys.slots(gate)
  return keys.prefix .. 'slots:' .. gate
end

function keys.rate(gate)
  return keys.prefix .. 'rate:' .. gate
end

function keys.parked(gate, class)
  return keys.prefix .. 'parked:' .. gate .. ':' .. class
end

function keys.parks(gate)
  return keys.prefix .. 'parks:' .. gate
end

function keys.tags(class, priority)
  return keys.prefix .. 'tags:' .. class .. ':' .. priority
end

function keys.wake(class)
  return keys.prefix .. 'wake:' .. class
end

function keys.claimed(worker)
  return keys.prefix .. 'claimed:' .. worker
end

function keys.minute(number)
  return keys.prefix .. 'stats:' .. number
end

function keys.done(id)
  return keys.prefix .. 'done:' .. id
end

function keys.unique(key)
  return keys.prefix .. 'unique:' .. key
end

function keys.reserved(key)
  return keys.prefix .. 'reserved:' .. key
end

function keys.reservation(token)
  return keys.prefix .. 'reservation:' .. token
end

function keys.merged(id)
  return keys.prefix .. 'merged:' .. id
end

function keys.node(id)
  return keys.prefix .. 'node:' .. id
end

function keys.task(name)
  return keys.prefix .. 'task:' .. name
end

function keys.lock(name)
  return keys.prefix .. 'lock:' .. name
end

function keys.line(name)
  return keys.prefix .. 'line:' .. name
end

function keys.present(name)
  return keys.prefix .. 'present:' .. name
end

function keys.turn(token)
  return keys.prefix .. 'turn:' .. token
end

function keys.schedule(name)
  return keys.prefix .. 'schedule:' .. name
end

function keys.runs(name)
  return keys.prefix .. 'runs:' .. name
end

function keys.outbox(queue)
  return keys.prefix .. 'outbox:' .. queue
end
