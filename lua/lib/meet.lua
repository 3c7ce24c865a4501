-- New calls that are unique by something, and what they meet: nobody, so that they make their job; or the owner of
-- their key, beside which they make none. Decided for the whole call before anything is written.

local meet = { made = {}, merged = {} }

-- How long a call that replaced another's job is known by its id: clients send again for at most 10 s.
local KNOWN_MS = 15000
local REPLACED = { scheduled = true, available = true, retryable = true }

-- The last call of a debounced one decides when it starts, but not for ever.
local function settle_due(job, first, now)
  local this = job.unique
  if this.how ~= 'debounce' then
    return
  end
  local due = now + this.ms
  if this.most then
    due = math.min(due, math.max(first + this.most, now))
  end
  job.due = due > now and due or nil
end

-- Takes over what `job` says into one of the same call that isn't written yet.
local SAID = {
  'task', 'priority', 'class', 'narrow', 'expires', 'due', 'lane', 'lock_wait', 'needs', 'once', 'unique', 'more',
}

local function supplant(fresh, job)
  local created_at = fresh.created_at
  for _, name in ipairs(SAID) do
    fresh[name] = job[name]
  end
  fresh.more[4] = created_at
end

-- What a new job comes to: nil if it is to be made; else a word and the owner's id: `existing` (nothing is done),
-- `replaced` (the owner is now what this call says; the second answer is the job to write, if it isn't in the call
-- already) or `duplicate` (the call is refused).
function meet.decide(job, now)
  local this = job.unique
  if not this then
    return nil
  end
  local id, fresh = job.id, meet.made[this.key]
  if this.conflict == 'replace' then
    local before = redis.call('GET', keys.merged(id))
    if before then
      return 'replaced', before
    end
  end
  local owner = fresh or once.owner(this.key, now)
  if not owner then
    settle_due(job, now, now)
    meet.made[this.key] = job
    return nil
  elseif this.conflict == 'raise' then
    return 'duplicate', owner.id
  elseif this.conflict == 'existing' or not (fresh or REPLACED[owner.state]) then
    return 'existing', owner.id
  end
  meet.merged[id] = owner.id
  settle_due(job, record.number(owner.created_at, now), now)
  if fresh then
    supplant(fresh, job)
    return 'replaced', owner.id
  end
  job.id, job.token, job.replaces = owner.id, '', owner
  job.created_at = owner.created_at or job.created_at
  job.more[4] = job.created_at
  meet.made[this.key] = job
  return 'replaced', owner.id, job
end

-- After the jobs: their keys are theirs.
function meet.write(now)
  for _, job in pairs(meet.made) do
    once.take(job.unique, job.id, now)
  end
  for id, owner in pairs(meet.merged) do
    redis.call('SET', keys.merged(id), owner, 'PX', KNOWN_MS)
  end
end
