"""Limits, locks, fairness keys and rates under random histories with crashes: no slot leaks, no lane is left waiting.

A failure prints its seed; `SIM_SEED=<seed>` replays it. CI makes 1,500 steps; the long run 100,000.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.simulation.limited import Limited

STEPS = 150


def history(raw, run, q, seed: int, *, each: int = 1) -> int:
    """Runs one; looks at everything after each so many steps. How many calls it made."""
    sim = Limited(run, raw, q, random.Random(seed))
    try:
        for n in range(STEPS):
            sim.step()
            if n % each == 0:
                sim.check()
        sim.end()
    except BaseException as error:
        error.add_note(f"replay with SIM_SEED={seed}")
        raise
    return sum(sim.calls.values())


def first_seed() -> int:
    return int(os.environ.get("SIM_SEED") or random.SystemRandom().randrange(2**32))


@pytest.mark.timeout(900)
def test_fifteen_hundred_steps(raw, run, q):
    seed = first_seed()
    assert sum(history(raw, run, q, seed + n) for n in range(1_500 // STEPS)) > 1_500


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_hundred_thousand_steps(raw, run, q):
    seed = first_seed()
    for n in range(100_000 // STEPS):
        history(raw, run, q, seed + n, each=5)
