-- Extend leases, and tell renewing what they must know: that they lost a job, or that it shall be cancelled.
--
-- Sets now + lease, never a maximum; restores a lease that went missing while the record still names its holder.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   leases     zset    running jobs by lease expiry
--   executors  zset    executors that aren't our worker, by until when each counts as alive
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   lease_ms   ms      from now
--   ...                  a job: id, epoch, worker
-- REPLY
--   {word, ...}  a job: ok | lost | cancel | force | offered (not renewed: start it first)

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
-- @include lib/executors.lua

keys.bind('prefix', 'meta', 'leases', 'executors')
local arg = args.bind('now', 'lease_ms')

local now = clock.now(arg.now)
local lease_ms = lease.length(arg.lease_ms)
local FIELDS = { 'state', 'epoch', 'worker', 'cancel', 'offered', 'lease' }
local words, scores, changed, renewing = {}, {}, {}, {}

args.groups(arg, 3)
for i = arg.rest, #ARGV, 3 do
  local job = record.fields(ARGV[i], FIELDS)
  if job and job.state == 'running' and job.epoch == ARGV[i + 1] and job.worker == ARGV[i + 2] then
    if record.is_offer(job) then
      words[#words + 1] = 'offered'
    else
      scores[#scores + 1] = now + lease_ms
      scores[#scores + 1] = job.id
      if not renewing[job.worker] then
        renewing[job.worker], renewing[#renewing + 1] = true, job.worker
      end
      words[#words + 1] = job.cancel == 'force' and 'force' or job.cancel and 'cancel' or 'ok'
      if lease.differs(job, lease_ms) then
        changed[#changed + 1] = job
      end
    end
  else
    words[#words + 1] = 'lost'
  end
end

state.begin()
local meta = redis.call('HMGET', keys.meta, 'seen', 'quiet_until')
lease.stamp(now, lease_ms, meta[1], meta[2])
if #scores > 0 then
  redis.call('ZADD', keys.leases, unpack(scores))
  executors.renewed(renewing, now, lease_ms)
end
for _, job in ipairs(changed) do
  redis.call('HSET', job.key, 'lease', clock.text(lease_ms))
end
return words
