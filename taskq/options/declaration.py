"""What `@app.task(…)` may say: the task's name and executor, and the options of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from taskq.errors import did_you_mean, shown
from taskq.options.layer import OPTIONS, Options
from taskq.options.names import KINDS, LATER, TASK_LATER, TASK_OWN, unknown


class Declaration(NamedTuple):
    """What `@app.task(…)` said: the task's own name and executor if given, and its jobs' options."""

    name: str | None
    executor: Literal["async", "thread"] | None
    options: Options


def declare(given: Mapping[str, Any]) -> Declaration:
    """The arguments of `task()`, checked.

    Raises:
        TypeError, NotImplementedError, ValueError: as `Options`; also for a bad name or executor.
    """
    for key in given:
        if key not in OPTIONS and key not in TASK_OWN:
            raise unknown(key, (*OPTIONS, *TASK_OWN), (*LATER, *TASK_LATER))
    name, executor = given.get("name"), given.get("executor")
    if executor == "process":
        raise NotImplementedError('executor="process" isn\'t here yet: this version runs "async" and "thread"')
    if executor not in (None, "async", "thread"):
        raise ValueError(
            f'executor={shown(executor)} is none: give "async" or "thread"{did_you_mean(shown(executor), KINDS)}'
        )
    if name is not None:
        checked_task_name(name)
    return Declaration(name, executor, Options(**{key: given[key] for key in given if key not in TASK_OWN}))


def checked_task_name(name: object) -> str:
    """A task's name as it may be stored: 1 to 200 characters without spaces or control characters.

    Raises:
        ValueError: anything else.
    """
    if isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable() and " " not in name:
        return name
    rule = "use 1 to 200 characters without spaces, such as 'mail.send'"
    raise ValueError(f"name={shown(name)} is no task's name: {rule}")
