"""From a call's arguments to the keys of its job: whose turn it is, what holds it up, what it is unique by.

What the options name is looked up in the function once a task; a call then only reads its values. Pure.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from taskq import lanes
from taskq.errors import BadArguments, did_you_mean, shown
from taskq.options import By, Concurrency, Debounce, Limit, Once, Options, Rate, Throttle, Unique
from taskq.options.limits import checked_limit_name

Args: TypeAlias = Sequence[Any]
Kwargs: TypeAlias = Mapping[str, Any]
Reader: TypeAlias = Callable[[Args, Kwargs], Any]

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Keyed:
    """How the keys of one task's jobs are read from their calls.

    Args:
        options: all layers, merged.
        task: the task's name.
        signature: of its function; None if only the name is known.
        order: its parameters by place where only the name is known, as far as they were told.
        encode: a call's arguments as bytes.

    Raises:
        ValueError: the options name what the function doesn't have, or contradict each other.
    """

    __slots__ = ("_encode", "_fair", "_gates", "_lock", "_once", "_order", "_signature", "_task", "_unique")

    def __init__(
        self,
        options: Options,
        task: str,
        signature: inspect.Signature | None,
        order: Sequence[str] = (),
        *,
        encode: Callable[[tuple[Any, ...], dict[str, Any]], bytes],
    ) -> None:
        self._task = task
        self._signature = signature
        self._order = order
        self._encode = encode
        self._fair = None if options.fair is None else self._reader(options.fair, "fair")
        self._gates = [
            (lanes.gate(name), cost, None if by is None else self._reader(by, "limits"))
            for name, by, cost in _gates(options.limits or (), task)
        ]
        if options.lock is not None:
            by = options.lock.by
            name = lanes.gate(options.lock.name, lock=True)
            self._gates.append((name, 1, None if by is None else self._reader(by, "lock")))
        self._once, self._unique = "", None
        if (only := options.once) is not None:
            conflict = only.on_conflict if isinstance(only, Unique) else "existing"
            self._once = f"{only.how} {'replace' if isinstance(only, Debounce) else conflict}"
            self._unique = self._key(only, type(only).__name__.lower())

    def of(self, args: Args, kwargs: Kwargs) -> tuple[str, str]:
        """The `lane` and `once` of this call's job.

        Raises:
            BadArguments: nothing can be named after what the call says.
        """
        lane = ""
        if self._fair is not None or self._gates:
            group = lanes.NO_KEY if self._fair is None else self._encoded(self._fair(args, kwargs), "fair")
            gates = []
            for name, cost, read in self._gates:
                gate = name if read is None else f"{name}={self._encoded(read(args, kwargs), name)}"
                gates.append(gate if cost == 1 else f"{gate}#{cost}")
            lane = lanes.lane(group, gates)
        return lane, "" if self._unique is None else lanes.once(self._unique(args, kwargs), self._once)

    def _encoded(self, value: object, what: str) -> str:
        try:
            return lanes.encoded(value)
        except ValueError as error:
            raise BadArguments(f"{self._task}: nothing can be named after {shown(value)} ({what}): {error}") from None

    # --- what a key is made of

    def _key(self, only: Once, option: str) -> Callable[[Args, Kwargs], str]:
        if not isinstance(only, Unique):
            return self._key_of_its_own(only, option)
        literal, task = only.literal, None if only.scope == "queue" else self._task
        if literal is not None:
            key = lanes.unique_key(task, self._encoded(literal, option))
            return lambda _args, _kwargs: key
        if only.by is not None:
            read = self._reader(only.by, option)
            return lambda args, kwargs: lanes.unique_key(task, self._encoded(read(args, kwargs), option))
        return lambda args, kwargs: lanes.unique_key(task, self._all(args, kwargs))

    def _key_of_its_own(self, only: Debounce | Throttle, kind: str) -> Callable[[Args, Kwargs], str]:
        """All calls of the task have one, unless `by` tells them apart."""
        if only.by is None:
            key = lanes.unique_key(self._task, "", kind)
            return lambda _args, _kwargs: key
        read = self._reader(only.by, kind)
        return lambda args, kwargs: lanes.unique_key(self._task, self._encoded(read(args, kwargs), kind), kind)

    def _all(self, args: Args, kwargs: Kwargs) -> str:
        """All arguments as one value: the same however they were written."""
        args, kwargs = self._bound(args, kwargs)
        data = self._encode(tuple(args), dict(sorted(kwargs.items())))
        return "~" + hashlib.sha1(data, usedforsecurity=False).hexdigest()

    def _bound(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        if self._signature is None:
            return (), {**dict(zip(self._order, args, strict=False)), **kwargs, **_rest(args, len(self._order))}
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _reader(self, by: By, option: str) -> Reader:
        if callable(by):
            self._check_callable(by, option)
            return lambda args, kwargs: self._asked(by, option, args, kwargs)
        if isinstance(by, str):
            return self._named(by, option)
        each = [self._named(name, option) for name in by]
        return lambda args, kwargs: tuple([read(args, kwargs) for read in each])

    def _asked(self, by: Callable[..., object], option: str, args: Args, kwargs: Kwargs) -> object:
        if self._signature is not None:
            args, kwargs = self._bound(args, kwargs)
        try:
            return by(*args, **kwargs)
        except BadArguments as error:
            raise BadArguments(f"{self._task}: {option}= {error}") from None

    def _named(self, name: str, option: str) -> Reader:
        place, default = self._place(name, option)

        def read(args: Args, kwargs: Kwargs) -> Any:
            if place is not None and place < len(args):
                return args[place]
            found = kwargs.get(name, default)
            if found is inspect.Parameter.empty:
                raise BadArguments(
                    f"{self._task}: {option}= names the task's parameter {name!r}, and this call has no value for it:"
                    f" give the task {name}=…"
                )
            return found

        return read

    def _place(self, name: str, option: str) -> tuple[int | None, Any]:
        """Where a call gives this parameter by place (None: nowhere), and its default."""
        if self._signature is None:
            return (self._order.index(name) if name in self._order else None), inspect.Parameter.empty
        parameters = self._signature.parameters
        found = parameters.get(name)
        if found is None or found.kind in _MANY:
            if any(each.kind is each.VAR_KEYWORD for each in parameters.values()) and found is None:
                return None, inspect.Parameter.empty
            known = [each.name for each in parameters.values() if each.kind not in _MANY]
            raise ValueError(
                f"task {self._task}: {option}= names {name!r}, and {self._signature} has no such parameter"
                f"{did_you_mean(name, known)}"
            )
        by_place = [each.name for each in parameters.values() if each.kind in _BY_PLACE]
        return (by_place.index(name) if found.kind in _BY_PLACE else None), found.default

    def _check_callable(self, by: Callable[..., object], option: str) -> None:
        try:
            theirs = inspect.signature(by)
        except (TypeError, ValueError):  # a builtin that doesn't say
            return
        if self._signature is None:
            return
        # As a call with every argument would be, defaults and all.
        args: list[None] = []
        kwargs: dict[str, None] = {}
        for each in self._signature.parameters.values():
            if each.kind in _BY_PLACE:
                args.append(None)
            elif each.kind is each.KEYWORD_ONLY:
                kwargs[each.name] = None
        try:
            theirs.bind(*args, **kwargs)
        except TypeError as error:
            raise ValueError(
                f"task {self._task}: the callable of {option}= takes {theirs}, and is called with the arguments of"
                f" {self._signature}: {error}"
            ) from None


def _rest(args: Args, told: int) -> dict[str, Any]:
    """Arguments by place whose names aren't known."""
    return {f"#{place}": value for place, value in enumerate(args) if place >= told}


def _gates(limits: Iterable[Limit], task: str) -> list[tuple[str, By | None, int]]:
    """Each gate once: its name, what it is counted by, and what a job costs."""
    found: dict[str, tuple[By | None, int]] = {}
    seen: set[tuple[str, type]] = set()
    for limit in limits:
        name, cost = _name(limit, task), limit.cost if isinstance(limit, Rate) else 1
        if (name, type(limit)) in seen:
            raise ValueError(f"task {task}: two {type(limit).__name__} limits are named {name!r}: give them names")
        seen.add((name, type(limit)))
        before = found.get(name)
        if before is not None and before[0] != limit.by:
            raise ValueError(f"task {task}: limits named {name!r} go by different things: give one another name=")
        found[name] = limit.by, max(cost, before[1] if before else 1)
    return [(name, *rest) for name, rest in found.items()]


def _name(limit: Limit, task: str) -> str:
    """What a limit is called: as its task, where it has no name of its own. Not all that names a task names a limit."""
    if limit.name is not None:
        return limit.name
    try:
        return checked_limit_name(task)
    except ValueError as error:
        raise ValueError(f"task {task}: its limit needs a name=, as it can't have the task's: {error}") from None


def order(fn: Callable[..., Any]) -> list[str]:
    """The parameters of a function that may be given by place, in order."""
    return [each.name for each in inspect.signature(fn).parameters.values() if each.kind in _BY_PLACE]


def declared_limits(options: Options, task: str) -> dict[str, str]:
    """The numbers of a task's limits, by their encoded names, as the queue holds them."""
    words: dict[str, list[str]] = {}
    for limit in sorted(options.limits or (), key=lambda each: isinstance(each, Rate)):
        words.setdefault(lanes.gate(_name(limit, task)), []).append(limit.words)
    return {name: " ".join(each) for name, each in words.items()}


def shared_limits(declared: Iterable[tuple[str, str, Options]]) -> dict[str, dict[str, str]]:
    """Of all tasks of an app the limits of each queue: queue → name → numbers.

    Args:
        declared: task, queue and options of each.

    Raises:
        ValueError: two tasks give one limit of a queue other numbers; both are named.
    """
    found: dict[str, dict[str, str]] = {}
    whose: dict[tuple[str, str, str], tuple[str, str]] = {}
    for task, queue, options in declared:
        limits = found.setdefault(queue, {})
        for name, words in declared_limits(options, task).items():
            for word in words.split():
                kind = word[:1]
                other, said = whose.setdefault((queue, name, kind), (task, word))
                if said != word:
                    raise ValueError(
                        f"tasks {other} and {task} give the limit {lanes.decoded(name)!r} of queue {queue} other"
                        f" numbers ({_readable(said)} and {_readable(word)}): it is shared by its name within a queue"
                    )
            both = {*limits.get(name, "").split(), *words.split()}
            limits[name] = " ".join(sorted(both))
    return {queue: limits for queue, limits in found.items() if limits}


def _readable(word: str) -> str:
    kind, _, numbers = word.partition("=")
    if kind == "c":
        return f"{Concurrency.__name__}({numbers})"
    limit, period_ms, burst = numbers.split("/")
    return f"{Rate.__name__} of {limit} in {period_ms} ms, burst {burst}"
