"""What a call's deadline bounds: all of the call, whatever the server or the way to it does; but not its turn here."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from taskq import commands, connection
from taskq.commands import Command
from taskq.connection.patience import Patience
from taskq.errors import Unavailable
from taskq.scripts import Script
from tests.chaos.proxy import Proxy


@pytest.fixture
def proxy(embedded: Any) -> Iterator[Proxy]:
    proxy = Proxy(embedded.port)
    yield proxy
    proxy.close()


def job(id: str) -> commands.NewJob:
    return commands.NewJob(id, "", "t", "async", 0, "", "", {})


# --- a way that swallows everything


@pytest.mark.parametrize("known", [True, False], ids=["a connection is open", "none is open"])
@pytest.mark.parametrize("own", [True, False], ids=["the call's own deadline", "the settings' deadline"])
@pytest.mark.parametrize("many", [False, True], ids=["one", "several"])
async def test_a_call_ends_with_its_deadline(proxy, settings, q, known, own, many):  # noqa: PLR0917 (fixtures)
    settings = replace(settings, url=proxy.url, deadline_ms=20_000 if own else 1_000)
    server, aserver = connection.connect(settings), connection.connect_async(settings)
    if known:
        await asyncio.to_thread(server.ping)
        await aserver.ping()
    proxy.mode = "hole"
    deadline_s = 1.0 if own else None
    began = time.monotonic()
    calls = [commands.counts(q), commands.counts(q)]
    if many:
        sync = asyncio.to_thread(server.run_many, calls, deadline_s=deadline_s)
        ours: Any = aserver.run_many(calls, deadline_s=deadline_s)
    else:
        sync = asyncio.to_thread(server.run, calls[0], deadline_s=deadline_s)
        ours = aserver.run(calls[0], deadline_s=deadline_s)
    ended: list[float] = []

    async def timed(call: Any) -> None:
        with pytest.raises(Unavailable):
            await call
        ended.append(time.monotonic() - began)

    await asyncio.gather(timed(sync), timed(ours))
    assert all(0.9 <= each < 2 for each in ended), ended
    await aserver.aclose()
    server.close()


# --- how long a call may be sent again


async def test_jobs_are_sent_again_for_ten_seconds_at_most_whatever_the_deadline(proxy, settings, q, monkeypatch):
    """Here for one, to save time. Later the record of the first sending may be gone, and they would run twice."""
    assert commands.enqueue(q, [job("default:a")]).resend_s == 10
    monkeypatch.setattr(sys.modules["taskq.commands.enqueue"], "RESEND_S", 1.0)
    settings = replace(settings, url=proxy.url, deadline_ms=3_600_000)
    server, aserver = connection.connect(settings), connection.connect_async(settings)
    for many in (False, True):
        batch = [commands.enqueue(q, [job("default:a")])] * 2
        if many:
            calls: Any = [lambda some: asyncio.to_thread(server.run_many, some), aserver.run_many]
        else:
            calls = [lambda some: asyncio.to_thread(server.run, some[0]), lambda some: aserver.run(some[0])]
        for call in calls:
            proxy.mode = "pass"
            await asyncio.to_thread(server.ping)
            await aserver.ping()
            proxy.mode = "hole"
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await call(batch)
            assert 0.9 < time.monotonic() - began < 2.5
    await aserver.aclose()
    server.close()


def test_the_time_to_send_again_runs_from_the_first_sending():
    patience = Patience(100, resend_s=10)
    assert patience.left_s() > 99, "a server that isn't there yet may be waited for"
    patience.sending()
    first = patience.left_s()
    assert 9 < first <= 10
    patience.sending()
    assert patience.left_s() <= first


# --- turns


SOURCE = "for i = 1, 500000 do end return 1"
BUSY = Script("busy", SOURCE, hashlib.sha1(SOURCE.encode(), usedforsecurity=False).hexdigest(), (), ())


async def test_a_turn_may_be_waited_for_longer_than_the_deadline_while_others_get_theirs(settings, q, monkeypatch):
    """All of these together take a few deadlines; each of them much less."""
    monkeypatch.setattr("taskq.connection.lines.CONNECTIONS_MAX", 3)
    aserver = connection.connect_async(replace(settings, deadline_ms=600))
    busy = Command(BUSY, (q.prefix,), [], int)
    began = time.monotonic()
    assert await aserver.run_many([busy] * 10) == [1] * 10
    one_s = (time.monotonic() - began) / 10
    for more in (1, 2, 4, 8):  # a busy machine may have been slow at the first ten
        began = time.monotonic()
        told = await asyncio.gather(*[aserver.run(busy) for _ in range(int(2.0 * more / one_s))])
        assert set(told) == {1}
        if time.monotonic() - began > 1.2:
            break
    else:
        pytest.fail("it never took several deadlines")
    await aserver.aclose()


@pytest.mark.timeout(120)
async def test_a_loop_that_is_held_up_is_not_the_servers_fault(settings, q):
    """Thousands of calls that begin at once take longer to begin than one may take.

    A busy machine may be slower than a short deadline by itself, so a longer one is tried too: held up for as many
    deadlines, calls to which that time is counted fail with each of them.
    """
    for deadline_s in (0.4, 1.6, 4.0):
        aserver = connection.connect_async(replace(settings, deadline_ms=int(deadline_s * 1000)))
        await aserver.ping()
        calls = [asyncio.ensure_future(aserver.run(commands.counts(q))) for _ in range(200)]
        await asyncio.sleep(0)
        time.sleep(3.75 * deadline_s)  # noqa: ASYNC251 (that is the point)
        found = await asyncio.gather(*calls, return_exceptions=True)
        await aserver.aclose()
        late = [each for each in found if isinstance(each, Unavailable)]
        assert {each.available for each in found if each not in late} <= {0}
        if not late:
            return
    pytest.fail(f"{len(late)} of {len(found)} calls: {late[0]}")


async def test_who_waits_for_a_turn_is_told_when_nobody_gets_one(proxy, settings, q):
    aserver = connection.connect_async(replace(settings, url=proxy.url, deadline_ms=1500))
    await aserver.ping()
    proxy.mode = "hole"
    began = time.monotonic()
    told = await asyncio.gather(*[aserver.run(commands.counts(q)) for _ in range(500)], return_exceptions=True)
    assert time.monotonic() - began < 8  # one after the other they would take minutes
    assert {type(each) for each in told} == {Unavailable}
    assert any("32 calls to" in str(each) and "is it running" in str(each) for each in told)
    proxy.mode = "pass"
    assert (await aserver.run(commands.counts(q), deadline_s=10)).available == 0, "no place was lost"
    assert len(await asyncio.gather(*[aserver.run(commands.counts(q)) for _ in range(100)])) == 100
    await aserver.aclose()


async def test_a_call_with_a_deadline_of_its_own_waits_no_longer_for_its_turn(proxy, settings, q):
    aserver = connection.connect_async(replace(settings, url=proxy.url))
    await aserver.ping()
    proxy.mode = "hole"
    others = [asyncio.ensure_future(aserver.run(commands.counts(q))) for _ in range(40)]
    await asyncio.sleep(0)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        await aserver.run(commands.counts(q), deadline_s=0.4)
    assert time.monotonic() - began < 1.5
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await aserver.aclose()
