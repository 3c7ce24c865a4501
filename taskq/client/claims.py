"""Claims of executors that aren't our worker: what they ask, and what the answers mean. Pure.

A claim is named by its token, which says all that the server must be told; so a
process may start or end what another one claimed, and nothing is kept here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from taskq import codec, commands, keys
from taskq.asked import check_page, checked_text
from taskq.codec import Types
from taskq.commands import Claim, Claimed, Command, Counts, HeldJobs
from taskq.errors import BadRecord, ClaimNotFound, InvalidTransition, JobNotFound, LeaseLost, shown
from taskq.keys import QueueKeys
from taskq.record import JobRecord, failure
from taskq.record.lease import Claimant, Lease, attempt_key, lease_of, read_attempt_key, read_token, token
from taskq.retry import DEFAULT_BACKOFF, Backoff
from taskq.settings import Settings, checked_name
from taskq.state import TERMINAL, State
from taskq.units import Duration, duration_ms

LIMIT_MAX = 250
PAGE = 1000
"""How many leases one call reads."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that an executor was given: an offer to be started in time, or a lease at once.

    Attributes:
        token: names this claim; all that is said of the attempt later is said with it.
        id, task, epoch, attempt: the job. The epoch grows with every claim: the fence for a store of one's own.
        worker, poller: who claimed; poller is "" if nobody said.
        offered: whether it must be started within the offer's time.
        fields: the record as it stood before the claim.
    """

    token: str
    id: str
    epoch: int
    attempt: int
    worker: str
    poller: str
    offered: bool
    fields: Mapping[bytes, bytes]

    @property
    def queue(self) -> str:
        """The job's queue."""
        return self.id.partition(":")[0]

    @property
    def task(self) -> str:
        """The task's name."""
        return self.fields[b"task"].decode("utf-8", "replace")

    @property
    def attempt_key(self) -> str:
        """The name of this attempt: job and number."""
        return attempt_key(self.id, self.attempt)

    @property
    def claimed_at(self) -> datetime:
        """When it was claimed, by the server's clock: an epoch is the time of its claim."""
        return _EPOCH + timedelta(milliseconds=self.epoch)

    @property
    def record(self) -> JobRecord:
        """The whole record; BadRecord where it is damaged."""
        return JobRecord.from_fields(self.id, self.fields)

    def arguments(self, types: Types | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call's `(args, kwargs)`; InvalidPayload where they can't be decoded here."""
        return codec.decode(self.fields.get(b"payload", b""), types)


# --- claiming -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """One claim over several queues: checked, and named, so that sent again it is the same claim.

    Attributes:
        queues: in the order in which they are asked.
        limit: how many jobs in all.
    """

    queues: tuple[QueueKeys, ...]
    worker: str
    poller: str
    limit: int
    lease_ms: int
    offer_ms: int
    call: str

    def command(self, q: QueueKeys, limit: int) -> Command[list[ClaimedJob]]:
        """The claim on one queue, of at most so many."""
        return commands.claim(
            q,
            worker=self.worker,
            request=1,
            lease_ms=self.lease_ms,
            limit=limit,
            free=dict.fromkeys(("async", "thread", "process"), limit),
            offer_ms=self.offer_ms,
            poller=self.poller,
            call=self.call,
        ).then(self._read)

    def _read(self, claim: Claim) -> list[ClaimedJob]:
        return [self._given(job) for job in claim.jobs]

    def _given(self, job: Claimed) -> ClaimedJob:
        name = token(Claimant(job.id, job.epoch, job.attempt, self.worker))
        offered = self.offer_ms > 0
        return ClaimedJob(name, job.id, job.epoch, job.attempt, self.worker, self.poller, offered, job.fields)


def asked(
    settings: Settings,
    queues: str | Sequence[str],
    *,
    worker: str,
    poller: str,
    limit: int,
    start: bool,
    offer_ttl: Duration,
    lease: Duration | None,
    request: str | None,
) -> Asked:
    """What a claim asks.

    Args:
        settings: the client's.
        queues: one or several, in the order in which they are asked.
        worker: who will hold the jobs, such as "render-3": 1 to 128 of A-Z a-z 0-9 . _ : @ -
        poller: who of the worker asks; kept beside it.
        limit: at most so many jobs, 1 to 250.
        start: whether they run at once; else they are offers, each to be started within `offer_ttl`, or it goes back.
        offer_ttl: up to a day.
        lease: how long it lasts unless it is renewed; None for the client's own (`lease`, 8 s).
        request: a name for this call. The same again within a minute, by the same worker, gives what of that call's
            jobs it still holds, and nothing new. None: a new one, under which the client itself repeats a call.

    Raises:
        ValueError, TypeError: what can't be asked.
    """
    names = (queues,) if isinstance(queues, str) else tuple(queues)
    check_page(limit, 0, of="jobs", most=LIMIT_MAX)
    return Asked(
        queues=tuple(keys.queue(settings.namespace, checked_name(name, name="queue")) for name in names),
        worker=_checked_who(worker, "worker"),
        poller=_checked_who(poller, "poller") if poller else "",
        limit=limit,
        lease_ms=_lease_ms(settings, lease),
        offer_ms=0 if start else _term_ms(offer_ttl, "offer_ttl"),
        call=_checked_who(request, "request") if request is not None else os.urandom(8).hex(),
    )


def _checked_who(value: str, name: str) -> str:
    if _WORKER.fullmatch(checked_text(value, name=name, of="claim")):
        return value
    raise ValueError(f"{name}={shown(value)} is no name: use 1 to 128 of A-Z, a-z, 0-9, '.', '_', ':', '@' and '-'")


def _term_ms(value: Duration, name: str) -> int:
    ms = duration_ms(value, name=name)
    if not 1 <= ms <= 86_400_000:
        raise ValueError(f"{name}={shown(value)} is out of range: from a millisecond to a day")
    return ms


def _lease_ms(settings: Settings, lease: Duration | None) -> int:
    return settings.lease_ms if lease is None else _term_ms(lease, "lease")


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
    lease_ms = _lease_ms(settings, lease)

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
    lease_ms = _lease_ms(settings, lease)
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
