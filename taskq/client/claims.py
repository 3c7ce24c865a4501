"""Claims of executors that aren't our worker: what they ask, and what the answers mean. Pure.

A claim is named by its token, which says all that the server must be told; so a
process may start or end what another one claimed, and nothing is kept here.
"""

from __future__ import annotations

from typing import Any, NoReturn

from taskq import codec, commands, keys
from taskq.asked import checked_text
from taskq.client.claiming import lease_ms_of
from taskq.commands import Command, Counts, HeldJobs
from taskq.errors import BadRecord, ClaimNotFound, InvalidTransition, JobNotFound, LeaseLost, shown
from taskq.record import JobRecord, failure
from taskq.record.lease import Claimant, Lease, lease_of, read_attempt_key, read_token
from taskq.retry import DEFAULT_BACKOFF, Backoff
from taskq.settings import Settings
from taskq.state import TERMINAL, State
from taskq.units import Duration, duration_ms

PAGE = 1000
"""How many leases one call reads."""


# --- what the holder says -----------------------------------------------------


def _claimant(text: str) -> Claimant:
    found = read_token(checked_text(text, name="token", of="claim"))
    if found is None:
        raise ClaimNotFound(f"{shown(text)} is no token of a claim")
    return found


def _refuse(claimant: Claimant, word: str) -> NoReturn:
    id, worker = claimant.id, claimant.worker
    if word == "offered":
        raise InvalidTransition(f"job {id} is only offered to {worker}: start it first", from_state=State.RUNNING)
    if word == "gone":
        raise JobNotFound(f"there is no job {id} any more")
    raise LeaseLost(f"{worker} does not hold job {id} under this claim any more; nothing was changed")


def _said(claimant: Claimant, command: Command[list[str]], *answers: str) -> Command[str]:
    """The command's one word; the error that it means unless it is one of those."""

    def read(words: list[str]) -> str:
        return words[0] if words[0] in answers else _refuse(claimant, words[0])

    return command.then(read)


def _nothing(word: str) -> None:
    """There is only one word, and it is no news."""


def start(settings: Settings, text: str, lease: Duration | None) -> Command[None]:
    """Makes an offer a lease."""
    who = _claimant(text)
    lease_ms = lease_ms_of(settings, lease)

    def read(words: list[str]) -> None:
        if words[0] != "ok":
            raise ClaimNotFound(f"the offer of job {who.id} to {who.worker} is over: start nothing")

    q = keys.of_job(settings.namespace, who.id)
    return commands.start(q, worker=who.worker, lease_ms=lease_ms, offers=[(who.id, who.epoch)]).then(read)


def release(settings: Settings, text: str) -> Command[str]:
    """Where it went: `available`, `cancelled` if that was asked, `failed` without attempts left, `ok` if told again."""
    who = _claimant(text)
    jobs = [commands.Release(who.id, who.epoch, "")]
    command = commands.release(keys.of_job(settings.namespace, who.id), worker=who.worker, jobs=jobs)
    return _said(who, command, "available", "cancelled", "failed", "ok")


def renew(settings: Settings, text: str, lease: Duration | None) -> Command[str]:
    """`ok`; `cancel` or `force`: renewed, but its cancel was asked."""
    who = _claimant(text)
    lease_ms = lease_ms_of(settings, lease)
    held = [commands.Held(who.id, who.epoch, who.worker)]
    command = commands.renew(keys.of_job(settings.namespace, who.id), lease_ms=lease_ms, held=held)
    return _said(who, command, "ok", "cancel", "force")


def complete(settings: Settings, text: str, result: Any) -> Command[None]:
    """Ends it well."""
    who = _claimant(text)
    data = b"" if result is None else codec.encode_value(result, name="result", max_bytes=settings.max_payload)
    done = [commands.Done(who.id, who.epoch, data)]
    command = commands.complete(keys.of_job(settings.namespace, who.id), worker=who.worker, done=done)
    return _said(who, command, "ok").then(_nothing)


def report(settings: Settings, text: str, n: float | None, total: float | None, note: str | None) -> Command[None]:
    """Keeps how far it is."""
    who = _claimant(text)
    progress = codec.encode_value({"n": n, "total": total, "note": note}, name="progress")
    reports = [commands.Reported(who.id, who.epoch, progress)]
    command = commands.report(keys.of_job(settings.namespace, who.id), worker=who.worker, reports=reports)
    return _said(who, command, "ok").then(_nothing)


def fail(
    settings: Settings,
    text: str,
    error: BaseException | str,
    *,
    retry: bool,
    delay: Duration | None,
    found: HeldJobs,
) -> Command[str]:
    """Where it went: `retryable`, `failed` for good, `cancelled` if that was asked, or `ok` if told before.

    Args:
        settings: the client's.
        text: the token.
        error: what went wrong; an exception is kept with its traceback.
        retry: whether it may be tried again, while attempts are left.
        delay: until then; None: by the backoff that the job's call gave, else the usual one.
        found: the job, as `seen` gave it.
    """
    who = _claimant(text)
    line, entry = _told(error, found.now_ms, who.worker)
    delay_ms = _backoff_ms(found, who.attempt) if delay is None else duration_ms(delay, name="delay")
    reason = line if not retry else f"attempts exhausted: {line}"
    row = commands.Failure(who.id, who.epoch, "retry" if retry else "fail", delay_ms, entry, reason)
    command = commands.fail(keys.of_job(settings.namespace, who.id), worker=who.worker, failures=[row])
    return _said(who, command, "retryable", "failed", "cancelled", "ok")


def _told(error: BaseException | str, at_ms: int, worker: str) -> tuple[str, bytes]:
    if isinstance(error, BaseException):
        return failure.line_of(error), failure.to_json(error, at_ms=at_ms, worker=worker)
    text = failure.clean(checked_text(error, name="error", of="job"), failure.MESSAGE_BYTES)
    return " ".join(text.split())[:500], failure.entry("Error", text, None, at_ms=at_ms, worker=worker)


def _backoff_ms(found: HeldJobs, attempt: int) -> int:
    """By the job's own backoff, else the usual one: what its task's code says is only known to our workers."""
    spec = found.jobs[0].fields.get(b"backoff", b"")
    try:
        backoff = Backoff.from_spec(spec.decode()) if spec else DEFAULT_BACKOFF
    except ValueError:
        backoff = DEFAULT_BACKOFF
    return backoff.delay_ms(attempt)


# --- looking ------------------------------------------------------------------


def seen(settings: Settings, text: str) -> Command[HeldJobs]:
    """The job of a claim, whatever became of it."""
    who = _claimant(text)
    return commands.leases(keys.of_job(settings.namespace, who.id), [who.id])


def by_token(settings: Settings, text: str) -> Command[Lease]:
    """The claim as it stands; ClaimNotFound if it is over."""
    who = _claimant(text)

    def read(found: HeldJobs) -> Lease:
        lease = lease_of(*found.jobs[0], found.now_ms)
        if lease is None or (lease.epoch, lease.worker) != (who.epoch, who.worker):
            raise ClaimNotFound(f"the claim of job {who.id} by {who.worker} is over")
        return lease

    return seen(settings, text).then(read)


def by_key(settings: Settings, key: str) -> Command[Lease]:
    """The lease of an attempt; LeaseLost if nobody has one."""
    id, attempt = _read_key(key)

    def read(found: HeldJobs) -> Lease:
        lease = lease_of(*found.jobs[0], found.now_ms)
        if lease is None or lease.attempt != attempt:
            raise LeaseLost(f"nobody holds a lease for {key}")
        return lease

    return commands.leases(keys.of_job(settings.namespace, id), [id]).then(read)


def _read_key(key: str) -> tuple[str, int]:
    found = read_attempt_key(checked_text(key, name="attempt_key", of="lease"))
    if found is None:
        raise LeaseLost(f"{shown(key)} is no attempt's key: <job id>#<attempt>")
    return found


def has_outstanding(settings: Settings, key: str) -> Command[bool] | None:
    """Whether an attempt waits, or is offered; None: it can't be any's key."""
    named = read_attempt_key(checked_text(key, name="attempt_key", of="job"))
    if named is None:
        return None
    id, attempt = named

    def read(found: HeldJobs) -> bool:
        try:
            job = JobRecord.from_fields(id, found.jobs[0].fields)
        except BadRecord:
            return False
        if job.state is State.RUNNING:
            return job.offered and job.attempt == attempt
        return job.state not in TERMINAL and job.attempt + 1 == attempt

    try:
        return commands.leases(keys.of_job(settings.namespace, id), [id]).then(read)
    except JobNotFound:
        return None


def waiting(counts: Counts) -> int:
    """How many of these jobs wait, in whichever state."""
    return sum(getattr(counts, state) for state in commands.WAITING)


def leases_of(found: HeldJobs) -> list[Lease]:
    """The leases of a page; what is too damaged to be one is left out."""
    seen = [lease_of(*job, found.now_ms) for job in found.jobs]
    return [lease for lease in seen if lease is not None]
