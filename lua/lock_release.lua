-- Give a lock back, or leave the line for it, and tell the first who waits. By token, as its holder does; or by fence,
-- as an operator does who has seen that one.
--
-- KEYS
--   prefix     string  what every key of this queue starts with
--   locks      zset    locks that are held, by when they end
-- ARGV
--   now        ms      '' = the server's clock; a test passes a time
--   name       text    the lock
--   token      text    whose; '' = whoever holds it under the fence
--   fence      number  '' with a token
-- REPLY
--   'released'  it is free; also if this very call had released it already
--   'left'      it was not held, but waited for
--   'lost'      it ended, was released, or is another's; nothing was done

-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/lock.lua

keys.bind('prefix', 'locks')
local arg = args.bind('now', 'name', 'token', 'fence')

local now = clock.now(arg.now)
local this = lock.read(arg.name, now)
local left = lock.leave(this, arg.token)
local word = left and 'left' or 'lost'
if this.token and (this.token == arg.token or arg.token == '' and clock.text(this.fence) == arg.fence) then
  lock.free(this, arg.token)
  word, this.token = 'released', nil
elseif arg.token ~= '' and this.released == arg.token then
  word = 'released'
end
if not this.token then
  lock.tell(lock.first(this, now))
end
return word
