"""The table a worker shares with its node: what one side writes, the other reads, also from another process."""

import os
import subprocess
import sys

import pytest

from taskq.node.table import ID_BYTES, Entry, Table, now_ms


@pytest.fixture
def sides():
    """The same table seen by its node and by its worker."""
    node = Table.create(4)
    worker = Table.attach(os.dup(node.fd))
    yield node, worker
    worker.close()
    node.close()


def test_the_node_reads_what_the_worker_fills(sides):
    node, worker = sides
    slot = worker.fill(17, "email:a", threaded=True)
    assert node.read() == [Entry(slot, 17, "email:a", 0, threaded=True, begun=False)]
    other = worker.fill(2**60, "email:" + "x" * 64)
    assert node.read()[1] == Entry(other, 2**60, "email:" + "x" * 64, 0, begun=False)


def test_the_node_sees_when_a_jobs_code_begins_and_ends(sides):
    node, worker = sides
    slot = worker.fill(17, "email:a", threaded=True)
    worker.begin(slot, 5_000)
    assert node.read() == [Entry(slot, 17, "email:a", 5_000, threaded=True, begun=True)]
    assert node.read()[0].runs
    worker.end(slot)
    assert node.read() == [Entry(slot, 17, "email:a", 5_000, threaded=True, begun=True, ended=True)]
    assert not node.read()[0].runs
    worker.free(slot)
    worker.fill(18, "email:b")
    assert node.read() == [Entry(slot, 18, "email:b", 0, begun=False)]


def test_a_freed_slot_is_empty_and_used_again(sides):
    node, worker = sides
    slot = worker.fill(1, "q:a-long-one-first")
    worker.free(slot)
    assert node.read() == []
    assert worker.room == 4
    assert worker.fill(2, "q:b") == slot
    assert [entry.id for entry in node.read()] == ["q:b"]


def test_a_full_table_and_a_long_id_are_refused_without_a_trace(sides):
    node, worker = sides
    with pytest.raises(ValueError, match="at most"):
        worker.fill(1, "x" * (ID_BYTES + 1))
    for number in range(4):
        worker.fill(number + 1, f"q:{number}")
    assert worker.room == 0
    with pytest.raises(RuntimeError, match="full"):
        worker.fill(9, "q:9")
    assert len(node.read()) == 4


def test_a_torn_slot_is_ignored(sides):
    """A worker killed in the middle of a fill has not begun that job."""
    node, worker = sides
    worker.fill(1, "q:whole")
    torn = worker.fill(2, "q:torn")
    worker._words[8 + torn * 22] += 1
    assert [entry.id for entry in node.read()] == ["q:whole"]


def test_code_that_will_not_begin_has_not_begun(sides):
    node, worker = sides
    slot = worker.fill(7, "q:a", until_ms=0)
    worker.begin(slot, hard_deadline_ms=5)
    worker.take_back(slot)
    (entry,) = node.read()
    assert (entry.begun, entry.ended, entry.hard_deadline) == (False, False, 0)


def test_the_lease_end_is_the_claims_until_the_node_has_renewed(sides):
    node, worker = sides
    slot = worker.fill(5, "q:a", until_ms=1_000)
    assert worker.until(slot) == 1_000
    node.set_until(slot, 5, 3_000)
    assert worker.until(slot) == 3_000


def test_a_renewal_of_the_slots_last_job_says_nothing_about_its_next(sides):
    node, worker = sides
    slot = worker.fill(5, "q:a", until_ms=1_000)
    worker.free(slot)
    assert worker.fill(6, "q:b", until_ms=2_000) == slot
    node.set_until(slot, 5, 9_000)
    assert worker.until(slot) == 2_000


def test_beats_age(sides):
    node, worker = sides
    assert node.thread_age_ms() == 0
    worker._words[2] = worker._words[3] = now_ms() - 700
    node._words[4] = now_ms() - 900
    assert 700 <= node.worker_age_ms() < 5_000
    assert 700 <= node.thread_age_ms() < 5_000
    assert 900 <= worker.node_age_ms() < 5_000
    worker.beat()
    worker.beat_thread()
    node.beat_node()
    assert node.worker_age_ms() < 700
    assert node.thread_age_ms() < 700
    assert worker.node_age_ms() < 700


def test_a_killed_workers_table_stays_readable():
    """The mapping is the node's too: the worker's death takes nothing away."""
    table = Table.create(8)
    code = (
        "import os, signal, sys\n"
        "from taskq.node.table import Table\n"
        "t = Table.attach(int(sys.argv[1]))\n"
        "t.begin(t.fill(7, 'q:left'), 123)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(table.fd)], pass_fds=[table.fd], check=False)
    assert ended.returncode == -9
    assert [(entry.id, entry.epoch, entry.hard_deadline) for entry in table.read()] == [("q:left", 7, 123)]
    table.close()


def test_reading_while_the_worker_writes_never_shows_half_a_job():
    """Each id carries its epoch: a reader that sees both sees them agree."""
    table = Table.create(4)
    code = (
        "import sys\n"
        "from taskq.node.table import Table\n"
        "t = Table.attach(int(sys.argv[1]))\n"
        "for n in range(1, 60001):\n"
        "    s = t.fill(n, 'q:' + str(n) * (1 + n % 9))\n"
        "    t.free(s)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(table.fd)], pass_fds=[table.fd]) as worker:
        seen = 0
        while worker.poll() is None:
            for entry in table.read():
                seen += 1
                assert entry.id == "q:" + str(entry.epoch) * (1 + entry.epoch % 9)
    assert worker.returncode == 0
    assert seen > 0
    table.close()


def test_a_descriptor_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other"
    path.write_bytes(b"\0" * 4096)
    with path.open("r+b") as file, pytest.raises(ValueError, match="not a table"):
        Table.attach(file.fileno())
