"""A cluster whose leaders don't last: the strikes that make it change leaders, and the ledger of what it then fired.

Told once for one server and for three shards. `history` looks at the same from the server's side.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import redis

from taskq import commands, keys
from taskq.commands import Command
from taskq.errors import LeadershipLost
from taskq.schedules.template import job_id
from tests.fleet import Fleet, Node
from tests.ledger import Entry, Ledger
from tests.waiting import wait_until

EVERY_MS = 1000
NAME = "each-second"
#: Never due, so that only the term decides what is answered to who would fire it.
STILL = "leap-day"
#: For longer than a term lasts, so that another leads when it is over.
STRUCK_S = 7.5


class Cluster:
    """What the strikes and the judgement need of a test's cluster.

    Args:
        app: the tasks' app. `task`: one that says that it ran.
        fleet, ledger: its nodes, and what really ran.
        registry: a client of the server that has `{_}`.
        run: does any command, as anybody could.
        queue: where the schedule's jobs go.
    """

    def __init__(
        self, app: Any, task: Any, fleet: Fleet, ledger: Ledger, *, registry: redis.Redis, run: Any, queue: str
    ) -> None:
        self.app, self.task, self.fleet, self.ledger = app, task.using(queue=queue), fleet, ledger
        self.run: Callable[[Command[Any]], Any] = run
        self.c = keys.cluster(app.settings.namespace)
        self.q = keys.queue(app.settings.namespace, queue)
        self.registry = registry
        self._opening = job_id(queue, NAME, "due", 0)[:-1]

    def put(self) -> None:
        """Begin the schedule of every second."""
        self.app.schedules.put(NAME, self.task, every=1, missed="all")
        wait_until(self.nominals, 40, what="the first firing")

    def nominals(self, entries: Iterable[Entry] | None = None) -> list[int]:
        """The nominal times that ran, in order of their beginning."""
        opening = self._opening
        found = self.ledger.starts() if entries is None else entries
        return [int(entry.job.removeprefix(opening)) for entry in found if entry.job.startswith(opening)]

    def fired(self) -> int:
        """How often it has fired, by its record."""
        found = self.registry.hget(self.c.schedule(NAME), "runs")
        return int(found or 0)

    def leads(self) -> tuple[str, int]:
        """Who leads, and its term; '' for nobody."""
        found = self.run(commands.leader(self.c))
        return found.node, found.term

    def leader(self) -> Node | None:
        """The node that leads, if it lives."""
        name, _ = self.leads()
        return next((node for node in self.fleet.living() if f"-{node.pid}-" in name), None)

    def settle(self) -> list[int]:
        """Let it go on for some seconds, pause it, and wait until each run has an outcome. Gives the times that ran."""
        fired = self.fired()
        wait_until(lambda: self.fired() > fired + 5, 60, step_s=0.2, what="five firings")
        self.app.schedules.pause(NAME)
        fired = self.fired()
        wait_until(lambda: len(set(self.nominals())) >= fired, 60, step_s=0.5, what=f"{fired} times that ran")
        wait_until(lambda: all(run.job for run in self.app.schedules.get(NAME).runs), 20, what="an outcome of each run")
        assert self.fired() == fired
        return self.nominals()


def each_once(cluster: Cluster) -> int:
    """The ledger is exact: every second from the first to the last, each one job. Gives how many.

    Whose worker was struck in the middle may run again, as another attempt of the same job.
    """
    entries = cluster.ledger.starts()
    ran = sorted(set(cluster.nominals(entries)))
    attempts = [(entry.job, entry.attempt) for entry in entries]
    assert len(set(attempts)) == len(attempts)
    assert ran == list(range(ran[0], ran[-1] + 1, EVERY_MS)), f"left out: {_gaps(ran)}"
    assert len(ran) == cluster.fired()
    runs = cluster.app.schedules.get(NAME).runs
    assert [run.nominal for run in runs] == sorted({run.nominal for run in runs}, reverse=True)
    fired = [run.fired_at for run in runs]
    assert fired == sorted(fired, reverse=True)
    return len(ran)


def _gaps(ran: list[int]) -> list[tuple[int, int]]:
    return [pair for pair in itertools.pairwise(ran) if pair[1] - pair[0] != EVERY_MS]


class Strikes:
    """Strikes the nodes of a cluster, the leader above all, so that two at least are always well.

    Args:
        cluster: whose.
        cut: what takes a node's connections away, and gives what brings them back.
    """

    def __init__(self, cluster: Cluster, cut: Callable[[Node], Callable[[], None]]) -> None:
        self._cluster = cluster
        self._ways = [self._stop, cut]
        self._heals: dict[Node, tuple[float, Callable[[], None]]] = {}
        self.count = 0

    def go_on(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Strike for so long, and do something else besides, all the time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._heal(time.monotonic())
            # The first is the leader, who then stands still: a short run, too, sees another take its place.
            other = self.count > 0 and random.random() < 0.2
            node = random.choice(self._cluster.fleet.living()) if other else self._cluster.leader()
            if node and node not in self._heals and len(self._heals) < len(self._cluster.fleet.living()) - 2:
                heal = self._ways[self.count % len(self._ways)](node)
                self._heals[node] = (time.monotonic() + STRUCK_S, heal)
                self.count += 1
            meanwhile()
            time.sleep(random.uniform(0.5, 1.5))

    def over(self) -> None:
        """Nothing is struck any more."""
        self._heal(float("inf"))

    def _heal(self, now: float) -> None:
        for node, (until, heal) in list(self._heals.items()):
            if until <= now:
                heal()
                del self._heals[node]

    def _stop(self, node: Node) -> Callable[[], None]:
        os.kill(node.pid, signal.SIGSTOP)
        return partial(os.kill, node.pid, signal.SIGCONT)


def killed_again_and_again(cluster: Cluster, seconds: float, begin: Callable[[], object], struck: set[int]) -> int:
    """SIGKILL for the leader every few seconds; another node takes its place. Gives how many died.

    Args:
        cluster: whose.
        seconds: for how long.
        begin: begins a node.
        struck: whose jobs may run again, afterwards.
    """
    killed, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        leader = wait_until(cluster.leader, 60, step_s=0.1, what="a leader that lives")
        struck.update(leader.workers())
        leader.kill()
        killed += 1
        begin()
        time.sleep(random.uniform(1, 3))
    for node in cluster.fleet.living():
        node.until_ready()
    return killed


class Past:
    """Leaders of the past that never heard of it: they say again what only a leader may."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._led: dict[int, str] = {}
        self.refused = 0
        cluster.app.schedules.put(STILL, cluster.task, cron="0 0 29 2 *")

    def speaks(self) -> None:
        """Each that led once tries to write; none may."""
        node, term = self._cluster.leads()
        if node:
            self._led[term] = node
            self._accepted(node, term)
        for command in self._freeing(term):
            with suppress(LeadershipLost):
                self._cluster.run(command)  # from now on the queue knows that term, or a later one
        for old in self._led:
            if old != term:
                self._refused(self._led[old], old)

    def _accepted(self, node: str, term: int) -> None:
        """So that what is refused is refused for its term."""
        try:
            self._cluster.run(commands.mark_dead(self._cluster.c, node=node, term=term))
        except LeadershipLost:
            assert self._cluster.leads() != (node, term)

    def _freeing(self, term: int) -> list[Command[Any]]:
        q = self._cluster.q
        return [
            commands.untarget(q, "async;target=nowhere", why="lost", term=term),
            commands.withdraw(q, "nobody", why="gone", term=term),
        ]

    def _refused(self, node: str, term: int) -> None:
        cluster, now = self._cluster, int(time.time() * 1000)
        record = cluster.registry.hgetall(cluster.c.schedule(STILL))
        fire = commands.fire(
            cluster.c, node=node, term=term, name=STILL, revision=int(record[b"revision"]),
            after=now, next=now + 10**9, look=now + 10**9, times=[now],
        )  # fmt: skip
        assert cluster.run(fire) == "lost"
        assert cluster.run(commands.due_schedules(cluster.c, node=node, term=term, limit=1)).word == "lost"
        assert not cluster.run(commands.resign(cluster.c, node=node, term=term))
        for command in (
            commands.mark_dead(cluster.c, node=node, term=term),
            commands.order(cluster.c, "drain", "*", by=node, term=term),
            *self._freeing(term),
        ):
            try:
                cluster.run(command)
            except LeadershipLost:
                self.refused += 1
            else:
                raise AssertionError(f"{command.script.name} of {node} in term {term} was accepted")
