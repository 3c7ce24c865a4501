"""What was said of limits, and what follows for a gate: kept by those who said it, never read from the server.

Numbers of code are overlaid by those of an operator, and these by what is said of one key.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tests.lua.keyspace import Dump

Words = dict[str, str]


@dataclass
class Numbers:
    """Of one gate: how many at once, a rate (limit, period in ms, burst), whether it is shut whatever is free."""

    most: int | None = None
    rate: tuple[int, int, int] | None = None
    until: int = 0
    paused: bool = False


def words_of(text: str) -> Words:
    return dict(word.split("=", 1) for word in text.split())


class Said:
    """All that was said."""

    def __init__(self, code: dict[str, str]) -> None:
        self.code = {name: words_of(text) for name, text in code.items()}
        self.told: dict[str, Words] = {}
        self.age = ""

    def say(self, entry: str, words: Words, now: int) -> None:
        words = dict(words)
        self.age = words.pop("age", self.age)
        told = self.told.setdefault(entry, {})
        for word, value in words.items():
            if value == "":
                told.pop(word, None)
            else:
                told[word] = str(now + int(value[1:])) if value.startswith("+") else value
        if not told:
            del self.told[entry]

    def of(self, gate: str) -> Numbers:
        if gate.startswith("!"):
            return Numbers(most=1)
        if gate[0] in "@*" or gate == "queue":
            return _read([self.told.get(gate, {})])
        name = gate.partition("=")[0]
        return _read(
            [self.code.get(name, {}), self.told.get(name, {}), self.told.get(gate, {}) if gate != name else {}]
        )

    def free(self, gate: str, found: Dump, now: int, cost: int = 1, held: int | None = None) -> float:
        """How many jobs of a cost it would let through."""
        numbers = self.of(gate)
        if numbers.paused or numbers.until > now:
            return 0
        free = inf
        if numbers.most is not None:
            free = numbers.most - (len(found.get(f"slots:{gate}", ())) if held is None else held)
        if numbers.rate:
            limit, period, burst = numbers.rate
            per_us = period * 1000 / limit
            till = min(float(str(found.get(f"rate:{gate}", 0))), now * 1000 + burst * per_us)
            left = now * 1000 + burst * per_us - max(till, now * 1000)
            free = min(free, left // (per_us * min(cost, burst)) if left else 0)
        return max(free, 0)


def _read(all_words: list[Words]) -> Numbers:
    numbers = Numbers()
    for words in all_words:
        if "c" in words:
            numbers.most = None if words["c"] == "none" else int(words["c"])
        if "r" in words:
            limit, period, burst = (0, 0, 0) if words["r"] == "none" else map(int, words["r"].split("/"))
            numbers.rate = (limit, period, burst) if limit else None
        numbers.until = max(numbers.until, int(words.get("until", 0)))
        numbers.paused = numbers.paused or "paused" in words
    return numbers
