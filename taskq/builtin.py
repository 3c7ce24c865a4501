"""Tasks that every worker knows. `taskq.simulate` is what `taskq dispatch` sends to try a system out."""

from __future__ import annotations

import random

SIMULATE = "taskq.simulate"


async def simulate(fail_rate: float = 0, delay: float = 0) -> None:
    """Work for a while, and fail now and then.

    Args:
        fail_rate: how many of a hundred attempts fail.
        delay: how long an attempt works, in ms.

    Raises:
        RuntimeError: this attempt is one of those that fail.
    """
    import asyncio  # only a worker runs this, and it has it

    await asyncio.sleep(delay / 1000)
    if random.uniform(0, 100) < fail_rate:
        raise RuntimeError(f"this attempt was meant to fail (fail_rate={fail_rate:g} %)")
