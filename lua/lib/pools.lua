-- What a worker has free, by pool: slots of an executor kind, and amounts of resources; and what a job of each class
-- that it serves takes of them, as a whole vector.

local pools = { classes = {}, free = {}, takes = {} }

local ANY_NUMBER = 9007199254740992

-- Reads them from the arguments: so many pools, then each narrow class with its pairs of pool and amount.
function pools.read(at, count)
  local narrow_at = at + 2 * count
  for i = at, narrow_at - 1, 2 do
    local pool = ARGV[i]
    pools.free[pool] = args.number(ARGV[i + 1], 'free amount', -ANY_NUMBER)
    if string.byte(pool) ~= 43 then
      pools.classes[#pools.classes + 1] = pool
    end
  end
  while ARGV[narrow_at] do
    local class, pairs_of_it = ARGV[narrow_at], args.number(ARGV[narrow_at + 1], 'number of pairs', 1, 1000)
    local after = narrow_at + 2 + 2 * pairs_of_it
    local wants = { unpack(ARGV, narrow_at + 2, after - 1) }
    for i = 1, #wants, 2 do
      wants[i + 1] = args.number(wants[i + 1], 'amount', 1)
      if not pools.free[wants[i]] then
        error('class ' .. class .. ' takes of no pool: ' .. wants[i], 0)
      end
    end
    pools.classes[#pools.classes + 1], pools.takes[class] = class, wants
    narrow_at = after
  end
end

function pools.serves(class)
  return pools.free[class] ~= nil or pools.takes[class] ~= nil
end

-- How many jobs of a class what is free suffices for.
function pools.fits(class)
  local wants, most = pools.takes[class], ANY_NUMBER
  if not wants then
    return pools.free[class]
  end
  for i = 1, #wants, 2 do
    most = math.min(most, math.floor(pools.free[wants[i]] / wants[i + 1]))
  end
  return most
end

function pools.use(class, count)
  local wants = pools.takes[class]
  if not wants then
    pools.free[class] = pools.free[class] - count
    return
  end
  for i = 1, #wants, 2 do
    pools.free[wants[i]] = pools.free[wants[i]] - count * wants[i + 1]
  end
end
