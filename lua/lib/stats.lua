-- Counting what happened, by task: totals, and one hash a minute that goes by itself. Statistics only: nothing
-- that must be released is ever a counter.

local stats = { noted = {}, order = {} }

local MINUTE_TTL_MS = 10800000

function stats.add(name, amount)
  local sum = stats.noted[name]
  if not sum then
    stats.order[#stats.order + 1] = name
  end
  stats.noted[name] = (sum or 0) + amount
end

-- A job entered a state; the run time counts where an attempt ended.
function stats.note(job, to, now)
  local task = job.task or '?'
  stats.add(to .. ' ' .. task, 1)
  if to == 'completed' and job.epoch then
    stats.add('run_ms ' .. task, math.max(0, now - tonumber(job.epoch)))
  end
end

function stats.flush(now)
  if #stats.order == 0 then
    return
  end
  local minute = keys.minute(clock.text(math.floor(now / 60000)))
  for _, name in ipairs(stats.order) do
    local amount = clock.text(stats.noted[name])
    redis.call('HINCRBY', keys.stats, name, amount)
    redis.call('HINCRBY', minute, name, amount)
  end
  redis.call('PEXPIRE', minute, MINUTE_TTL_MS)
  stats.noted, stats.order = {}, {}
end
