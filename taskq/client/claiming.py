"""What an executor that isn't our worker asks for when it claims, and what it is given. Pure.

One that says what it has is given jobs that need it: the classes of each queue are read first, and those that fit are
asked for. One that says nothing takes what needs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from taskq import codec, commands, keys, needs
from taskq.asked import check_page, checked_text
from taskq.codec import Types
from taskq.commands import Claim, Claimed, Classes, Command
from taskq.errors import shown
from taskq.keys import QueueKeys
from taskq.needs import Place
from taskq.record import JobRecord
from taskq.record.lease import Claimant, attempt_key, token
from taskq.settings import Settings, checked_name
from taskq.units import Duration, duration_ms

LIMIT_MAX = 250
OFFER_MS = 30_000
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

    def __repr__(self) -> str:
        state = "offered" if self.offered else "running"
        return (
            f"ClaimedJob(id={self.id!r}, task={self.task!r}, epoch={self.epoch}, attempt={self.attempt},"
            f" state={state!r})"
        )

    @property
    def queue(self) -> str:
        """The job's queue."""
        return self.id.partition(":")[0]

    @property
    def task(self) -> str:
        """The task's name."""
        return self.fields.get(b"task", b"").decode("utf-8", "replace")

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


@dataclass(frozen=True, slots=True)
class Asked:
    """One claim over several queues: checked, and named, so that sent again it is the same claim.

    Attributes:
        queues: in the order in which they are asked.
        limit: how many jobs in all.
        place: what the executor has; None: it takes what needs nothing but an executor.
    """

    queues: tuple[QueueKeys, ...]
    worker: str
    poller: str
    limit: int
    lease_ms: int
    offer_ms: int
    call: str
    place: Place | None

    def classes(self, q: QueueKeys) -> Command[Classes]:
        """What jobs of a queue need, as far as it may concern an executor that said what it has."""
        return commands.classes(q, targets=[needs.quoted(self.worker)])

    def command(self, q: QueueKeys, given: Sequence[ClaimedJob], known: Classes | None) -> Command[list[ClaimedJob]]:
        """The claim on one queue. `given`: by the queues before it; `known`: the answer to `classes`."""
        limit = self.limit - len(given)
        free = dict.fromkeys(("async", "thread", "process"), limit)
        narrow = {}
        if self.place is not None and known is not None:
            place = _beside(given, self.place)
            free |= {f"+{name}": each for name, each in (place.capacity or {}).items()}
            for klass, requirement in known.classes.items():
                kind, wanted = needs.of_requirement(requirement)
                if kind in free and wanted is not None and needs.fits(wanted, place):
                    narrow[klass] = needs.pools(kind, wanted)
        return commands.claim(
            q,
            worker=self.worker,
            request=1,
            lease_ms=self.lease_ms,
            limit=limit,
            free=free,
            narrow=narrow,
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


def _beside(given: Sequence[ClaimedJob], place: Place) -> Place:
    """What an executor has left beside the jobs that it was given."""
    left = dict(place.capacity or {})
    for job in given:
        klass, told = (job.fields.get(name, b"").decode("utf-8", "replace") for name in (b"class", b"needs"))
        for name, each in (needs.of_class(klass, told) or needs.NOTHING).takes:
            left[name] = max(0, left.get(name, 0) - each)
    return place._replace(capacity=left)


def asked(
    settings: Settings,
    queues: str | Sequence[str],
    *,
    worker: str,
    poller: str,
    limit: int,
    start: bool,
    offer_ttl: Duration | None,
    lease: Duration | None,
    request: str | None,
    labels: Mapping[str, str] | None,
    free: Mapping[str, float | str] | None,
) -> Asked:
    """What a claim asks.

    Args:
        settings: the client's.
        queues: one or several, in the order in which they are asked. Each is registered, as one that a worker serves
            is: an executor too may begin before the first job.
        worker: who will hold the jobs, such as "render-3": 1 to 128 of A-Z a-z 0-9 . _ : @ -
        poller: who of the worker asks; kept beside it.
        limit: at most so many jobs, 1 to 250.
        start: whether they run at once; else they are offers, each to be started within `offer_ttl`, or it goes back.
        offer_ttl: up to a day; None for 30 s. Only offers have one.
        lease: how long it lasts unless it is renewed; None for the client's own (`lease`, 8 s).
        request: a name for this call. The same again within a minute, by the same worker, gives what of that call's
            jobs it still holds, and nothing new. None: a new one, under which the client itself repeats a call.
        labels: what the executor is, such as {"gpu": "a100"}.
        free: what it has left of each resource, such as {"gpu": 1, "memory": "4GiB"}; a claim takes no more together.
            With either, jobs are given too that need labels, resources, or this `worker` as their target: those for
            which all of it fits. With neither, only jobs that need none of it.

    Raises:
        ValueError, TypeError: what can't be asked.
    """
    names = (queues,) if isinstance(queues, str) else tuple(queues)
    if not names:
        raise ValueError(f"queues={shown(queues)} is empty: give a queue's name, or several in the order to ask them")
    check_page(limit, 0, of="jobs", most=LIMIT_MAX)
    if start and offer_ttl is not None:
        raise ValueError(
            f"offer_ttl={shown(offer_ttl)} is of offers, and these jobs start at once: give start=False too"
        )
    return Asked(
        queues=tuple(keys.queue(settings.namespace, checked_name(name, name="queue")) for name in names),
        worker=_checked_who(worker, "worker"),
        poller=_checked_who(poller, "poller") if poller else "",
        limit=limit,
        lease_ms=lease_ms_of(settings, lease),
        offer_ms=0 if start else OFFER_MS if offer_ttl is None else term_ms(offer_ttl, "offer_ttl"),
        call=_checked_who(request, "request") if request is not None else os.urandom(8).hex(),
        place=_place(worker, labels, free),
    )


def _place(worker: str, labels: Mapping[str, str] | None, free: Mapping[str, float | str] | None) -> Place | None:
    if labels is None and free is None:
        return None
    return Place(needs.checked_labels(labels or {}), needs.checked_resources(free or {}), {worker})


def _checked_who(value: str, name: str) -> str:
    if _WORKER.fullmatch(checked_text(value, name=name, of="claim")):
        return value
    raise ValueError(f"{name}={shown(value)} is no name: use 1 to 128 of A-Z, a-z, 0-9, '.', '_', ':', '@' and '-'")


def term_ms(value: Duration, name: str) -> int:
    """A time that something is held, in ms. ValueError says the rule."""
    ms = duration_ms(value, name=name)
    if not 1 <= ms <= 86_400_000:
        raise ValueError(f"{name}={shown(value)} is out of range: from a millisecond to a day")
    return ms


def lease_ms_of(settings: Settings, lease: Duration | None) -> int:
    """The length of a lease in ms; None for the client's own. ValueError as `term_ms`."""
    return settings.lease_ms if lease is None else term_ms(lease, "lease")
