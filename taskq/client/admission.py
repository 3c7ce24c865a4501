"""What the clients say of reservations, as values: arguments checked, commands built, answers put into words. Pure."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from taskq import commands, keys, lanes
from taskq.asked import check_page, checked_text, checked_whole
from taskq.client.sweep import Sweep
from taskq.commands import Bound, Command, NewJob, Reserved, StoredReservations
from taskq.errors import AdmissionNotFound, shown
from taskq.keys import QueueKeys, queue_of
from taskq.settings import checked_name
from taskq.units import Duration, duration_ms, duration_text

TTL_MAX_MS = 86_400_000
SLOTS_MAX = 1_000_000_000
DEFAULT_TTL = "30s"
_TOKEN = re.compile(r"[a-z0-9._-]+:[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Reservation:
    """The answer to a request for a slot of a queue. It is true if the slot was granted.

    Attributes:
        reserved: whether it was.
        reason: why not: "duplicate" (another reservation holds the key) or "no_capacity"; None if it was.
        token: what it is bound or released by; None if it wasn't.
    """

    reserved: bool
    reason: Literal["duplicate", "no_capacity"] | None
    token: str | None

    def __bool__(self) -> bool:
        return self.reserved


class Sealable(Protocol):
    """A call of a task, as `task.call(…)` gives it (`taskq.task.Call`), as far as it concerns a client."""

    def sealed(self) -> NewJob:
        """The job of the call."""

    async def asealed(self) -> NewJob:
        """The job of the call, awaited."""


def checked_call(call: Any) -> Any:
    """The call. TypeError for what is none."""
    if hasattr(type(call), "asealed"):
        return call
    raise TypeError(f"call={shown(call)} is no call: give a task with its arguments, such as send.call('a@b.c')")


def reserve(namespace: str, queue: str, key: object, *, slots: tuple[int, int], ttl: Duration) -> Command[Reservation]:
    """A slot for a key. `slots`: how many there are, and how many others hold. ValueError or TypeError naming the rule
    that an argument breaks.
    """
    max_concurrency, outside_occupancy = slots
    q = keys.queue(namespace, checked_name(queue, name="queue"))
    if not 1 <= checked_whole(max_concurrency, "max_concurrency") <= SLOTS_MAX:
        raise ValueError(
            f"max_concurrency={shown(max_concurrency)} is out of range: it is how many may run at once, 1 to"
            f" {SLOTS_MAX:,}"
        )
    if not 0 <= checked_whole(outside_occupancy, "outside_occupancy") <= SLOTS_MAX:
        raise ValueError(
            f"outside_occupancy={shown(outside_occupancy)} is out of range: it is how many slots others hold, 0 to"
            f" {SLOTS_MAX:,}"
        )
    ttl_ms = duration_ms(ttl, name="ttl")
    if not 1 <= ttl_ms <= TTL_MAX_MS:
        raise ValueError(f"ttl={shown(ttl)} is out of range: a reservation holds 1 ms to {duration_text(TTL_MAX_MS)}")
    token = f"{queue}:{os.urandom(16).hex()}"
    command = commands.reserve(
        q, token=token, key=_key(key), most=max_concurrency, outside=outside_occupancy, ttl_ms=ttl_ms
    )
    return command.then(lambda answer: _decision(answer, token))


def _decision(answer: Reserved, token: str) -> Reservation:
    if answer.word == "reserved":
        return Reservation(reserved=True, reason=None, token=token)
    return Reservation(reserved=False, reason="duplicate" if answer.word == "duplicate" else "no_capacity", token=None)


def bind(namespace: str, token: str, job: NewJob) -> Command[Bound]:
    """The job of a reservation. ValueError if it goes to another queue; AdmissionNotFound for what can be no token."""
    q = _of_token(namespace, token)
    if queue_of(job.id) != q.name:
        raise ValueError(
            f"reservation {token} is a slot of queue {q.name}, and the call goes to queue {queue_of(job.id)}:"
            f' use .using(queue="{q.name}")'
        )
    return commands.bind(q, token=token, job=job)


def release(namespace: str, token: str) -> Command[None]:
    """Gives it back. AdmissionNotFound for what can be no token."""
    return commands.release_reservation(_of_token(namespace, token), token=token, call=os.urandom(8).hex())


def finalize(namespace: str, queue: str, key: object) -> Command[bool] | None:
    """Frees what an attempt has left; None if the key is empty, and there is nothing to ask."""
    q = keys.queue(namespace, checked_name(queue, name="queue"))
    return None if key == "" else commands.finalize(q, key=_key(key))


def cleanup(namespace: str, queue: str, older_than: Duration) -> Sweep:
    """Takes back what holds a slot for nothing. ValueError at once for a bad duration."""
    q = keys.queue(namespace, checked_name(queue, name="queue"))
    return _steps(q, duration_ms(older_than, name="older_than"))


def _steps(q: QueueKeys, older_ms: int) -> Sweep:
    count = 0
    for which in commands.RESERVATIONS:
        skip, looked = 0, commands.BATCH_MAX
        while looked == commands.BATCH_MAX:
            step = commands.sweep_reservations(q, which, older_ms=older_ms, skip=skip, limit=commands.BATCH_MAX)
            dropped, looked = yield step
            count += dropped
            skip += looked - dropped
    return count


def reservations(namespace: str, queue: str, limit: int, offset: int) -> Command[dict[str, Any]]:
    """A page of those that hold a slot, as JSON has it."""
    check_page(limit, offset, of="reservations")

    def read(found: StoredReservations) -> dict[str, Any]:
        shown = [each.shown() for each in found.reservations]
        return {"data": shown, "total": found.total, "limit": limit, "offset": offset}

    q = keys.queue(namespace, checked_name(queue, name="queue"))
    return commands.reservations(q, limit=limit, offset=offset).then(read)


def _of_token(namespace: str, token: object) -> QueueKeys:
    text = checked_text(token, name="token", of="reservation")
    if _TOKEN.fullmatch(text):
        with suppress(ValueError):
            return keys.queue(namespace, checked_name(queue_of(text), name="queue"))
    raise AdmissionNotFound(f"there is no reservation {shown(token)}: a token is <queue>:<id>")


def _key(key: object) -> str:
    if key is None or (isinstance(key, tuple) and None in key):
        raise TypeError(f"key={shown(key)} names nothing: it says what the slot is for, such as 'acme/nightly'")
    if key == "":
        raise ValueError("key='' is empty: it says what the slot is for, and at most one reservation holds it")
    try:
        return lanes.encoded(key)
    except ValueError as error:
        raise ValueError(f"key={shown(key)} can't name a reservation: {error}") from None
