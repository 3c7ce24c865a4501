"""What a worker holds: in the table from the claim until the answer, and what verdicts do to it."""

import asyncio
import json

import pytest
import structlog

from taskq import keys
from taskq.commands import Done
from taskq.node.table import Table, now_ms
from taskq.node.worker.desk import Desk
from taskq.node.worker.running import Stop
from tests.node.jobs import FakeKnown, claimed
from tests.waiting import await_until

Q = keys.queue("t", "default")


class Parts:
    """A desk whose jobs end when the test says so."""

    def __init__(self, table):
        self.table = table
        self.committed = []
        self.freed = []
        self.begun = []
        self.gate = asyncio.Event()
        self.desk = Desk(table, {b"t": FakeKnown(kill_after_ms=5_000)})
        self.desk.serve(
            run=self.begin,
            commit=lambda job, ending: self.committed.append(job),
            freed=lambda *each: self.freed.append(each),
        )

    def begin(self, jobs):
        for job in jobs:
            job.code = asyncio.create_task(self.run(job))

    async def run(self, job):
        self.begun.append(job)
        self.desk.begun(job)
        job.current = type("Current", (), {"cancel_requested": False})()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            job.ended = True
            self.desk.finish(job, None)
        else:
            job.ended = True
            self.desk.finish(job, Done(job.id, job.epoch, b""))

    async def start(self, *jobs, until_ms=None):
        self.desk.start(Q, list(jobs), now_ms() + 8_000 if until_ms is None else until_ms)
        in_table = [(entry.id, entry.epoch) for entry in self.table.read()]
        await asyncio.sleep(0)
        return in_table


@pytest.fixture
async def parts():
    table = Table.create(16)
    made = Parts(table)
    yield made
    made.gate.set()
    await asyncio.sleep(0)
    table.close()


async def test_jobs_stand_in_the_table_before_they_begin(parts):
    assert await parts.start(claimed("default:1", epoch=7), claimed("default:2", epoch=8)) == [
        ("default:1", 7),
        ("default:2", 8),
    ]
    assert not parts.desk.empty.is_set()


async def test_the_table_keeps_a_job_until_its_finish_is_answered(parts):
    await parts.start(claimed("default:1"))
    parts.gate.set()
    await asyncio.sleep(0)
    assert parts.freed == [("async", "default")]
    assert len(parts.table.read()) == 1
    parts.desk.settled(parts.committed[0], "ok")
    assert parts.table.read() == []
    assert parts.desk.empty.is_set()


async def test_an_answer_that_comes_twice_strikes_out_nothing_else(parts):
    await parts.start(claimed("default:1"))
    parts.gate.set()
    await asyncio.sleep(0)
    parts.desk.settled(parts.committed[0], "ok")
    parts.gate.clear()
    await parts.start(claimed("default:2"))
    parts.desk.settled(parts.committed[0], "ok")
    assert [entry.id for entry in parts.table.read()] == ["default:2"]


async def test_the_hard_timeout_stands_in_the_table(parts):
    before = now_ms()
    await parts.start(claimed("default:1"))
    assert before + 5_000 <= parts.table.read()[0].hard_deadline <= now_ms() + 5_000


async def test_verdicts_name_id_and_epoch(parts):
    await parts.start(claimed("default:1", epoch=7))
    parts.desk.verdict("cancel", "default:1", 6)
    assert parts.begun[0].stop is None
    parts.desk.verdict("cancel", "default:1", 7)
    assert parts.begun[0].stop is Stop.CANCEL


async def test_a_lost_job_is_stopped_and_struck_out(parts):
    await parts.start(claimed("default:1", epoch=7))
    parts.desk.verdict("lost", "default:1", 7)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert parts.table.read() == []
    assert parts.committed == []


async def test_lost_is_ignored_while_the_finish_is_on_its_way(parts):
    await parts.start(claimed("default:1", epoch=7))
    parts.gate.set()
    await asyncio.sleep(0)
    parts.desk.verdict("lost", "default:1", 7)
    assert parts.begun[0].stop is None
    assert len(parts.table.read()) == 1


async def test_force_on_a_thread_asks_for_the_workers_end(parts):
    await parts.start(claimed("default:1", epoch=7, **{"class": "thread"}))
    parts.desk.verdict("force", "default:1", 7)
    assert parts.begun[0].current.cancel_requested
    assert parts.table.read()[0].hard_deadline <= now_ms()
    assert parts.table.read()[0].threaded


async def test_a_closed_desk_begins_nothing(parts):
    parts.desk.close()
    await parts.start(claimed("default:1"))
    assert parts.begun[0].stop is Stop.SHUTDOWN


async def test_without_a_node_jobs_stop_at_their_leases_end(parts):
    await parts.start(claimed("default:1"), until_ms=now_ms() + 60_000)
    await parts.start(claimed("default:2"), until_ms=now_ms() - 1)
    parts.desk.check_leases()
    assert [job.stop for job in parts.begun] == [None, Stop.LOST]


async def test_a_job_whose_lease_is_lost_is_told_in_the_log(parts):
    await parts.start(claimed("default:1", epoch=7))
    with structlog.testing.capture_logs() as lines:
        parts.desk.verdict("lost", "default:1", 7)
        await await_until(parts.desk.empty.is_set)
    assert lines == [{"event": "lease lost", "log_level": "warning", "job_id": "default:1", "epoch": 7}]


def suspect(id, epoch, attempt=3, error="JobCrashed"):
    return claimed(id, epoch=epoch, attempt=attempt, **{f"error:{attempt - 1}": json.dumps({"type": error})})


async def test_jobs_whose_worker_died_twice_begin_one_at_a_time(parts):
    await parts.start(suspect("default:1", 1), suspect("default:2", 2), claimed("default:3", epoch=3))
    assert {job.id for job in parts.begun} == {"default:1", "default:3"}
    assert {entry.id: entry.begun for entry in parts.table.read()} == {
        "default:1": True,
        "default:2": False,
        "default:3": True,
    }
    parts.gate.set()
    await asyncio.sleep(0)
    assert len(parts.begun) == 2, "the first has ended, but Redis doesn't know yet"
    parts.desk.settled(next(job for job in parts.committed if job.id == "default:1"), "ok")
    await asyncio.sleep(0)
    assert len(parts.begun) == 2, "what the first may have left behind hasn't had its moment"
    await await_until(lambda: parts.begun[-1].id == "default:2")


async def test_one_that_has_run_for_a_while_keeps_the_next_no_longer(parts, monkeypatch):
    monkeypatch.setattr("taskq.node.worker.suspects.PROOF_S", 0.01)
    await parts.start(suspect("default:1", 1), suspect("default:2", 2))
    await await_until(lambda: len(parts.begun) == 2)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(suspect("default:9", 9, attempt=2), id="its first death"),
        pytest.param(suspect("default:9", 9, error="ValueError"), id="a failure of its own"),
        pytest.param(claimed("default:9", epoch=9, attempt=1), id="fresh"),
    ],
)
async def test_others_begin_at_once(parts, job):
    await parts.start(suspect("default:1", 1), job)
    assert len(parts.begun) == 2


@pytest.mark.parametrize("stored", ["0", "-1"])
async def test_a_maximum_that_is_not_positive_means_three(parts, stored):
    job = claimed("default:2", epoch=2, attempt=2, max_attempts=stored, **{"error:1": '{"type":"JobCrashed"}'})
    await parts.start(suspect("default:1", 1), job)
    assert len(parts.begun) == 2


async def test_the_last_attempt_is_made_alone_however_few_there_are(parts):
    last = claimed("default:2", epoch=2, attempt=2, max_attempts="2", **{"error:1": '{"type":"JobCrashed"}'})
    await parts.start(suspect("default:1", 1), last)
    assert len(parts.begun) == 1


@pytest.mark.parametrize("how", ["close", "halt_all", "lost"])
async def test_who_waits_for_a_turn_is_let_go_when_told_to_stop(parts, how):
    await parts.start(suspect("default:1", 1), suspect("default:2", 2))
    if how == "close":
        parts.desk.close()
    elif how == "halt_all":
        parts.desk.halt_all(Stop.SHUTDOWN)
    else:
        parts.desk.verdict("lost", "default:2", 2)
    await asyncio.sleep(0)
    stopped = next(job for job in parts.begun if job.id == "default:2")
    assert stopped.stop is (Stop.LOST if how == "lost" else Stop.SHUTDOWN)


async def test_a_job_whose_code_has_ended_is_not_overdue_while_its_finish_waits(parts):
    await parts.start(claimed("default:1"))
    assert parts.table.read()[0].begun
    parts.gate.set()
    await asyncio.sleep(0)
    assert [entry.runs for entry in parts.table.read()] == [False]
