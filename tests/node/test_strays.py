"""The leader sweeps the queues that nobody serves: slowly, a few at a time, and takes nothing from who may renew."""

import asyncio
import time

import pytest

from taskq import commands, keys
from taskq.commands import Done, NewJob, Registered
from taskq.errors import Unavailable
from taskq.node.leader import strays
from taskq.node.leader.strays import AT_ONCE, EVERY_S, LOOK_S, Strays
from taskq.node.queues import Queues

LEASE_MS = 8_000


class Leader:
    """A leader of its own time: `pass_s` moves both its clock and the queue's stamps."""

    def __init__(self, ground, queues=None):
        self.ground, self.c = ground, keys.cluster(ground.namespace)
        self.term, self.now = 5, 1_000.0
        self.strays = Strays(
            queues or ground.queues(), self.c, lease_ms=LEASE_MS, term=lambda: self.term, clock=lambda: self.now
        )

    async def known(self, *names):
        for name in names:
            await self.ground.do(commands.register_queue(self.c, name))

    async def serves(self, node, queues, silent_ms=0):
        fields = {"state": "active", "queues": queues}
        at = int(time.time() * 1000) - silent_ms
        known = Registered(0, 0)
        await self.ground.do(
            commands.register_node(self.c, node=node, ttl_ms=600_000, fields=fields, known=known, now=at)
        )

    async def step(self, pass_s=0.0):
        self.now += pass_s
        meta = self.ground.q.fixed("meta")
        for field in ("seen", "quiet_until"):
            if at := self.ground.raw.hget(meta, field):
                self.ground.raw.hset(meta, field, max(0, int(at) - int(pass_s * 1000)))
        assert await self.strays.step() == LOOK_S

    def looked_at(self, monkeypatch):
        """The queues of each step from now on, as one list."""
        swept = []
        before = Strays._sweep

        async def sweep(strays, q, part):
            swept.append(q.name)
            await before(strays, q, part)

        monkeypatch.setattr(Strays, "_sweep", sweep)
        return swept


@pytest.fixture
async def leader(ground):
    return Leader(ground)


async def lost(ground, n, ago_ms=60_000):
    """So many jobs whose holder fell silent."""
    ids = await ground.enqueue(n)
    await ground.claim(ground.child("dead.1"), n, now=int(time.time() * 1000) - ago_ms)
    return ids


async def test_who_does_not_lead_touches_nothing(leader, ground, monkeypatch):
    swept = leader.looked_at(monkeypatch)
    await leader.known("default")
    leader.term = None
    await leader.step()
    assert swept == []


async def test_a_dead_hosts_job_is_given_back_once_its_holder_had_time_to_renew(leader, ground, lines):
    ids = await lost(ground, 2)
    await leader.known("default")
    await leader.step()
    for _ in range(8):
        assert await ground.states(ids) == {"running"}
        await leader.step(1)
    await leader.step(1)
    assert await ground.states(ids) == {"available"}
    assert [line["served"] for line in lines if line["event"] == "lease expired"] == ["by no node"] * 2


async def test_one_who_renews_meanwhile_keeps_its_job(leader, ground):
    (id,) = await lost(ground, 1)
    (job,) = await ground.do(commands.fetch(ground.q, [id]))
    epoch = int(job[1][b"epoch"])
    await leader.known("default")
    await leader.step()
    held = [commands.Held(id, epoch, "dead.1")]
    await ground.do(commands.renew(ground.q, lease_ms=LEASE_MS, held=held))
    for _ in range(12):
        await leader.step(1)
    assert await ground.states([id]) == {"running"}


async def test_what_waits_expires_what_is_due_is_promoted_and_what_ended_goes(leader, ground):
    child = ground.child()
    old = int(time.time() * 1000) - 3 * 24 * 3_600_000
    (ended,) = await ground.enqueue(1)
    jobs = await ground.claim(child, 9)
    done = [Done(job.id, job.epoch, b"") for job in jobs]
    await ground.do(commands.complete(ground.q, worker=child.worker, done=done, now=old))
    (late,) = await ground.enqueue(1, expires=str(int(time.time() * 1000) + 50))
    (due,) = await ground.enqueue(1, due=str(int(time.time() * 1000) + 50))
    await asyncio.sleep(0.1)
    await leader.known("default")
    await leader.step()
    found = await ground.do(commands.fetch(ground.q, [late, due, ended]))
    assert [each and each[1][b"state"] for each in found] == [b"cancelled", b"available", None]


async def test_classes_that_no_job_needs_go_and_so_does_what_lapsed(leader, ground, monkeypatch):
    await ground.do(
        commands.enqueue(ground.q, [NewJob("default:a", "", "t", "async", 0, "", "", {}, needs="takes.cpu=1")])
    )
    then = int(time.time() * 1000) - 100_000
    await ground.do(commands.reserve(ground.q, token="default:r", key="k", most=9, ttl_ms=1000, now=then))
    await ground.do(commands.cancel(ground.q, ["default:a"]))
    await leader.known("default")
    monkeypatch.setattr("taskq.node.sweeps.janitor.CLASSES_EVERY_S", 0)
    await leader.step()
    assert not ground.raw.exists(ground.q.fixed("reservations"))
    assert (await ground.do(commands.classes(ground.q))).classes
    await leader.step(EVERY_S)
    assert not (await ground.do(commands.classes(ground.q))).classes


async def test_what_a_living_node_serves_is_its_own(leader, ground, monkeypatch):
    swept = leader.looked_at(monkeypatch)
    await leader.known("email", "web", "old", "nobodys")
    await leader.serves("a", '["email", "web"]')
    await leader.serves("gone", '["old"]', silent_ms=31_000)
    await leader.serves("odd", "[1, {")
    await leader.step()
    assert sorted(swept) == ["nobodys", "old"]
    await leader.step(1)
    assert len(swept) == 2, "each has its turn every 30 s"
    await leader.serves("b", '["old"]')
    await leader.step(EVERY_S)
    assert swept[2:] == ["nobodys"]


async def test_of_very_many_a_few_are_looked_at_each_second(leader, ground, monkeypatch):
    swept = leader.looked_at(monkeypatch)
    names = [f"q{n:02}" for n in range(2 * AT_ONCE + 3)]
    await leader.known(*names)
    await leader.step()
    assert len(swept) == AT_ONCE
    await leader.step(1)
    await leader.step(1)
    assert sorted(swept) == names
    await leader.step(1)
    assert len(swept) == len(names)


async def test_beside_very_many_that_are_watched_no_others_have_their_turn(leader, ground, monkeypatch):
    swept = leader.looked_at(monkeypatch)
    names = [f"q{n:02}" for n in range(3 * AT_ONCE)]
    await leader.known(*names)
    await leader.step()
    leader.strays._watched = set(names[: AT_ONCE + 2])
    swept.clear()
    await leader.step(1)
    assert sorted(swept) == names[: AT_ONCE + 2]


async def test_a_queue_that_has_more_comes_again_soon(leader, ground, monkeypatch):
    monkeypatch.setattr(strays, "LIMIT", 3)
    ids = await ground.enqueue(7, due=str(int(time.time() * 1000) + 50))
    await asyncio.sleep(0.1)
    await leader.known("default")
    for _ in range(3):
        await leader.step(1)
    assert await ground.states(ids) == {"available"}


async def test_while_redis_is_away_nothing_is_forgotten(ground, nobody):
    leader = Leader(ground, Queues(nobody, ground.namespace))
    with pytest.raises(Unavailable):
        await leader.strays.step()
