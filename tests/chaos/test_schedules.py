"""Schedules while their leader is killed every few seconds, while the server restarts, and while everybody declares
them: each nominal time runs once, in order.
"""

from __future__ import annotations

import itertools
import logging
import time

import pytest
import redis

from taskq import commands, keys
from taskq.calendar import every, rule_text
from taskq.commands import Declared
from taskq.schedules.template import Template, job_id
from tests.waiting import wait_until

log = logging.getLogger(__name__)

EVERY_MS = 1000
NAME = "each-second"


def nominals(ledger, queue="default"):
    """The nominal times that ran, in order of their beginning."""
    opening = job_id(queue, NAME, "due", 0)[:-1]
    return [int(entry.job.removeprefix(opening)) for entry in ledger.starts() if entry.job.startswith(opening)]


def each_once(shop, ledger, least):
    """All of them, without a gap, each once, and fired in order. A killed worker's attempt may have a second one."""
    entries = [(entry.job, entry.attempt) for entry in ledger.starts()]
    assert len(set(entries)) == len(entries)
    ran = sorted(set(nominals(ledger)))
    assert len(ran) >= least
    assert {after - before for before, after in itertools.pairwise(ran)} == {EVERY_MS}, f"left out: {ran}"
    runs = shop.app.schedules.get(NAME).runs
    assert [run.nominal for run in runs] == sorted({run.nominal for run in runs}, reverse=True)
    fired = [run.fired_at for run in runs]
    assert fired == sorted(fired, reverse=True)
    assert len({run.job for run in runs}) == len(runs)


def leading(shop):
    try:
        return shop.app.inspector.leader()["node"]
    except OSError:
        return None


def put(shop):
    shop.app.schedules.put(NAME, shop.quick, every=1, missed="all")


def killed_leader(fleet, shop):
    """Kills the node that leads; a new one takes its place."""

    def leader():
        name = leading(shop) or ""
        return next((node for node in fleet.living() if f"-{node.pid}-" in name), None)

    wait_until(leader, 20, what="a leader that lives").kill()
    fleet.begin("-c", "5")


@pytest.mark.timeout(240)
def test_the_leader_is_killed_again_and_again(fleet, shop, ledger):
    for _ in range(3):
        fleet.begin("-c", "5")
    for node in fleet.nodes:
        node.until_ready()
    put(shop)
    wait_until(lambda: nominals(ledger), 20)
    kills, until = 0, time.monotonic() + 30
    while time.monotonic() < until:
        time.sleep(3)
        killed_leader(fleet, shop)
        kills += 1
    fired = len(nominals(ledger))
    wait_until(lambda: len(nominals(ledger)) > fired + 10, 40)
    shop.app.schedules.pause(NAME)
    wait_until(lambda: all(run.job for run in shop.app.schedules.get(NAME).runs), 20)
    time.sleep(1)
    log.info("%s leaders killed, %s times fired", kills, len(nominals(ledger)))
    assert kills >= 3
    each_once(shop, ledger, 30)


@pytest.mark.timeout(240)
class TestOwnServer:
    """On a server of the test's own."""

    @pytest.fixture
    def server_url(self, own):
        return own.url

    @pytest.fixture(autouse=True)
    def _no_leaked_keys(self, clean):
        """In place of the shared server's check: the same of this test's own."""

    def test_the_server_restarts_with_its_file(self, fleet, shop, own, ledger):
        """No time is left out, none runs again."""
        fleet.begin("-c", "5")
        fleet.begin("-c", "5")
        for node in fleet.nodes:
            node.until_ready()
        put(shop)
        wait_until(lambda: len(nominals(ledger)) > 5, 20)
        own.kill()
        time.sleep(3)
        own.start()
        seen = len(nominals(ledger))
        wait_until(lambda: len(nominals(ledger)) > seen + 8, 40)
        shop.app.schedules.pause(NAME)
        time.sleep(2)
        ran = nominals(ledger)
        assert sorted(ran) == list(range(ran[0], ran[-1] + 1, EVERY_MS))


@pytest.mark.timeout(120)
def test_twenty_that_declare_are_one_schedule(fleet, shop, look, ledger):
    """As twenty workers of a deploy do, while it fires."""
    fleet.start("-c", "5")
    c = keys.cluster(shop.app.settings.namespace)
    template = Template(shop.quick.name, "async", 0, "", "", {"payload": b""}).pack()
    rule = rule_text(every("1s", missed="all"))
    one = Declared(NAME, rule, "allow", "default", shop.quick.name, template)
    for _ in range(8):
        for _ in range(20):
            look.run(commands.declare_schedules(c, [one]))
        time.sleep(0.7)
    wait_until(lambda: len(nominals(ledger)) > 6, 20)
    assert shop.app.schedules.count() == 1
    each_once(shop, ledger, 6)


def test_a_restart_within_the_second_fires_nothing_again(fleet, shop, ledger):
    """SCHED-13: the node starts again several times within a second of the schedule."""
    put(shop)
    for _ in range(4):
        node = fleet.start("-c", "5", "--grace", "0")
        seen = len(nominals(ledger))
        wait_until(lambda seen=seen: len(nominals(ledger)) > seen, 20)
        node.terminate()
        node.wait()
    each_once(shop, ledger, 4)
    with redis.Redis.from_url(shop.app.settings.url) as client:
        assert client.exists(keys.cluster(shop.app.settings.namespace).schedule(NAME))
