"""A whole node, as a process: signals, exit codes, its record, its workers' end with it, an outage of the server."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from taskq import commands, keys
from taskq.commands import NewJob
from taskq.embedded import Embedded
from taskq.node.channel import Hello
from taskq.node.run import strangers
from tests.waiting import wait_until

STAND_IN = str(Path(__file__).with_name("stand_in.py"))
CODE = """
import sys
from taskq import log
from taskq.node.options import NodeOptions
from taskq.node.run import run
log.setup()
app, stand_in, workers, grace_ms, burst = sys.argv[1:]
options = NodeOptions(workers=int(workers), grace_ms=int(grace_ms), burst=burst == "yes")
sys.exit(run(app, options, command=(sys.executable, stand_in)))
"""


class Node:
    """A node whose workers play a part."""

    def __init__(self, url, namespace, log, part, *, jobs=0, workers=1, grace_ms=5_000, burst="no"):
        self.log = log
        self._file = log.open("w")
        environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parents[2]}:{os.environ.get('PYTHONPATH', '')}"}
        argv = [f"{part}:{url},{namespace},{jobs}", STAND_IN, str(workers), str(grace_ms), burst]
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, *argv],
            stdout=self._file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self.pid = self.process.pid

    def workers(self):
        """The pids of its children that live."""
        found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(pid) for pid in found]

    def text(self):
        return self.log.read_text()

    def wait(self, timeout=30):
        return self.process.wait(timeout)

    def close(self):
        self.process.kill()
        self.process.wait()
        self._file.close()


@pytest.fixture
def start(server_url, namespace, tmp_path):
    """`start("good", jobs=2)` starts a node."""
    with contextlib.ExitStack() as stack:

        def start(part, *, url=server_url, **options):
            node = Node(url, namespace, tmp_path / f"{part}.log", part, **options)
            stack.callback(node.close)
            return node

        yield start


@pytest.fixture
def work(run, q):
    """`work(2)` enqueues so many jobs; `work.states()` says where they are."""

    class Work:
        ids = ()

        def __call__(self, count):
            self.ids = [f"default:j{n}" for n in range(count)]
            run(commands.enqueue(q, [NewJob(id, "", "t", "async", 0, "", "", {}) for id in self.ids]))

        def states(self):
            return {found[1][b"state"].decode() for found in run(commands.fetch(q, self.ids))}

        def running(self):
            return run(commands.counts(q)).running

    return Work()


def alive(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    return False


def nodes(run, namespace):
    return run(commands.nodes(keys.cluster(namespace))).nodes


def test_it_shows_itself_and_takes_its_leave(start, run, namespace):
    node = start("good", workers=2)
    (record,) = wait_until(lambda: nodes(run, namespace))
    assert (int(record["pid"]), record["workers"]) == (node.pid, "2")
    node.process.terminate()
    assert node.wait() == 0
    assert nodes(run, namespace) == []


def test_an_app_that_cannot_be_loaded_is_one_line_and_exit_1(start):
    node = start("broken")
    assert node.wait() == 1
    assert node.text().strip().splitlines()[-1] == "taskq: no module named 'shop'"
    assert "Traceback" not in node.text()


def test_queues_that_no_task_goes_to_are_told_with_what_may_be_meant():
    hello = Hello({}, [], {"a": {"queue": "email"}, "b": {"queue": "default"}})
    assert strangers(["email", "emial", "default", "x"], hello) == [("emial", "did you mean 'email'?"), ("x", "")]
    assert strangers([], hello) == []


def test_a_burst_ends_with_its_work(start):
    assert start("bursts", workers=2, burst="yes").wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_lets_jobs_finish(start, work, number):
    """Ctrl-C in a terminal, or an init system: children must not be cut."""
    work(2)
    node = start("finishes", jobs=2)
    wait_until(lambda: work.running() == 2)
    os.killpg(node.pid, number)
    for pid in node.workers():
        os.kill(pid, number)
    assert node.wait() == 0
    assert work.states() == {"completed"}


def test_leases_are_renewed_until_the_last_worker_is_gone(start, work, run, q):
    """The stand-in's lease is 4 s, and it finishes 5.5 s after the signal; its node would reap what has expired."""
    work(1)
    node = start("finishes-late", jobs=1, grace_ms=20_000)
    wait_until(lambda: work.running() == 1)
    node.process.terminate()
    assert node.wait() == 0
    assert work.states() == {"completed"}
    assert "lease expired" not in node.text()
    assert run(commands.fetch(q, work.ids))[0][1][b"attempt"] == b"1"


def test_when_the_grace_is_over_it_exits_1_and_the_lease_is_released(start, work):
    work(2)
    node = start("stubborn", jobs=2, grace_ms=300)
    wait_until(lambda: work.running() == 2)
    node.process.terminate()
    assert node.wait(3) == 1
    assert work.states() == {"available"}


def test_a_second_signal_ends_it_long_before_the_grace_is_over(start, work):
    work(1)
    node = start("stubborn", jobs=1, grace_ms=60_000)
    wait_until(lambda: work.running() == 1)
    node.process.terminate()
    wait_until(lambda: "draining" in node.text())
    node.process.terminate()
    assert node.wait() == 1
    assert work.states() == {"available"}


def test_workers_die_with_a_killed_node(start, run, namespace):
    node = start("good", workers=2)
    wait_until(lambda: nodes(run, namespace))
    workers = node.workers()
    assert len(workers) == 2
    node.process.kill()
    wait_until(lambda: not any(alive(pid) for pid in workers), 3)


def test_an_outage_is_two_lines_and_ends_by_itself(start, namespace, server_binary):
    with Embedded(port=0, binary=server_binary) as first:
        url, port = first.url, int(first.url.rpartition(":")[2].partition("/")[0])
        node = start("good", url=url)
        wait_until(lambda: "node started" in node.text())
        wait_until(lambda: "ready" in node.text() or node.workers())
    wait_until(lambda: "Redis is away" in node.text())
    with Embedded(port=port, binary=server_binary):
        wait_until(lambda: "Redis is back" in node.text())
        assert node.text().count("Redis is away") == 1
        assert "Traceback" not in node.text()
        node.process.terminate()
        assert node.wait() == 0


def test_started_while_nobody_is_there_it_ends_with_one_line(start):
    """A supervisor (systemd, compose, Kubernetes) starts it again."""
    node = start("good", url="redis://127.0.0.1:1/0")
    assert node.wait() == 1
    assert node.text().strip().splitlines()[-1].startswith("taskq: no answer from the server at 127.0.0.1:1")
    assert "Traceback" not in node.text()
