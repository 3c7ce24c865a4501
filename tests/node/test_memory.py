"""Workers that take too much memory: which are replaced gently, which at once, and who pays."""

import asyncio
import os
import shutil

import pytest

from taskq.node.children import memory
from taskq.node.children.memory import Memory, can_weigh, resident

LIMIT = 100


class Dummy:
    """A child without a process."""

    def __init__(self, pid):
        self.worker, self.pid, self.ready, self.heavy = f"n.{pid}", pid, True, False
        self.ageing, self.leaving, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.killed = []

    def held(self):
        return []

    def kill(self, why, *, forgiven):
        self.killed.append((why, forgiven))


async def weigh(child, weight):
    await Memory(lambda: [child], LIMIT, lambda pids: dict.fromkeys(pids, weight)).step()
    return child


async def test_one_within_the_limit_goes_on():
    child = await weigh(Dummy(1), LIMIT)
    assert not child.heavy
    assert not child.ageing.is_set()


async def test_one_above_it_is_replaced_once_its_jobs_have_ended():
    child = await weigh(Dummy(1), LIMIT + 1)
    assert child.heavy
    assert child.ageing.is_set()
    assert child.killed == []


async def test_one_far_above_it_is_killed_and_its_jobs_pay():
    child = await weigh(Dummy(1), LIMIT * 1.5 + 1)
    ((why, forgiven),) = child.killed
    assert why.startswith("memory ")
    assert not forgiven


async def test_also_while_it_leaves():
    child = Dummy(1)
    child.leaving.set()
    assert not (await weigh(child, LIMIT + 1)).ageing.is_set()
    assert (await weigh(child, LIMIT * 2)).killed


async def test_what_does_not_claim_yet_and_what_is_gone_is_left_alone():
    child = Dummy(1)
    child.ready = False
    assert not (await weigh(child, LIMIT * 2)).killed
    child.ready = True
    await Memory(lambda: [child], LIMIT, lambda _: {}).step()
    assert not child.killed


def test_what_a_process_takes():
    assert can_weigh()
    mine = resident([os.getpid(), 2**22 + 1])
    assert list(mine) == [os.getpid()]
    assert 5 * 2**20 < mine[os.getpid()] < 2**33


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps here")
def test_without_proc_ps_tells_it(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATM", tmp_path / "none")
    mine = resident([os.getpid(), 2**22 + 1])
    assert list(mine) == [os.getpid()]
    assert mine[os.getpid()] > 5 * 2**20
    assert resident([]) == {}


def test_where_nothing_tells_it_the_limit_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATM", tmp_path / "none")
    monkeypatch.setattr(memory.shutil, "which", lambda _: None)
    assert not can_weigh()
