"""What a worker needs of each task it knows, read once when APP is loaded, found by the name as a record holds it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from taskq.errors import BadArguments
from taskq.retry import Backoff
from taskq.task import Task


class Known:
    """A task that this worker can run.

    Attributes:
        place: where its task stands in the hello.
        fn: the user's function.
        executor: "async" or "thread": where it runs.
        plain: calling it gives a coroutine for sure.
        bind: `bind(args, kwargs)` checks that arguments fit; raises BadArguments.
        bare: a call without arguments fits.
        timeout_ms, kill_after_ms: of a job that has none of its own; 0 = none.
        backoff: of a job that has none of its own.
    """

    __slots__ = ("backoff", "bare", "bind", "executor", "fn", "kill_after_ms", "place", "plain", "timeout_ms")

    def __init__(self, task: Task[Any, Any], place: int = -1) -> None:
        self.place = place
        self.fn: Callable[..., Any] = task.fn
        self.executor: str = task.executor
        self.plain = self.executor == "async" and inspect.iscoroutinefunction(task.fn)
        self.bind = task.bind
        self.bare = _is_bare(task)
        self.timeout_ms: int = task.timeout_ms or 0
        self.kill_after_ms: int = task.hard_timeout_ms or 0
        self.backoff: Backoff = task.backoff


def _is_bare(task: Task[Any, Any]) -> bool:
    try:
        task.bind((), {})
    except BadArguments:
        return False
    return True


def known_tasks(tasks: Iterable[Task[Any, Any]]) -> dict[bytes, Known]:
    """Every task by its name's bytes, in the order of the hello."""
    return {task.name.encode(): Known(task, place) for place, task in enumerate(tasks)}
