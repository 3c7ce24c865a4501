-- A node asks, each second, who leads and what it was told to do. On the way it leads on, or begins to if nobody does.
--
-- Compare and renew are one script, and the time is the server's: two nodes never lead in one term, and each term is
-- greater than all before it.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leader     hash    who leads, its term, until when
--   control    stream  what nodes were told to do
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   node       id      the node
--   leads      0|1     whether it would lead
--   ttl_ms     ms      how long it leads without another word
--   after      text    the last entry of `control` that it knows; '' = none: then those of the last minute are told
-- REPLY
--   {leader, term, left_ms, now, after, orders}
--   leader: a node, or '' if nobody leads
--   left_ms: how long it leads without another word
--   after: to be passed with the next call
--   orders: {{field, value, ...}, ...} in the order they were given

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/leader.lua

keys.bind('prefix', 'leader', 'control')
local arg = args.bind('now', 'node', 'leads', 'ttl_ms', 'after')

local ORDERS_MAX, FRESH_MS = 100, 60000
local now, ttl_ms = clock.now(arg.now), leader.length(arg.ttl_ms)
if arg.node == '' then
  error('node cannot be empty', 0)
end

redis.call('HDEL', keys.leader, '')
local this = leader.read(now)
if arg.leads == '1' then
  leader.seek(this, arg.node, ttl_ms, now)
end

local function told(flat)
  local at
  for i = 1, #flat, 2 do
    if flat[i] == 'at' then
      at = record.number(flat[i + 1])
    end
  end
  return at
end

local orders, after = {}, arg.after
if string.find(after, '^%d+%-%d+$') then
  local entries = redis.call('XRANGE', keys.control, '(' .. after, '+', 'COUNT', ORDERS_MAX)
  for _, entry in ipairs(entries) do
    after = entry[1]
    if told(entry[2]) then
      orders[#orders + 1] = entry[2]
    end
  end
else
  -- It begins: what was said just before may have been meant for it.
  after = '0-0'
  local entries = redis.call('XREVRANGE', keys.control, '+', '-', 'COUNT', ORDERS_MAX)
  for i = #entries, 1, -1 do
    local at = told(entries[i][2])
    after = entries[i][1]
    if at and at > now - FRESH_MS then
      orders[#orders + 1] = entries[i][2]
    end
  end
end
return { this.node or '', clock.text(this.term), math.max(0, this.ends - now), clock.text(now), after, orders }
