"""`taskq dev`: a server, a worker that follows the sources, and the user's program; all end together."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

import pytest

from taskq import TaskQ
from taskq.cli import sources
from tests.family import children, gone
from tests.waiting import wait_until

# Waits for results of a worker that is being started again: the call is made until the new code answers.
PROGRAM = """
import sys, time
from pathlib import Path
from taskq import TaskQ

app = TaskQ()
add = app.by_name("shop.add", queue="default")
print(add.enqueue(7, 5).result(timeout=20), flush=True)
shop = Path("shop.py")
shop.write_text(shop.read_text().replace("return a + b", "return a * b"))
until = time.monotonic() + 30
while add.enqueue(7, 5).result(timeout=20) != 35:
    assert time.monotonic() < until
print("reloaded", flush=True)
sys.exit(7)
"""


def test_the_program_finds_the_server_the_worker_follows_the_sources_and_all_end_with_it(start, folder):
    (folder / "program.py").write_text(PROGRAM)
    process = start("dev", "shop", "--grace", "1", "--", sys.executable, "program.py")
    out, told = process.communicate(timeout=60)
    assert out.splitlines() == ["12", "reloaded"], told
    assert process.returncode == 7
    assert "shop.py changed: the worker starts again" in told


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are read from /proc")
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_whatever_ends_it_leaves_nothing_behind(start, number, code):
    process = start("dev", "shop", "--", sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
    assert process.stdout.readline() == "up\n"
    # A server, a node with its worker, and the program.
    family = wait_until(lambda: len(found := children(process.pid)) >= 4 and found, timeout=20)
    process.send_signal(number)
    process.wait(timeout=30)
    assert process.returncode == code
    wait_until(lambda: all(gone(pid) for pid in family))


def test_the_app_may_stand_in_the_environment(start):
    process = start("dev", "--", sys.executable, "-c", "import os; print(os.environ['TASKQ_URL'])", TASKQ_APP="shop")
    out, told = process.communicate(timeout=40)
    assert process.returncode == 0, told
    assert out.startswith("redis://127.0.0.1:")


def test_an_app_that_cant_be_loaded_waits_for_the_next_change(start, folder):
    good = (folder / "shop.py").read_text()
    (folder / "shop.py").write_text("import nothing_of_this_name\n")
    process = start("dev", "shop")
    lines = iter(process.stderr)
    line = next(line for line in lines if "starts again when a source file changes" in line)
    (folder / "shop.py").write_text(good)
    line = next(line for line in lines if "export TASKQ_URL" in line or '"node started"' in line)
    assert "node started" in line
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_with_a_url_that_server_is_used(start, server_url, namespace):
    process = start(
        *("dev", "shop", "--url", server_url, "--namespace", namespace, "--"),
        *(sys.executable, "-c", "import taskq; print(taskq.TaskQ().ping())"),
    )
    out, told = process.communicate(timeout=40)
    assert (process.returncode, out) == (0, "True\n"), told
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TASKQ_NAMESPACE", namespace)
        TaskQ(server_url).close()


def test_all_that_a_node_is_asked_for_is_handed_on(start, server_url, namespace, app):
    words = ("--label", "zone=a", "--label", "gpu=yes", "--capacity", "gpu=2", "--metadata", "by=me")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start("dev", "shop", "--url", server_url, "--namespace", namespace, *words, "--health-port", str(port), "-c", "7")
    (node,) = wait_until(lambda: app.nodes.list()["data"], timeout=40)
    assert (node["labels"], node["metadata"]) == ({"zone": "a", "gpu": "yes"}, {"by": "me"})
    assert (node["capacity"], node["port"], node["concurrency"]["async"]) == ({"gpu": 2}, port, 7)


def test_a_change_is_a_new_a_gone_or_a_different_file(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    kept, edited, gone = write("kept.py", "1"), write("a/edited.py", "1"), write("gone.py", "1")
    for name in ("notes.txt", ".hidden/x.py", "__pycache__/x.py", "env/lib/x.py", "node_modules/x.py"):
        write(name, "1")
    write("env/pyvenv.cfg", "")
    before = sources.stamp(tmp_path)
    assert sorted(before) == sorted([kept, edited, gone])
    assert sources.changed(before, sources.stamp(tmp_path)) == []
    write("a/edited.py", "22")
    new = write("new.py", "1")
    Path(gone).unlink()
    for name in ("notes.txt", ".hidden/x.py", "env/lib/x.py"):
        write(name, "22")
    assert sources.changed(before, sources.stamp(tmp_path)) == sorted([edited, gone, new])


def test_a_folder_that_is_gone_has_no_sources(tmp_path):
    assert sources.stamp(tmp_path / "nowhere") == {}
