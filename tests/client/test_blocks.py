"""A client as a block closes what it opened, also when the block fails; and a claimed job is shown in a line."""

from __future__ import annotations

import pytest
import redis

from taskq.client import AsyncClient, Client
from tests.waiting import wait_until


def connections(url: str) -> set[str]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return {each["id"] for each in client.client_list()} - {str(client.client_id())}


def test_a_block_closes_its_connections(server_url, namespace):
    before = connections(server_url)

    def work():
        with Client(server_url, namespace=namespace) as client:
            assert client.ping()
            opened.update(connections(server_url) - before)
            raise ZeroDivisionError

    opened = set()
    with pytest.raises(ZeroDivisionError):
        work()
    assert opened
    assert wait_until(lambda: not connections(server_url) & opened)


async def test_an_async_block_closes_its_connections(server_url, namespace):
    before = connections(server_url)

    async def work():
        async with AsyncClient(server_url, namespace=namespace) as client:
            assert await client.ping()
            opened.update(connections(server_url) - before)
            raise ZeroDivisionError

    opened = set()
    with pytest.raises(ZeroDivisionError):
        await work()
    assert opened
    assert wait_until(lambda: not connections(server_url) & opened)


@pytest.mark.parametrize("start, state", [(True, "running"), (False, "offered")])
def test_a_claimed_job_is_shown_in_a_line(app, start, state):
    job = app.by_name("render", queue="video").enqueue("x" * 10_000)
    (mine,) = app.client.claim("video", worker="ext", start=start)
    assert repr(mine) == f"ClaimedJob(id={job.id!r}, task='render', epoch={mine.epoch}, attempt=1, state={state!r})"
