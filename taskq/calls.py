"""From a call to a `NewJob`: which arguments fit, what all calls of a task share, how a job gets its id. Pure.

What doesn't depend on the arguments is worked out once a task (`Plan`), so that
an enqueue costs little more than its trip to the server.
"""

from __future__ import annotations

import ast
import inspect
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taskq import keys
from taskq.commands import NewJob
from taskq.commands.command import Arg
from taskq.errors import BadArguments
from taskq.keyed import Keyed, declared_limits
from taskq.options import DEFAULT_QUEUE, OPTIONS, Options, stored_fields


class Shape:
    """A function's parameters, ready to say whether arguments fit. The usual call is settled by counting."""

    __slots__ = ("_by_count", "_most", "_needed", "signature")

    def __init__(self, fn: Callable[..., Any] | inspect.Signature) -> None:
        self.signature = fn if isinstance(fn, inspect.Signature) else inspect.signature(fn)
        parameters = self.signature.parameters.values()
        positional = [each for each in parameters if each.kind in _POSITIONAL]
        self._needed = sum(each.default is each.empty for each in positional)
        self._most = len(positional)
        self._by_count = not any(each.kind is each.KEYWORD_ONLY and each.default is each.empty for each in parameters)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, task: str) -> None:
        """Raises BadArguments, with what doesn't fit, as the call itself would."""
        if not kwargs and self._by_count and self._needed <= len(args) <= self._most:
            return
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            said = f"{task}{self.signature} doesn't take these arguments: {error}"
            known = self.signature.parameters
            option = next((name for name in kwargs if name in OPTIONS and name not in known), None)
            hint = f"; an option is said before the call: .using({option}=…)" if option else ""
            raise BadArguments(said + hint) from None


def shape_told(text: str) -> Shape | None:
    """The shape of a function whose parameters a node told of, as `(to: str, *, n: int = 1) -> int`; None if that can't
    be read: a default's repr may be anything. Only names and kinds count, and whether there is a default.
    """
    try:
        (definition,) = ast.parse(f"def told{text}: pass").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    told = definition.args
    placed = [*told.posonlyargs, *told.args]
    bare = len(placed) - len(told.defaults)
    kinds = inspect.Parameter
    found = [
        kinds(
            each.arg,
            kinds.POSITIONAL_ONLY if at < len(told.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if at < bare else None,
        )
        for at, each in enumerate(placed)
    ]
    found += [kinds(told.vararg.arg, kinds.VAR_POSITIONAL)] if told.vararg else []
    found += [
        kinds(each.arg, kinds.KEYWORD_ONLY, default=kinds.empty if default is None else None)
        for each, default in zip(told.kwonlyargs, told.kw_defaults, strict=True)
    ]
    found += [kinds(told.kwarg.arg, kinds.VAR_KEYWORD)] if told.kwarg else []
    return Shape(inspect.Signature(found))


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


_NO_KWARGS: Mapping[str, Any] = {}


class Plan:
    """What all calls of one task with the same options share.

    Args:
        namespace: the app's.
        task: the task's name.
        executor: `async` or `thread`; '' where the code isn't known.
        options: all layers, merged.
        said: the layers whose backoff and timeouts travel with the job; those of the others stay in the worker's
            code, and change with it.
        keyed: how the keys of its jobs are read from their calls; None if they have none.

    Attributes:
        limits: limit → its numbers, as `declare` takes them: to be said to the queue. `limits_key`: what they are
            remembered by once they were.
    """

    __slots__ = (
        "_due", "_executor", "_expires", "_fields", "_keyed", "_own", "_prefix", "_priority", "limits", "limits_key",
        "needs", "q", "strict", "task",
    )  # fmt: skip

    def __init__(
        self, namespace: str, task: str, executor: str, options: Options, said: Options, *, keyed: Keyed | None = None
    ) -> None:
        self.q = keys.queue(namespace, options.queue or DEFAULT_QUEUE)
        self.task = task
        self._executor = executor
        self._priority = options.priority or 0
        self._due = options.due
        self._keyed = keyed
        self.needs = options.needs
        self.strict = bool(options.strict)
        # Of whichever layer: no worker's code may ever say them in this queue, and without numbers they hold nobody.
        self.limits = declared_limits(options, task) if options.limits else {}
        self.limits_key = f"{self.q.name} {self.limits}" if self.limits else ""
        self._expires = options.expires or ""
        self._prefix = f"{self.q.name}:"
        self._own = None if options.id is None else self._prefix + options.id
        self._fields: dict[str, Arg] = {**stored_fields(options, said)}

    @property
    def is_choosy(self) -> bool:
        """Whether it may be that no node could run its jobs."""
        return bool(self.needs) or self.strict

    def new_job(self, payload: bytes, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = _NO_KWARGS) -> NewJob:
        """One job of this task. Its id and token are made here, once: whoever sends it again adds nothing.

        Raises:
            BadArguments: nothing can be named after an argument that a limit, say, goes by.
        """
        fields = {**self._fields, "payload": payload} if payload else self._fields
        if self._own is None:
            id, token = self._prefix + uuid7(), ""
        else:
            id, token = self._own, os.urandom(8).hex()
        lane, once = ("", "") if self._keyed is None else self._keyed.of(args, kwargs)
        return NewJob(
            id,
            token,
            self.task,
            self._executor,
            self._priority,
            self._due,
            self._expires,
            fields,
            lane,
            once,
            self.needs,
        )


def uuid7() -> str:
    """A new UUID of version 7: sorts by the time it was made, to a quarter of a microsecond.

    In a lane with keys jobs that came in one millisecond stand by their ids: so those of one producer keep their order,
    also while its clock is set back.
    """
    global _last  # noqa: PLW0603 (without a lock, which a fork could leave held: two threads may get the same time)
    _last = made = max(_last + 1, time.time_ns() * 4096 // 1_000_000)
    at = f"{made:015x}"
    chance = os.urandom(8).hex()
    # The digit after the second dash is the version; the first after the third holds the variant, 10, in its high bits.
    return f"{at[:8]}-{at[8:12]}-7{at[12:]}-{_VARIANT[chance[0]]}{chance[1:4]}-{chance[4:]}"


_last = 0
"""When the last one was made, in 4096ths of a millisecond."""

_VARIANT = {digit: "89ab"[number % 4] for number, digit in enumerate("0123456789abcdef")}
