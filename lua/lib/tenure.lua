-- Which leaders a queue still listens to: none whose term is lower than the highest that has written here. Terms are
-- given under `{_}`, which may be on another shard; so what only a leader may write to a queue carries its term.

local tenure = {}

local MARGIN_MS = 60000

local function highest()
  if not tenure.known then
    tenure.known = record.number(redis.call('HGET', keys.meta, 'term'), 0)
  end
  return tenure.known
end

-- Whether a later leader than the one of this term has written here. A term is a time: one that lies ahead is of a
-- clock that was set back since, and would stop all.
function tenure.is_over(term, now)
  return term < highest() and highest() <= now + MARGIN_MS
end

-- This leader writes here: from now on no earlier one does.
function tenure.note(term)
  if term ~= highest() then
    redis.call('HSET', keys.meta, 'term', clock.text(term))
    tenure.known = term
  end
end
