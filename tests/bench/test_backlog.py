"""What a call asks of the server doesn't grow with the backlog: here on a hundredth of `make bench-scripts`."""

from __future__ import annotations

import pytest

from taskq import scripts
from tests.bench.backlog import NONE, Backlog, Sizes
from tests.bench.cases_keys import CASES
from tests.bench.tally import Cost, costs, grown

SIZES = Sizes(10_000, 10_000, 1_000)
ROUNDS = 2
BATCH = 10
CALLS_A_JOB_MAX = 20


def _costs(raw, namespace, sizes):
    backlog = Backlog(raw, sizes, namespace=namespace, batch=BATCH)
    backlog.fill()
    counts = backlog.run(CASES["counts"](backlog))
    assert (counts.available, counts.scheduled, counts.failed) == sizes
    found = costs(backlog, ROUNDS)
    raw.flushall()
    return found


def _calls(found):
    return {title: cost.calls for title, cost in found.items()}


@pytest.mark.timeout(300)
def test_redis_calls_dont_grow_with_the_backlog(raw, namespace):
    """Ten times as many jobs, and each script does what it did: as many calls to the server, not one more."""
    large, small = _costs(raw, namespace, SIZES), _costs(raw, namespace, SIZES.over(10))
    assert {cost.script for cost in large.values()} == set(scripts.names()), "each script has a case in cases.py"
    assert _calls(large) == _calls(small)


@pytest.mark.timeout(120)
def test_beside_an_empty_queue_what_ends_pushes_out_as_many(raw, namespace):
    """Where a backlog makes a call ask for more, that is retention, a job or so for each that ends: 1 call each."""
    beside, alone = _costs(raw, namespace, SIZES.over(10)), _costs(raw, namespace, NONE)
    more = {title: (cost.calls, alone[title].calls) for title, cost in beside.items()}
    assert not [title for title in beside if grown(beside[title], alone[title], BATCH)], more
    assert max(_calls(beside).values()) <= CALLS_A_JOB_MAX * BATCH


def test_what_grows_is_told_from_what_retention_asks_for():
    alone = Cost("t", 1, 1, 1, 300)
    assert not grown(Cost("t", 1, 1, 1, 300 + BATCH), alone, BATCH)
    assert grown(Cost("t", 1, 1, 1, 300 + 2 * BATCH + 1), alone, BATCH)


def test_the_middle_is_never_what_was_claimed(raw, namespace):
    """However often others claim: a call on a job that is gone measures nothing."""
    backlog = Backlog(raw, Sizes(400, 0, 0), namespace=namespace, batch=BATCH)
    backlog.fill()
    for _ in range(30):
        for _ in range(3):
            backlog.run(backlog.claim())
        waiting = backlog.run(CASES["fetch"](backlog))
        assert {fields[b"state"] for _, fields in waiting} == {b"available"}
