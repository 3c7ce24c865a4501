"""A worker never outlives its node, whatever it is doing, and a stop signal meant for the node doesn't end it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from taskq.node.tether import Ends
from tests.waiting import wait_until

PARENT = textwrap.dedent(
    """
    import os, socket, subprocess, sys, time
    from taskq.node.table import Table
    from taskq.node.tether import Ends
    table = Table.create(1)
    mine, theirs = socket.socketpair()
    read, write = os.pipe()
    ends = Ends(theirs.fileno(), table.fd, read, os.getpid() + int(sys.argv[2]))
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1], *ends.to_argv()],
                             pass_fds=(theirs.fileno(), table.fd, read), start_new_session=True)
    os.close(read)
    theirs.close()
    print(child.pid, flush=True)
    print(mine.recv(1).decode(), flush=True)
    time.sleep(600)
    """
)
TIED = textwrap.dedent(
    """
    import ctypes, os, signal, sys, time
    from taskq.node.table import Table
    from taskq.node.tether import Ends, tie, watch
    ends = Ends.from_argv(sys.argv[1:])
    tie(ends.parent_pid)
    table = Table.attach(ends.table_fd)
    """
)
WATCHED = TIED + "watch(ends.pipe_fd, table.beat_thread)\nends.socket().send(b'x')\n"
HOLDS_GIL = TIED + "ends.socket().send(b'x')\nctypes.PyDLL(None).sleep(600)\n"
PIPE_ONLY = WATCHED.replace("tie(ends.parent_pid)", "") + "time.sleep(600)\n"


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def parent_of(code, wrong_parent=0):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, code, str(wrong_parent)], stdout=subprocess.PIPE, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        try:
            yield parent, child
        finally:
            parent.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(WATCHED + "time.sleep(600)\n", id="idle"),
        pytest.param(HOLDS_GIL, id="holding the GIL in C"),
        pytest.param(PIPE_ONLY, id="by the pipe alone"),
    ],
)
def test_a_worker_dies_with_its_node(code):
    with parent_of(code) as (parent, child):
        assert parent.stdout.readline() == "x\n"
        parent.kill()
        wait_until(lambda: not alive(child), 5)


def test_what_user_code_started_in_its_group_dies_too():
    code = WATCHED.replace(
        "ends.socket().send(b'x')",
        "import subprocess\np = subprocess.Popen(['sleep', '600'])\n"
        "table.fill(p.pid, 'x')\nends.socket().send(b'x')\nos.write(1, b'%d\\n' % p.pid)",
    ).replace("tie(ends.parent_pid)", "")
    with parent_of(code + "time.sleep(600)\n") as (parent, child):
        lines = parent.stdout.readline() + parent.stdout.readline()  # two processes write them
        grandchild = int(re.search(r"\d+", lines)[0])
        parent.kill()
        wait_until(lambda: not alive(child) and not alive(grandchild), 5)


def test_a_parent_that_died_before_the_tie_is_noticed():
    with parent_of(WATCHED + "time.sleep(600)\n", wrong_parent=1) as (_, child):
        wait_until(lambda: not alive(child), 5)


def test_stop_signals_do_nothing_but_reach_what_the_worker_starts():
    code = WATCHED.replace(
        "ends.socket().send(b'x')",
        "import subprocess\np = subprocess.Popen(['sleep', '600'])\n"
        "for each in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):\n    os.kill(os.getpid(), each)\np.terminate()\n"
        "code = p.wait(10)\nends.socket().send(b'y' if code == -signal.SIGTERM else b'n')",
    )
    with parent_of(code + "time.sleep(600)\n") as (parent, _):
        assert parent.stdout.readline() == "y\n"


def test_started_by_hand_it_says_who_starts_it():
    with pytest.raises(ValueError, match="taskq worker APP"):
        Ends.from_argv(["shop:app"])
