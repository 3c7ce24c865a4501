"""A loop that stood still isn't an outage of Redis, and the log says whose job it was."""

import pytest
from structlog.testing import capture_logs

from taskq.errors import Unavailable
from taskq.node.loop import Outage
from taskq.node.worker.stall import Stall
from tests.node.jobs import running


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def begun(id, **fields):
    job = running(id=id, **fields)
    job.current = object()
    return job


def fails(stall):
    """What the log says of a call that fails now."""
    outage = Outage(excused=stall.explains)
    with capture_logs() as lines:
        outage.begins(Unavailable("no answer"))
        outage.ends()
    return lines


@pytest.mark.parametrize("beat_first", [True, False])
def test_a_call_that_fails_after_a_hold_is_no_outage(clock, beat_first):
    waiting, thread = running(id="default:3"), begun("default:2", **{"class": "thread"})
    stall = Stall(lambda: [begun("default:1"), thread, waiting], clock)
    clock.now += 12.5
    if beat_first:
        stall.beat()
    (line,) = fails(stall)
    assert "the event loop was held for 12 s" in line["event"]
    assert line["job_id"] == "default:1"
    assert fails(stall) == [], "it is said once"
    clock.now += 0.5
    stall.beat()
    clock.now += 0.6
    assert [line["event"][:8] for line in fails(stall)] == ["Redis is", "Redis is"]


def test_one_of_many_is_not_named(clock):
    stall = Stall(lambda: [begun("default:1"), begun("default:2")], clock)
    clock.now += 3
    (line,) = fails(stall)
    assert line["jobs"] == 2
    assert "job_id" not in line


def test_while_the_loop_turns_a_failure_is_an_outage(clock):
    stall = Stall(lambda: [begun("default:1")], clock)
    for _ in range(10):
        clock.now += 0.6
        stall.beat()
    assert len(fails(stall)) == 2
