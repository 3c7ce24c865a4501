"""Does anyone know this task? Asked before a job is added by name, because a mistyped one would wait for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taskq.app import TaskQ
from taskq.calls import shape_told
from taskq.cli import output
from taskq.cli.refusal import WrongUsage, checked_values, refuse
from taskq.errors import did_you_mean
from taskq.hearsay import FRESH_MS, nearest_task, other_queue
from taskq.options import checked_task_name
from taskq.presence import task_shown


def queue_for(place: TaskQ, task: str, queue: str | None) -> str:
    """The queue for a task's job: the one that was asked for, else the one that workers serve it from.

    Without a queue a task that nobody knows is refused; with one it is added, and a line says that it will wait.
    """
    with checked_values(name="TASK"):
        checked_task_name(task)
    info = place.client.task_info(task)
    if info is None:
        hint = nearest_task(task, _named(place, "tasks"))
        if queue is None:
            refuse(
                f"no worker has known task {task!r} within the last day{hint}:"
                " start one that does, or name its queue with --queue"
            )
        output.note(f"no worker knows task {task!r} yet{hint}: its jobs wait until one does")
        return queue
    if int(info["now"]) - int(info["last_seen"]) > FRESH_MS:
        output.note(f"no worker that knows task {task!r} lives now: its jobs wait until one does")
    elif queue not in (None, info["queue"]) and queue not in (served := served_queues(place)):
        output.note(f"no worker serves queue {queue!r} now{did_you_mean(queue, served)}: its jobs wait until one does")
    other = other_queue(info)
    if other is not None and queue is None:
        output.note(
            f"workers serve task {task!r} from two queues, {info['queue']!r} and {other!r}:"
            f" this job goes to {info['queue']!r}; --queue chooses"
        )
    return queue or info["queue"]


def check_arguments(place: TaskQ, task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuses arguments that a task's parameters don't take, as a call in Python would, by what live nodes told. What
    nobody told, or can't be read, is left to the worker.

    Raises:
        WrongUsage: they don't fit; with the parameters.
    """
    info = place.client.task_info(task)
    if info is None or int(info["now"]) - int(info["last_seen"]) > FRESH_MS:
        return
    told = task_shown(task, info, ())["parameters"]
    shape = shape_told(told) if isinstance(told, str) else None
    if shape is None:
        return
    try:
        shape.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise WrongUsage(f"{task}{told} doesn't take these arguments: {error}") from None


def served_queues(place: TaskQ) -> set[str]:
    """Names of the queues that live nodes serve."""
    return _named(place, "queues")


def _named(place: TaskQ, what: str) -> set[str]:
    return {name for node in place.inspector.nodes() for name in node[what]}
