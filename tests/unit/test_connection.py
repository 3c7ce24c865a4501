"""The way to a real server: what a call bears, and what it says when it can't. Both faces, where there are two."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from taskq import commands, connection, keys
from taskq.commands import Command
from taskq.embedded import Embedded
from taskq.errors import ServerUnsupported, TaskQError, Unavailable
from taskq.scripts import Script
from taskq.settings import Settings
from tests.waiting import await_until, wait_until

IDS = [f"default:{n}" for n in range(20)]


def job(id: str) -> commands.NewJob:
    return commands.NewJob(id, "", "t", "async", 0, "", "", {"payload": id.encode()})


def says(q: Any, id: str) -> Command[bytes]:
    """A call whose answer tells which call it belongs to."""
    return commands.fetch(q, [id]).then(lambda found: found[0][1][b"payload"] if found[0] else b"")


@pytest.fixture
def jobs(run: Any, q: Any) -> None:
    run(commands.enqueue(q, [job(id) for id in IDS]))


@pytest.fixture
async def aserver(settings: Settings) -> Any:
    server = connection.connect_async(settings)
    yield server
    await server.aclose()


def lines_of(raw: Any, name: str = "taskq:client") -> list[dict[str, str]]:
    return [line for line in raw.client_list() if line["name"] == name]


# --- scripts the server has forgotten


@pytest.mark.usefixtures("jobs")
def test_a_forgotten_script_is_sent_again(server, raw, q):
    raw.script_flush()
    assert server.run(says(q, IDS[0])) == b"default:0"
    raw.script_flush()
    many = [says(q, id) for id in IDS] + [commands.counts(q)]
    assert server.run_many(many)[:-1] == [id.encode() for id in IDS]


@pytest.mark.usefixtures("jobs")
async def test_a_forgotten_script_is_sent_again_async(aserver, raw, q):
    raw.script_flush()
    assert await aserver.run(says(q, IDS[0])) == b"default:0"
    raw.script_flush()
    assert await aserver.run_many([says(q, id) for id in IDS]) == [id.encode() for id in IDS]


@pytest.mark.usefixtures("jobs")
async def test_scripts_forgotten_under_load_cost_no_call(server, aserver, raw, q):
    async def calls() -> list[bytes]:
        return [await aserver.run(says(q, id)) for id in IDS for _ in range(5)]

    flushing = True

    def flush() -> None:
        while flushing:
            raw.script_flush()

    flusher = threading.Thread(target=flush)
    flusher.start()
    try:
        for told in await asyncio.gather(*[calls() for _ in range(4)]):
            assert told == [id.encode() for id in IDS for _ in range(5)]
        assert [server.run(says(q, id)) for id in IDS] == [id.encode() for id in IDS]
    finally:
        flushing = False
        await asyncio.to_thread(flusher.join)


# --- broken connections


@contextmanager
def killing(raw: Any) -> Iterator[None]:
    """Hangs up every connection of ours again and again."""
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.005):
            for line in lines_of(raw):
                raw.client_kill_filter(_id=line["id"])

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        stop.set()
        killer.join()


@pytest.mark.usefixtures("jobs")
def test_calls_outlive_their_connections(server, raw, q):
    with killing(raw):
        for id in IDS * 3:
            assert server.run(says(q, id)) == id.encode()
        assert server.run_many([says(q, id) for id in IDS]) == [id.encode() for id in IDS]


@pytest.mark.usefixtures("jobs")
async def test_calls_outlive_their_connections_async(aserver, raw, q):
    async def calls() -> None:
        for id in IDS * 2:
            assert await aserver.run(says(q, id)) == id.encode()

    with killing(raw):
        await asyncio.gather(*[calls() for _ in range(5)])
        assert await aserver.run_many([says(q, id) for id in IDS]) == [id.encode() for id in IDS]


def test_a_call_that_is_sent_again_adds_nothing_twice(server, raw, q):
    with killing(raw):
        for n in range(100):
            assert server.run(commands.enqueue(q, [job(f"default:k{n}")])) == ["available"]
    assert server.run(commands.counts(q)).available == 100


@pytest.mark.usefixtures("jobs")
def test_an_idle_connection_that_died_is_noticed_by_the_next_call_only(server, raw, q):
    server.run(says(q, IDS[0]))
    raw.client_kill_filter(_id=lines_of(raw)[0]["id"])
    assert server.run(says(q, IDS[1])) == b"default:1"
    assert len(lines_of(raw)) == 1


# --- cancelled calls


@pytest.mark.usefixtures("jobs")
async def test_a_cancelled_call_gives_nobody_its_answer(aserver, q):
    """Its connection has an answer on the way that nobody may read as the answer to another call."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)

    async def caller() -> int:
        cancelled = 0
        for _ in range(60):
            id = chance.choice(IDS)
            many = chance.random() < 0.3
            call = asyncio.ensure_future(
                aserver.run_many([says(q, id), says(q, id)]) if many else aserver.run(says(q, id))
            )
            if chance.random() < 0.5:
                for _ in range(chance.randrange(8)):
                    await asyncio.sleep(0)
                await asyncio.sleep(chance.choice([0, 0, 0.0002, 0.001]))
                call.cancel()
            try:
                told = await call
            except asyncio.CancelledError:
                cancelled += 1
            else:
                assert told == ([id.encode()] * 2 if many else id.encode()), f"seed {seed}"
        return cancelled

    assert sum(await asyncio.gather(*[caller() for _ in range(20)])) > 50


async def test_cancelled_calls_hold_no_place(aserver, raw, q):
    """Far more calls are cancelled than there are connections; the next call finds one."""
    with _paused(raw, 300):
        calls = [asyncio.ensure_future(aserver.run(commands.counts(q))) for _ in range(100)]
        await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    assert (await aserver.run(commands.counts(q))).available == 0
    assert len(lines_of(raw)) <= 2


@contextmanager
def _paused(raw: Any, ms: int) -> Iterator[None]:
    raw.client_pause(ms)
    yield
    raw.client_unpause()


# --- a server that can't just now


class Grumpy:
    """A server that answers a few commands with an error, then as usual."""

    def __init__(self, error: str, times: int) -> None:
        self._error, self.left = error.encode(), times
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._door.getsockname()[1]}/0"
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with caller:
            while said := caller.recv(65536):
                if b"PING" not in said:
                    caller.sendall(b"+OK\r\n" * said.count(b"CLIENT"))
                elif self.left > 0:
                    self.left -= 1
                    caller.sendall(b"-" + self._error + b"\r\n")
                else:
                    caller.sendall(b"+PONG\r\n")


@pytest.fixture
def grumpy() -> Iterator[Any]:
    made: list[Grumpy] = []

    def make(error: str, times: int) -> Settings:
        made.append(Grumpy(error, times))
        return Settings(url=made[-1].url, deadline_ms=1500)

    yield make
    for each in made:
        each.close()


#: What a server says when it can't serve just now, and a word of what we say when that doesn't pass.
PASSING = {
    "LOADING server is loading the dataset in memory": "loading",
    "READONLY You can't write against a read only replica.": "read-only replica",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": "replica",
    "CLUSTERDOWN The cluster is down": "cluster",
    "TRYAGAIN Multiple keys request during rehashing of slot": "rehashing",
    "BUSY server is busy running a script.": "script",
}


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.split()[0])
async def test_what_passes_is_waited_for(grumpy, error):
    server = connection.connect(grumpy(error, 3))
    assert await asyncio.to_thread(server.ping)
    server.close()
    aserver = connection.connect_async(grumpy(error, 3))
    assert await aserver.ping()
    await aserver.aclose()


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.split()[0])
def test_what_does_not_pass_within_the_deadline_is_said(grumpy, error):
    server = connection.connect(grumpy(error, 10**6))
    began = time.monotonic()
    with pytest.raises(Unavailable, match=PASSING[error]):
        server.ping(deadline_s=0.3)
    assert time.monotonic() - began < 1.5
    server.close()


async def test_a_server_that_became_a_replica_and_primary_again_is_used_again(server_binary, namespace):
    q = keys.queue(namespace, "default")
    with Embedded(port=0, binary=server_binary) as primary, Embedded(port=0, binary=server_binary) as demoted:
        server = connection.connect(Settings(url=demoted.url, namespace=namespace))
        aserver = connection.connect_async(Settings(url=demoted.url, namespace=namespace))
        assert server.run(commands.enqueue(q, [job("default:a")])) == ["available"]
        with connection_to(demoted) as raw:
            raw.replicaof("127.0.0.1", primary.port)
            with pytest.raises(Unavailable, match="read-only replica"):
                await asyncio.to_thread(server.run, commands.enqueue(q, [job("default:b")]), deadline_s=0.3)
            calls = asyncio.gather(
                asyncio.to_thread(server.run, commands.enqueue(q, [job("default:c")])),
                aserver.run(commands.enqueue(q, [job("default:d")])),
                aserver.run_many([commands.enqueue(q, [job("default:e")]), commands.enqueue(q, [job("default:f")])]),
            )
            await asyncio.sleep(0.1)
            assert not calls.done()
            raw.replicaof("NO", "ONE")
            assert await calls == [["available"], ["available"], [["available"], ["available"]]]
        server.close()
        await aserver.aclose()


@contextmanager
def connection_to(server: Embedded) -> Iterator[Any]:
    import redis

    with redis.Redis.from_url(server.url) as client:
        yield client


async def test_a_server_that_is_restarted_is_found_again(server_binary):
    with Embedded(port=0, binary=server_binary) as embedded:
        server = connection.connect(Settings(url=embedded.url))
        aserver = connection.connect_async(Settings(url=embedded.url))
        assert server.ping()
        assert await aserver.ping()
        embedded.kill()
        calls = asyncio.gather(asyncio.to_thread(server.ping), aserver.ping())
        await asyncio.sleep(0.1)
        await asyncio.to_thread(embedded.start)
        assert await calls == [True, True]
        server.close()
        await aserver.aclose()


# --- one that never will


async def test_a_wrong_password_is_said_at_once(server_binary):
    with Embedded(port=0, binary=server_binary, config={"requirepass": "right"}) as embedded:
        for password in ("", ":wrong@"):
            settings = Settings(url=embedded.url.replace("//", f"//{password}"), deadline_ms=30_000)
            server, aserver = connection.connect(settings), connection.connect_async(settings)
            began = time.monotonic()
            with pytest.raises(Unavailable, match="password"):
                server.ping()
            with pytest.raises(Unavailable, match="password"):
                await aserver.ping()
            assert time.monotonic() - began < 5
            assert "wrong" not in server.where
        right = connection.connect(Settings(url=embedded.url.replace("//", "//:right@")))
        assert right.ping()
        right.close()


async def test_nobody_there_is_said_within_the_deadline():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings = Settings(url=f"redis://127.0.0.1:{taken.getsockname()[1]}/0", deadline_ms=400)
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
            connection.connect(settings).ping()
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
            await connection.connect_async(settings).ping()
        assert time.monotonic() - began < 2.5


async def test_a_server_that_accepts_and_says_nothing_is_given_up_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings(url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", deadline_ms=400)
        began = time.monotonic()
        with pytest.raises(Unavailable):
            connection.connect(settings).ping()
        with pytest.raises(Unavailable):
            await connection.connect_async(settings).ping()
        assert time.monotonic() - began < 2.5


async def test_a_call_with_a_shorter_deadline_is_given_up_then():
    """A keeper that renews every second must not hang for the five that a client may wait."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings(url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", deadline_ms=20_000)
        server = connection.connect_async(settings)
        began = time.monotonic()
        with pytest.raises(Unavailable):
            await server.ping(deadline_s=0.3)
        assert time.monotonic() - began < 3
        await server.aclose()


def test_a_command_the_server_lacks_is_told_as_such(server, q):
    script = Script("x", "return redis.call('NOSUCHCOMMAND')", "0" * 40, (), ())
    with pytest.raises(ServerUnsupported):
        server.run(Command(script, (q.prefix, q.fixed("meta")), [], lambda reply: reply))


def test_an_error_of_a_script_is_no_reason_to_try_again(server, q):
    script = Script("x", "return error('so it goes')", "0" * 40, (), ())
    began = time.monotonic()
    with pytest.raises(TaskQError, match="so it goes"):
        server.run(Command(script, (q.prefix, q.fixed("meta")), [], lambda reply: reply))
    assert time.monotonic() - began < 2


def test_in_a_pipeline_an_error_is_raised_after_all_were_done(server, q):
    bad = commands.clear(q, states=["running"])
    with pytest.raises(TaskQError, match="cannot be"):
        server.run_many([commands.pause(q), bad, commands.enqueue(q, [job("default:a")])])
    found = server.run(commands.counts(q))
    assert found.paused
    server.run(commands.resume(q))


# --- forks, threads, loops


@pytest.mark.usefixtures("jobs")
def test_after_a_fork_both_sides_have_connections_of_their_own(server, q, raw):
    assert server.run(says(q, IDS[0])) == b"default:0"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        told = b"broken"
        try:
            answers = [server.run(says(q, id)) for id in IDS * 20]
            told = b"right" if answers == [id.encode() for id in IDS * 20] else b"mixed"
        finally:
            os.write(write, told)
            os._exit(0)
    os.close(write)
    assert [server.run(says(q, id)) for id in reversed(IDS * 20)] == [id.encode() for id in reversed(IDS * 20)]
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"right"
    os.waitpid(child, 0)
    assert server.run(says(q, IDS[3])) == b"default:3", "the child's exit closed nothing of ours"
    assert len(lines_of(raw)) == 1


@pytest.mark.usefixtures("jobs")
def test_after_a_fork_a_loop_in_the_child_has_connections_of_its_own(settings, q):
    aserver = connection.connect_async(settings)

    async def ask() -> list[bytes]:
        return [await aserver.run(says(q, id)) for id in IDS]

    async def here() -> list[bytes]:
        before = await ask()
        child = os.fork()
        if child == 0:
            told = 1
            try:
                asyncio.events._set_running_loop(None)
                told = 0 if asyncio.run(ask()) == before else 1
            finally:
                os._exit(told)
        after = await ask()
        await aserver.aclose()
        return [*before, *after, str(child).encode()]

    *told, child = asyncio.run(here())
    assert told == [id.encode() for id in IDS * 2]
    assert os.waitstatus_to_exitcode(os.waitpid(int(child), 0)[1]) == 0


@pytest.mark.usefixtures("jobs")
def test_many_threads_share_a_handle(server, q, raw):
    told: list[bytes] = []

    def ask() -> None:
        told.extend(server.run(says(q, id)) for id in IDS)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == sorted(id.encode() for id in IDS * 8)
    assert len(lines_of(raw)) <= 9


@pytest.mark.usefixtures("jobs")
def test_several_loops_share_a_handle(settings, q, raw):
    aserver = connection.connect_async(settings, role="loops")

    async def ask() -> list[bytes]:
        try:
            return await aserver.run_many([says(q, id) for id in IDS])
        finally:
            await aserver.aclose()

    assert [asyncio.run(ask()) for _ in range(2)] == [[id.encode() for id in IDS]] * 2
    answers: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: answers.append(asyncio.run(ask()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[id.encode() for id in IDS]] * 3
    wait_until(lambda: not lines_of(raw, "taskq:loops"))


async def test_no_more_connections_than_allowed_and_every_call_gets_its_turn(aserver, raw, q):
    found = await asyncio.gather(*[aserver.run(commands.counts(q)) for _ in range(300)])
    assert len(found) == 300
    assert len(lines_of(raw)) <= 33


async def test_a_closed_handle_opens_again(settings, raw, q):
    server, aserver = connection.connect(settings), connection.connect_async(settings)
    for _ in range(2):
        server.run(commands.counts(q))
        await aserver.run(commands.counts(q))
        server.close()
        await aserver.aclose()
        await await_until(lambda: not lines_of(raw))


# --- markers and notifications


async def test_a_marker_is_taken_once(aserver, q):
    key = q.wake("async")
    assert await aserver.block([key], 0.05) is None
    await aserver.run(commands.wake(q, ["async"]))
    assert await aserver.block([key, q.wake("thread")], 5) == key
    assert await aserver.block([key], 0.05) is None


async def test_a_wait_can_be_ended_early(aserver, q):
    key = q.wake("async")
    began = time.monotonic()
    waiting = asyncio.ensure_future(aserver.block([key], 30))
    while not waiting.done():
        await aserver.unblock()
        await asyncio.sleep(0.01)
    assert await waiting is None
    assert time.monotonic() - began < 10
    await aserver.run(commands.wake(q, ["async"]))
    assert await aserver.block([key], 5) == key


async def test_a_cancelled_wait_takes_no_marker(aserver, q, raw):
    key = q.wake("async")
    waiting = asyncio.ensure_future(aserver.block([key], 30))
    await await_until(lambda: any(line["cmd"] == "bzpopmin" for line in lines_of(raw)))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await await_until(lambda: not any(line["cmd"] == "bzpopmin" for line in lines_of(raw)))
    await aserver.run(commands.wake(q, ["async"]))
    assert raw.zcard(key) == 1
    assert await aserver.block([key], 5) == key


async def test_a_wait_whose_connection_broke_says_so(aserver, q, raw):
    waiting = asyncio.ensure_future(aserver.block([q.wake("async")], 30))
    await await_until(lambda: any(line["cmd"] == "bzpopmin" for line in lines_of(raw)))
    for line in lines_of(raw):
        raw.client_kill_filter(_id=line["id"])
    with pytest.raises(Unavailable):
        await waiting
    assert await aserver.block([q.wake("async")], 0.05) is None


async def test_what_is_published_is_heard_by_both_faces(server, aserver, q, raw):
    channel = q.done("default:a")
    async with aserver.listen(channel) as ear, aserver.listen(channel) as other:
        with server.listen(channel) as listening:
            assert not await ear.wait(0.01)
            raw.publish(channel, "completed")
            assert await ear.wait(5)
            assert await other.wait(5)
            assert await asyncio.to_thread(listening.wait, 5)
            assert not listening.wait(0.01)
    await await_until(lambda: raw.pubsub_channels() == [], what="everybody stopped listening")


# --- what a connection is like, whatever the library's defaults are


@pytest.mark.parametrize("face", ["sync", "async"])
async def test_every_option_we_depend_on_is_set(settings, raw, face):
    if face == "sync":
        server = connection.connect(settings, role="probe")
        assert server.ping()
        (line,) = [each for idle in server._idle.values() for each in idle]
        sock = line._sock
        close = server.close
    else:
        aserver = connection.connect_async(settings, role="probe")
        assert await aserver.ping()
        (line,) = [each for idle in aserver._lines().idle.values() for each in idle]
        sock = line._writer.get_extra_info("socket")
        close = None
    assert line.socket_connect_timeout == 2.0
    assert line.health_check_interval == 30
    assert int(line.protocol) == 2
    assert line.retry.get_retries() == 0, "we repeat, within the deadline; the library doesn't"
    assert not line.encoder.decode_responses
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    if hasattr(socket, "TCP_KEEPIDLE"):
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [30, 5, 3]
    (seen,) = lines_of(raw, "taskq:probe")
    assert seen.get("lib-name", "") == ""
    assert seen.get("resp", "2") == "2"
    if close is not None:
        assert 4 < line.socket_timeout <= 5.0
        close()
    else:
        await aserver.aclose()


async def test_a_wait_may_last_longer_than_any_read(aserver, q):
    """Or an idle worker would see an error every few seconds."""
    await aserver.block([q.wake("async")], 0.01)
    (wait,) = aserver._lines().waits.values()
    assert wait.connection.socket_timeout is None
    assert wait.connection.health_check_interval == 0
