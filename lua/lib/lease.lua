-- The right to run one job until a time. A holder proves itself by worker and epoch; everything else is refused.
-- Also the outage rule: while nobody could renew, nobody may reap.

local lease = {}

-- How long a lease may be asked for. One of no time would be a removal that says yes.
function lease.length(text)
  return args.number(text, 'lease_ms', 1, 86400000)
end

-- Returns the job if this worker holds it under this epoch; else nil and 'ok' (the same was already answered),
-- 'lost' or 'gone'. `names` are the fields to read, `verb` what the caller is about to do.
function lease.proven(id, epoch, worker, verb, names)
  local job = record.fields(id, names)
  if not job then
    return nil, 'gone'
  end
  if job.state == 'running' and job.epoch == epoch and job.worker == worker then
    return job
  end
  if redis.call('HGET', job.key, 'ended') == epoch .. ' ' .. verb then
    return nil, 'ok'
  end
  return nil, 'lost'
end

-- The jobs named in ARGV, `size` arguments each, that the worker in `arg` holds: each with `at`, where its
-- arguments begin, and `answer`, where its answer stands. Also the answers, in which those held are 'ok' so far.
-- `verb` is a word, or a function from `at` to one.
function lease.gather(arg, size, verb, names)
  args.groups(arg, size)
  local held, words, seen, worker = {}, {}, {}, arg.worker
  local chosen = type(verb) == 'function' and verb
  for at = arg.rest, #ARGV, size do
    local id = ARGV[at]
    local said = chosen and chosen(at) or verb
    local job, word = lease.proven(id, ARGV[at + 1], worker, said, names)
    local n = #words + 1
    words[n] = word or 'ok'
    if job and not seen[id] then
      seen[id] = true
      job.at, job.answer = at, n
      if chosen then
        job.verb = said
      end
      held[#held + 1] = job
    end
  end
  return held, words
end

-- The mark of a job that leaves its holder, by which a repeated call is known.
function lease.ended(epoch, verb)
  return (epoch or '0') .. ' ' .. verb
end

-- Stamps that somebody lives. Finding the stamp old (or from the future) means that nobody could renew for a while:
-- then nothing is reaped until holders have had one lease time. Returns until when it is quiet.
function lease.stamp(now, lease_ms, seen, quiet_until)
  local last = record.number(seen, 0)
  local quiet = record.number(quiet_until, 0)
  local span = math.max(lease_ms, 4000)
  if last > now or now - last > span * 3 / 8 then
    quiet = now + span
    redis.call('HSET', keys.meta, 'seen', clock.text(now), 'quiet_until', clock.text(quiet))
  elseif now - last > span / 32 then
    redis.call('HSET', keys.meta, 'seen', clock.text(now))
  end
  if quiet > now + span then
    quiet = now + span
    redis.call('HSET', keys.meta, 'quiet_until', clock.text(quiet))
  end
  return quiet
end

-- Writes down why an attempt ended; of many errors the last 20 stay. What is counted in a row begins anew.
local ERRORS_MAX = 20

function lease.attempt_ended(job, failure, more)
  local attempt = record.attempt(job)
  more[#more + 1] = 'error:' .. attempt
  more[#more + 1] = failure
  if job.released then
    more[#more + 1] = 'released'
    more[#more + 1] = '0'
  end
  if attempt > ERRORS_MAX or job.unknown_since then
    redis.call('HDEL', job.key, 'unknown_since', 'unknown_reason', 'error:' .. (attempt - ERRORS_MAX))
  end
end

-- Back to its place: a running job whose holder let go of it or was lost, attempts left.
-- `refund` gives the attempt back, at most 20 times in a row; a job that is cancelled keeps it: it won't run again.
local REFUNDS_MAX = 20

function lease.give_back(job, now, verb, refund, more)
  local attempt = record.attempt(job)
  local refunds = record.number(job.released, 0)
  more[#more + 1] = 'ended'
  more[#more + 1] = lease.ended(job.epoch, verb)
  if refund and refunds < REFUNDS_MAX and not job.cancel then
    attempt = math.max(0, attempt - 1)
    more[#more + 1] = 'attempt'
    more[#more + 1] = attempt
    more[#more + 1] = 'released'
    more[#more + 1] = refunds + 1
  end
  if job.cancel then
    more[#more + 1] = 'reason'
    more[#more + 1] = 'cancelled while running'
    state.move(job, 'cancelled', now, more)
  elseif attempt >= record.max_attempts(job) then
    more[#more + 1] = 'reason'
    more[#more + 1] = 'attempts exhausted: given back ' .. REFUNDS_MAX .. ' times in a row'
    state.move(job, 'failed', now, more)
  else
    state.move(job, 'available', now, more, 'restore')
  end
  return job.state
end

-- An attempt ended badly: to be retried after a delay while attempts are left, or for good where `delay_ms` is nil. A
-- job whose cancel was asked isn't retried.
function lease.failed(job, now, verb, delay_ms, failure, reason)
  local more = { 'ended', lease.ended(job.epoch, verb) }
  lease.attempt_ended(job, failure, more)
  local n = #more
  if delay_ms and job.cancel then
    more[n + 1], more[n + 2] = 'reason', 'cancelled while running'
    state.move(job, 'cancelled', now, more)
  elseif delay_ms and record.attempt(job) < record.max_attempts(job) then
    more[n + 1], more[n + 2] = 'scheduled_at', clock.text(now + delay_ms)
    state.move(job, 'retryable', now, more, now + delay_ms)
  else
    more[n + 1], more[n + 2] = 'reason', reason
    state.move(job, 'failed', now, more)
  end
  return job.state
end

-- The holder is gone without a word: the attempt counts and is written down.
function lease.lost(job, now, verb, message)
  local more = {}
  lease.attempt_ended(job, record.error('JobCrashed', message, now, job.worker), more)
  local last = job.on_lease_lost == 'fail' or record.attempt(job) >= record.max_attempts(job)
  if last and not job.cancel then
    more[#more + 1] = 'reason'
    more[#more + 1] = message
    more[#more + 1] = 'ended'
    more[#more + 1] = lease.ended(job.epoch, verb)
    state.move(job, 'failed', now, more)
    return job.state
  end
  return lease.give_back(job, now, verb, false, more)
end
