"""What a worker says of APP: to its node, once it is loaded; to the user, if it can't be, file and line first."""

from __future__ import annotations

import importlib
import inspect
import os
import traceback
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import taskq
from taskq import __version__
from taskq.app import TaskQ
from taskq.keyed import order, shared_limits
from taskq.node.channel import Hello
from taskq.options import DEFAULT_QUEUE, told
from taskq.record.failure import clean, line_of, message_of
from taskq.task import Task
from taskq.units import duration_text

_FRAMES = 3
_SIGNATURE = 1_000
_OURS = (os.path.dirname(taskq.__file__) + os.sep, os.path.dirname(importlib.__file__) + os.sep)  # noqa: PTH120


def greeting(app: TaskQ, queues: Sequence[str]) -> Hello:
    """What the node is told of the loaded app.

    Args:
        app: the application.
        queues: those asked for, best first; none: every queue that a task or schedule names, and `default`.

    Raises:
        ValueError: two tasks give one limit other numbers.
    """
    tasks = {task.name: _described(task) for task in app.tasks.values()}
    schedules = app.declared()
    own = {DEFAULT_QUEUE, *(task.queue for task in app.tasks.values()), *(each.queue for each in schedules)}
    told_of = [[*each[:-1], b64encode(each.template).decode()] for each in schedules]
    named = list(queues) or sorted(own)
    limited = [*app.tasks.values(), *(each.task for each in app.scheduled.values())]
    limits = shared_limits((task.name, task.queue, task.options) for task in limited)
    return Hello(app.settings.to_dict(), named, tasks, __version__, told_of, bool(app.observers), limits)


def _described(task: Task[..., Any]) -> dict[str, Any]:
    options = told(task.options, order(task.fn))
    backoff = task.backoff.spec() if task.backoff.function is None else None
    times = {"timeout": task.timeout_ms, "hard_timeout": task.hard_timeout_ms}
    settings = {"backoff": backoff or "a function", **{name: duration_text(ms) for name, ms in times.items() if ms}}
    return {
        "queue": task.queue,
        "executor": task.executor,
        "backoff": backoff,
        "parameters": parameters(task.fn),
        "settings": settings,
        **({"options": options} if options else {}),
    }


def parameters(fn: Any) -> str:
    """A function's parameters as they are written, such as `(to: str, *, subject: str = 'hi') -> int`."""
    try:
        told = inspect.signature(fn)
        each = [one.replace(annotation=_written(one.annotation)) for one in told.parameters.values()]
        text = str(told.replace(parameters=each, return_annotation=_written(told.return_annotation)))
    except Exception:  # noqa: BLE001 (the repr of somebody's default)
        return ""
    return clean(text, _SIGNATURE)


class _Written(str):
    """An annotation that is text, shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _written(annotation: Any) -> Any:
    return _Written(annotation) if isinstance(annotation, str) else annotation


def complaint(path: str, error: BaseException) -> str:
    """Why APP can't be loaded: one line, then where in the user's code, innermost first, then where in ours."""
    found = places(error)
    said = line_of(error) if found or not isinstance(error, ImportError) else message_of(error)
    return "\n".join([f"can't load {path}: {said}", *found])


def places(error: BaseException) -> list[str]:
    """The lines that led to `error`, such as `  shop.py:3 in <module>: import missing`."""
    places = []
    if isinstance(error, SyntaxError) and error.filename:
        places.append(_place(error.filename, error.lineno, "", (error.text or "").strip()))
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<frozen")]
    while frames and not frames[0].filename.startswith(_OURS):  # whoever called us has nothing to do with it
        del frames[0]
    theirs = [each for each in frames if not each.filename.startswith(_OURS)]
    ours = frames[-1:] if theirs and frames[-1] is not theirs[-1] else []
    shown = [*reversed(theirs[-_FRAMES:]), *ours]
    places += [_place(each.filename, each.lineno, f" in {each.name}", each.line or "") for each in shown]
    return [clean(place, 500) for place in places]


def _place(file: str, line: int | None, where: str, text: str) -> str:
    here = os.getcwd() + os.sep  # noqa: PTH109 (text, not paths)
    return f"  {file.removeprefix(here)}:{line or 0}{where}: {text}"
