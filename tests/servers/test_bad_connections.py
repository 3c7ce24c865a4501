"""Every way in which no connection comes about is one line that says what is wrong and what to try, and exit code 1.

From a command and from `taskq worker`, which says so within its deadline instead of trying for ever.
"""

import contextlib
import socket
import threading
import time

import pytest
import redis
from click.testing import CliRunner

from taskq.cli.main import cli
from taskq.connection.needs import rules
from tests.fleet import Fleet
from tests.servers.front import Front
from tests.waiting import wait_until

SHOP = """
from taskq import TaskQ
app = TaskQ(deadline="2s")

@app.task
async def add(a, b):
    return a + b
"""


@contextlib.contextmanager
def answering(words):
    """A program that isn't Redis: gives these bytes to whoever says something, or hangs up, or says nothing (None)."""
    door = socket.create_server(("127.0.0.1", 0))
    callers = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                caller, _ = door.accept()
                callers.append(caller)
                if words is not None:
                    caller.recv(1000)
                    caller.sendall(words)
                    caller.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield door.getsockname()[1]
    finally:
        door.shutdown(socket.SHUT_RDWR)
        door.close()
        for caller in callers:
            caller.close()


@pytest.fixture
def url(request, serve, namespace):
    """The URL of the row, with everything it needs to go wrong."""
    with contextlib.ExitStack() as stack:

        def port(words):
            return stack.enter_context(answering(words))

        def user(*given):
            server = serve()
            with redis.Redis(port=server.port) as admin:
                admin.execute_command("ACL", "SETUSER", "u", "on", ">p", *given)
            return f"redis://u:p@127.0.0.1:{server.port}"

        def primary():
            first = serve()
            return f"redis://127.0.0.1:{serve(replicaof=f'127.0.0.1 {first.port}').port}"

        def before_it():
            """TLS before a server that speaks none; its port."""
            made = request.getfixturevalue("certificates")
            return stack.enter_context(Front(serve().port, made)).port

        makers = {
            "refused": lambda: "redis://127.0.0.1:1",
            "no such name": lambda: "redis://no-such-host.invalid",
            "no such socket": lambda: "unix:///no/such/taskq.sock",
            "silent": lambda: f"redis://127.0.0.1:{port(None)}",
            "a web server": lambda: f"redis://127.0.0.1:{port(b'HTTP/1.1 400 Bad Request' + bytes(2))}",
            "hangs up": lambda: f"redis://127.0.0.1:{port(b'')}",
            "password missing": lambda: f"redis://127.0.0.1:{serve(requirepass='x').port}",
            "password wrong": lambda: f"redis://:y@127.0.0.1:{serve(requirepass='x').port}",
            "password unasked": lambda: f"redis://:y@127.0.0.1:{serve().port}",
            "user unknown": lambda: f"redis://u:p@127.0.0.1:{serve().port}",
            "keys forbidden": lambda: user("resetchannels", "&*", "~other:*", "+@all"),
            "command forbidden": lambda: user(*rules(namespace).replace("+hset ", "").split()),
            "no such database": lambda: f"redis://127.0.0.1:{serve().port}/99",
            "a replica": primary,
            "no cluster": lambda: f"redis+cluster://127.0.0.1:{serve().port}",
            "no sentinel": lambda: f"redis+sentinel://127.0.0.1:{serve().port}/mymaster",
            "plain to TLS": lambda: f"redis://127.0.0.1:{before_it()}",
            "TLS to plain": lambda: f"rediss://127.0.0.1:{serve().port}",
            "a stranger's certificate": lambda: f"rediss://localhost:{before_it()}",
            "too old": lambda: f"redis://127.0.0.1:{stack.enter_context(old())}",
        }
        yield makers[request.param]()


@contextlib.contextmanager
def old():
    """A server that knows no HELLO and says that it is a Redis 5, to every command."""
    info = b"# Server\r\nredis_version:5.0.14\r\n"
    door = socket.create_server(("127.0.0.1", 0))

    def talk(caller):
        with contextlib.suppress(OSError), caller, caller.makefile("rb") as said:
            while line := said.readline():
                words = [said.readline() and said.readline().strip().upper() for _ in range(int(line[1:]))]
                if words[0] == b"INFO":
                    caller.sendall(b"$%d\r\n%s\r\n" % (len(info), info))
                elif words[0] == b"PING":
                    caller.sendall(b"+PONG\r\n")
                elif words[0] in {b"CLIENT", b"MULTI"}:
                    caller.sendall(b"+OK\r\n")
                elif words[0] == b"EVAL":
                    caller.sendall(b":1\r\n")
                else:
                    caller.sendall(b"-ERR unknown command `%s`, with args beginning with:\r\n" % words[0])

    def serve():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(door.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield door.getsockname()[1]
    finally:
        door.shutdown(socket.SHUT_RDWR)
        door.close()


#: What is said, of the cause and of what to try.
TOLD = {
    "refused": ("no answer from the server at 127.0.0.1:1", "is it running"),
    "no such name": ("no-such-host.invalid:6379", "is the URL right"),
    "no such socket": ("/no/such/taskq.sock", "unixsocket"),
    "silent": ("no answer", "is it running"),
    "a web server": ("is no Redis", "check the URL"),
    "hangs up": ("hangs up", "rediss://"),
    "password missing": ("wants a password", "redis://:PASSWORD@HOST"),
    "password wrong": ("refuses the login", "%40"),
    "password unasked": ("no password for the default user", "leave it out"),
    "user unknown": ("refuses the login", "check user name"),
    "keys forbidden": ("forbids", "ACL"),
    "command forbidden": ("HSET", "ACL SETUSER u +hset"),
    "no such database": ("no database of that number", "databases"),
    "a replica": ("read-only replica", "name the primary"),
    "no cluster": ("is no cluster", "redis://"),
    "no sentinel": ("no sentinel", "redis://"),
    "plain to TLS": ("does it want TLS", "rediss://"),
    "TLS to plain": ("if not, write redis://", "TLS"),
    "a stranger's certificate": ("signed by nobody we trust", "ssl_ca_certs"),
}


@pytest.mark.parametrize("url, row", [(row, row) for row in TOLD], indirect=["url"])
def test_a_command_says_so(url, row, namespace, monkeypatch):
    monkeypatch.setenv("TASKQ_DEADLINE", "700ms")
    result = CliRunner().invoke(cli, ["dispatch", "--count", "1", "--url", url, "--namespace", namespace])
    assert result.stdout == ""
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1, result.stderr
    line = result.stderr.strip()
    for words in TOLD[row]:
        assert words in line


@pytest.fixture
def fleet(tmp_path, namespace):
    (tmp_path / "shop.py").write_text(SHOP)
    fleet = Fleet("shop", folder=tmp_path, environment={"TASKQ_NAMESPACE": namespace}, logs=tmp_path)
    yield fleet
    fleet.close()


#: A worker's commands are more, so it is told of more.
WORKER = TOLD | {
    "keys forbidden": ("forbids user u the keys", "ACL SETUSER u ~"),
    "no cluster": ("not in cluster mode", "redis://"),
    "too old": ("is Redis 5.0.14", "6.2 or newer"),
}


@pytest.mark.parametrize("url, row", [(row, row) for row in WORKER], indirect=["url"])
def test_a_worker_says_so_and_ends(fleet, url, row):
    begun = time.monotonic()
    node = fleet.begin("--url", url, "--log-level", "critical")
    assert node.wait(30) == 1
    assert time.monotonic() - begun < 20  # its deadline is 2 s; starting python takes the rest on a busy machine
    text = node.text()
    assert text.count("\n") == 1, text
    line = text.strip()
    for words in WORKER[row]:
        assert words in line


def test_a_node_that_was_up_goes_on_through_an_outage(fleet, serve, tmp_path, namespace):
    server = serve(tmp_path / "data", appendonly=True)
    node = fleet.begin("--url", server.url).until_ready()
    server.kill()
    wait_until(lambda: "Redis is away" in node.text())
    time.sleep(4)  # twice its deadline
    assert node.process.poll() is None
    server.start()
    result = CliRunner().invoke(
        cli,
        ["enqueue", "shop.add", "1", "2", "-q", "default", "--wait", "--url", server.url, "--namespace", namespace],
    )
    assert (result.exit_code, result.stdout.strip()) == (0, "3"), result.output


def test_the_password_is_never_shown(fleet, serve):
    node = fleet.begin("--url", f"redis://:geheim@127.0.0.1:{serve(requirepass='x').port}", "--log-level", "debug")
    assert node.wait(30) == 1
    assert "geheim" not in node.text()
