"""`@app.cron(…)`, `@app.every(…)` and `app.on_schedule(…)`: what an app's code says of recurring work.

Nothing is sent here: a worker tells its node of the schedules, and the node declares them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from taskq import calendar
from taskq.calendar import WHEN, Rule, When
from taskq.commands import Declared
from taskq.errors import BadArguments, did_you_mean, shown
from taskq.options import LATER, OPTIONS, Options, Vocabulary, unknown
from taskq.schedules.run import Run
from taskq.schedules.template import Template
from taskq.task import Call, Task
from taskq.units import Duration

P = ParamSpec("P")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[[Run], Any])

LONGEST_NAME = 220


class ScheduleDecorator(Protocol):
    """What `app.cron(...)` and `app.every(...)` give: put it above `@app.task`, or above a plain function."""

    @overload
    def __call__(self, task: Task[P, C], /) -> Task[P, C]: ...
    @overload
    def __call__(self, task: Callable[P, C], /) -> Task[P, C]: ...


class ScheduleVocabulary(Vocabulary, When, total=False):
    """What `cron` and `every` take: what is said of the rule, and the options of its jobs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A schedule that code declares: `owner` is the task as it was declared, `task` the same with the schedule's own
    options.
    """

    name: str
    rule: Rule
    owner: Task[..., Any]
    task: Task[..., Any]


class Declares:
    """The part of an app that declares schedules.

    Attributes:
        scheduled: the schedules by name.
        observers: who is told of each firing.
    """

    scheduled: dict[str, Entry]
    observers: list[Callable[[Run], Any]]

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        name: str | None = None,
        **options: Unpack[ScheduleVocabulary],
    ) -> ScheduleDecorator:
        """Run a task at times of the clock: `@app.cron("0 9 * * 1-5", tz="Europe/Berlin")`.

        It stands above `@app.task` or above a plain function, and may stand there several times.

        Args:
            expression: 5 fields (minute, hour, day of the month, month, day of the week), 6 with the second first,
                `@yearly @monthly @weekly @daily @hourly`, or `@every 90s`.
            tz: the IANA name of the time zone whose clocks are meant; default "UTC".
            name: the schedule's; default the task's, then with `#2`, `#3`. One name is one schedule in the namespace.
            start: nothing fires before it; an aware datetime or RFC 3339 text.
            end: nothing fires after it.
            max_runs: after so many firings it is over. Default: never.
            jitter: each firing waits up to so long, but never past the next time.
            missed: after an outage, in which a time is late by more than 15 s, "skip" what is late, fire the "latest"
                missed time (the default), or "all", up to 100 of them. What is late by less isn't missed: all of it
                fires, as after a change of leaders.
            overlap: while the last run's job hasn't ended "allow" another (the default), "skip" it, or "queue-one".
            options: the rest: those of its jobs, as `Options`; but for `id` and `at`.

        Raises:
            ValueError: a rule or name that can't be, or a function that needs arguments.
            TypeError: an option nobody knows, or what is decorated is no function.
        """
        when, rest = _parted(options)
        return self._schedule(calendar.cron(expression, tz=tz, **when), name, rest)

    def every(
        self,
        interval: Duration,
        *,
        name: str | None = None,
        **options: Unpack[ScheduleVocabulary],
    ) -> ScheduleDecorator:
        """Run a task again and again: `@app.every("30s")`. As `cron`, with an interval of at least 1 s.

        Raises:
            ValueError, TypeError: as `cron`.
        """
        when, rest = _parted(options)
        return self._schedule(calendar.every(interval, **when), name, rest)

    def on_schedule(self, fn: F) -> F:
        """Have `fn(run)` called with each `Run`, in a worker of the node that leads, or where `app.schedules.run` was.

        If the node that leads serves an app without observers nobody is told: apps of one namespace each declare them.
        It may be `async def` there. What it raises is logged, and hinders nothing. While nodes come and go a run may be
        told twice, or never: `taskq schedule show` has them all.
        """
        if not callable(fn):
            raise TypeError(f"on_schedule takes a function of a Run, not {shown(fn)}")
        self.observers.append(fn)
        return fn

    def _schedule(self, rule: Rule, name: str | None, options: Vocabulary) -> ScheduleDecorator:
        check_options(Options(**options))
        if name is not None:
            checked_schedule_name(name)

        def decorate(task: Any) -> Any:
            owner: Task[..., Any] = task if isinstance(task, Task) else self.task(task)  # type: ignore[attr-defined]
            if owner.refusal is not None:
                raise ValueError(f"task {owner.name} can't be scheduled: {owner.refusal}")
            try:
                owner.bind((), {})
            except BadArguments as error:
                raise ValueError(f"a schedule gives no arguments: {error}") from None
            self._enter(owner, rule, name, owner.using(**options))
            return owner

        return decorate

    def _enter(self, owner: Task[..., Any], rule: Rule, name: str | None, task: Task[..., Any]) -> None:
        # The same function loaded again, in a reload or a notebook's cell, replaces what it declared before.
        for each in [each for each in self.scheduled.values() if each.owner.name == owner.name]:
            if each.owner is not owner:
                del self.scheduled[each.name]
        if name is None:
            number = sum(each.owner is owner for each in self.scheduled.values()) + 1
            name = owner.name if number == 1 else f"{owner.name}#{number}"
        if name in self.scheduled:
            raise ValueError(
                f"two schedules would be {name!r}: of {self.scheduled[name].owner.name} and of {owner.name};"
                " give one of them another name="
            )
        self.scheduled[name] = Entry(name, rule, owner, task)

    def declared(self) -> list[Declared]:
        """What a node is told of the schedules."""
        return [declared(each.name, each.rule, each.task.call()) for each in self.scheduled.values()]


def _parted(options: ScheduleVocabulary) -> tuple[When, Vocabulary]:
    when = {name: value for name, value in options.items() if name in WHEN}
    rest = {name: value for name, value in options.items() if name not in WHEN}
    for name in rest:
        if name not in OPTIONS:
            raise unknown(name, (*WHEN, *OPTIONS), LATER)
    return cast("When", when), cast("Vocabulary", rest)


def declared(name: str, rule: Rule, call: Call[Any]) -> Declared:
    """A schedule as it is stored; its task's plan must have been made if it is known by name alone.

    Raises:
        ValueError: its arguments are too large.
    """
    task = call.task
    check_options(task.options)
    job = task.plan().new_job(call.payload, call.args, call.kwargs)
    template = Template(*job[2:])
    return Declared(name, calendar.rule_text(rule), rule.overlap, task.queue, task.name, template.pack())


def check_options(options: Options) -> None:
    """Refuses what belongs to one job and not to many.

    Raises:
        ValueError: `id`, `at`, or `expires` as an instant.
    """
    if options.id is not None:
        raise ValueError("id= belongs to one job: a schedule's jobs are named after it and their time")
    if options.at_ms is not None:
        raise ValueError("at= belongs to one job: a schedule's rule says when; delay= is possible")
    if options.expires is not None and not options.expires.startswith("+"):
        raise ValueError("expires= of a schedule is a duration from when it fires: no later job could ever start")


def check_when(when: Mapping[str, Any], others: Sequence[str]) -> None:
    """Refuses what is no part of a rule; what belongs to its jobs is said of their task.

    Args:
        when: what was given.
        others: what else could have been meant.

    Raises:
        TypeError: it says what to write.
    """
    known = (*others, *WHEN)
    for name, value in when.items():
        if name in OPTIONS:
            raise TypeError(
                f"{name}= is an option of a schedule's jobs: give the task as task.using({name}={shown(value)})"
            )
        if name not in WHEN:
            raise TypeError(
                f"a schedule has no {shown(name)}{did_you_mean(name, (*known, *OPTIONS))}: it has {', '.join(known)}"
            )


def checked_schedule_name(name: object) -> str:
    """A schedule's name: 1 to 220 characters without spaces or control characters.

    Raises:
        ValueError: anything else.
    """
    if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() and " " not in name:
        return name
    raise ValueError(
        f"name={shown(name)} is no schedule's name: use 1 to {LONGEST_NAME} characters without spaces, such as 'report'"
    )
