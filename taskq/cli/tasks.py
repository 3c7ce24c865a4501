"""Does anyone know this task? Asked before a job is added by name, because a mistyped one would wait for ever."""

from __future__ import annotations

import json

from taskq import commands, keys
from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.refusal import checked_values, refuse
from taskq.connection import run
from taskq.errors import did_you_mean
from taskq.options import checked_task_name

_QUIET_MS = 60_000  # a node says once a minute what it knows


def queue_for(place: TaskQ, task: str, queue: str | None) -> str:
    """The queue for a task's job: the one that was asked for, else the one that workers serve it from.

    Without a queue a task that nobody knows is refused; with one it is added, and a line says that it will wait.
    """
    with checked_values():
        checked_task_name(task)
    info = place.client.task_info(task)
    if info is None:
        known = known_tasks(place)
        if queue is None:
            refuse(
                f"no worker has known task {task!r} within the last day{did_you_mean(task, known)}:"
                " start one that does, or name its queue with --queue"
            )
        output.note(f"no worker knows task {task!r} yet{did_you_mean(task, known)}: its jobs wait until one does")
        return queue
    if int(info["now"]) - int(info["last_seen"]) > 2 * _QUIET_MS:
        output.note(f"no worker that knows task {task!r} lives now: its jobs wait until one does")
    elif queue not in (None, info["queue"]) and queue not in served_queues(place):
        output.note(f"no worker serves queue {queue!r} now: its jobs wait until one does")
    return queue or info["queue"]


def known_tasks(place: TaskQ) -> set[str]:
    """Names of the tasks that live nodes know."""
    return _told(place, "tasks")


def served_queues(place: TaskQ) -> set[str]:
    """Names of the queues that live nodes serve."""
    return _told(place, "queues")


def _told(place: TaskQ, what: str) -> set[str]:
    """What the live nodes' records list under a name; a damaged one lists nothing."""
    told: set[str] = set()
    for node in run(place.client.server, commands.nodes(keys.cluster(place.settings.namespace))):
        try:
            listed = json.loads(node.get(what, "[]"))
        except (ValueError, RecursionError):
            continue
        told |= {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else set()
    return told
