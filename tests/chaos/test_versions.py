"""SER-01, SER-13: an old and a new worker beside each other; what only the new one knows is done by it."""

from __future__ import annotations

import msgpack
import pytest

from taskq import JobFailed, commands
from taskq.commands import NewJob
from tests.chaos.conftest import FOLDER
from tests.fleet import Fleet
from tests.ledger import VARIABLE
from tests.waiting import wait_until


@pytest.fixture
def old(server_url, namespace, tmp_path, look):
    """A fleet of nodes that run the app as it was."""
    environment = {"TASKQ_URL": server_url, "TASKQ_NAMESPACE": namespace, VARIABLE: look.ledger.url}
    (tmp_path / "old").mkdir()
    fleet = Fleet("oldshop", folder=FOLDER, environment=environment, logs=tmp_path / "old")
    yield fleet
    fleet.close()
    assert [fault for node in fleet.nodes for fault in node.faults()] == [], fleet.text()


def served_meanwhile(shop, look):
    """Jobs that the old node knows run at once."""
    jobs = shop.app.enqueue_many([shop.quick.call() for _ in range(20)])
    look.until(jobs, "completed", 3)


@pytest.mark.timeout(120)
def test_what_only_new_code_knows_waits_for_it(fleet, old, shop, look):
    old.start()
    jobs = shop.app.enqueue_many([shop.nap.call(0) for _ in range(5)])
    look.until(jobs, "scheduled")
    served_meanwhile(shop, look)
    fleet.start("-w", "2")
    look.until(jobs, "completed", 40)  # who claims first has them; the old one comes later by a second
    assert all(len(look.ledger.starts(job.id)) == 1 for job in jobs)
    assert {look.record(job).attempt for job in jobs} == {1}, "being handed back costs no attempt"


def test_an_unknown_task_that_stays_unknown_fails(old, shop, look):
    old.start(TASKQ_UNKNOWN_GRACE="2s")
    jobs = shop.app.enqueue_many([shop.nap.call(0) for _ in range(5)])
    served_meanwhile(shop, look)
    with pytest.raises(JobFailed, match=r"no task 'shop\.nap'"):
        jobs[0].result(timeout=15)
    look.until(jobs, "failed", 5)
    text = old.text()
    assert 5 <= text.count("handed back") <= 15, "no hot loop"


def test_what_another_version_wrote_stops_nobody(fleet, shop, look):
    """Fields nobody knows are kept; an extension of a newer version waits for it; damage fails; the others run."""
    fleet.start()
    newer = msgpack.packb([[msgpack.ExtType(99, b"new")], {}])
    rows = {
        "more": {"colour": "blue", "unique": "x", "limits": "[1]"},
        "newer": {"payload": newer},
        "torn": {"payload": b"\x92\x91"},
        "junk": {"attempt": "NaN"},
        "wrong": {"max_attempts": "many", "timeout": "-5"},
    }
    made = [NewJob(f"default:{name}", "", "shop.quick", "async", 0, "", "", fields) for name, fields in rows.items()]
    look.run(commands.enqueue(look.q, made))
    served_meanwhile(shop, look)
    states = wait_until(lambda: _settled(look, rows), 10)
    assert states == {"more": "completed", "newer": "scheduled", "torn": "failed", "junk": "failed", "wrong": "failed"}
    told = {name: look.run(commands.fetch(look.q, [f"default:{name}"]))[0][1] for name in rows}
    assert all(told[name][b"reason"].startswith(b"BadRecord: ") for name in ("torn", "junk", "wrong"))
    assert told["more"][b"colour"] == b"blue"
    look.run(commands.cancel(look.q, ["default:newer"]))
    look.run(commands.clear(look.q, states=["failed"]))


def _settled(look, rows):
    """Their states, once none of them waits or runs."""
    states = _states(look, rows)
    return None if {"available", "running"} & set(states.values()) else states


def _states(look, rows):
    found = look.run(commands.fetch(look.q, [f"default:{name}" for name in rows]))
    return {name: each[1][b"state"].decode() for name, each in zip(rows, found, strict=True)}
