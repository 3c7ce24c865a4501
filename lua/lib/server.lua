-- Every call to the server. Under a name of ours may stand what isn't ours: restored into the wrong place, written by
-- hand or by another program. A structure of the wrong kind counts as missing, which every script bears: it is put
-- aside, where people find it for two weeks, and the call is made again. So no script ends half way for what it meets.
--
-- A script that only looks says so: then nothing is put aside, and what is of the wrong kind answers as if missing.

local server = redis
-- `sure` is for keys that this call has read already, and so is known to be of their kind.
local redis = { pcall = server.pcall, sure = server.call, sha1hex = server.sha1hex, looks = false }
local try, type = server.pcall, type

local ASIDE_MS = 1209600000

function redis.put_aside(key)
  local prefix = KEYS[1]
  local place = prefix .. 'aside:' .. string.sub(key, #prefix + 1)
  server.call('RENAME', key, place)
  server.call('PEXPIRE', place, ASIDE_MS)
end

-- As the server's own, which raises the error of a call that fails for another reason.
function redis.call(...)
  local reply = try(...)
  if type(reply) ~= 'table' or not reply.err then
    return reply
  end
  local command, key, field = ...
  local wrong = string.find(reply.err, 'WRONGTYPE', 1, true)
  if wrong and redis.looks then
    return server.call(command, KEYS[1], select(3, ...)) -- no key is called as the prefix alone
  elseif wrong or string.find(reply.err, 'exhausted the last', 1, true) then
    redis.put_aside(key)
  elseif command == 'HINCRBY' and string.find(reply.err, '^ERR') then
    -- A count that is no number, or at the end of numbers: it begins anew.
    server.call('HDEL', key, field)
  end
  return server.call(...)
end
