-- Take a named lock, or stand in the line for it. The same call again, with the same token, is answered as the first
-- was: who holds the lock holds it for the whole time from now on, who waits keeps its place.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   locks      zset    locks that are held, by when they end
--   fence      hash    the last fence that was given, of whatever lock
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    the lock
--   token      text    who asks: new for each acquisition
--   ttl_ms     ms      how long it is held without another word
--   waits      0|1     whether to stand in the line if it isn't free
--   place      ms      '' at first; what the last answer gave
--   owner      text    who asks, for people
--   job        id      the job that asks, '' = none
-- REPLY
--   {word, number, look_ms, owner, job}
--     'held'   number: the fence
--     'waits'  number: the place in the line; ask again when told so, and at the latest in look_ms
--     'taken'  it isn't free, or others wait for it
--              owner and job: of whoever holds it, '' if it is free for the first in the line

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lock.lua

keys.bind('prefix', 'locks', 'fence')
local arg = args.bind('now', 'name', 'token', 'ttl_ms', 'waits', 'place', 'owner', 'job')

local ttl_ms = lock.length(arg.ttl_ms)
if arg.token == '' then
  error('token cannot be empty', 0)
end
local now, token = clock.now(arg.now), arg.token
local this = lock.read(arg.name, now)
if this.released == token then
  return { 'taken', '', 0, this.owner or '', this.job or '' } -- a call that was on its way when its sender gave up
end
if this.token == token then
  lock.leave(this, token)
  lock.hold(this, ttl_ms, now)
  return { 'held', clock.text(this.fence), 0, arg.owner, arg.job }
end

redis.call('ZREM', this.line, '')
local place = ''
if arg.place ~= '' then
  place = lock.stand(this, token, arg.place, now)
end
local first, present_until = lock.first(this, now)
if not this.token and (not first or first == token) then
  lock.leave(this, token)
  lock.sweep(now)
  local fence = lock.next_fence(this, now)
  local since = clock.text(now)
  lock.hold(this, ttl_ms, now, 'token', token, 'fence', fence, 'owner', arg.owner, 'job', arg.job, 'since', since)
  return { 'held', fence, 0, arg.owner, arg.job }
end

local word = 'taken'
if arg.waits == '1' then
  word = 'waits'
  if place == '' then
    place = lock.stand(this, token, '', now)
    first = first or token
  end
end
if not this.token then
  lock.tell(first)
end
return { word, place, lock.look_ms(this, token, first, present_until, now), this.owner or '', this.job or '' }
