"""A worker of another version than its node, started anew after an upgrade: it says so, and dies of no traceback."""

import os
import socket
import subprocess
import sys

import pytest

from taskq.node import channel
from taskq.node.channel import Failed
from taskq.node.table import Table
from taskq.node.tether import Ends


@pytest.fixture
def table():
    made = Table.create(1)
    yield made
    made.close()


def test_a_table_of_another_version_is_told_to_the_node(table):
    table._words[0] += 1  # the node's layout is another
    mine, theirs = socket.socketpair()
    read, write = os.pipe()
    ends = Ends(theirs.fileno(), table.fd, read, os.getpid())
    with mine, theirs:
        worker = subprocess.run(
            [sys.executable, "-m", "taskq.node.worker", "shop", *ends.to_argv()],
            pass_fds=(theirs.fileno(), table.fd, read),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        told = channel.hear(mine)
    os.close(read)
    os.close(write)
    assert worker.returncode == 1
    assert worker.stderr == ""
    assert isinstance(told, Failed)
    assert "restart the node" in told.error
