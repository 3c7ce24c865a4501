"""A node's way to the server in a history: calls that are lost, arrive twice, or are the last thing a node ever did."""

from __future__ import annotations

import random

from taskq.errors import Unavailable

TROUBLES = ("lost", "twice", "away", "dies before", "dies after")


def fates_of(draw: random.Random) -> list[str]:
    """What becomes of a node's next calls; "" for nothing. Some nodes are lucky, some have a bad day."""
    trouble = draw.choice([0.0, 0.1, 0.3])
    return [draw.choice(TROUBLES) if draw.random() < trouble else "" for _ in range(12)]


class Dead(BaseException):
    """The node is gone, in the middle of whatever it did."""


class Wire:
    """A node's way to the server: each call at the machine's time, with the fate that is next in line."""

    def __init__(self, machine):
        self.machine, self.fates = machine, []

    async def run(self, command, **_):
        fate = self.fates.pop(0) if self.fates else ""
        if fate == "away":
            raise Unavailable
        if fate == "dies before":
            raise Dead
        answer = self.machine.run(command)
        if fate == "twice":
            answer = self.machine.run(command)
        if fate == "lost":
            raise Unavailable
        if fate == "dies after":
            raise Dead
        return answer

    async def run_many(self, many, **_):
        return [await self.run(each) for each in many]
