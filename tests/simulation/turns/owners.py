"""Who owns which unique key, as those who called know it: what each call must be answered, and what must stand there.

A key is taken by the call that makes or replaces a job, or by a retry by hand; it is let go where its job starts or
ends, as its `once` says. Whether its owner lives is read from the owner's record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from taskq.commands import NewJob
from tests.lua.keyspace import Dump
from tests.simulation.turns.lanes import OVER, is_offer

#: What jobs may be unique by.
KEYS = ("t:a", "t:b", ":c")
HOWS = ("finished", "finished", "started", "within/2000", "debounce/600/3000", "throttle/900")
REPLACED = {"scheduled", "available", "retryable"}


class Owner(NamedTuple):
    """Of a key, until a time if it lapses; `by_time`: whatever becomes of the job."""

    id: str
    till: int | None
    by_time: bool = False


class Once(NamedTuple):
    """What a job is unique by, taken apart."""

    key: str
    how: str
    ms: int
    most: int | None
    conflict: str


def once_of(text: str) -> Once:
    key, how, conflict = text.split(" ")
    name, *times = how.split("/")
    most = int(times[1]) if len(times) > 1 and times[1] != "-" else None
    return Once(key, name, int(times[0]) if times else 0, most, conflict)


class Owners:
    """The keys of a queue.

    Args:
        record: reads a job's record.
    """

    def __init__(self, record: Callable[[str], dict[str, Any] | None]) -> None:
        self.by_key: dict[str, Owner] = {}
        self._record = record

    def holder(self, key: str, now: int, record: Callable[[str], Any] | None = None) -> tuple[str, str] | None:
        """Who holds a key now: the id, and the state of its record (`throttled` where that doesn't matter)."""
        owner = self.by_key.get(key)
        if owner is None or (owner.till is not None and owner.till <= now):
            return None
        if owner.by_time:
            return owner.id, "throttled"
        found = (record or self._record)(owner.id)
        if not found or found["state"] in OVER or not found.get("once"):
            return None
        its = once_of(found["once"])
        running = found["state"] == "running" and not is_offer(found)
        if its.key != key or (running and its.how not in {"finished", "within"}):
            return None
        return owner.id, found["state"]

    def expected(self, jobs: list[NewJob], now: int) -> list[str] | None:
        """What a call is answered of each job that is unique by something ('' for others); None if it is refused."""
        made: dict[str, str] = {}
        words = []
        for job in jobs:
            if not job.once:
                words.append("")
                continue
            once = once_of(job.once)
            holder = (made[once.key], "fresh") if once.key in made else self.holder(once.key, now)
            if holder is None:
                made[once.key] = job.id
                words.append("created")
            elif once.conflict == "raise":
                return None
            elif once.conflict == "existing" or holder[1] not in {*REPLACED, "fresh"}:
                words.append(f"existing {holder[0]}")
            else:
                words.append(f"replaced {holder[0]}")
                made[once.key] = holder[0]
        return words

    def answered(self, jobs: list[NewJob], words: list[str], expected: list[str], now: int) -> None:
        """Checks what a call was answered, and notes who owns what from now on."""
        for job, word, wanted in zip(jobs, words, expected, strict=True):
            if job.once:
                assert word == wanted or (wanted == "created" and word in {"available", "scheduled"}), (word, wanted)
                if not word.startswith("existing"):
                    self.take(job.once, word.partition(" ")[2] or job.id, now)

    def take(self, text: str, id: str, now: int) -> None:
        once = once_of(text)
        lapses = once.how in {"within", "throttle"}
        self.by_key[once.key] = Owner(id, now + once.ms if lapses else None, once.how == "throttle")

    def started(self, id: str, text: str) -> None:
        """A job begins to run."""
        once = once_of(text)
        if once.how in {"started", "debounce"} and self.by_key.get(once.key, Owner("", None)).id == id:
            del self.by_key[once.key]

    def check(self, found: Dump, now: int) -> None:
        """What stands there is what living jobs own, and what lapses by itself."""
        stands = {
            name.removeprefix("unique:"): str(value) for name, value in found.items() if name.startswith("unique:")
        }
        for key in self.by_key.keys() | stands.keys():
            owner = self.by_key.get(key)
            holder = self.holder(key, now, lambda owner: found.get(f"job:{owner}"))
            value = stands.get(key)
            if owner and holder:
                words = [owner.id, *([str(owner.till)] if owner.till else []), *(["throttle"] if owner.by_time else [])]
                assert value == " ".join(words), f"{key}: {value}, and it is held by {owner}"
            else:
                lapsed = owner is not None and owner.till is not None and owner.till <= now
                assert value is None or lapsed, f"{key}: {value}, and nobody owns it ({owner})"
