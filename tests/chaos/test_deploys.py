"""Old and new code beside each other, that declare different rules of one schedule, while leaders die and a leader's
clock is set back: each nominal time becomes one job, and a changed rule begins when it was declared.
"""

from __future__ import annotations

import itertools
import os

import pytest

from taskq import commands, keys
from taskq.calendar import every, rule_text
from taskq.commands import Declared
from taskq.schedules.template import Template, job_id
from tests.chaos.conftest import FOLDER
from tests.fleet import ROOT, Fleet
from tests.ledger import VARIABLE
from tests.waiting import wait_until

NAME = "each"
OLD, NEW = "2s", "1s"


class Deploys:
    """Nodes of both versions, and what came of it.

    Attributes:
        changes: when which version was declared, by the server's time.
    """

    def __init__(self, shop, look, raw, fleet):
        self.look, self.raw, self.fleet = look, raw, fleet
        self.c = keys.cluster(shop.app.settings.namespace)
        self.changes = []
        self._opening = job_id("default", NAME, "due", 0)[:-1]

    def start(self, version, **environment):
        """A node of this version, once its rule is the schedule's."""
        node = self.fleet.start("-c", "5", TASKQ_TEST_EVERY=version, TASKQ_LEASE="4s", **environment)
        wait_until(lambda: self.rule() == version, 20, what=f"the rule {version}")
        self.changes.append((int(self.raw.hget(self.c.schedule(NAME), "declared_at")), version))
        self.goes_on()
        return node

    def rule(self):
        rule = self.raw.hget(self.c.schedule(NAME), "rule")
        return {rule_text(every(each, missed="all")).encode(): each for each in (OLD, NEW)}.get(rule)

    def leads(self, node):
        return f"-{node.pid}-" in self.look.run(commands.leader(self.c)).node

    def nominals(self):
        """The nominal times that ran, in ms, in order of their beginning."""
        found = [entry.job for entry in self.look.ledger.starts()]
        return [int(job.removeprefix(self._opening)) for job in found if job.startswith(self._opening)]

    def goes_on(self):
        seen = len(self.nominals())
        wait_until(lambda: len(self.nominals()) > seen + 3, 40, what="firings")

    def in_force(self, at_ms):
        """The version whose rule was the schedule's at that time."""
        return [version for declared_ms, version in self.changes if declared_ms < at_ms][-1]

    def declared_long_ago(self):
        """What a node of the old deploy says once a minute: it was declared before, and so changes nothing."""
        template = Template("shop.quick", "async", 0, "", "", {"payload": b""}).pack()
        before_ms, version = self.changes[-2]
        one = Declared(NAME, rule_text(every(version, missed="all")), "allow", "default", "shop.quick", template)
        assert self.look.run(commands.declare_schedules(self.c, [one], declared_at=before_ms))[1] == ["older"]


@pytest.fixture
def deploys(tmp_path, shop, look, raw):
    place = shop.app.settings
    environment = {"TASKQ_URL": place.url, "TASKQ_NAMESPACE": place.namespace, VARIABLE: look.ledger.url}
    fleet = Fleet("deployed", folder=FOLDER, environment=environment, logs=tmp_path)
    yield Deploys(shop, look, raw, fleet)
    fleet.close()
    look.conserve()
    assert [fault for node in fleet.nodes for fault in node.faults()] == [], fleet.text()


@pytest.mark.timeout(240)
def test_each_time_once_across_deploys_dead_leaders_and_a_clock_set_back(deploys, shop, tmp_path):
    path = os.pathsep.join([str(FOLDER / "wrongclock"), str(ROOT)])
    clock = {"PYTHONPATH": path, "TASKQ_TEST_CLOCK_S": "0", "TASKQ_TEST_CLOCK_FILE": str(tmp_path / "clock")}
    old = deploys.start(OLD, **clock)
    new = deploys.start(NEW)
    assert deploys.leads(old)
    (tmp_path / "clock").write_text("-3600")
    deploys.goes_on()
    wait_until(lambda: "clock and Redis's differ" in old.text(), what="that the node sees its clock")
    assert deploys.leads(old), "its clock is no matter"
    old.kill()
    wait_until(lambda: deploys.leads(new))
    deploys.goes_on()
    deploys.start(OLD)  # and back: who declares later counts
    for _ in range(20):
        deploys.declared_long_ago()
    deploys.start(NEW)
    assert deploys.leads(new)
    new.terminate()
    wait_until(lambda: not deploys.leads(new))
    deploys.goes_on()
    assert new.wait() == 0
    shop.app.schedules.pause(NAME)
    wait_until(lambda: all(run.job for run in shop.app.schedules.get(NAME).runs), 20)
    schedule = shop.app.schedules.get(NAME)
    last = int(schedule.runs[0].nominal.timestamp() * 1000)
    wait_until(lambda: last in deploys.nominals(), 20)
    judge(deploys, schedule)


def judge(deploys, schedule):
    attempts = [(entry.job, entry.attempt) for entry in deploys.look.ledger.starts()]
    assert len(set(attempts)) == len(attempts), "each once"
    assert [run.nominal for run in schedule.runs] == sorted({run.nominal for run in schedule.runs}, reverse=True)
    ran = sorted(set(deploys.nominals()))
    changed = [at for at, _ in deploys.changes]
    assert len([at for at in ran if at > changed[-1]]) == schedule.fired
    for before, after in itertools.pairwise(ran):
        if not any(before < at < after for at in changed):
            step_ms = 2000 if deploys.in_force(after) == OLD else 1000
            assert after - before == step_ms, "none is left out"
    odd = [at for at in ran if at % 2000]
    assert {deploys.in_force(at) for at in odd} == {NEW}, "nothing of a rule before it was declared, or after"
