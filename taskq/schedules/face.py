"""`app.schedules`: schedules put, read and steered by hand. Every method has an a-twin."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, TypeVar, Unpack

from taskq import calendar, commands, keys
from taskq.asked import check_page, checked_text
from taskq.calendar import Rule, When
from taskq.commands import Command, StoredSchedules
from taskq.connection import run, run_async
from taskq.errors import InvalidTransition, ScheduleNotFound, Unavailable, did_you_mean, shown
from taskq.home import Home
from taskq.schedules.declaring import check_when, checked_schedule_name, declared
from taskq.schedules.observing import atell, tell
from taskq.schedules.relaying import LATER, adrive, drive, relay
from taskq.schedules.run import Run, instant
from taskq.schedules.schedule import Schedule, schedule_of
from taskq.task import Call, Task
from taskq.units import Duration

T = TypeVar("T")
Listed: TypeAlias = list[Schedule]
What: TypeAlias = "Call[Any] | Task[..., Any]"
_Steering: TypeAlias = Callable[[keys.ClusterKeys, str], Command[str]]
RUNS_SHOWN = 100
_NONE = " "  # no schedule has such a name; an empty one would ask for all of them


class _App(Home, Protocol):
    observers: list[Callable[[Run], Any]]


class Schedules:
    """The schedules of a namespace: those that code declares, and those that are put here."""

    def __init__(self, app: _App) -> None:
        self._app = app

    def put(
        self,
        name: str,
        call: What,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        tz: str = "UTC",
        **when: Unpack[When],
    ) -> Schedule:
        """Put a schedule: `app.schedules.put("report", send.using(queue="email").call("a@b.c"), cron="0 9 * * *")`.

        One of the same name is replaced, also one that code declares: what is put by hand beats code until it is
        removed. A rule that isn't changed goes on as it was; a changed one begins now.

        Args:
            name: 1 to 220 characters without spaces.
            call: what to run: a task, or a call of it; its options are those of the jobs (`send.using(priority=2)`).
            cron: an expression, as for `app.cron`; or
            every: an interval, as for `app.every`.
            tz: as there.
            when: `start end max_runs jitter missed overlap`, as there.

        Raises:
            TypeError: no task, or an argument nobody knows.
            ValueError: a rule, name or option that can't be, or both of `cron` and `every`, or none.
            Unschedulable: no node could ever run its jobs.
            Unavailable, ServerFull: the server didn't take it.
        """
        rule = _rule(cron, every, tz, when)
        made = _call(name, call)
        made.task.ready()
        self._do(commands.put_schedule(self._c, declared(name, rule, made)))
        return self.get(name)

    async def aput(
        self,
        name: str,
        call: What,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        tz: str = "UTC",
        **when: Unpack[When],
    ) -> Schedule:
        """As `put`, awaited."""
        rule = _rule(cron, every, tz, when)
        made = _call(name, call)
        await made.task.aready()
        await self._ado(commands.put_schedule(self._c, declared(name, rule, made)))
        return await self.aget(name)

    def get(self, name: str) -> Schedule:
        """One schedule, with its last runs.

        Raises:
            ScheduleNotFound: there is none.
            TypeError: the name is no text.
        """
        found = _all(self._do(self._named(name)))
        if not found:
            raise _unknown(name, self.list())
        return found[0]

    async def aget(self, name: str) -> Schedule:
        """As `get`, awaited."""
        found = _all(await self._ado(self._named(name)))
        if not found:
            raise _unknown(name, await self.alist())
        return found[0]

    def list(self, *, limit: int = 1000, offset: int = 0) -> Listed:
        """Schedules without their runs, those whose time comes first before the others.

        Args:
            limit: how many, 1 to 1000.
            offset: how many to skip.

        Raises:
            TypeError, ValueError: no whole number, or one out of range.
        """
        return _all(self._do(self._page(limit, offset)))

    async def alist(self, *, limit: int = 1000, offset: int = 0) -> Listed:
        """As `list`, awaited."""
        return _all(await self._ado(self._page(limit, offset)))

    def count(self) -> int:
        """How many there are."""
        return self._do(self._page(1, 0)).total

    async def acount(self) -> int:
        """As `count`, awaited."""
        return (await self._ado(self._page(1, 0))).total

    def pause(self, name: str) -> bool:
        """Let it fire no more until it is resumed; whether that changed anything. Errors as of `get`."""
        return self._steer(name, commands.pause_schedule) == "paused"

    async def apause(self, name: str) -> bool:
        """As `pause`, awaited."""
        return await self._asteer(name, commands.pause_schedule) == "paused"

    def resume(self, name: str) -> bool:
        """Let it fire again, from now on: what it left out isn't made up for. Whether that changed anything. Errors as
        of `get`.
        """
        return self._steer(name, commands.resume_schedule) == "resumed"

    async def aresume(self, name: str) -> bool:
        """As `resume`, awaited."""
        return await self._asteer(name, commands.resume_schedule) == "resumed"

    def remove(self, name: str) -> bool:
        """Remove it and its runs; whether there was one. Jobs that were fired stay.

        Raises:
            InvalidTransition: workers' code declares it: take it out there, or pause it.
            TypeError: the name is no text.
        """
        return _removed(name, self._do(commands.remove_schedule(self._c, _text(name))))

    async def aremove(self, name: str) -> bool:
        """As `remove`, awaited."""
        return _removed(name, await self._ado(commands.remove_schedule(self._c, _text(name))))

    def run(self, name: str) -> Run:
        """Fire it now, beside its times, also while it is paused. Its `overlap` holds.

        The run may have no job: `error` says why. With `state` "sent" its queue couldn't be reached now; the leader
        will go on trying.

        Raises:
            ScheduleNotFound, TypeError: as of `get`.
            Unavailable, ServerFull: the server didn't take it.
        """
        word, nominal_ms, queue = self._do(commands.run_schedule(self._c, _text(name), token=os.urandom(8).hex()))
        if word == "missing":
            raise _unknown(name, self.list())
        steps = relay(self._app.settings.namespace, _open(queue, word))
        with suppress(*LATER):  # then it is for the leader
            for each in drive(steps, self._do):
                tell(self._app.observers, each)
        return _run_at(self.get(name), nominal_ms)

    async def arun(self, name: str) -> Run:
        """As `run`, awaited."""
        word, nominal_ms, queue = await self._ado(
            commands.run_schedule(self._c, _text(name), token=os.urandom(8).hex())
        )
        if word == "missing":
            raise _unknown(name, await self.alist())
        steps = relay(self._app.settings.namespace, _open(queue, word))
        with suppress(*LATER):  # as above
            for each in await adrive(steps, self._ado):
                await atell(self._app.observers, each)
        return _run_at(await self.aget(name), nominal_ms)

    # --- the ways

    @property
    def _c(self) -> keys.ClusterKeys:
        return keys.cluster(self._app.settings.namespace)

    def _do(self, command: Command[T]) -> T:
        return run(self._app.client.server, command)

    async def _ado(self, command: Command[T]) -> T:
        return await run_async(self._app.aclient.server, command)

    def _steer(self, name: str, build: _Steering) -> str:
        word = self._do(build(self._c, _text(name)))
        if word == "missing":
            raise _unknown(name, self.list())
        return word

    async def _asteer(self, name: str, build: _Steering) -> str:
        word = await self._ado(build(self._c, _text(name)))
        if word == "missing":
            raise _unknown(name, await self.alist())
        return word

    def _named(self, name: str) -> Command[StoredSchedules]:
        return commands.schedules(self._c, name=_text(name) or _NONE, runs=RUNS_SHOWN)

    def _page(self, limit: int, offset: int) -> Command[StoredSchedules]:
        check_page(limit, offset, of="schedules")
        return commands.schedules(self._c, limit=limit, offset=offset)


# --- between the round trips: pure


def _rule(cron: str | None, every: Duration | None, tz: str, when: When) -> Rule:
    check_when(when, ("cron", "every", "tz"))
    if (cron is None) == (every is None):
        raise ValueError("give cron= or every=: one of them says when")
    if cron is not None:
        return calendar.cron(cron, tz=tz, **when)
    if tz != "UTC":
        raise ValueError(f"every= has no time zone (tz={shown(tz)}): an interval goes by elapsed time")
    return calendar.every(every or 0, **when)


def _text(name: str) -> str:
    return checked_text(name, name="name", of="schedule")


def _call(name: str, call: What) -> Call[Any]:
    checked_schedule_name(name)
    if isinstance(call, Task):
        return call.call()
    if isinstance(call, Call):
        return call
    raise TypeError(f"put takes a task or a call of one, such as send.call('a@b.c'), not {shown(call)}")


def _all(found: StoredSchedules) -> Listed:
    return [schedule_of(each, found.now_ms) for each in found.schedules]


def _unknown(name: str, known: Listed) -> ScheduleNotFound:
    hint = did_you_mean(name, [each.name for each in known]) or ": see `taskq schedule list`"
    return ScheduleNotFound(f"there is no schedule {shown(name)}{hint}")


def _removed(name: str, word: str) -> bool:
    if word == "declared":
        raise InvalidTransition(
            f"workers' code declares schedule {name}, and would again within a minute: take it out there, or pause it"
        )
    return word == "removed"


def _open(queue: str, word: str) -> str:
    if word == "stuck":
        raise Unavailable(f"too many firings wait for queue {queue}, which can't be reached; nothing was fired")
    return queue


def _run_at(schedule: Schedule, nominal_ms: int) -> Run:
    nominal = instant(nominal_ms)
    for each in schedule.runs:
        if each.manual and each.nominal == nominal:
            return each
    raise ScheduleNotFound(f"schedule {schedule.name} was removed while it ran")
