"""How much CPU a node's workers use: counted for each from its last look on, and no more than a core each."""

import os
import time
from pathlib import Path

import pytest

from taskq.node.children.cores import Cores, cpu_s


class Dummy:
    def __init__(self, number, *, ready=True):
        self.worker, self.pid, self.ready = f"n.{number}", number, ready


class Times:
    """What workers have used, and the time."""

    def __init__(self):
        self.now, self.spent = 100.0, {}
        self.children = []
        self.cores = Cores(lambda: self.children, self.told, clock=lambda: self.now)

    def told(self, pids):
        return {pid: self.spent[pid] for pid in pids if pid in self.spent}


async def test_the_use_between_two_looks_is_counted():
    times = Times()
    times.children = [Dummy(1), Dummy(2), Dummy(3, ready=False)]
    times.spent = {1: 50.0, 2: 3.0, 3: 1.0}
    await times.cores.step()
    assert times.cores.used == 0.0, "how long they took for it isn't known yet"
    times.now += 5
    times.spent = {1: 52.0, 2: 4.0, 3: 6.0}
    await times.cores.step()
    assert times.cores.used == pytest.approx(0.4 + 0.2)


async def test_a_worker_counts_as_one_core_at_most_and_one_that_went_as_none():
    times = Times()
    times.children = [Dummy(1), Dummy(2)]
    times.spent = {1: 0.0, 2: 0.0}
    await times.cores.step()
    times.now += 5
    times.spent = {1: 20.0}
    await times.cores.step()
    assert times.cores.used == 1.0
    await times.cores.step()
    assert times.cores.used == 0.0, "no time has passed"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system doesn't tell it")
def test_the_system_tells_it():
    before = cpu_s([os.getpid(), 2**22 + 1])
    assert before.keys() == {os.getpid()}
    until = time.process_time() + 0.1
    while time.process_time() < until:
        sum(range(1000))
    assert cpu_s([os.getpid()])[os.getpid()] >= before[os.getpid()] + 0.05
