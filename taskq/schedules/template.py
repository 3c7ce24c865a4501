"""A job that is made again and again: what a schedule stores of it, packed, and one such job for one nominal time.

Scripts pass it on as bytes. A node of an older version that can't read one says so in the run, and stops nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgpack

from taskq.commands import NewJob
from taskq.commands.command import Arg
from taskq.options import HIGHEST_PRIORITY, LOWEST_PRIORITY

LONGEST = 65_536
"""The largest template, in bytes: one stands in each message."""

_VERSION = 1
_TIME = re.compile(r"(\+?[0-9]{1,15})?")


class Template(NamedTuple):
    """A job without its id and time. As in `NewJob`; `fields` hold the payload too."""

    task: str
    executor: str
    priority: int
    due: str
    expires: str
    fields: Mapping[str, Arg]
    lane: str = ""
    once: str = ""
    needs: str = ""

    def pack(self) -> bytes:
        """Its bytes.

        Raises:
            ValueError: it is too large to be stored.
        """
        packed: bytes = msgpack.packb([_VERSION, *self])
        if len(packed) > LONGEST:
            raise ValueError(
                f"the arguments of a schedule take {len(packed):,} bytes, and {LONGEST:,} are the most:"
                " store them elsewhere and pass a reference"
            )
        return packed

    def job(self, queue: str, schedule: str, kind: str, nominal_ms: int) -> NewJob:
        """The job of one nominal time: its id is made of schedule and time, so that it is the same whoever makes it."""
        fields: dict[str, Arg] = {**self.fields, "schedule": schedule, "scheduled_for": nominal_ms}
        id = job_id(queue, schedule, kind, nominal_ms)
        return NewJob(id, "", *self[:5], fields, *self[6:])


def job_id(queue: str, schedule: str, kind: str, nominal_ms: int) -> str:
    """The id of the job that a schedule's firing becomes; `kind` is `due` or `manual`."""
    digest = blake2b(schedule.encode(errors="surrogatepass"), digest_size=12).hexdigest()
    return f"{queue}:{'m' if kind == 'manual' else 's'}-{digest}-{nominal_ms}"


def unpack(packed: bytes) -> Template:
    """The template of these bytes, from this version or a later one that only adds to it.

    Raises:
        ValueError: it can't be read.
    """
    try:
        found: Any = msgpack.unpackb(packed)
    except Exception as error:
        raise ValueError("its template can't be read") from error
    if not isinstance(found, list) or len(found) < 7 or found[0] != _VERSION:
        raise ValueError("its template is of another version")
    _, task, executor, priority, due, expires, fields = found[:7]
    keys = found[7:10]
    words = (task, executor, due, expires, *keys)
    if not all(isinstance(each, str) for each in words) or not task or not isinstance(fields, dict):
        raise ValueError("its template is damaged")
    whole = isinstance(priority, int) and LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY
    timed = _TIME.fullmatch(due) and _TIME.fullmatch(expires)
    plain = all(isinstance(name, str) and isinstance(value, str | bytes | int) for name, value in fields.items())
    if not (whole and timed and plain):
        raise ValueError("its template is damaged")
    return Template(task, executor, priority, due, expires, fields, *keys)
