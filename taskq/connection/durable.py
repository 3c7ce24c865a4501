"""`wait_replicas`: a write is answered once so many replicas have it, or the deadline is over.

WAIT tells of what its own connection wrote, so it follows the script on the same one. A repeated enqueue adds nothing,
but its script writes all the same: else WAIT would tell nothing about what an earlier connection wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from taskq.commands.command import Command
from taskq.connection.patience import Patience
from taskq.errors import NotReplicated

#: The part of a call's time that WAIT may take: the script comes before it.
_PART = 0.7
_NAMED_MAX = 3


@dataclass(slots=True)
class Wanted:
    """How many replicas must have a write, until when, and how many had it when the server answered."""

    replicas: int
    patience: Patience
    acknowledged: int | None = None

    def words(self, timeout_s: float) -> tuple[Any, ...]:
        """The command to send. `timeout_s`: how long a call may take. Never 0 ms, which would mean for ever."""
        return ("WAIT", self.replicas, max(1, int(min(self.patience.left_s(), timeout_s) * _PART * 1000)))

    @property
    def missing(self) -> bool:
        """Whether too few replicas have it."""
        return self.acknowledged is not None and self.acknowledged < self.replicas


def missing(commands: Iterable[Command[Any]], wanted: Wanted) -> NotReplicated:
    """The error for these commands, all of which were carried out."""
    ids = [id for command in commands for id in command.durable]
    named = ", ".join(ids[:_NAMED_MAX]) + (f" and {len(ids) - _NAMED_MAX} more" if len(ids) > _NAMED_MAX else "")
    return NotReplicated(
        f"{'job' if len(ids) == 1 else f'{len(ids)} jobs:'} {named}: added, and run like any other, but only "
        f"{wanted.acknowledged} of {wanted.replicas} replicas had it by the deadline: a failover now might lose it",
        job_ids=ids,
    )
