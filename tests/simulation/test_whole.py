"""Histories of everything under `{_}` and its queues (whole.py), each from a seed that a failure prints."""

from __future__ import annotations

import logging
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.simulation.test_simulation import chosen_seed
from tests.simulation.whole import QUEUES, RULES, Whole
from tests.simulation.wire import fates_of

log = logging.getLogger(__name__)


class Act(NamedTuple):
    """What can happen, how often, how what it needs is chosen, and when it can."""

    do: Callable[..., None]
    weight: int
    choices: dict[str, Callable[[random.Random], Any]]
    possible: Callable[[Whole], Any] = lambda _: True


def among(*values):
    return lambda draw: draw.choice(values)


NODE, WORKER, QUEUE = {"name": among("a", "b")}, {"name": among("v", "w")}, {"queue": among(*QUEUES)}
FATES = {"fates": fates_of}
ACTS = [
    Act(Whole.leads_and_looks, 10, NODE | FATES | {"relays": among(True, False), "ms": among(0, 1_000, 61_000)}),
    Act(Whole.pulse, 3, NODE | FATES),
    Act(Whole.look, 3, NODE | FATES),
    Act(Whole.relay, 5, NODE | FATES | QUEUE),
    Act(Whole.relays_and_dies, 1, NODE | QUEUE | {"worker": among("v", "w")}),
    Act(Whole.sweep, 2, NODE | FATES),
    Act(Whole.resign, 1, NODE | FATES),
    Act(Whole.falls_asleep_or_wakes, 2, NODE),
    Act(Whole.one_who_led_goes_on, 3, QUEUE, lambda self: self.terms.leaders),
    Act(Whole.declare, 2, {}),
    Act(Whole.fire_by_hand, 1, {"name": among(*RULES)}),
    Act(Whole.enqueue, 2, QUEUE | {"many": among(1, 3)}),
    Act(Whole.claim, 6, WORKER | QUEUE | {"limit": among(1, 3, 50)}),
    Act(Whole.finish, 6, WORKER | {"many": among(1, 5, 50), "how": among("done", "done", "fails", "given back")}),
    Act(Whole.work, 1, WORKER | QUEUE),
    Act(Whole.worker_dies, 2, WORKER),
    Act(Whole.care, 4, QUEUE),
    Act(Whole.watch, 3, QUEUE),
    Act(Whole.lock, 2, {"ttl_ms": among(1_000, 20_000)}),
    Act(Whole.hold_on, 2, {"old": among(True, False), "gives_back": among(True, False)}, lambda self: self.token),
    Act(Whole.time_passes, 6, {"ms": among(500, 4_000, 7_000, 60_000)}),
    Act(Whole.clock_is_set_back, 1, {}, lambda self: self.now > self.latest - 40_000),
]


def goes_on(history, steps):
    """One act after another."""
    for _ in range(steps):
        act = history.draw.choices(ACTS, [each.weight for each in ACTS])[0]
        if act.possible(history):
            said = {name: choose(history.draw) for name, choose in act.choices.items()}
            history.story.append(f"{act.do.__name__} {said}")
            act.do(history, **said)


def histories(raw, number, steps, seed):
    """So many, from a seed on. Gives what they came to, together."""
    found = Counter()
    for each in range(seed, seed + number):
        history = Whole(raw, each)
        try:
            history.declare()
            history.pulse("a", [])
            goes_on(history, steps)
            found.update(history.ends())
        except BaseException as error:
            error.add_note("\n".join([*history.story, f"replay with SIM_SEED={each}"]))
            raise
    return found


@pytest.mark.timeout(900)
def test_everything_together(raw):
    found = histories(raw, 15, 80, chosen_seed())
    assert all(found[each] > 5 for each in ("terms", "refused", "made", "by hand", "reaped", "again")), found


@pytest.mark.long
@pytest.mark.timeout(0)
def test_everything_together_for_long(raw):
    until, seed, found = time.monotonic() + 60 * float(os.environ.get("SIM_MINUTES", "10")), chosen_seed(), Counter()
    while time.monotonic() < until:
        found.update(histories(raw, 20, 150, seed))
        seed += 20
    log.info("%s", dict(found))
