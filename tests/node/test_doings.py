"""What a beat tells of what the node does."""

import json

import pytest

from taskq.node.channel import Hello
from taskq.node.doings import RUNNING_MAX, doings, running
from taskq.node.table import Table

T0 = 1_800_000_000_000
TASKS = {"mail.read": {"executor": "thread"}, "mail.send": {"executor": "async"}}


class Worker:
    """A worker as its node knows it."""

    def __init__(self, hello=True, ready=True):
        self.table = Table.create(600)
        self.hello = Hello({}, [], TASKS) if hello else None
        self.ready = ready

    def held(self):
        return self.table.read()


@pytest.fixture
def worker():
    made = []

    def worker(**options):
        made.append(Worker(**options))
        return made[-1]

    yield worker
    for each in made:
        each.table.close()


def told(children):
    fields = doings(children, state="active", workers=2, concurrency={"async": 10, "thread": 5})
    return json.loads(fields["stats"])


def test_slots_are_those_of_the_workers_that_claim(worker):
    none = {"slots": 0, "busy": 0}
    assert told([]) == {**none, "executors": {"async": none, "thread": none}, "running": []}
    assert told([worker(), worker(), worker(ready=False)])["slots"] == 30


def test_what_runs_is_told_the_longest_first(worker):
    one, other, fresh = worker(), worker(), worker(hello=False)
    one.table.fill(T0 + 2, "email:b", task=1)
    ended = one.table.fill(T0, "email:done", task=1)
    one.table.end(ended)
    other.table.fill(T0 + 1, "email:a", task=0)
    other.table.fill(T0 + 3, "email:unknown")
    fresh.table.fill(T0 + 4, "email:c", task=1)
    assert told([one, other, fresh]) == {
        "slots": 45,
        "busy": 4,
        "executors": {"async": {"slots": 30, "busy": 3}, "thread": {"slots": 15, "busy": 1}},
        "running": [
            {"job": "email:a", "task": "mail.read", "started_at": "2027-01-15T08:00:00.001Z"},
            {"job": "email:b", "task": "mail.send", "started_at": "2027-01-15T08:00:00.002Z"},
            {"job": "email:unknown", "task": None, "started_at": "2027-01-15T08:00:00.003Z"},
            {"job": "email:c", "task": None, "started_at": "2027-01-15T08:00:00.004Z"},
        ],
    }


def test_of_very_many_the_number_is_told_and_some(worker):
    many = worker()
    for n in range(RUNNING_MAX + 7):
        many.table.fill(T0 + n, f"email:{n}", task=0)
    stats = told([many])
    assert (stats["busy"], len(stats["running"])) == (RUNNING_MAX + 7, RUNNING_MAX)
    assert stats["running"][0]["job"] == "email:0"


def test_an_epoch_that_is_no_time_any_more_is_told_somehow(worker):
    spoilt = worker()
    spoilt.table.fill(2**60, "email:a", task=0)
    (one,) = running([spoilt])
    assert one["job"] == "email:a"
