"""How one worker follows another: loaded beside it, and told to begin when the other has claimed its last job.

So capacity doesn't drop while APP is loaded, and is never doubled. The spare is started when a worker says that it will
have run its number of jobs soon, or takes too much memory; the latter is then replaced as soon as the spare is loaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from taskq.node.children.child import Child
from taskq.node.children.farewell import first
from taskq.node.children.restart import Restarts
from taskq.node.table import now_ms


async def until_replaced(
    child: Child, start: Callable[[], Child | None], ending: asyncio.Event, restarts: Restarts
) -> Child | None:
    """Wait until `child` is over or should leave, or until the node ends. Gives the spare that is there by then.

    Args:
        child: the worker that serves.
        start: starts a spare; None if it can't.
        ending: set when the node ends.
        restarts: what a worker that grew heavy young, or a spare that died, counts as.
    """
    ends = (child.over, child.leaving, ending)
    spare: Child | None = None

    async def rest(lived_ms: int) -> None:
        await first(*ends, timeout_s=restarts.delay_s(lived_ms))

    while not any(event.is_set() for event in ends):
        if spare is None:
            await first(*ends, child.ageing)
            if child.heavy:
                await rest(now_ms() - child.born_ms)
            if not any(event.is_set() for event in ends):
                spare = start()
                if spare is None:
                    await rest(0)
        elif spare.over.is_set():
            spare = None
            await rest(0)
        elif not spare.loaded.is_set():
            await first(*ends, spare.loaded, spare.over)
        elif child.heavy:
            child.patient = True
            break
        else:
            await first(*ends, spare.over)
    return spare if spare is None or not spare.over.is_set() else None
