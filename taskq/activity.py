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
from taskq.listing import nodes as nodes_shown
from taskq.listing import stretches
from taskq.record.lease import Lease, lease_of


def reads(queues: Sequence[QueueKeys], totals: Sequence[HeldJobs], limit: int, offset: int) -> list[Command[HeldJobs]]:
    """What to read for one page: of each queue the stretch that lies in it. `totals`: how much each has."""
    return [
        commands.leases(queues[i], offset=skip, limit=some)
        for i, skip, some in stretches([here.total for here in totals], limit, offset)
    ]


def page(
    totals: Sequence[HeldJobs], pages: Sequence[HeldJobs], nodes: Nodes, limit: int, offset: int
) -> dict[str, Any]:
    """The page as JSON. `nodes`: all that are known, the dead too."""
    states = {node["id"]: node["state"] for node in nodes_shown(nodes)}
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
