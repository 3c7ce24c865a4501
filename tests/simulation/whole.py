"""Everything under `{_}` and its queues in one history: an election, schedules, their outboxes, the jobs they become,
jobs of others, and a lock. Nodes die between any two calls, sleep and go on where they were, lose answers, relay twice;
workers die with what they run; the server's clock is set back.

However it goes: terms grow, and who doesn't lead is refused, call by call (terms.py); each nominal time becomes one
job, in order, or is left out because its rule says so; each job ends, whoever held it, and only by its last holder.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import uuid
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any

from taskq import commands, keys
from taskq.calendar import every, next_after, rule_text
from taskq.commands import Declared, Done, Failure, NewJob, Release
from taskq.errors import LeadershipLost, Unavailable
from taskq.node.leader.lead import Leader
from taskq.node.leader.relay import Relay
from taskq.node.leader.schedules import Schedules
from taskq.schedules.template import Template, job_id
from tests.lua.room import T0
from tests.simulation.terms import Terms
from tests.simulation.wire import Dead, Wire

LEASE_MS = 8_000
QUEUES = ("default", "mail")  # of three shards each has its own, and the registry the third
RULES = {
    "minutely": ("default", "allow", every("60s", missed="all")),
    "odd": ("default", "allow", every("97s", missed="all", jitter="20s")),
    "elsewhere": ("mail", "allow", every("60s", missed="all")),
    "alone": ("default", "skip", every("60s", missed="all")),
    "in-turn": ("mail", "queue-one", every("90s", missed="all")),
}


def freeing(q, term):
    """What a leader says to a queue of targets and executors that it knows to be gone."""
    yield commands.untarget(q, "async;target=nowhere", why="lost", term=term)
    yield commands.withdraw(q, "nobody", why="gone", term=term)


class Node:
    """A node as it sees itself; `behind_s`: for how long it slept without noticing."""

    def __init__(self, machine, id):
        self.id, self.machine, self.wire, self.waiting = id, machine, Wire(machine), []
        self.behind_s, self.asleep = 0.0, False
        queues: Any = self.wire
        self.leader = Leader(queues, machine.c, id, clock=lambda: machine.monotonic_s - self.behind_s)
        self.relay = Relay(queues, machine.c.namespace, self.leader)
        self.schedules = Schedules(queues, machine.c, id, self.leader, relay=self.waiting.append)

    async def relay_all(self):
        while self.waiting:
            await self.relay._relay(self.waiting.pop())

    async def look(self):
        await self.schedules.step()
        await self.relay_all()

    async def sweep(self):
        """What else only a leader may."""
        with suppress(LeadershipLost):
            term = self.leader.leading()
            await self.wire.run(commands.mark_dead(self.machine.c, node=self.id, term=term))
            await self.wire.run(commands.order(self.machine.c, "resume", "*", by=self.id, term=term))
            for queue in QUEUES:
                for each in freeing(self.machine.q(queue), term):
                    await self.wire.run(each)


class Worker:
    """A worker as it sees itself: what it holds, and its claims' numbers."""

    def __init__(self, id):
        self.id, self.held, self.requests = id, [], Counter()


class Whole:
    """One history.

    Attributes:
        story: what happened, one line an act.
    """

    def __init__(self, client, seed):
        self.client, self.draw = client, random.Random(seed)
        self.story = []
        self.c = keys.cluster(f"t{uuid.uuid4().hex[:8]}")
        self.now, self.monotonic_s = T0 + 1234, 1_000.0
        self.began = self.latest = self.now
        self.terms = Terms(self.client, self.c)
        self.names = itertools.count(1)
        self.nodes = {name: self.born(name) for name in "ab"}
        self.workers = {name: self.hired(name) for name in "vw"}
        self.starts, self.ended, self.own, self.by_hand = defaultdict(list), set(), [], set()
        self.token, self.ends_at, self.fence = "", 0, 0
        self.reaped = 0
        self.loop = asyncio.new_event_loop()

    def born(self, name):
        return Node(self, f"{name}{next(self.names)}")

    def hired(self, name):
        return Worker(f"n.{name}{next(self.names)}")

    def q(self, queue):
        return keys.queue(self.c.namespace, queue)

    def run(self, command):
        """A command at the machine's time; what it answers is judged."""
        args = list(command.args)
        if "now" in command.script.args:
            args[command.script.args.index("now")] = self.now
        said = dict(zip(command.script.args, args, strict=False))
        reply = self.terms.judge(
            command,
            said,
            self.now,
            lambda: self.client.eval(command.script.source, len(command.keys), *command.keys, *args),
        )
        return command.read(reply)

    def does(self, name, act, fates):
        """A node does something, and perhaps dies of it; then another is started."""
        node = self.nodes[name]
        node.wire.fates = list(fates)
        try:
            self.loop.run_until_complete(act(node))
        except Unavailable:
            node.wire.fates = []
        except Dead:
            self.nodes[name] = self.born(name)
        for each, (queue, overlap, _) in RULES.items():
            assert overlap == "allow" or self.living(queue, each) <= 1, f"runs of {each} overlap"

    # --- nodes

    def declare(self):
        template = Template("t", "async", 0, "", "", {"keep": 0}).pack()
        said = [Declared(name, rule_text(each), over, to, "t", template) for name, (to, over, each) in RULES.items()]
        self.run(commands.declare_schedules(self.c, said))

    def pulse(self, name, fates):
        self.does(name, lambda node: node.leader.step(), fates)

    def look(self, name, fates):
        self.does(name, Node.look, fates)

    def relay(self, name, fates, queue):
        self.nodes[name].waiting.append(queue)
        self.does(name, Node.relay_all, fates)

    def leads_and_looks(self, name, fates, relays, ms):
        """As a node does each second, if it isn't struck before."""
        self.time_passes(ms)
        self.does(name, lambda node: node.leader.step(), [])
        self.does(name, Node.look if relays else lambda node: node.schedules.step(), fates)

    def relays_and_dies(self, name, worker, queue):
        """The queue has had it all, its jobs have ended and are forgotten, and nobody has noted it."""
        self.leads_and_looks(name, [], False, 61_000)
        self.nodes[name].waiting.append(queue)
        self.does(name, Node.relay_all, ["", "dies after"])
        self.work(worker, queue)

    def sweep(self, name, fates):
        self.does(name, Node.sweep, fates)

    def resign(self, name, fates):
        self.does(name, lambda node: node.leader.resign(), fates)

    def falls_asleep_or_wakes(self, name):
        """Asleep, what it does is what it was about to do: to itself no time has passed."""
        node = self.nodes[name]
        node.asleep = not node.asleep
        if not node.asleep:
            node.behind_s = 0.0

    def fire_by_hand(self, name):
        """Said twice, since the first answer was lost."""
        token = uuid.uuid4().hex
        for _ in range(2):
            word, nominal, queue = self.run(commands.run_schedule(self.c, name, token=token))
            assert word == "ok"
            if RULES[name][1] == "allow":
                self.by_hand.add(job_id(queue, name, "manual", nominal))

    def one_who_led_goes_on(self, queue):
        """With whatever term it had. Where it is refused, nothing has changed."""
        term, node = self.draw.choice(sorted(self.terms.leaders.items()))
        revision, after = self.client.hmget(self.c.schedule("minutely"), "revision", "after")
        proof = {"node": node, "term": term}
        fire = {"name": "minutely", "revision": int(revision), "after": int(after), "look": self.now}
        for command in (
            commands.fire(self.c, **proof, **fire, next=next_after(RULES["minutely"][2], int(after))),
            commands.due_schedules(self.c, **proof, limit=9),
            commands.mark_dead(self.c, **proof),
            commands.order(self.c, "resume", "*", by=node, term=term),
            commands.receive(self.q(queue), [], term=term),
            *freeing(self.q(queue), term),
        ):
            before, refused = self.stored(), self.terms.refused
            with suppress(LeadershipLost):
                self.run(command)
            assert self.terms.refused == refused or self.stored() == before

    def stored(self):
        return {key: self.client.dump(key) for key in sorted(self.client.scan_iter(f"{self.c.namespace}:*", 1000))}

    # --- jobs

    def enqueue(self, queue, many):
        jobs = [NewJob(f"{queue}:{next(self.names)}", "", "t", "async", 0, "", "", {"keep": 0}) for _ in range(many)]
        assert self.run(commands.enqueue(self.q(queue), jobs)) == ["available"] * many
        self.own += [job.id for job in jobs]

    def claim(self, name, queue, limit):
        worker = self.workers[name]
        worker.requests[queue] += 1
        claim = commands.claim(
            self.q(queue), worker=worker.id, request=worker.requests[queue],
            lease_ms=LEASE_MS, limit=limit, free={"async": limit},
        )  # fmt: skip
        for job in self.run(claim).jobs:
            assert job.id not in self.ended
            assert job.epoch > max(self.starts[job.id], default=0)
            self.starts[job.id].append(job.epoch)
            worker.held.append((queue, job.id, job.epoch))

    def finish(self, name, many, how):
        worker = self.workers[name]
        for queue, id, epoch in worker.held[:many]:
            self.finished(worker, queue, id, epoch, how)
        del worker.held[:many]

    def finished(self, worker, queue, id, epoch, how):
        command = {
            "done": lambda: commands.complete(self.q(queue), worker=worker.id, done=[Done(id, epoch, b"")]),
            "fails": lambda: commands.fail(
                self.q(queue), worker=worker.id, failures=[Failure(id, epoch, "retry", 500, "{}", "E")]
            ),
            "given back": lambda: commands.release(self.q(queue), worker=worker.id, jobs=[Release(id, epoch, "")]),
        }[how]
        (word,) = self.run(command())
        if word in {"lost", "gone"}:
            return
        assert epoch == self.starts[id][-1], f"{id} was {how} by one who had lost it"
        assert id not in self.ended
        if how == "done" or word == "failed":
            self.ended.add(id)
        assert how != "done" or self.run(command())[0] in {word, "gone"}, "said again it is another"

    def work(self, name, queue):
        """Everything that waits runs, and no record of it is left."""
        self.claim(name, queue, 250)
        self.finish(name, 250, "done")
        self.time_passes(20_000)
        self.care(queue)

    def worker_dies(self, name):
        self.workers[name] = self.hired(name)

    def care(self, queue):
        """What every node does for a queue all the time."""
        q = self.q(queue)
        for id, state in self.run(commands.reap(q, lease_ms=LEASE_MS)).moved:
            self.reaped += 1
            if state == "failed":
                self.ended.add(id)
        self.run(commands.promote(q))
        self.run(commands.prune(q))

    def watch(self, queue):
        """Seconds in which nodes look all the time, so that it isn't quiet when leases run out."""
        for _ in range(6):
            self.time_passes(2_000)
            self.care(queue)

    def living(self, queue, name):
        opening = self.q(queue).job(job_id(queue, name, "due", 0)[:-1])
        states = [self.client.hget(key, "state") for key in self.client.scan_iter(f"{opening}*", 1000)]
        return sum(state not in {b"completed", b"failed", b"cancelled"} for state in states)

    # --- the lock

    def lock(self, ttl_ms):
        token = f"t{next(self.names)}"
        answer = self.run(commands.lock_acquire(self.c, name="l", token=token, ttl_ms=ttl_ms, waits=False, place=""))
        if self.token and self.now < self.ends_at:
            assert answer.word == "taken"
            return
        assert answer.word == "held"
        assert answer.fence > self.fence
        self.token, self.ends_at, self.fence = token, self.now + ttl_ms, answer.fence

    def hold_on(self, old, gives_back):
        token = "t0" if old else self.token
        holds = token == self.token and self.now < self.ends_at
        if gives_back:
            word = self.run(commands.lock_release(self.c, name="l", token=token))
            assert word == ("released" if holds else "lost")
            self.token = "" if holds else self.token
        else:
            word = self.run(commands.lock_extend(self.c, name="l", token=token, ttl_ms=5_000))
            assert word == ("ok" if holds else "lost")
            self.ends_at = max(self.ends_at, self.now + 5_000) if holds else self.ends_at

    # --- time

    def time_passes(self, ms):
        """For whoever isn't asleep."""
        self.now += ms
        self.latest = max(self.latest, self.now)
        self.monotonic_s += ms / 1000
        for node in self.nodes.values():
            node.behind_s += ms / 1000 if node.asleep else 0.0

    def clock_is_set_back(self):
        self.now -= 20_000

    # --- the end

    def ends(self):
        """All is well again; then everything that was due has been done once, and nothing else."""
        self.time_passes(max(0, self.latest - self.now) + 21_000)
        self.declare()
        self.nodes = {"a": self.born("a")}
        for _ in range(8):
            self.time_passes(7_000)
            self.pulse("a", [])
            self.look("a", [])
        looked = self.now
        self.drain()
        self.loop.close()
        for name, (queue, overlap, each) in RULES.items():
            opening = job_id(queue, name, "due", 0)[:-1]
            made = [id for id in self.terms.made.get(self.q(queue).prefix, []) if id.startswith(opening)]
            times = [int(id.rpartition("-")[2]) for id in made]
            assert times == sorted(set(times)), f"{name}: out of order: {times}"
            expected = list(itertools.takewhile(lambda at: at <= looked, self.times(each)))
            if overlap != "allow":
                assert set(times) <= set(expected)
            elif each.jitter_ms:
                assert times in (expected, expected[:-1]), name  # the last may be waiting
            else:
                assert times == expected, name
            self.each_was_told(name)
        made = {id for ids in self.terms.made.values() for id in ids}
        assert self.by_hand <= made
        assert set(self.starts) == made | set(self.own)
        assert self.ended >= set(self.starts)
        for key in self.client.scan_iter(f"{self.c.namespace}:*"):
            self.client.delete(key)

        return {
            "terms": len(self.terms.leaders),
            "refused": self.terms.refused,
            "made": len(made),
            "by hand": len(self.by_hand),
            "reaped": self.reaped,
            "again": sum(len(each) - 1 for each in self.starts.values()),
        }

    def times(self, each):
        at = self.began
        while True:
            yield (at := next_after(each, at))

    def each_was_told(self, name):
        """Of each firing that is remembered it is known what became of it; no time was fired twice."""
        (stored,) = self.run(commands.schedules(self.c, name=name, runs=100)).schedules
        times = [run.nominal_ms for run in stored.runs if run.kind == "due"]
        assert times == sorted(set(times), reverse=True)
        assert {run.word for run in stored.runs} <= {"fired", "skipped", "existing"}

    def drain(self):
        """Until nothing waits, on its way or in a queue."""
        for _ in range(60):
            for queue in QUEUES:
                self.relay("a", [], queue)
                self.workers["v"].held.clear()
                self.claim("v", queue, 250)
                self.finish("v", 250, "done")
                self.care(queue)
            self.time_passes(2_000)
            self.pulse("a", [])
            counts = [self.run(commands.counts(self.q(queue))) for queue in QUEUES]
            waiting = [self.run(commands.outbox(self.c, queue)) for queue in QUEUES]
            if not any(waiting) and not any(
                each.available + each.running + each.retryable + each.scheduled for each in counts
            ):
                return
        raise AssertionError(f"it doesn't come to an end: {counts} {waiting}")
