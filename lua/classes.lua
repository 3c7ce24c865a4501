-- The narrow classes of a queue that a worker may serve: those without a target, and those with one of its names.
-- Or all of them, and the executors that aren't our worker: each may be a target.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   meta       hash    pause, retention, the outage stamp, class version
--   classes    hash    class -> what it needs of a worker
--   executors  zset    executors that aren't our worker, by until when each counts as alive
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   ...                  the targets that are meant, as they stand in requirements; '*' = every one
-- REPLY
--   {version, {class, requirement, ...}, {executor, ...}}  executors that are alive, where every target is meant

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/needs.lua
-- @include lib/executors.lua

keys.bind('prefix', 'meta', 'classes', 'executors')
local arg = args.bind('now')
redis.looks = true

local EXECUTORS_MAX = 1000
local ours = {}
for i = arg.rest, #ARGV do
  ours[ARGV[i]] = true
end
local answer, flat = {}, redis.call('HGETALL', keys.classes)
for i = 1, #flat, 2 do
  local target = needs.target(flat[i + 1])
  if needs.is_narrow(flat[i]) and (not target or ours[target] or ours['*']) then
    answer[#answer + 1] = flat[i]
    answer[#answer + 1] = flat[i + 1]
  end
end
local alive = ours['*'] and executors.alive(clock.now(arg.now), EXECUTORS_MAX) or {}
return { record.number(redis.call('HGET', keys.meta, 'class_version'), 0), answer, alive }
