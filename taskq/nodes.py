"""`app.nodes`: who serves this namespace, and telling them to drain, to go on, to stop."""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from taskq import commands, keys, taken
from taskq.asked import check_page, checked_text, spelled
from taskq.client import AsyncClient, Client
from taskq.commands import Command
from taskq.connection import run, run_async, run_many, run_many_async
from taskq.errors import NodeNotFound, did_you_mean, shown
from taskq.presence import node_shown

EVERY = "*"
_NOBODY = " "  # no node has such an id; an empty one would ask for all of them


class Place(Protocol):
    """What is needed of an app."""

    @property
    def client(self) -> Client:
        """The way to the server for threads."""

    @property
    def aclient(self) -> AsyncClient:
        """The way to the server for coroutines."""


class Nodes:
    """The nodes of a namespace. Every method has an a-twin.

    A node is a dict as JSON has it: `id hostname host port pid version state health leader queues tasks workers
    concurrency capacity labels metadata incarnation created_at last_seen stats`. `state` is active, draining or dead;
    `health` healthy (the last beat is younger than 15 s), warning (than 30 s) or unhealthy; `stats` has `slots` and
    `busy`, both again by executor kind in `executors`, and `running`: job, task and started_at of at most 250;
    `queues` and `workers` where these are scaled: within which bounds. `get` adds `resources` for a node that has any:
    how much of each is used and free.

    Orders reach a node within a second or two. Each says how things shall be, so giving it twice does no harm; that it
    was done is seen in the node's `state`.
    """

    def __init__(self, app: Place) -> None:
        self._app = app

    def list(self, *, all: bool = False, limit: int = 1000, offset: int = 0) -> dict[str, Any]:
        """A page `{data, total, limit, offset}` of nodes, by id.

        Args:
            all: with those that died within the last five minutes.
            limit: nodes a page, 1 to 1000.
            offset: how many to skip.

        Raises:
            TypeError, ValueError: no whole number, or one out of range.
            Unavailable: Redis gave no answer in time.
        """
        server = self._app.client.server
        found, leader = run_many(server, self._look(all=all, limit=limit, offset=offset))
        return _page(found, limit, offset, leader=leader.node)

    async def alist(self, *, all: bool = False, limit: int = 1000, offset: int = 0) -> dict[str, Any]:
        """As `list`, awaited."""
        server = self._app.aclient.server
        found, leader = await run_many_async(server, self._look(all=all, limit=limit, offset=offset))
        return _page(found, limit, offset, leader=leader.node)

    def get(self, id: str) -> dict[str, Any]:
        """One node, whether it lives or not.

        Raises:
            NodeNotFound: there is none with this id.
            TypeError: the id is no text.
            Unavailable: Redis gave no answer in time.
        """
        server = self._app.client.server
        found, leader = run_many(server, self._look(node=_one(id)))
        if not found.nodes:
            raise _none(id, run(server, self._look()[0]))
        node = node_shown(found.nodes[0], found.now_ms, leader=leader.node)
        return _with_amounts(node, run_many(server, taken.reads_of(server.settings.namespace, node)))

    async def aget(self, id: str) -> dict[str, Any]:
        """As `get`, awaited."""
        server = self._app.aclient.server
        found, leader = await run_many_async(server, self._look(node=_one(id)))
        if not found.nodes:
            raise _none(id, await run_async(server, self._look()[0]))
        node = node_shown(found.nodes[0], found.now_ms, leader=leader.node)
        return _with_amounts(node, await run_many_async(server, taken.reads_of(server.settings.namespace, node)))

    def drain(self, id: str) -> None:
        """Have a node claim nothing more: what runs is finished, the node stays and takes no part in elections.
        While all of them drain no schedule fires.

        Args:
            id: a node's id, or "*" for every node that lives now.

        Raises:
            NodeNotFound: no node with this id lives; of "*", none at all.
            TypeError: the id is no text.
            Unavailable: Redis gave no answer in time.
        """
        self._order("drain", id)

    async def adrain(self, id: str) -> None:
        """As `drain`, awaited."""
        await self._aorder("drain", id)

    def resume(self, id: str) -> None:
        """Have a drained node claim again. Arguments and errors as for `drain`."""
        self._order("resume", id)

    async def aresume(self, id: str) -> None:
        """As `resume`, awaited."""
        await self._aorder("resume", id)

    def stop(self, id: str) -> None:
        """End a node, as SIGTERM does: running jobs get its grace. Arguments and errors as for `drain`."""
        self._order("stop", id)

    async def astop(self, id: str) -> None:
        """As `stop`, awaited."""
        await self._aorder("stop", id)

    @spelled
    def scale(self, id: str, *, workers: int | tuple[int, int] | None = None, slots: int | None = None) -> None:
        """Change how much a node runs at a time, until it ends. No running job is stopped for it.

        Args:
            id: a node's id, or "*" for every node that lives now.
            workers: how many worker processes, 1 to 1000, or from how many to how many the leader may have them, as
                `(2, 8)`; None leaves it. One that is too many finishes what it runs.
            slots: how many coroutines each of them runs at a time, 0 to 10,000; None leaves it.

        Raises:
            ValueError, TypeError: a number out of range, none, or no whole number.
            NodeNotFound, Unavailable: as for `drain`.
        """
        self._order("scale", id, _scaled(workers, slots))

    @spelled
    async def ascale(self, id: str, *, workers: int | tuple[int, int] | None = None, slots: int | None = None) -> None:
        """As `scale`, awaited."""
        await self._aorder("scale", id, _scaled(workers, slots))

    def _order(self, verb: str, id: str, more: Mapping[str, Any] | None = None) -> None:
        server = self._app.client.server
        if id == EVERY or self.get(id)["state"] == "dead":
            _expect(id, run(server, self._look()[0]))
        run(server, self._told(verb, id, more))

    async def _aorder(self, verb: str, id: str, more: Mapping[str, Any] | None = None) -> None:
        server = self._app.aclient.server
        if id == EVERY or (await self.aget(id))["state"] == "dead":
            _expect(id, await run_async(server, self._look()[0]))
        await run_async(server, self._told(verb, id, more))

    def _told(self, verb: str, id: str, more: Mapping[str, Any] | None) -> Command[str]:
        c = keys.cluster(self._app.client.server.settings.namespace)
        return commands.order(c, verb, id, by=_who(), more=json.dumps(more) if more else "")

    def _look(self, *, node: str = "", all: bool = False, limit: int = 1000, offset: int = 0) -> Sequence[Command[Any]]:
        check_page(limit, offset, of="nodes")
        c = keys.cluster(self._app.client.server.settings.namespace)
        return [commands.nodes(c, node=node, every=all, limit=limit, offset=offset), commands.leader(c)]


def _one(id: str) -> str:
    return checked_text(id, name="id", of="node") or _NOBODY


def _page(found: commands.Nodes, limit: int, offset: int, *, leader: str) -> dict[str, Any]:
    data = [node_shown(fields, found.now_ms, leader=leader) for fields in found.nodes]
    return {"data": data, "total": found.total, "limit": limit, "offset": offset}


def _with_amounts(node: dict[str, Any], pages: Sequence[commands.HeldJobs]) -> dict[str, Any]:
    """The node, and what of its amounts is taken."""
    if node["capacity"]:
        node["stats"]["resources"] = taken.shown(node, taken.held(pages))
    return node


def _scaled(workers: int | tuple[int, int] | None, slots: int | None) -> dict[str, Any]:
    if workers is None and slots is None:
        raise ValueError("give workers=, slots= or both")
    said: dict[str, Any] = {}
    if isinstance(workers, tuple):
        if len(workers) != 2:
            raise ValueError(f"workers={shown(workers)} is no range: give it as (2, 8)")
        least, most = (_number("workers", each, 1, 1_000) for each in workers)
        if least > most:
            raise ValueError(f"workers={shown(workers)} goes backwards")
        said["workers"] = [least, most]
    elif workers is not None:
        said["workers"] = _number("workers", workers, 1, 1_000)
    if slots is not None:
        said["slots"] = _number("slots", slots, 0, 10_000)
    return said


def _number(name: str, n: int, least: int, most: int) -> int:
    if type(n) is not int:
        raise TypeError(f"{name}={shown(n)} is no whole number")
    if not least <= n <= most:
        why = ": a node without workers would end; drain it instead" if n == 0 else ""
        raise ValueError(f"{name}={n} is out of range, {least} to {most}{why}")
    return n


def _expect(id: str, living: commands.Nodes) -> None:
    """Refuses an order that nobody would hear: to all of no nodes, or to one that is dead."""
    if id != EVERY or not living.nodes:
        raise _none(id, living)


def _none(id: str, living: commands.Nodes) -> NodeNotFound:
    if id == EVERY:
        return NodeNotFound("no node lives: see `taskq node list --all`")
    hint = did_you_mean(id, [each.get("id", "") for each in living.nodes]) or ": see `taskq node list --all`"
    return NodeNotFound(f"there is no live node {shown(id)}{hint}")


@lru_cache(maxsize=1)
def _who() -> str:
    """Who gives orders here, for the node's log."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container whose user has no name
        user = str(os.getuid()) if hasattr(os, "getuid") else ""
    return f"{user}@{socket.gethostname()}"[:200]
