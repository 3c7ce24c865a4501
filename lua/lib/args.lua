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
