"""Admission under random calls: whatever is done, what is held is what living jobs and reservations imply, and never
more than there is.

Every caller knows one limit, and the queue has it too: so slots that are reserved, wait bound or run never exceed it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from taskq import commands
from taskq.commands import Buried, Done, Failure, Release, Snoozed
from taskq.errors import AdmissionConflict, AdmissionNotFound
from tests.lua.keyspace import Dump
from tests.lua.room import LEASE_MS, Room, new

SLOTS, STEPS, SEEDS = 4, 150, 12
OVER = {"completed", "failed", "cancelled"}


class Play:
    """One history. `tokens`: token → its key, when it lapses, and once bound the content and the job."""

    def __init__(self, room: Room, seed: int) -> None:
        self.room, self.draw = room, random.Random(seed)
        self.tokens: dict[str, dict[str, Any]] = {}
        self.held: list[tuple[str, str, int]] = []
        self.names = 0
        room.client.hset(room.q.fixed("limits"), "queue", f"c={SLOTS}")

    def step(self) -> None:
        acts: list[tuple[Callable[[], None], int]] = [
            *((self.reserve, 8), (self.bind, 6), (self.release, 2), (self.finalize, 1), (self.cleanup, 1)),
            *((self.enqueue, 3), (self.claim, 8), (self.finish, 8), (self.cancel, 2), (self.pass_time, 2)),
        ]
        chosen, weights = zip(*acts, strict=True)
        self.draw.choices(chosen, weights)[0]()
        self.check()

    def name(self) -> str:
        self.names += 1
        return str(self.names)

    # --- what happens

    def reserve(self) -> None:
        key, token = f"k{self.draw.randrange(7)}", f"default:r{self.name()}"
        found = self.room.keyspace.dump()
        ttl_ms = self.draw.choice((50, 3000, 60_000))
        word = self.room.do(commands.reserve, token=token, key=key, most=SLOTS, ttl_ms=ttl_ms).word
        held = {each["key"] for each in self.unbound().values()} | self.bound(found).keys()
        if key in held:
            assert word == "duplicate"
        else:
            assert word == ("no_capacity" if self.taken(found) >= SLOTS else "reserved")
        if word == "reserved":
            self.tokens[token] = {"key": key, "till": self.room.now + ttl_ms}

    def bind(self) -> None:
        token = self.draw.choice([*list(self.tokens)[-8:], "default:nobody"])
        known, content = self.tokens.get(token), self.draw.choice("ab")
        job = new(self.name(), task=content, due=self.draw.choice(("", "", "+400")), max_attempts=2)
        try:
            bound = self.room.do(commands.bind, token=token, job=job)
        except AdmissionNotFound:
            assert token not in self.unbound()
            assert not known or "job" not in known
        except AdmissionConflict:
            assert known
            assert "job" in known
            assert known["said"] != (job.task, job.due)
        else:
            assert known
            if "job" in known:
                assert (bound.id, known["said"]) == (known["job"], (job.task, job.due))
            else:
                assert token in self.unbound()
                known |= {"job": bound.id, "said": (job.task, job.due)}

    def release(self) -> None:
        token = self.draw.choice([*list(self.tokens)[-8:], "default:nobody"])
        known = self.tokens.get(token, {})
        state = self.state(known["job"]) if "job" in known else None
        try:
            self.room.do(commands.release_reservation, token=token, call=self.name())
        except AdmissionNotFound:
            assert known.get("released") or (state is None and token not in self.unbound())
        except AdmissionConflict:
            assert state is not None
            assert state not in OVER
        else:
            assert state in OVER or token in self.unbound()
            known["released"] = True

    def finalize(self) -> None:
        key = f"k{self.draw.randrange(7)}"
        unbound = [each for each in self.unbound().values() if each["key"] == key]
        living = self.bound(self.room.keyspace.dump())
        freed = self.room.do(commands.finalize, key=key)
        assert not (freed and key in living)
        assert freed or not unbound
        for each in unbound:
            each["released"] = True

    def cleanup(self) -> None:
        for which in commands.RESERVATIONS:
            dropped, _ = self.room.do(commands.sweep_reservations, which)
            assert which == "unbound" or not dropped, "no bound one is without evidence"

    def enqueue(self) -> None:
        self.room.add(self.name(), priority=self.draw.choice((0, 511)), max_attempts=2)

    def claim(self) -> None:
        worker = f"n.{self.draw.randrange(3)}"
        for job in self.room.claim(worker, self.draw.choice((1, 2, 9))):
            self.held.append((worker, job.id, job.epoch))

    def finish(self) -> None:
        if not self.held:
            return
        worker, *held = self.held.pop(self.draw.randrange(len(self.held)))
        failure = Failure(*held, self.draw.choice(("retry", "fail")), 300, "{}", "no")
        ways: list[Callable[[], object]] = [
            *[lambda: self.room.do(commands.complete, worker=worker, done=[Done(*held, b"")])] * 3,
            lambda: self.room.do(commands.fail, worker=worker, failures=[failure]),
            lambda: self.room.do(commands.release, worker=worker, jobs=[Release(*held, "")]),
            lambda: self.room.do(commands.snooze, worker=worker, grace_ms=1, jobs=[Snoozed(*held, "snooze", 300, "")]),
            lambda: self.room.do(commands.bury, worker=f"{worker}x", why="SIGKILL", jobs=[Buried(*held, "lost")]),
            lambda: None,  # it is never heard of again
        ]
        self.draw.choice(ways)()

    def cancel(self) -> None:
        ids = [f"default:{self.draw.randint(1, self.names)}" for _ in range(3)] if self.names else []
        self.room.do(commands.cancel, ids, partial=True)
        if self.draw.random() < 0.1:
            self.room.do(commands.purge)

    def pass_time(self) -> None:
        for _ in range(self.draw.choice((1, 1, 6))):
            self.room.now += self.draw.choice((60, 1900))
            self.room.do(commands.reap, lease_ms=LEASE_MS)
            self.room.do(commands.promote)

    # --- what is right

    def unbound(self) -> dict[str, dict[str, Any]]:
        """The reservations that can still be bound."""
        return {
            token: each
            for token, each in self.tokens.items()
            if each["till"] > self.room.now and "job" not in each and "released" not in each
        }

    @staticmethod
    def bound(found: Dump) -> dict[str, dict[str, str]]:
        """Key → the job that was made for it, while it holds its slot."""
        jobs: dict[str, dict[str, str]] = {}
        for name, record in found.items():
            if name.startswith("job:") and isinstance(record, dict) and ":+" in record.get("lane", ""):
                key = record["lane"].partition("+")[2]
                assert key not in jobs, "one key, one job"
                jobs[key] = {**record, "id": name.removeprefix("job:")}
        return jobs

    def taken(self, found: Dump) -> int:
        waiting = [job for job in self.bound(found).values() if job["state"] != "running"]
        return len(found.get("leases", ())) + len(waiting) + len(self.unbound())

    def state(self, id: str) -> str | None:
        record = self.room.job(id.removeprefix("default:"))
        return None if record is None else record["state"]

    def check(self) -> None:
        found = self.room.keyspace.dump()
        jobs, unbound = self.bound(found), self.unbound()
        assert self.taken(found) <= SLOTS
        slots = found.get("slots:+", {})
        assert isinstance(slots, dict)
        by_token = {found[f"reserved:{key}"].split()[0]: job for key, job in jobs.items()}  # type: ignore[union-attr]
        assert slots.keys() == by_token.keys()
        for token, job in by_token.items():
            assert self.tokens[token]["job"] == job["id"]
            assert job["state"] not in OVER
            assert (slots[token] < 0) == (job["state"] == "running")
            assert job["state"] == "running" or "epoch" not in job, "it ends with the first attempt"
        standing = found.get("reservations", {})
        assert isinstance(standing, dict)
        assert {token for token, till in standing.items() if till > self.room.now} == unbound.keys()
        for token, each in unbound.items():
            assert found[f"reserved:{each['key']}"] == token
            assert each["key"] not in jobs


@pytest.mark.timeout(600)
def test_what_is_held_is_what_living_jobs_and_reservations_imply(room):
    first = int(os.environ.get("SIM_SEED") or random.SystemRandom().randrange(2**32))
    for seed in range(first, first + SEEDS):
        room.client.flushall()
        room._requests.clear()
        play = Play(room, seed)
        try:
            for _ in range(STEPS):
                play.step()
        except AssertionError as error:
            raise AssertionError(f"{error}\nreplay with SIM_SEED={seed}") from error
    room.client.flushall()
