"""The real scripts against the model, under random histories.

A failure prints its seed; `SIM_SEED=<seed> make sim` (or pytest with it) replays that run, and `SIM_SHRINK=1` looks for
a shorter history that fails, which takes minutes. CI makes 2,000 steps; the long run goes on for `SIM_MINUTES` (10).
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from taskq.keys import QueueKeys
from tests.simulation.machine import Simulation

STEPS = 100


def histories(number: int, raw: redis.Redis, run: Any, q: QueueKeys, given: int) -> Counter[str]:
    """Runs so many histories of 100 steps each, from a seed. Returns how often each operation was called."""
    counted: Counter[str] = Counter()

    class Seeded(Simulation):
        calls = counted

    Seeded.run, Seeded.q, Seeded.client = staticmethod(run), q, raw
    chosen = settings(
        max_examples=number,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, *([Phase.shrink] if os.environ.get("SIM_SHRINK") == "1" else [])],
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(seed(given)(Seeded), settings=chosen)
    except BaseException as error:
        error.add_note(f"replay with SIM_SEED={given}")
        raise
    return counted


def chosen_seed() -> int:
    return int(os.environ.get("SIM_SEED") or random.SystemRandom().randrange(2**32))


@pytest.mark.timeout(900)
def test_two_thousand_steps(raw, run, q):
    calls = histories(2_000 // STEPS, raw, run, q, chosen_seed())
    assert sum(calls.values()) > 1_500, calls
    assert len(calls) > 18, "some operations were never called"


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_long_run(raw, run, q):
    until = time.monotonic() + 60 * float(os.environ.get("SIM_MINUTES", "10"))
    given = chosen_seed()
    while time.monotonic() < until:
        histories(20, raw, run, q, given)
        given += 1
