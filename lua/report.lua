-- Keep how far running jobs are, as their holder: shown beside them, and gone when they are retried by hand.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leases     zset    running jobs by lease expiry
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   worker     id      who says so
--   ...                  a job: id, epoch, progress (msgpack of {n, total, note}, 64 KiB at most)
-- REPLY
--   {word, ...}  a job: ok | lost (another holds it, or nobody) | gone (no such job any more) |
--                offered (start it first)

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/event.lua
-- @include lib/stats.lua
-- @include lib/retention.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/state.lua
-- @include lib/lease.lua

keys.bind('prefix', 'leases')
local arg = args.bind('now', 'worker')

local PROGRESS_MAX = 65536
local held, words = lease.gather(arg, 3, 'report', { 'state', 'epoch', 'worker', 'offered' })
for i = arg.rest + 2, #ARGV, 3 do
  if #ARGV[i] > PROGRESS_MAX then
    error('progress is larger than ' .. PROGRESS_MAX .. ' bytes', 0)
  end
end

state.begin()
for _, job in ipairs(held) do
  redis.call('HSET', job.key, 'progress', ARGV[job.at + 2])
end
return words
