-- Names for the arguments of a script. `args.bind` gives a table of the leading ones by name; `rest` in it is
-- the place in ARGV where the repeated part (one group a job) begins.

local args = {}

function args.bind(...)
  local bound, names = {}, { ... }
  for i = 1, #names do
    bound[names[i]] = ARGV[i]
  end
  bound.rest = #names + 1
  return bound
end

-- A number within bounds, or an error: said before the first write, it leaves everything as it was.
function args.number(text, name, least, most)
  local number = tonumber(text)
  if not number or number ~= number or number < least or number > (most or 9007199254740992) then
    error(name .. ' cannot be ' .. tostring(text), 0)
  end
  return number
end

-- One of some words, or an error.
function args.word(text, words, name)
  if not words[text] then
    error(name .. ' cannot be ' .. tostring(text), 0)
  end
  return text
end
