"""Whether Redis is there and can carry this node: looked at before its first worker claims, and never again.

Whoever has begun goes on through every outage. Whoever begins waits for a server that has answered and will serve soon
(it loads its data, say, or its primary is away), also if it goes away meanwhile. All else is told in one line and ends
the node: nobody there within the deadline, a wrong password, TLS that doesn't fit, a missing permission, an old server.
"""

from __future__ import annotations

import asyncio

from taskq.connection import fitness
from taskq.connection.translate import will_serve
from taskq.errors import TaskQError
from taskq.log import get_logger
from taskq.node.children.farewell import first
from taskq.node.loop import Outage
from taskq.settings import Settings

AGAIN_S = 1.0

log = get_logger(__name__)


async def unfit(settings: Settings, outage: Outage, ending: asyncio.Event) -> str:
    """Why the node can't work with this Redis, in one line; '' if it can, or if it was told to end meanwhile."""
    answered = False
    while not ending.is_set():
        try:
            warnings = await asyncio.to_thread(fitness.check, settings)
        except TaskQError as error:
            soon = will_serve(error, answered=answered)
            if not soon:
                return str(error)
            answered = True
            outage.begins(error)
        else:
            outage.ends()
            for warning in warnings:
                log.warning("Redis may lose jobs", found=warning.found, advice=warning.advice)
            break
        await first(ending, timeout_s=AGAIN_S)
    return ""
