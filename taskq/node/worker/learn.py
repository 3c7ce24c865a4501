"""Reads the classes of a queue anew, when a claim said that they have changed."""

from __future__ import annotations

from collections.abc import Callable

from taskq import commands, needs
from taskq.log import get_logger
from taskq.node.worker.source import Runs, Source
from taskq.record.failure import line_of

log = get_logger(__name__)


async def learned(source: Source, line: Runs, place: Callable[[], needs.Place]) -> bool:
    """Whether the classes were read. If not, the next claim tells of them again. `place`: what the worker has, asked
    again once the answer is there: it may have been given more meanwhile.
    """
    targets = [needs.quoted(name) for name in place().names]
    try:
        found = await line.run(commands.classes(source.keys, targets=targets))
    except Exception as error:  # noqa: BLE001 (whatever it is, claims go on)
        log.debug("the classes could not be read", queue=source.keys.name, error=line_of(error))
        return False
    source.learn(found, place())
    return True
