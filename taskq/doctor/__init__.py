"""`examine`: looks at a server and at what lies between it and us, and says of each thing whether it is well.

A finding is `ok`, `warn` (it works, and could work better or safer) or `fail` (it doesn't work), with what to do. What
a login may not see is a warning. In a cluster every shard is looked at, and the worst of each kind is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from taskq import scripts
from taskq.address import Address, parse_url
from taskq.connection import fitness
from taskq.connection.ask import Line, Place, Refusal, asked, line
from taskq.connection.fitness import Finding
from taskq.connection.translate import failures, translated
from taskq.doctor import judge
from taskq.errors import TaskQError
from taskq.settings import Settings

__all__ = ["Finding", "examine"]

PINGS = 200
_PINGS_S = 1.0
_LEVELS = ("ok", "warn", "fail")


def examine(settings: Settings) -> list[Finding]:
    """Everything that `taskq doctor` shows, in its order. Takes about a second; an unreachable server is a finding.

    Args:
        settings: where the server is; `deadline` is how long it may take to answer at first.
    """
    address = parse_url(settings.url)
    try:
        replies = asked(settings, lambda each: fitness.probed(each, settings))
        findings, masters = asked(settings, lambda each: (_one(each, replies, settings), _cluster(each, address)))
    except TaskQError as error:
        return [judge.unreachable(address.where, str(error))]
    reached = Finding("reachable", "ok", f"{address.where} answers")
    if masters is None:
        return [reached, *findings]
    state, places = masters
    by_shard = {place: _shard(settings, place) for place in places}
    return [reached, *(_worst(by_shard) if by_shard else findings), state]


def _one(asking: Line, replies: fitness.Probed, settings: Settings) -> list[Finding]:
    """What one server is like."""
    known = fitness.facts(asking)
    before = time.time()
    clock = asking.ask(("TIME",))[0]
    after = time.time()
    cached = asking.ask(("SCRIPT", "EXISTS", *(scripts.load(name).sha for name in scripts.names())))[0]
    return [
        fitness.version(known),
        fitness.mode(known, parse_url(settings.url).kind, replies),
        fitness.persistence(known),
        fitness.eviction(known),
        judge.memory(known),
        judge.clock(clock, before, after),
        judge.scripts(known, cached),
        fitness.permissions(replies, settings),
        judge.round_trip(_timed(lambda: asking.ask(("PING",)))),
        judge.compact_hashes(known),
    ]


def _timed(call: Callable[[], Any]) -> list[float]:
    """How long each of many calls took, in ms, sorted; a slow line is measured fewer times."""
    took: list[float] = []
    until = time.monotonic() + _PINGS_S
    while len(took) < PINGS and (time.monotonic() < until or len(took) < 3):
        begun = time.perf_counter()
        call()
        took.append((time.perf_counter() - begun) * 1000)
    return sorted(took)


def _cluster(asking: Line, address: Address) -> tuple[Finding, list[Place]] | None:
    """The state of the cluster and where its primaries are; None if the URL means no cluster."""
    if address.kind != "cluster":
        return None
    info, slots = asking.ask(("CLUSTER", "INFO"), ("CLUSTER", "SLOTS"))
    entry = address.hosts[0]
    found = [] if isinstance(slots, Refusal) else [(each[2][0].decode() or entry[0], int(each[2][1])) for each in slots]
    places = list(dict.fromkeys(found))
    return judge.cluster(info, len(places)), places


def _shard(settings: Settings, place: Place) -> list[Finding]:
    try:
        with line(settings, at=place) as asking:
            replies = fitness.probed(asking, settings)
        with line(settings, at=place) as asking:
            return _one(asking, replies, settings)
    except failures() as error:
        shard = replace(parse_url(settings.url), hosts=(place,))
        return [judge.unreachable(shard.where, str(translated(error, shard)))]


def _worst(by_shard: dict[Place, list[Finding]]) -> list[Finding]:
    """One finding of each name: the worst, with the shard where it is so unless all are well."""
    worst: dict[str, Finding] = {}
    for place, findings in by_shard.items():
        for each in findings:
            known = worst.get(each.name)
            if known is None or _LEVELS.index(each.level) > _LEVELS.index(known.level):
                found = each.found if each.level == "ok" else f"{place[0]}:{place[1]} {each.found}"
                worst[each.name] = Finding(each.name, each.level, found, each.advice, each.unseen)
    return list(worst.values())
