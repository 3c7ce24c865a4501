"""Rates: exact over any window, to one job, against a model that remembers every start.

A model without arithmetic of its own: it looks back over all starts and asks whether one more would be too many.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lua.lead import told
from tests.lua.room import Room
from tests.lua.test_gates import add, ran, say

Starts = list[tuple[int, int]]


def tokens_left(starts: Starts, now: int, limit: int, period_ms: int, burst: int) -> Fraction:
    """A bucket of `burst` that fills by `limit` each period, as exact as fractions are."""
    level, at = Fraction(burst), None
    for time, cost in [*starts, (now, 0)]:
        if at is not None:
            level = min(Fraction(burst), level + Fraction(limit * (time - at), period_ms))
        level, at = level - cost, time
    return level


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    limit=st.integers(1, 50),
    period_ms=st.sampled_from([100, 1000, 60_000, 7]),
    burst=st.integers(1, 12),
    cost=st.integers(1, 3),
    steps=st.lists(st.integers(0, 400), min_size=1, max_size=12),
)
def test_a_rate_lets_through_what_a_bucket_of_fractions_would(room, *, limit, period_ms, burst, cost, steps):
    room.client.flushall()
    room._requests.clear()
    cost = min(cost, burst)
    say(room, "crm", r=f"{limit}/{period_ms}/{burst}")
    add(room, *(f"j{i}" for i in range(200)), lane=f"-:crm#{cost}" if cost > 1 else "-:crm")
    starts: Starts = []
    for step in steps:
        room.now += step
        left = tokens_left(starts, room.now, limit, period_ms, burst)
        expected = int(left // cost)
        got = len(ran(room, limit=1000)) + len(ran(room, limit=1000))
        assert abs(got - min(expected, 100)) <= 1 or got == 200 - len(starts)
        starts += [(room.now, cost)] * got
    for i, (begin, _) in enumerate(starts):
        for end, _ in starts[i:]:
            inside = sum(each for time, each in starts if begin <= time <= end)
            assert inside <= burst + Fraction(limit * (end - begin), period_ms) + 1


def test_a_burst_is_there_after_a_quiet_time_and_no_more(room):
    say(room, "crm", r="10/1000/3")
    add(room, *(f"j{i}" for i in range(20)))
    assert len(ran(room)) == 3
    started = 3
    for _ in range(10):
        room.now += 100
        started += len(ran(room))
    assert started == 13
    room.now += 60_000
    assert len(ran(room)) == 3


def test_a_job_costs_what_it_says(room):
    say(room, "crm", r="10/1000/10")
    add(room, *(f"j{i}" for i in range(5)), lane="-:crm#3")
    assert len(ran(room)) == 3
    room.now += 199
    assert ran(room) == []
    room.now += 1
    assert len(ran(room)) == 1


def test_a_refused_job_spends_nothing(room):
    say(room, "crm", r="1/1000/1")
    say(room, "mail", c=0)
    add(room, "a", lane="-:crm,mail")
    for _ in range(5):
        assert ran(room) == []
        room.now += 10
    assert not room.client.exists(room.q.rate("crm"))
    say(room, "mail", c=1)
    assert ran(room) == ["a"]


def test_a_rate_and_a_bound_on_those_that_run_hold_together(room):
    say(room, "crm", c=2, r="10/1000/5")
    add(room, *(f"j{i}" for i in range(9)))
    assert len(ran(room)) == 2
    room.now += 10_000
    assert ran(room) == []


@pytest.mark.parametrize("rate", ["100/1000/5", "1/1000/50"])
def test_a_faster_rate_holds_from_now_on(room: Room, rate: str):
    """What the slower one had spent must not hold anybody longer than the faster could."""
    say(room, "crm", r="1/3600000/10")
    add(room, *(f"j{i}" for i in range(100)))
    assert len(ran(room)) == 10
    assert ran(room) == []
    say(room, "crm", r=rate)
    started = 0
    for _ in range(50):
        room.now += 100
        started += len(ran(room))
    assert started >= (50 if rate.startswith("100") else 4)


def test_the_state_of_a_rate_goes_when_it_tells_nothing_any_more(room):
    say(room, "crm", r="10/1000/1")
    add(room, "a")
    ran(room)
    assert 0 < room.client.pttl(room.q.rate("crm")) <= 1_100


@pytest.mark.parametrize(
    "rate", ["1/86400000/1000000000", "1/9244800000/1000000000", "1/3153600000000/5", "3/9999999999999999/7"]
)
def test_a_rate_that_takes_centuries_to_fill_holds_and_breaks_no_claim(room, rate):
    """What is spent stands as a time in µs, of as many digits as are read again."""
    room.client.hset(room.q.fixed("limits"), "crm", f"r={rate}")
    add(room, *(f"j{i}" for i in range(20)), lane="-:crm#1000000000")
    assert len(ran(room)) == 1  # it cost all there was
    assert ran(room) == []
    spent = room.client.get(room.q.rate("crm"))
    assert room.now * 1000 < int(spent) < 10**16
    assert told(room) == []


@pytest.mark.parametrize("raised", [{"r": "100/1000/1"}, {"r": ""}])
def test_whoever_sleeps_for_the_old_rate_is_woken_for_the_new_one(room, raised):
    """It isn't open at this moment, but sooner than any worker's timer says."""
    say(room, "crm", r="100/1000/1")
    say(room, "crm=acme", r="1/60000/1")
    add(room, "a", "b", lane="-:crm=acme")
    assert ran(room) == ["a"]
    assert ran(room) == []
    room.client.delete(room.q.wake("async"))
    say(room, "crm=acme", **raised)
    assert room.client.exists(room.q.wake("async"))
    room.now += 10
    assert ran(room) == ["b"]


def test_one_that_waits_for_much_holds_up_none_that_waits_for_less(room):
    """The gate is looked at when the first of those parked under it can go, whichever was parked last."""
    say(room, "crm", r="1/1000/30")
    add(room, *(f"cheap{i}" for i in range(40)), priority=5, lane="-:crm")
    add(room, "dear", lane="-:crm#30")
    assert len(ran(room)) == 30
    for _ in range(5):
        room.now += 1000
        assert len(ran(room)) == 1


def test_what_waits_for_much_in_one_class_holds_up_no_other_class(room):
    say(room, "crm", r="1/1000/30")
    add(room, *(f"j{i}" for i in range(30)))
    assert len(ran(room)) == 30
    add(room, "dear", lane="-:crm#30")
    for tenant in ("a", "b", "c"):
        add(room, tenant, lane=f"{tenant}:crm", executor="thread")
    assert ran(room) == []
    for tenant in ("a", "b", "c"):
        room.now += 1000
        assert ran(room) == [tenant]
