"""Finishes leave together, one call under way per queue, and are repeated until they are answered."""

import asyncio
import contextvars

import pytest

from taskq import keys
from taskq.commands import Done, Failure, Release, Snoozed
from taskq.errors import Unavailable
from taskq.node.loop import Outage
from taskq.node.worker import committer as module
from taskq.node.worker.committer import Committer
from tests.node.jobs import running
from tests.waiting import await_until


class PlayedRedis:
    def __init__(self):
        self.calls = []  # each: the scripts' names and the ids
        self.failing = []  # exceptions for the next calls
        self.refused = set()  # ids the server can't stand
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, commands):
        call = [(command.script.name, self.ids(command)) for command in commands]
        self.calls.append(call)
        await self.gate.wait()
        await asyncio.sleep(0)
        if self.failing:
            raise self.failing.pop(0)
        for _, ids in call:
            if self.refused & set(ids):
                raise ValueError("damaged")
        return [["ok"] * len(ids) for _, ids in call]

    @staticmethod
    def ids(command):
        return [arg for arg in command.args if isinstance(arg, str) and arg.startswith("default:")]


@pytest.fixture
def redis():
    return PlayedRedis()


@pytest.fixture
def settled():
    return []


@pytest.fixture
def refused():
    return []


@pytest.fixture
def committer(redis, settled, refused, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.001)
    return Committer(
        redis.send,
        {"default": keys.queue("t", "default")},
        worker="w.1",
        grace_ms=1000,
        settled=lambda job, word: settled.append((job.id, word)),
        refused=refused.append,
        outage=Outage(),
    )


def done(n, result=b""):
    job = running(id=f"default:{n}")
    return job, Done(job.id, job.epoch, result)


async def test_what_ends_together_is_sent_together(committer, redis, settled):
    for n in range(100):
        committer.add(*done(n))
    await committer.flush()
    assert len(redis.calls) == 1
    assert settled == [(f"default:{n}", "ok") for n in range(100)]


async def test_while_one_call_is_under_way_the_next_gathers(committer, redis, settled):
    redis.gate.clear()
    committer.add(*done(0))
    await await_until(lambda: redis.calls)
    for n in range(1, 50):
        committer.add(*done(n))
    redis.gate.set()
    await committer.flush()
    assert [len(call[0][1]) for call in redis.calls] == [1, 49]


async def test_a_call_is_bounded_by_count(committer, redis, settled):
    for n in range(600):
        committer.add(*done(n))
    await committer.flush()
    assert [len(call[0][1]) for call in redis.calls] == [250, 250, 100]


async def test_a_call_is_bounded_by_bytes_unless_it_carries_one_job(committer, redis, settled):
    half = b"x" * (600 * 1024)
    for n, result in enumerate([half, half, half * 3, b"", half]):
        committer.add(*done(n, result))
    await committer.flush()
    assert [len(call[0][1]) for call in redis.calls] == [1, 1, 1, 2]
    assert len(settled) == 5


async def test_bytes_are_counted_not_characters(committer, redis):
    for n in range(1, 3):  # 600 kB each as sent
        committer.add(running(id=f"default:{n}"), Failure(f"default:{n}", 1, "fail", 0, "€" * 200_000, ""))
    for n in range(3, 5):
        committer.add(running(id=f"default:{n}"), Snoozed(f"default:{n}", 1, "unknown", 0, "€" * 200_000))
    await committer.flush()
    assert [len(call) for call in redis.calls] == [1, 1, 1, 1]


async def test_each_kind_of_end_has_its_script(committer, redis, settled):
    endings = [
        Done("default:1", 1, b""),
        Failure("default:2", 1, "retry", 5, "{}", ""),
        Release("default:3", 1, "thread"),
        Snoozed("default:4", 1, "unknown", 5, "why"),
        Done("default:5", 1, b""),
    ]
    for ending in endings:
        committer.add(running(id=ending.id), ending)
    await committer.flush()
    assert redis.calls == [
        [
            ("complete", ["default:1", "default:5"]),
            ("fail", ["default:2"]),
            ("release", ["default:3"]),
            ("snooze", ["default:4"]),
        ]
    ]
    assert {id for id, _ in settled} == {ending.id for ending in endings}


async def test_an_unanswered_call_is_repeated_as_it_was(committer, redis, settled):
    redis.failing = [Unavailable("cut")] * 5
    committer.add(*done(1))
    committer.add(*done(2))
    await committer.flush()
    assert redis.calls == [[("complete", ["default:1", "default:2"])]] * 6
    assert len(settled) == 2


async def test_one_finish_the_server_refuses_harms_no_other_and_is_told(committer, redis, settled, refused):
    redis.refused = {"default:1"}
    for n in range(3):
        committer.add(*done(n))
    await committer.flush()
    assert sorted(settled) == [("default:0", "ok"), ("default:1", "refused"), ("default:2", "ok")]
    assert refused == ["default:1"]


async def test_what_is_sent_belongs_to_no_jobs_context(committer, redis, settled, monkeypatch):
    var = contextvars.ContextVar("var", default="nobody's")
    seen, send = [], redis.send

    async def look(commands):
        seen.append(var.get())
        return await send(commands)

    monkeypatch.setattr(committer, "_send", look)
    redis.refused = {"default:1"}  # sent alone then, which makes a task of its own
    var.set("a job's")
    for n in range(3):
        committer.add(*done(n))
    await committer.flush()
    assert set(seen) == {"nobody's"}
    assert len(settled) == 3
