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

-- Refuses a repeated part that isn't whole, or of more jobs than one call may carry.
local JOBS_MAX = 250

function args.groups(bound, size)
  local count = (#ARGV - bound.rest + 1) / size
  if count > JOBS_MAX or count ~= math.floor(count) then
    error('a call carries at most ' .. JOBS_MAX .. ' jobs of ' .. size .. ' arguments each', 0)
  end
end

-- One of some words, or an error.
function args.word(text, words, name)
  if not words[text] then
    error(name .. ' cannot be ' .. tostring(text), 0)
  end
  return text
end
