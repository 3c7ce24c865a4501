"""What a walk over a queue has found, counted whole and told in bounded numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from taskq.fsck.judge import Breach

TOLD_MAX = 1000


@dataclass(slots=True)
class Report:
    """Of one queue.

    Attributes:
        queue: its name.
        jobs, keys: how many records and other keys were seen.
        found, left: how many breaches there were, and are still, by kind.
        told: the first thousand, each with whether it was repaired.
        foreign: the first names under the prefix that are none of ours; nothing is done about them.
        aside: keys that were put aside: of the wrong kind for their name.
        unreadable: why records can't be read, of the first of them; a claim fails such a job.
    """

    queue: str
    jobs: int = 0
    keys: int = 0
    found: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    told: list[tuple[Breach, bool]] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    _seen: dict[int, tuple[int, bool]] = field(default_factory=dict)

    def tell(self, before: Iterable[Breach], after: Iterable[Breach]) -> None:
        """Notes breaches as they were, and of what some are left. The walk may meet one again: the last word counts."""
        still = {breach.of for breach in after}
        for breach in before:
            mark, left = hash((breach.kind, breach.of)), breach.of in still
            place, was_left = self._seen.get(mark, (len(self.told), False))
            if mark not in self._seen:
                self.found[breach.kind] += 1
                if place < TOLD_MAX:
                    self.told.append((breach, not left))
            elif place < TOLD_MAX:
                self.told[place] = (breach, not left)
            self._seen[mark] = (place, left)
            self.left[breach.kind] += left - was_left

    def note_unreadable(self, why: str) -> None:
        """Notes why a record can't be read."""
        if len(self.unreadable) < TOLD_MAX and why not in self.unreadable:
            self.unreadable.append(why)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "queue": self.queue,
            "jobs": self.jobs,
            "keys": self.keys,
            "found": self.found.total(),
            "left": self.left.total(),
            "kinds": {kind: {"found": count, "left": self.left[kind]} for kind, count in sorted(self.found.items())},
            "breaches": [{**breach._asdict(), "repaired": repaired} for breach, repaired in self.told],
            "foreign": self.foreign,
            "aside": self.aside,
            "unreadable": self.unreadable,
        }
