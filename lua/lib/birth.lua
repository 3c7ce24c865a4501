-- New jobs: read from the arguments of a call, and written with their class. In ARGV a job is id, token ('' for ids
-- that are unique by themselves), task, executor ('' unknown), needs ('' none), priority, due, expires ('' | '+ms from
-- now' | 'ms'), lane ('' plain), once ('' nothing), n, then n pairs of field and value.

-- @include lib/meet.lua

local birth = { kinds = {}, admitted = {}, fresh = { [true] = 0, [false] = 0 } }

local function kind_of(task, executor)
  local kind = birth.kinds[task]
  if kind == nil then
    kind = redis.call('HGET', keys.kinds, task)
    kind = lane.is_class(kind) and kind
    birth.kinds[task] = kind
  end
  return kind or (executor ~= '' and executor) or 'async'
end

-- Where the arguments of the job at ARGV[at] end: the place after them.
function birth.after(at)
  args.number(ARGV[at + 5], 'priority', -512, 511)
  local after = at + 11 + 2 * args.number(ARGV[at + 10], 'number of fields', 0)
  if not ARGV[after - 1] then
    error('job ' .. ARGV[at] .. ' has fewer fields than it says', 0)
  end
  return after
end

-- The job whose arguments stand from ARGV[at] up to `after`.
function birth.read(at, after, now)
  local task, due = ARGV[at + 2], clock.at(ARGV[at + 6], now)
  local job = { id = ARGV[at], task = task, priority = ARGV[at + 5], class = kind_of(task, ARGV[at + 3]) }
  if ARGV[at + 4] ~= '' then
    job.class = lane.is_class(job.class) and job.class or 'async'
    local told
    job.class, told = needs.class(job.class, ARGV[at + 4])
    job.needs = not told and ARGV[at + 4] or nil
    job.narrow = true
  end
  job.expires = clock.at(ARGV[at + 7], now)
  job.lane = ARGV[at + 8] ~= '' and ARGV[at + 8] or nil
  if ARGV[at + 9] ~= '' then
    job.once, job.unique = ARGV[at + 9], once.read(ARGV[at + 9])
    if not job.unique then
      error('job ' .. job.id .. ' cannot be unique by ' .. job.once, 0)
    end
  end
  job.created_at = clock.text(now)
  job.due = due and due > now and due or nil
  job.more = { 'task', task, 'created_at', job.created_at, unpack(ARGV, at + 11, after - 1) }
  job.token = ARGV[at + 1]
  if job.lane and string.find(job.lane, '!', 1, true) then
    for i = at + 11, after - 2, 2 do
      job.lock_wait = ARGV[i] == 'lock_wait' and ARGV[i + 1] or job.lock_wait
    end
  end
  return job
end

-- Why a job can't be taken for what it needs, as a reply, or nil. Asked for each before the first write.
function birth.refusal(job, text)
  if not job.narrow or birth.admitted[job.class] then
    return nil
  end
  birth.admitted[job.class] = true
  if redis.call('HEXISTS', keys.classes, job.class) == 1 then
    return nil
  end
  local targeted = needs.target(text) ~= nil
  birth.fresh[targeted] = birth.fresh[targeted] + 1
  local most = needs.full(targeted, birth.fresh[targeted])
  return most and { 'classes', text, most } or nil
end

-- Writes them, growing at once: a server at maxmemory refuses the call before anything is done.
function birth.write(jobs, now)
  local registered = {}
  for _, job in ipairs(jobs) do
    local more = job.more
    if job.replaces and bound.key(job.replaces.lane) and not bound.key(job.lane) then
      job.lane = bound.with(job.lane, bound.key(job.replaces.lane))
    end
    local function set(field, value)
      more[#more + 1] = field
      more[#more + 1] = value
    end
    if job.priority ~= '0' then set('priority', job.priority) end
    if job.class ~= 'async' then set('class', job.class) end
    if job.needs then set('needs', job.needs) end
    if job.lane then set('lane', job.lane) end
    if job.once then set('once', job.once) end
    if job.token ~= '' then set('token', job.token) end
    if job.due then set('scheduled_at', clock.text(job.due)) end
    if job.expires then
      job.expires_at = clock.text(job.expires)
      set('expires_at', job.expires_at)
    end
    if job.replaces then
      state.replace(job.replaces, job, job.due and 'scheduled' or 'available', now, more, job.due)
    else
      state.create(job, job.due and 'scheduled' or 'available', now, more, job.due)
    end
    if not registered[job.class] then
      registered[job.class] = true
      if needs.enter(job.class, job.id, now) and not job.narrow then
        wake.all(now)
      end
    end
  end
  meet.write(now)
  state.flush(now)
end
