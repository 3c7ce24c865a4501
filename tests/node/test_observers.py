"""A worker calls the app's observers with each firing that its node tells of."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

from taskq.node.worker.observers import Teller
from taskq.schedules import Run
from taskq.schedules.run import instant
from tests.waiting import await_until

RUN = Run("report", instant(1_000), instant(2_000), "default:1", None, 7)


async def test_each_observer_is_called_in_order_a_coroutine_on_the_workers_loop():
    heard: list[tuple[str, Run, int]] = []

    def plain(run):
        heard.append(("plain", run, threading.get_ident()))

    async def awaited(run):
        await asyncio.sleep(0)
        heard.append(("awaited", run, threading.get_ident()))

    teller = Teller([plain, awaited], asyncio.get_running_loop())
    other = replace(RUN, schedule="other")
    teller.hear(RUN.to_dict())
    teller.hear(other.to_dict())
    await await_until(lambda: len(heard) == 4)
    assert [(name, run) for name, run, _ in heard] == [
        ("plain", RUN),
        ("awaited", RUN),
        ("plain", other),
        ("awaited", other),
    ]
    here = threading.get_ident()
    assert [thread == here for *_, thread in heard] == [False, True, False, True]


async def test_a_run_told_otherwise_and_an_observer_that_raises_hinder_no_other():
    heard: list[Run] = []

    def broken(run):
        raise RuntimeError(run.schedule)

    teller = Teller([broken, heard.append], asyncio.get_running_loop())
    for told in ({}, {"schedule": "report"}, RUN.to_dict() | {"nominal": "soon"}, RUN.to_dict() | {"nominal": 5}):
        teller.hear(told)
    teller.hear(RUN.to_dict())
    await await_until(lambda: heard)
    assert heard == [RUN]
