"""RETRY-02: whatever way a job leaves its holder, there is an end: an attempt counts, or a give-back in a row does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from taskq import commands
from taskq.commands import Buried, Failure, Release
from tests.lua.room import Room

ATTEMPTS, IN_A_ROW = 3, 20


def expires(room: Room, _worker: str, _id: str, _epoch: int) -> None:
    room.watched()


def buried(verb: str) -> Callable[[Room, str, str, int], None]:
    def bury(room: Room, worker: str, id: str, epoch: int) -> None:
        delay = (5,) if verb == "timeout" else ()
        room.do(commands.bury, worker=worker, why="SIGKILL", jobs=[Buried(id, epoch, verb, *delay)])

    return bury


def forgotten(room: Room, worker: str, _id: str, _epoch: int) -> None:
    """Its worker died before it had written down what it claimed."""
    room.do(commands.bury, worker=worker, why="SIGKILL", jobs=[])


def released(room: Room, worker: str, id: str, epoch: int) -> None:
    room.do(commands.release, worker=worker, jobs=[Release(id, epoch, "")])


def failed(room: Room, worker: str, id: str, epoch: int) -> None:
    room.do(commands.fail, worker=worker, failures=[Failure(id, epoch, "retry", 5, "{}", "no")])


COUNTING = {
    "lease expiry": expires,
    "lost": buried("lost"),
    "ended": buried("ended"),
    "timeout": buried("timeout"),
    "failed": failed,
}
REFUNDING = {"released": released, "refund": buried("refund"), "forgotten": forgotten}
ROUTES = COUNTING | REFUNDING


def lives(room: Room, route: Callable[[], Callable[[Room, str, str, int], None]]) -> int:
    """Claims the job and takes it away, again and again; how often, until it has ended."""
    for n in range(1, 200):
        room.now += 1000
        jobs = room.claim(f"n.{n}")
        if not jobs:
            return n - 1
        (job,) = jobs
        assert job.attempt <= ATTEMPTS
        route()(room, f"n.{n}", job.id, job.epoch)
    raise AssertionError("there is no end")


@pytest.mark.parametrize("route", COUNTING)
def test_every_way_but_a_give_back_counts_alike(room, route):
    room.add("a", max_attempts=ATTEMPTS)
    assert lives(room, lambda: COUNTING[route]) == ATTEMPTS
    assert (room.job()["state"], room.job()["attempt"]) == ("failed", str(ATTEMPTS))


@pytest.mark.parametrize("route", REFUNDING)
def test_a_clean_give_back_has_a_bound_of_its_own(room, route):
    """20 in a row cost nothing, from then on each costs an attempt."""
    room.add("a", max_attempts=ATTEMPTS)
    assert lives(room, lambda: REFUNDING[route]) == IN_A_ROW + ATTEMPTS
    assert room.job()["state"] == "failed"
    assert "given back 20 times in a row" in room.job()["reason"]


def test_ways_that_take_turns_have_an_end_too(room):
    """A give-back between two deaths is refunded, and begins no new life."""
    room.add("a", max_attempts=ATTEMPTS)
    ways = iter([way for counting in COUNTING.values() for way in (released, counting)] * 10)
    assert lives(room, lambda: next(ways)) == 2 * ATTEMPTS
    assert room.job()["state"] == "failed"


@pytest.mark.parametrize("route", ROUTES)
def test_a_cancel_in_the_middle_ends_it(room, route):
    room.add("a", max_attempts=ATTEMPTS)
    for n in (1, 2):
        room.now += 1000
        (job,) = room.claim(f"n.{n}")
        if n == 2:
            assert room.do(commands.cancel, [job.id]) == ["requested"]
        ROUTES[route](room, f"n.{n}", job.id, job.epoch)
    assert room.job()["state"] == "cancelled"
    room.now += 1000
    assert room.claim("n.3") == []
