-- The right to run one job until a time. A holder proves itself by worker and epoch; everything else is refused.
-- Also the outage rule: while nobody could renew, nobody may reap.

local lease = {}

-- How long a lease may be asked for. One of no time would be a removal that says yes.
function lease.length(text)
  return args.number(text, 'lease_ms', 1, 86400000)
end

-- What the holder of an offer may do with it; all else waits for its start.
local WITH_AN_OFFER = { start = true, release = true, bury = true }

-- Returns the job if this worker holds it under this epoch; else nil and 'ok' (the same was already answered), 'lost',
-- 'gone', or 'offered' (it wasn't started). `names` are the fields to read, `verb` what the caller is about to do.
function lease.proven(id, epoch, worker, verb, names)
  local job = record.fields(id, names)
  if not job then
    return nil, 'gone'
  end
  if job.state == 'running' and job.epoch == epoch and job.worker == worker then
    if record.is_offer(job) and not WITH_AN_OFFER[verb] then
      return nil, 'offered'
    end
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

-- How long a right lasts isn't written where it is this.
local USUAL, USUAL_MS = 8000, '8000'

-- Writes into `more` when a job started, or that it is only offered; and for how long its holder has the right, by
-- which the age of a lease is known. Returns that time.
function lease.grant(job, more, epoch, now, lease_ms, offer_ms, poller)
  local fresh = not (job.epoch or job.started_at or job.lapsed or job.lease)
  if fresh and lease_ms == USUAL and offer_ms == 0 and poller == '' then
    return lease_ms -- there is nothing to say of it
  end
  local n, term = #more, offer_ms > 0 and offer_ms or lease_ms
  local function set(field, value)
    more[n + 1], more[n + 2] = field, value
    n = n + 2
  end
  if job.started_at == '' then
    if offer_ms == 0 then
      set('started_at', clock.text(now))
    end
  elseif not job.started_at and (job.epoch or offer_ms > 0) then
    set('started_at', job.epoch or '')
  end
  if offer_ms > 0 then
    set('offered', epoch)
    job.offered = epoch
  elseif job.lapsed and job.lapsed ~= '0' then
    set('lapsed', '0')
  end
  if (job.poller or '') ~= poller then
    set('poller', poller)
  end
  local text = clock.text(term)
  if (job.lease or USUAL_MS) ~= text then
    set('lease', text)
  end
  return term
end

-- Whether a job's record names another length for its lease.
function lease.differs(job, lease_ms)
  return (job.lease or USUAL_MS) ~= clock.text(lease_ms)
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

-- Back to its place: a running job whose holder let go of it or was lost, attempts left. `refund` names the count by
-- which the attempt is given back, at most so many times in a row; nil: it isn't. A job that is cancelled keeps it: it
-- won't run again. `why` tells why it fails, should no attempt be left.
local REFUNDS_MAX = { released = 20, lapsed = 5 }

function lease.give_back(job, now, verb, refund, more, why)
  local attempt = record.attempt(job)
  local refunds = refund and record.number(job[refund], 0)
  more[#more + 1] = 'ended'
  more[#more + 1] = lease.ended(job.epoch, verb)
  if refund and refunds < REFUNDS_MAX[refund] and not job.cancel then
    attempt = math.max(0, attempt - 1)
    more[#more + 1] = 'attempt'
    more[#more + 1] = attempt
    more[#more + 1] = refund
    more[#more + 1] = refunds + 1
  end
  if job.cancel then
    more[#more + 1] = 'reason'
    more[#more + 1] = 'cancelled while running'
    state.move(job, 'cancelled', now, more)
  elseif attempt >= record.max_attempts(job) then
    more[#more + 1] = 'reason'
    more[#more + 1] = why or 'attempts exhausted: given back ' .. REFUNDS_MAX.released .. ' times in a row'
    state.move(job, 'failed', now, more)
  else
    state.move(job, 'available', now, more, 'restore')
  end
  return job.state
end

-- An attempt ended badly: to be retried after a delay while attempts are left, or for good where `delay_ms` is nil. A
-- job whose cancel was asked is cancelled, whatever its holder says of it.
function lease.failed(job, now, verb, delay_ms, failure, reason)
  local more = { 'ended', lease.ended(job.epoch, verb) }
  lease.attempt_ended(job, failure, more)
  local n = #more
  if job.cancel then
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

-- An offer wasn't started in its time: nothing ran, so the attempt is given back; some times in a row, and from then on
-- it counts, since whoever takes this job never gets so far.
function lease.lapsed(job, now, verb)
  local more, message = {}, 'offer lapsed: worker ' .. (job.worker or '?') .. ' did not start it in time'
  local refund = record.number(job.lapsed, 0) < REFUNDS_MAX.lapsed and 'lapsed' or nil
  if not refund then
    lease.attempt_ended(job, record.error('JobCrashed', message, now, job.worker), more)
  end
  return lease.give_back(job, now, verb, refund, more, message)
end

-- The holder is gone without a word: the attempt counts and is written down.
function lease.lost(job, now, verb, message)
  if record.is_offer(job) then
    return lease.lapsed(job, now, verb)
  end
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
  return lease.give_back(job, now, verb, nil, more)
end
