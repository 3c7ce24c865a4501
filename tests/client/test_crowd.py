"""CONN-17: more calls at once than a loop holds connections. They wait for their turn, within what they have."""

from __future__ import annotations

import asyncio

from taskq import TaskQ, Unavailable
from taskq.connection.lines import CONNECTIONS_MAX
from tests.waiting import await_until

CROWD = 200


async def test_more_calls_than_connections_wait_for_their_turn(on_loop, raw):
    jobs = await asyncio.gather(*(on_loop.by_name("x", queue="q").aenqueue(number) for number in range(CROWD)))
    shown = await asyncio.gather(*(job.arefresh() for job in jobs))
    assert [each.id for each in shown] == [job.id for job in jobs]
    assert (await on_loop.queue("q").acounts()).available == CROWD
    ours = [client for client in raw.client_list() if client["name"].startswith("taskq")]
    assert CROWD > CONNECTIONS_MAX >= len(ours)


async def test_no_answer_at_all_is_told(server_url, namespace, raw):
    """The server holds all calls: those that have a connection and those that wait for one are told alike."""
    app = TaskQ(server_url, namespace=namespace, deadline=1)
    await app.aping()
    raw.execute_command("CLIENT", "PAUSE", 4000, "ALL")
    calls = [asyncio.ensure_future(app.queue("q").acounts()) for _ in range(CROWD)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(each) for each in outcomes} == {Unavailable}
    raw.execute_command("CLIENT", "UNPAUSE")

    async def answered():
        try:
            return await app.aping()
        except Unavailable:
            return False

    await await_until(answered)
    await app.aclose()
