"""An app whose limits stand in its code alone: no operator says a word, no call brings numbers."""

import asyncio
import time

from taskq import Concurrency, Rate, TaskQ
from tests.ledger import note, noted

app = TaskQ()


@app.task(queue="desk", limits=[Concurrency(2, by="who", name="desk")])
async def serve(who: str, seconds: float) -> None:
    """At most two for each `who`."""
    with noted():
        await asyncio.sleep(seconds)


@app.task(queue="desk", limits=[Concurrency(2, by="who", name="desk")])
def type_up(who: str, seconds: float) -> None:
    """In a thread; the two of a `who` are both tasks' together."""
    with noted():
        time.sleep(seconds)


@app.task(queue="desk", limits=Rate("10/s", burst=2))
async def ring() -> None:
    """Ten begin in a second, two at once."""
    note("start")
