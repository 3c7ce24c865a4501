-- The only clock: the server's, in integer milliseconds. A test passes a time instead; production never does.

local clock = {}

function clock.now(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- '' is no time, '+250' is 250 ms from now, anything else an absolute time in ms.
function clock.at(text, now)
  if text == '' then
    return nil
  end
  if string.sub(text, 1, 1) == '+' then
    return now + args.number(string.sub(text, 2), 'delay', 0)
  end
  return args.number(text, 'time', 0)
end

-- Lua's own tostring rounds above 14 digits. A batch asks for the same times again and again.
local texts = {}

function clock.text(ms)
  local text = texts[ms]
  if not text then
    text = string.format('%.0f', ms)
    texts[ms] = text
  end
  return text
end
