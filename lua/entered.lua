-- When the jobs of a state entered it, newest first: one stretch of them. Who shows several queues as one list reads
-- here whose jobs are next. (Of running ones it is when their leases end, of those that wait for a time that time.)
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   leases     zset    running jobs by lease expiry
--   pending    zset    jobs that wait for other jobs
--   completed  zset    by time of entry
--   failed     zset    by time of entry
--   cancelled  zset    by time of entry
-- ARGV
--   now     ms     '' = the server's clock; a test passes a time
--   state   word   one of the eight but available, whose jobs stand in lanes
--   offset  count  pass over so many
--   limit   count  at most so many, 1,000 at most
-- REPLY
--   {ms, ...}

-- @include lib/args.lua
-- @include lib/keys.lua

keys.bind('prefix', 'scheduled', 'retryable', 'leases', 'pending', 'completed', 'failed', 'cancelled')
local arg = args.bind('now', 'state', 'offset', 'limit')
redis.looks = true

local offset = args.number(arg.offset, 'offset', 0)
local limit = args.number(arg.limit, 'limit', 1, 1000)
local STATES = {
  pending = true, scheduled = true, running = true, retryable = true, completed = true, failed = true, cancelled = true,
}
args.word(arg.state, STATES, 'state')
local set = arg.state == 'running' and keys.leases or keys[arg.state]
local found = redis.call('ZREVRANGE', set, offset, offset + limit - 1, 'WITHSCORES')

local answer = {}
for i = 2, #found, 2 do
  answer[#answer + 1] = found[i]
end
return answer
