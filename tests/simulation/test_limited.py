"""Limits, locks, fairness keys, rates, reservations, offers, unique keys, pauses and priorities under random histories
with crashes: who may run next runs, no slot leaks, no lane is left waiting, nothing is held for a job that is gone.

A failure prints its seed; `SIM_SEED=<seed>` replays it. CI makes 1,500 steps; the long run 100,000.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.simulation.turns.history import History

STEPS = 250


def history(raw, run, q, seed: int, *, each: int = 1) -> int:
    """Runs one; watches each so many steps, and looks at everything after them. How many calls it made."""
    sim = History(run, raw, q, random.Random(seed))
    try:
        for n in range(STEPS):
            watched = n % each == 0
            sim.step(watched=watched)
            if watched:
                sim.check()
            if n % (10 * each) == 0:
                sim.inspect()
        sim.end(each=each)
    except BaseException as error:
        error.add_note(f"replay with SIM_SEED={seed}, step {n}")
        raise
    return sum(sim.calls.values())


def first_seed() -> int:
    return int(os.environ.get("SIM_SEED") or random.SystemRandom().randrange(2**32))


@pytest.mark.timeout(900)
def test_fifteen_hundred_steps(raw, run, q):
    seed = first_seed()
    assert sum(history(raw, run, q, seed + n, each=2) for n in range(1_500 // STEPS)) > 1_500


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_hundred_thousand_steps(raw, run, q):
    seed = first_seed()
    for n in range(100_000 // STEPS):
        history(raw, run, q, seed + n, each=20)
