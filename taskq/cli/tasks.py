"""Does anyone know this task? Asked before a job is added by name, because a mistyped one would wait for ever."""

from __future__ import annotations

from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.refusal import checked_values, refuse
from taskq.hearsay import FRESH_MS, nearest_task, other_queue
from taskq.options import checked_task_name


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
    elif queue not in (None, info["queue"]) and queue not in served_queues(place):
        output.note(f"no worker serves queue {queue!r} now: its jobs wait until one does")
    other = other_queue(info)
    if other is not None and queue is None:
        output.note(
            f"workers serve task {task!r} from two queues, {info['queue']!r} and {other!r}:"
            f" this job goes to {info['queue']!r}; --queue chooses"
        )
    return queue or info["queue"]


def served_queues(place: TaskQ) -> set[str]:
    """Names of the queues that live nodes serve."""
    return _named(place, "queues")


def _named(place: TaskQ, what: str) -> set[str]:
    return {name for node in place.inspector.nodes() for name in node[what]}
