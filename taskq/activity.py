"""The active set: what runs or is offered, with the age of each lease and the presence of who holds it. Pure.

For people who look: only a lease that runs out, its holder, or the node that saw
its child die ends an attempt; what is said here of a node ends none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskq import commands
from taskq.commands import Command, HeldJobs, Nodes
from taskq.keys import QueueKeys
from taskq.presence import node_shown
from taskq.record.lease import Lease, lease_of


def reads(queues: Sequence[QueueKeys], totals: Sequence[HeldJobs], limit: int, offset: int) -> list[Command[HeldJobs]]:
    """What to read for one page: of each queue the stretch that lies in it. `totals`: how much each has."""
    found: list[Command[HeldJobs]] = []
    skip, wanted = offset, limit
    for q, here in zip(queues, totals, strict=True):
        if skip < here.total and wanted:
            some = min(wanted, here.total - skip)
            found.append(commands.leases(q, offset=skip, limit=some))
            wanted -= some
        skip = max(0, skip - here.total)
    return found


def page(
    totals: Sequence[HeldJobs], pages: Sequence[HeldJobs], nodes: Nodes, limit: int, offset: int
) -> dict[str, Any]:
    """The page as JSON. `nodes`: all that are known, the dead too."""
    shown = [node_shown(fields, nodes.now_ms) for fields in nodes.nodes]
    states = {node["id"]: node["state"] for node in shown}
    leases = [lease_of(*job, found.now_ms) for found in pages for job in found.jobs]
    return {
        "data": [_row(lease, states) for lease in leases if lease is not None],
        "total": sum(here.total for here in totals),
        "limit": limit,
        "offset": offset,
    }


def _row(lease: Lease, states: dict[Any, str]) -> dict[str, Any]:
    return {
        **lease.to_dict(),
        "stale": lease.expires_at_ms <= lease.read_at_ms,
        "node_state": states.get(lease.node) if lease.node else None,
    }
