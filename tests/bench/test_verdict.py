"""The verdict of `make soak`: what is called growing, and what isn't."""

from __future__ import annotations

import random

import pytest

from tests.bench.verdict import verdict

MB = 1_000_000
NOISE = random.Random(1)


def _series(shape):
    return [(10.0 * n, shape(n / 180) + NOISE.uniform(-0.2, 0.2) * MB) for n in range(180)]


@pytest.mark.parametrize(
    "what,shape",
    [
        ("flat", lambda at: 40 * MB),
        ("falling", lambda at: (40 - 5 * at) * MB),
        ("a warm-up", lambda at: (30 + min(at, 0.08) * 125) * MB),
        ("one step, and flat again", lambda at: (40 + 4 * (at > 0.5)) * MB),
        ("a wave", lambda at: (40 + 4 * (round(at * 20) % 2)) * MB),
    ],
)
def test_is_flat(what, shape):
    assert not verdict(_series(shape)).is_growing


@pytest.mark.parametrize("hourly", [10 * MB, 50 * MB])
def test_is_growing(hourly):
    found = verdict(_series(lambda at: 40 * MB + hourly * at / 2))
    assert found.is_growing
    assert found.an_hour == pytest.approx(hourly, rel=0.2)
