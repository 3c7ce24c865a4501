"""`app.lock`: with threads, tasks and forked children in this process."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
import warnings

import pytest

from taskq import LockLost, LockTimeout, keys
from tests.waiting import await_until, wait_until


@pytest.fixture
def c(namespace):
    return keys.cluster(namespace)


def waiting(app, name="l"):
    return sum(each["waiting"] for each in app.inspector.locks(name=name)["data"])


def test_with(app):
    lock = app.lock("l")
    with lock as same:
        assert same is lock
        assert (lock.held, lock.lost) == (True, False)
        assert 0 < lock.remaining() <= 30
        lock.check()
        first = lock.fence
        (row,) = app.inspector.locks()["data"]
        assert (row["name"], row["fence"], row["job"], row["waiting"]) == ("l", first, None, 0)
        assert row["owner"].endswith(f":{os.getpid()}")
        assert row["acquired_at"] < row["ends_at"]
    assert (lock.held, lock.lost, lock.remaining(), lock.fence) == (False, False, 0, first)
    assert app.inspector.locks() == {"data": [], "total": 0, "limit": 50, "offset": 0}
    with lock:
        assert lock.fence > first


async def test_async_with_on_the_same_object(on_loop):
    lock = on_loop.lock("l", ttl="10s", wait="5s")
    async with lock as same:
        assert same is lock
        assert lock.held
        assert (await on_loop.inspector.alocks(name="l"))["data"][0]["fence"] == lock.fence
        with pytest.raises(LockTimeout):
            await on_loop.lock("l", wait=0).aacquire()
    assert await on_loop.lock("l", wait=0).aacquire()


@pytest.mark.parametrize(
    "options, rule",
    [
        ({"ttl": 0}, "ttl=0 is out of range: a lock lasts 100ms to 1d"),
        ({"ttl": -1}, "ttl=-1 is negative"),
        ({"ttl": 0.0001}, "ttl=0.0001 is out of range"),
        ({"ttl": float("nan")}, "ttl=nan is out of range"),
        ({"ttl": 10**15}, "ttl=1000000000000000 is out of range"),
        ({"ttl": "2d"}, "ttl='2d' is out of range"),
        ({"ttl": None}, "ttl=None is no duration"),
        ({"wait": -1}, "wait=-1 is negative"),
        ({"wait": "soon"}, "wait='soon' is no duration"),
        ({"name": ""}, "name='' is no lock's name: use 1 to 200 printable"),
        ({"name": "x" * 201}, "is no lock's name"),
        ({"name": "a\n"}, "is no lock's name"),
        ({"name": " a"}, "is no lock's name"),
        ({"name": 7}, "name=7 is no lock's name"),
    ],
)
def test_what_cannot_be_is_refused_by_name(app, options, rule):
    with pytest.raises(ValueError, match=rule):
        app.lock(**{"name": "l", **options})
    with app.lock("l") as lock:
        if "ttl" in options and options["ttl"] is not None:
            with pytest.raises(ValueError, match=rule):
                lock.extend(options["ttl"])
            assert lock.held


def test_who_does_not_get_it_is_told_who_has_it(app):
    with app.lock("l"):
        with pytest.raises(LockTimeout, match=rf"'l' was not free: \S+:{os.getpid()} holds it"):
            app.lock("l", wait=0).acquire()
        with pytest.raises(TimeoutError, match="within 300ms"), app.lock("l", wait=0.3):
            pytest.fail("two hold it")
        assert waiting(app) == 0


def test_an_object_has_one_acquisition(app):
    lock = app.lock("l")
    with pytest.raises(RuntimeError, match="no fence before"):
        assert not lock.fence
    with pytest.raises(LockLost, match="is not held"):
        lock.check()
    assert not lock.release()
    with lock, pytest.raises(RuntimeError, match="make another"):
        lock.acquire()


async def test_a_loop_is_not_blocked_by_waiting(app):
    with pytest.raises(RuntimeError, match="use `async with`"), app.lock("l"):
        pass


# --- the line


def test_threads_get_it_in_the_order_they_came(app):
    order, threads = [], []

    def work(n):
        with app.lock("l"):
            order.append(n)

    with app.lock("l"):
        for n in range(5):
            threads.append(threading.Thread(target=work, args=(n,)))
            threads[-1].start()
            wait_until(lambda n=n: waiting(app) == n + 1)
    for thread in threads:
        thread.join()
    assert order == list(range(5))


async def test_so_do_tasks_and_those_that_are_cancelled_leave(on_loop, raw, c):
    order = []

    async def work(n):
        async with on_loop.lock("l", wait=30):
            order.append(n)

    async with on_loop.lock("l"):
        tasks = []
        for n in range(5):
            tasks.append(asyncio.create_task(work(n)))
            await await_until(lambda n=n: raw.zcard(c.line("l")) == n + 1)
        for n in (0, 2):
            tasks[n].cancel()
        assert [type(each) for each in await asyncio.gather(tasks[0], tasks[2], return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 2
        assert raw.zcard(c.line("l")) == raw.hlen(c.present("l")) == 3
    await asyncio.gather(tasks[1], tasks[3], tasks[4])
    assert order == [1, 3, 4]
    assert not raw.exists(c.line("l"), c.present("l"))


def test_an_interrupted_wait_leaves_the_line(app, raw, c):
    with app.lock("l"):
        # As a terminal does, to the thread that waits: raised in another one it would be heard with the next turn only.
        threading.Timer(0.5, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            app.lock("l").acquire()
        assert not raw.exists(c.line("l"), c.present("l"))
    app.lock("l", wait=0).acquire()


# --- while it is held


def test_it_is_renewed_while_held_and_no_longer(app, raw, c):
    with app.lock("l", ttl=0.5) as lock:
        fence = lock.fence
        time.sleep(1.5)
        assert lock.held
        with pytest.raises(LockTimeout):
            app.lock("l", wait=0).acquire()
    assert app.lock("l", wait=0).acquire().fence > fence
    wait_until(lambda: not any(each.name == "taskq-locks" for each in threading.enumerate()))


async def test_it_is_renewed_while_the_loop_is_blocked(on_loop):
    async with on_loop.lock("l", ttl=0.5) as lock:
        time.sleep(1.5)  # noqa: ASYNC251 (what is tested)
        lock.check()


def test_one_that_nobody_refers_to_any_more_runs_out(app):
    lock = app.lock("l", ttl=0.5).acquire()
    assert lock.held
    del lock
    gc.collect()
    with app.lock("l", wait=10) as other:
        assert other.held


def test_extend(app, raw, c):
    with app.lock("l", ttl=1) as lock:
        lock.extend("1h")
        assert 3500 < lock.remaining() <= 3600
        lock.extend()
        assert lock.remaining() > 3500, "it is never shortened"
        assert app.client.release_lock("l", fence=lock.fence)
        with pytest.raises(LockLost, match=r"'l' \(fence \d+\) was lost: the server says"):
            lock.extend()
        assert lock.lost
        assert not lock.release()


async def test_the_async_twins_say_the_same(on_loop):
    lock = await on_loop.lock("l", ttl=5).aacquire()
    await lock.aextend("1m")
    assert lock.remaining() > 50
    assert [await lock.arelease() for _ in range(2)] == [True, False]
    assert not await on_loop.aclient.release_lock("l", fence=lock.fence)
    async with on_loop.lock("l", ttl=0.5) as lock:
        assert await on_loop.aclient.release_lock("l", fence=lock.fence)
        await await_until(lambda: lock.lost)
        assert not await lock.arelease()
    with pytest.raises(LockLost):
        async with on_loop.lock("l", ttl=5) as lock:
            await on_loop.aclient.release_lock("l", fence=lock.fence)
    with pytest.raises(LockLost):
        await lock.aextend()


def test_a_second_release_says_so_and_changes_nothing(app):
    lock = app.lock("l").acquire()
    assert lock.release()
    with app.lock("l") as other:
        assert not lock.release()
        other.extend()
    with app.lock("l") as lock:
        assert lock.release()
    assert not lock.lost, "a block whose lock was given back within it ends well"


def test_a_lock_taken_away_is_told_at_the_end_of_the_block(app):
    with pytest.raises(LockLost, match="was lost"), app.lock("l", ttl=0.6) as lock:  # noqa: PT012 (the block is what is tested)
        app.client.release_lock("l", fence=lock.fence)
        with app.lock("l", wait=0) as other:
            assert other.fence > lock.fence
            wait_until(lambda: lock.lost)
            with pytest.raises(LockLost, match="the server says"):
                lock.check()
            assert other.held


@pytest.mark.parametrize("everything", [False, True])
def test_a_lock_that_vanished_is_told_too(app, raw, c, everything):
    """Its record was deleted, or the whole server emptied, as by a failover to a replica that lacked it."""
    with pytest.raises(LockLost, match="was lost"), app.lock("l", ttl=0.6) as lock:  # noqa: PT012 (the block is what is tested)
        first = lock.fence
        if everything:
            raw.flushall()
        else:
            raw.delete(c.lock("l"))
        with app.lock("l", wait=0) as other:
            assert other.fence > first
            wait_until(lambda: lock.lost)
            assert other.held


def test_an_error_of_the_block_goes_first(app):
    with pytest.raises(ZeroDivisionError) as caught, app.lock("l") as lock:  # noqa: PT012 (the block is what is tested)
        app.client.release_lock("l", fence=lock.fence)
        1 / 0  # noqa: B018 (it raises)
    assert "'l'" in caught.value.__notes__[0]


def test_a_forked_child_neither_renews_nor_releases_its_parents_lock(app):
    with app.lock("l", ttl=1) as lock:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads; this child runs none
            child = os.fork()
        if child == 0:
            code = 1
            try:
                with pytest.raises(LockLost, match="forked from holds it"):
                    lock.check()
                lock.__exit__(None, None, None)
                with pytest.raises(LockTimeout):
                    app.lock("l", wait=0).acquire()
                with app.lock("other", ttl=0.3) as own:
                    time.sleep(0.6)
                    own.check()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        lock.extend()


def test_locks_of_a_million_orders_leave_nothing_for_long(app, raw, c):
    for n in range(20):
        with app.lock(f"order:{n}"):
            pass
    found = {key.decode() for key in raw.scan_iter(c.prefix + "*")}
    assert found == {c.fixed("fence"), *(c.lock(f"order:{n}") for n in range(20))}
    assert all(0 < raw.pttl(c.lock(f"order:{n}")) <= 60_000 for n in range(20))


def test_in_a_job_the_holder_is_named(app, monkeypatch):
    from taskq.locks import lock as module

    monkeypatch.setattr(module, "_job", lambda: "email:1")
    with app.lock("l"):
        with pytest.raises(LockTimeout, match="holds it for job email:1"):
            app.lock("l", wait=0).acquire()
        assert app.inspector.locks()["data"][0]["job"] == "email:1"


def test_names_may_hold_anything_that_can_be_printed(app):
    for name in ("a b", "größe", "{x}:y", "*", "l" * 200, "[red]x[/red]"):
        with app.lock(name):
            assert [each["name"] for each in app.inspector.locks()["data"]] == [name]
