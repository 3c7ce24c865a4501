-- One page of the jobs in a state: newest first by entry into it; available ones lane by lane, in the order in
-- which they would be claimed. After 4 MiB arguments, results and progress are left out, and `omitted` says so.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   scheduled  zset    jobs by due time
--   retryable  zset    failed jobs by the end of their backoff
--   leases     zset    running jobs by lease expiry
--   pending    zset    jobs that wait for other jobs
--   completed  zset    by time of entry
--   failed     zset    by time of entry
--   cancelled  zset    by time of entry
--   gates      zset    gates that have parked lanes, by when to look at them
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   state      word    one of the eight
--   offset     count   skip so many; of a lane the first 2,000 can be shown
--   limit      count   at most so many jobs, 1,000 at most
-- REPLY
--   {total, id, {field, value, ...}, ...}

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lane.lua
-- @include lib/lanes.lua

keys.bind(
  'prefix', 'meta', 'classes', 'scheduled', 'retryable', 'leases', 'pending', 'completed', 'failed', 'cancelled',
  'gates'
)
local arg = args.bind('now', 'state', 'offset', 'limit')
redis.looks = true

local offset = args.number(arg.offset, 'offset', 0)
local limit = args.number(arg.limit, 'limit', 0, 1000)
local STATES = {
  pending = true, scheduled = true, available = true, running = true, retryable = true, completed = true,
  failed = true, cancelled = true,
}
args.word(arg.state, STATES, 'state')
local ids, total = {}, 0

if arg.state == 'available' then
  local seen = 0
  lanes.each(function(here)
    local size = lane.length(here)
    if #ids < limit and offset < total + size then
      for _, id in ipairs(lane.page(here, math.max(0, offset - total), limit - #ids)) do
        ids[#ids + 1] = id
      end
    end
    total = total + size
    seen = seen + 1
    return seen < 1000
  end)
else
  local set = arg.state == 'running' and keys.leases or keys[arg.state]
  total = redis.call('ZCARD', set)
  ids = redis.call('ZREVRANGE', set, offset, offset + limit - 1)
end

local answer, bytes = { total }, 0
local BYTES_MAX = 4194304
for _, id in ipairs(ids) do
  local flat = bytes < BYTES_MAX and record.shown(record.read(id)) or record.outline(id)
  for i = 2, #flat, 2 do
    bytes = bytes + #flat[i]
  end
  answer[#answer + 1] = id
  answer[#answer + 1] = flat
end
return answer
