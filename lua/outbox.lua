-- Firings that are on their way to a queue, in the order in which they must arrive there.
--
-- KEYS
--   prefix    string  what every key of this queue starts with
--   outboxes  zset    queues that firings are on their way to, by when to relay them
-- ARGV
--   now       ms      '' = the server's clock; a test passes a time
--   queue     name    where to
--   after     text    only those behind this entry; '' = from the first on
--   limit     count   at most so many, and at most half a MiB unless it is one
-- REPLY
--   {{entry, {field, value, ...}}, ...}

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'outboxes')
local arg = args.bind('now', 'queue', 'after', 'limit')
redis.looks = true

local BYTES_MAX = 524288
local limit = args.number(arg.limit, 'limit', 1, 100)
local from = string.find(arg.after, '^%d+%-%d+$') and '(' .. arg.after or '-'
local found, bytes = {}, 0
for _ = 1, limit do
  local entry = redis.call('XRANGE', keys.outbox(arg.queue), from, '+', 'COUNT', 1)[1]
  if not entry then
    break
  end
  for _, value in ipairs(entry[2]) do
    bytes = bytes + #value
  end
  if bytes > BYTES_MAX and #found > 0 then
    break
  end
  found[#found + 1], from = entry, '(' .. entry[1]
end
return found
