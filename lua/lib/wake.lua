-- Markers on which idle workers block: at most one a class, "someone should claim". A hint, never the truth.

local wake = {}

function wake.set(class, now)
  redis.call('ZADD', keys.wake(class), now, '1')
end

function wake.all(now)
  for _, class in ipairs(redis.call('HKEYS', keys.classes)) do
    wake.set(class, now)
  end
end
