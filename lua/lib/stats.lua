-- Counting what happened, by task: totals, and one hash a minute that goes by itself. Statistics only: nothing
-- that must be released is ever a counter.

local stats = { noted = {} }

local MINUTE_TTL_MS = 10800000

function stats.add(what, task, amount)
  local sums = stats.noted[what]
  if not sums then
    sums = {}
    stats.noted[what] = sums
  end
  sums[task] = (sums[task] or 0) + amount
end

-- A job entered a state; the run time counts where an attempt ended.
function stats.note(job, to, now)
  local task, epoch = job.task or '?', job.epoch
  stats.add(to, task, 1)
  if to == 'completed' and epoch then
    if epoch ~= stats.epoch then
      -- The same for all that one claim took.
      stats.epoch, stats.began = epoch, record.number(epoch, now)
    end
    stats.add('run_ms', task, math.max(0, now - math.max(stats.began, record.started_offer(job))))
  end
end

function stats.flush(now)
  if next(stats.noted) == nil then
    return
  end
  local minute = keys.minute(clock.text(math.floor(now / 60000)))
  for what, sums in pairs(stats.noted) do
    for task, sum in pairs(sums) do
      local field = what .. ' ' .. task
      redis.call('HINCRBY', keys.stats, field, sum)
      redis.call('HINCRBY', minute, field, sum)
    end
  end
  redis.call('PEXPIRE', minute, MINUTE_TTL_MS)
  stats.noted = {}
end
