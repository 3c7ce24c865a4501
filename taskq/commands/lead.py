"""Who leads, for how long, and what nodes are told to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Command, build, text, text_pairs
from taskq.errors import LeadershipLost
from taskq.keys import ClusterKeys


class Leader(NamedTuple):
    """Who leads now.

    Attributes:
        node: its id; '' if nobody leads.
        term: of the leader, or of the last there was; 0 if there was none.
        since_ms: when it began to lead; 0 if nobody ever did.
        until_ms: until when it leads if it says nothing more.
    """

    node: str
    term: int
    since_ms: int
    until_ms: int


class Order(NamedTuple):
    """What a node was told to do.

    Attributes:
        verb: `drain`, `resume`, `stop` or `scale`.
        to: a node's id, or `*` for every node.
        by: who said so.
        more: what the verb needs, as JSON text; '' for nothing.
        at_ms: when.
    """

    verb: str
    to: str
    by: str
    more: str
    at_ms: int


class Pulse(NamedTuple):
    """What a node hears each second.

    Attributes:
        leader: who leads; '' for nobody.
        term: of that leader, or of the last there was.
        left_ms: for how long it leads if it says nothing more.
        now_ms: the server's time.
        after: to be passed with the next call.
        orders: what nodes were told since the last call.
    """

    leader: str
    term: int
    left_ms: int
    now_ms: int
    after: str
    orders: tuple[Order, ...]


def pulse(
    c: ClusterKeys, *, node: str, leads: bool, ttl_ms: int, after: str = "", now: int | None = None
) -> Command[Pulse]:
    """Asks who leads and what there is to do; leads on, or begins to if nobody does.

    Args:
        c: the registry.
        node: who asks.
        leads: whether it would lead.
        ttl_ms: how long it leads without another word, at most a minute.
        after: what the last answer gave; '' at first.
        now: the time in ms; None for the server's clock.
    """

    def read(reply: Sequence[Any]) -> Pulse:
        orders = tuple(order for each in reply[5] if (order := _order(each)) is not None)
        return Pulse(text(reply[0]), int(reply[1]), int(reply[2]), int(reply[3]), text(reply[4]), orders)

    named = {"now": now, "node": node, "leads": int(leads), "ttl_ms": ttl_ms, "after": after}
    return build("pulse", c, read, named)


def _order(flat: list[bytes]) -> Order | None:
    """An order, or None for what can't be one: other programs write streams too."""
    found = text_pairs(flat)
    try:
        return Order(found["verb"], found["to"], found.get("by", ""), found.get("more", ""), int(found["at"]))
    except (KeyError, ValueError):
        return None


def resign(c: ClusterKeys, *, node: str, term: int, now: int | None = None) -> Command[bool]:
    """A leader leads no more. Answers whether it led in that term."""
    return build("resign", c, bool, {"now": now, "node": node, "term": term})


def leader(c: ClusterKeys, *, now: int | None = None) -> Command[Leader]:
    """Who leads."""

    def read(reply: Sequence[Any]) -> Leader:
        return Leader(text(reply[0]), int(reply[1]), int(reply[2]), int(reply[3]))

    return build("leader", c, read, {"now": now})


def order(
    c: ClusterKeys,
    verb: str,
    to: str,
    *,
    by: str = "",
    more: str = "",
    term: int | None = None,
    now: int | None = None,
) -> Command[str]:
    """Tells nodes what to do.

    Args:
        c: the registry.
        verb: `drain`, `resume`, `stop` or `scale`.
        to: a node's id, or `*` for every node.
        by: who says so, for people.
        more: what the verb needs, as JSON text.
        term: with which `by` leads, where only the leader may say so.
        now: the time in ms; None for the server's clock.

    Raises (when read):
        LeadershipLost: `by` doesn't lead in this term, and nothing was written.
    """

    def read(reply: Any) -> str:
        if (word := text(reply)) == "lost":
            raise LeadershipLost
        return word

    return build("order", c, read, {"now": now, "verb": verb, "to": to, "by": by, "more": more, "term": term})
