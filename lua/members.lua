-- One slice of what stands in a sorted set or a stream of this queue, for `taskq fsck`.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    the key's name behind the prefix
--   cursor     text    '' to begin; what the last slice gave to go on
--   count      count   about so many
-- REPLY
--   {cursor, member, entry, ...}  '' after the last slice. A stream's member is what its first field holds; in a sorted
--                                 set `entry` is ''

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'meta')
local arg = args.bind('now', 'name', 'cursor', 'count')
redis.looks = true

local key, count = keys.prefix .. arg.name, args.number(arg.count, 'count', 1, 1000)
local kind = redis.call('TYPE', key).ok
local answer = { '' }

if kind == 'zset' then
  local slice = redis.call('ZSCAN', key, arg.cursor == '' and '0' or arg.cursor, 'COUNT', count)
  answer[1] = slice[1] ~= '0' and slice[1] or ''
  for i = 1, #slice[2], 2 do
    answer[#answer + 1] = slice[2][i]
    answer[#answer + 1] = ''
  end
elseif kind == 'stream' then
  local entries = redis.call('XRANGE', key, arg.cursor == '' and '-' or '(' .. arg.cursor, '+', 'COUNT', count)
  for _, entry in ipairs(entries) do
    answer[#answer + 1] = entry[2][2]
    answer[#answer + 1] = entry[1]
  end
  answer[1] = #entries == count and entries[count][1] or ''
end
return answer
