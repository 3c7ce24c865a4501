"""A node's slots for its scaled queues, and what each worker is told of them."""

import pytest

from taskq.node.channel import Limits
from taskq.node.children.allotment import Allotment
from taskq.node.table import Entry


class Dummy:
    def __init__(self, worker, *held):
        self.worker, self.ready = worker, True
        self.heard = []
        self.entries = [Entry(n, n, id, 0) for n, id in enumerate(held)]

    def send(self, message):
        self.heard.append(message)

    def held(self):
        return self.entries


def allotment(children=(), ranges=None, *, others=True):
    made = ranges or {"email": (2, 20)}
    return Allotment(made, lambda: 100, others=lambda: others, children=lambda: list(children))


async def test_it_begins_with_the_least_and_each_worker_is_told_once():
    workers = [Dummy("n.1"), Dummy("n.2")]
    made = allotment(workers)
    await made.step()
    await made.step()
    assert [each.heard for each in workers] == [[Limits({"email": 1})]] * 2
    assert made.allot({"email": 5})
    await made.step()
    assert [each.heard[1:] for each in workers] == [[Limits({"email": 3})], [Limits({"email": 2})]]


async def test_a_new_worker_has_its_share_at_once():
    workers = [Dummy("n.9")]
    made = allotment(workers)
    await made.step()
    workers.append(Dummy("n.10"))
    await made.step()
    assert [each.heard[-1].slots["email"] for each in workers] == [1, 1]


def test_the_odd_slots_go_to_different_workers():
    made = allotment(ranges={"a": (1, 9), "b": (1, 9)})
    assert made.divided(["n.1", "n.2"]) == {"n.1": {"a": 1, "b": 0}, "n.2": {"a": 0, "b": 1}}
    assert made.divided([]) == {}


@pytest.mark.parametrize("said", [None, 3, [], "email", {"email": "9"}, {"email": True}, {"other": 9}])
def test_an_order_that_is_not_right_changes_nothing(said):
    assert not allotment().allot(said)


def test_what_was_asked_for_bounds_what_is_told():
    made = allotment()
    made.allot({"email": 1000})
    assert made.shown()["queues"]["email"]["slots"] == 20
    made.allot({"email": 0})
    assert made.shown()["queues"]["email"]["slots"] == 2


def test_it_shows_what_is_busy_and_what_may_be_scaled():
    made = allotment([Dummy("n.1", "email:1", "web:2"), Dummy("n.2", "email:3")])
    assert made.shown() == {"total": 99, "queues": {"email": {"least": 2, "most": 20, "slots": 2, "busy": 2}}}
    assert Allotment({}, lambda: 9, others=lambda: True, children=list).shown() == {}
