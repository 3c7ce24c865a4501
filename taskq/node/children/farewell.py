"""How a worker is asked to leave: drain within the grace, then be killed. A hurry makes the rest of the grace 0.

The worker itself stops its code when the grace is over, and releases what has stopped; the margin is for that. What is
still there then holds code that can't be stopped: it is killed, and the node gives its jobs back.
"""

from __future__ import annotations

import asyncio

from taskq.node.channel import Drain, Stop
from taskq.node.children.child import Child

MARGIN_S = 0.5
PATIENT_MS = 30 * 24 * 3_600_000


async def see_off(child: Child, grace_ms: int, hurry: asyncio.Event) -> None:
    """Have `child` end. One that hasn't claimed yet holds nothing: it is ended at once."""
    if not child.ready:
        child.kill("node ending")
    else:
        child.send(Drain(grace_ms))
        await first(child.ended, hurry, timeout_s=grace_ms / 1000 + MARGIN_S)
        if hurry.is_set() and not child.ended.is_set():
            child.send(Stop())
            await first(child.ended, timeout_s=MARGIN_S)
        if not child.ended.is_set():
            child.kill("grace ended")
    await child.ended.wait()


async def see_off_patiently(child: Child, grace_ms: int, ending: asyncio.Event, hurry: asyncio.Event) -> None:
    """Have `child` end once its jobs have, however long they take; when the node ends, as `see_off`."""
    if child.ready:
        child.send(Drain(PATIENT_MS))
        await first(child.ended, ending)
    if not child.ended.is_set():
        await see_off(child, grace_ms, hurry)


async def first(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Wait until one of the events is set, at most so long."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
