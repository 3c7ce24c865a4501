-- Mark a job that hasn't ended as waited for: its end will be published. Gives the record either way, so that
-- nothing is missed between looking and listening.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   leases     zset    running jobs by lease expiry
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   id         id      the job
-- REPLY
--   {field, value, ...}  empty if there is no such job

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

keys.bind('prefix', 'leases')
local arg = args.bind('now', 'id')

local job, flat, remains = record.read(arg.id)
if job and not state.ends(job.state) and not job.waited then
  state.begin()
  redis.call('HSET', keys.job(arg.id), 'waited', '1')
end
return record.shown(job, flat, remains)
