-- Read whole job records.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leases     zset    running jobs by lease expiry
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  ids
-- REPLY
--   {{field, value, ...}, ...}  in the order asked; empty where there is no such job

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/record.lua

keys.bind('prefix', 'leases')
local arg = args.bind('now')
redis.looks = true

local answer = {}
args.groups(arg, 1)
for i = arg.rest, #ARGV do
  answer[#answer + 1] = record.shown(record.read(ARGV[i]))
end
return answer
