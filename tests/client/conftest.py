"""An app on a real server, and a worker's part played by hand."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from taskq import TaskQ, codec, commands, keys

_requests = itertools.count(1)


@pytest.fixture
def app(server_url: str, namespace: str) -> Iterator[TaskQ]:
    app = TaskQ(server_url, namespace=namespace)
    yield app
    app.close()


@pytest.fixture
async def on_loop(app: TaskQ) -> Any:
    """The app, for tests on a loop: its connections are closed with the test."""
    yield app
    await app.aclose()


class Hand:
    """Claims and finishes jobs as a worker would, one call at a time."""

    def __init__(self, run: Callable[..., Any], namespace: str) -> None:
        self._run = run
        self._namespace = namespace

    def claim(self, queue: str = "default", *, limit: int = 250) -> list[commands.Claimed]:
        claim = commands.claim(
            keys.queue(self._namespace, queue),
            worker="hand-1.0",
            request=next(_requests),
            lease_ms=8000,
            limit=limit,
            free={"async": limit, "thread": limit},
        )
        return self._run(claim).jobs

    def complete(self, job: commands.Claimed, result: Any = None) -> str:
        done = commands.Done(job.id, job.epoch, codec.encode_value(result))
        return self._run(commands.complete(self._q(job.id), worker="hand-1.0", done=[done]))[0]

    def fail(self, job: commands.Claimed, *, error: str = "", reason: str = "no", verb: str = "fail") -> str:
        failure = commands.Failure(job.id, job.epoch, verb, 60_000, error or '{"type":"ValueError"}', reason)
        return self._run(commands.fail(self._q(job.id), worker="hand-1.0", failures=[failure]))[0]

    def _q(self, id: str) -> keys.QueueKeys:
        return keys.queue(self._namespace, keys.queue_of(id))


@pytest.fixture
def hand(run: Callable[..., Any], namespace: str) -> Hand:
    return Hand(run, namespace)


@pytest.fixture
def enter(run: Callable[..., Any], namespace: str) -> Callable[..., None]:
    """`enter("n", capacity={...})` registers a node of the default queue."""

    def enter(node: str = "n", **more: Any) -> None:
        told = {"queues": ["default"], "tasks": ["work"], **more}
        fields = {"state": "active", "workers": 2, "hostname": "web", **{k: json.dumps(v) for k, v in told.items()}}
        run(commands.register_node(keys.cluster(namespace), node=node, ttl_ms=60_000, fields=fields))

    return enter
