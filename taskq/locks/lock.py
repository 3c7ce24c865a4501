"""`NamedLock`: what `app.lock("name")` gives. Making one does no I/O; what asks the server has an a-twin."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from taskq import commands, keys
from taskq.connection import run, run_async
from taskq.current import current
from taskq.errors import LockLost, NotInJob, TaskQError, Unavailable
from taskq.home import Home
from taskq.locks.attempt import Attempt
from taskq.locks.held import NOT_OURS, Held
from taskq.locks.keeper import keeper_of
from taskq.locks.names import checked_lock_name, checked_ttl, checked_wait
from taskq.units import Duration

_GIVE_UP_S = 1.0


class NamedLock:
    """A lock that one holder at a time has, over all processes: `with app.lock("report", wait="5s") as lock:`, and
    `async with` on the same object.

    While it is held, a thread of this process renews it, whatever the work does; it ends by itself `ttl` after the
    process stopped or lost the server. The holder is told: `lost` is true, `check()` and the end of the block raise
    LockLost. A process that stood still can't know it in time, so what must not be written by two is written with
    `fence`, to a store that refuses a lower one than it has seen.

    One object has one acquisition at a time; make one for each use. Those who wait get the lock in the order they came.

    Args:
        home: the app.
        name: 1 to 200 printable characters; the same name is the same lock in all programs of the namespace.
        ttl: how long it outlives its holder; 0.1 s to 24 h, default 30 s. It is renewed after a third of that.
        wait: how long to wait for it; 0: not at all, None (the default): as long as it takes.

    Raises:
        ValueError: a name, ttl or wait that breaks its rule.
    """

    __slots__ = ("__weakref__", "_busy", "_fence", "_held", "_home", "_ttl_ms", "_wait_ms", "_why", "name")

    def __init__(self, home: Home, name: str, *, ttl: Duration = "30s", wait: Duration | None = None) -> None:
        self._home = home
        self.name = checked_lock_name(name)
        self._ttl_ms = checked_ttl(ttl)
        self._wait_ms = checked_wait(wait)
        self._held: Held | None = None
        self._fence = 0
        self._why = ""
        self._busy = False

    def __repr__(self) -> str:
        state = "not held" if self._held is None else "lost" if self.lost else f"held, fence {self._fence}"
        return f"<Lock {self._home.settings.namespace}/{self.name} {state}>"

    # --- what is known here, without I/O

    @property
    def fence(self) -> int:
        """The number of this acquisition: higher than every one before, of whatever lock. Kept after the release.

        Raises:
            RuntimeError: the lock was never acquired through this object.
        """
        if not self._fence:
            raise RuntimeError(f"the lock {self.name!r} has no fence before it is acquired")
        return self._fence

    @property
    def held(self) -> bool:
        """Whether it is surely held: acquired, not released, and confirmed by the server for now."""
        return self._held is not None and not self._held.lost

    @property
    def lost(self) -> bool:
        """Whether it was acquired and then lost: its time ran out without an answer of the server, which also happens
        to a process that is stopped or that doesn't reach it, or it was released by force. It stays lost until it is
        released; the block's end does that.
        """
        return self._held is not None and bool(self._held.lost)

    def remaining(self) -> float:
        """Seconds for which it is surely held if nothing renews it any more; 0 if it isn't held."""
        return 0.0 if self._held is None else self._held.left_s

    def check(self) -> None:
        """Nothing while it is held. No I/O.

        Raises:
            LockLost: it isn't held, or not any more.
        """
        self._mine()

    # --- taking it

    def acquire(self) -> Self:
        """Take it, after at most `wait`; for use without `with`. Gives this object.

        Raises:
            LockTimeout: it wasn't free within `wait`; says who holds it.
            Unavailable: the server doesn't answer. Nothing is held.
            RuntimeError: this object holds it already, or an event loop runs on this thread (`aacquire`).
        """
        self._off_the_loop()
        attempt = self._begin()
        server = self._home.client.server
        try:
            if not self._ask(attempt):
                attempt.pause_s()
                with server.listen(self._keys.turn(attempt.token)) as bell:
                    while not self._ask(attempt):
                        bell.wait(attempt.pause_s())
            self._hold(attempt)
        except BaseException:
            if attempt.unsure:
                with suppress(TaskQError):
                    run(server, self._give_up(attempt), deadline_s=_GIVE_UP_S)
            raise
        finally:
            self._busy = False
        return self

    async def aacquire(self) -> Self:
        """As `acquire`, awaited."""
        attempt = self._begin()
        server = self._home.aclient.server
        try:
            if not await self._aask(attempt):
                attempt.pause_s()
                async with server.listen(self._keys.turn(attempt.token)) as bell:
                    while not await self._aask(attempt):
                        await bell.wait(attempt.pause_s())
            self._hold(attempt)
        except GeneratorExit:  # nothing can be awaited any more: its place in the line passes by itself
            raise
        except BaseException:
            if attempt.unsure:
                with suppress(TaskQError):
                    await run_async(server, self._give_up(attempt), deadline_s=_GIVE_UP_S)
            raise
        finally:
            self._busy = False
        return self

    def __enter__(self) -> Self:
        return self.acquire()

    async def __aenter__(self) -> Self:
        return await self.aacquire()

    # --- keeping it

    def extend(self, ttl: Duration | None = None) -> None:
        """Hold it for at least so long from now on, for work during which this process can't renew it. It is never
        shortened; it is renewed as before.

        Args:
            ttl: 0.1 s to 24 h; None: the lock's own.

        Raises:
            LockLost: it isn't held any more.
            Unavailable: the server doesn't answer; what was held before is.
            ValueError: a ttl that breaks its rule.
        """
        held, ttl_ms = self._extending(ttl)
        asked_at = time.monotonic()
        held.answered(run(held.server, held.extend(ttl_ms)), asked_at, ttl_ms)
        self.check()

    async def aextend(self, ttl: Duration | None = None) -> None:
        """As `extend`, awaited."""
        held, ttl_ms = self._extending(ttl)
        asked_at = time.monotonic()
        held.answered(await run_async(self._home.aclient.server, held.extend(ttl_ms)), asked_at, ttl_ms)
        self.check()

    # --- giving it back

    def release(self) -> bool:
        """Give it back before the block's end. Whether it was held until now: a second release, or one of a lock that
        was lost, says False and changes nothing.

        Raises:
            Unavailable: the server doesn't answer; the lock ends by itself, since it isn't renewed any more.
        """
        held = self._take()
        if held is None:
            return False
        why = held.lost
        return run(self._home.client.server, held.release()) == "released" and not why

    async def arelease(self) -> bool:
        """As `release`, awaited."""
        held = self._take()
        if held is None:
            return False
        why = held.lost
        return await run_async(self._home.aclient.server, held.release()) == "released" and not why

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        held = self._take()
        if held is None:
            return
        why, word = held.lost, ""
        try:
            word = run(self._home.client.server, held.release(), deadline_s=self._farewell_s(held))
        except TaskQError as unanswered:
            self._unreleased(unanswered)
        self._tell(why or (NOT_OURS if word == "lost" else ""), error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        held = self._take()
        if held is None:
            return
        why, word = held.lost, ""
        try:
            word = await run_async(self._home.aclient.server, held.release(), deadline_s=self._farewell_s(held))
        except TaskQError as unanswered:
            self._unreleased(unanswered)
        self._tell(why or (NOT_OURS if word == "lost" else ""), error)

    # --- between the calls

    @property
    def _keys(self) -> keys.ClusterKeys:
        return keys.cluster(self._home.settings.namespace)

    def _begin(self) -> Attempt:
        if self._busy or (self._held is not None and self._held.is_here):
            raise RuntimeError(
                f"this object holds the lock {self.name!r} or waits for it already: make another with app.lock(...)"
            )
        attempt = Attempt(self.name, ttl_ms=self._ttl_ms, wait_ms=self._wait_ms, owner=_owner(), job=_job())
        self._busy = True
        return attempt

    def _ask(self, attempt: Attempt) -> bool:
        call = attempt.ask(self._keys)
        try:
            return attempt.hear(run(self._home.client.server, call))
        except Unavailable as error:
            attempt.away(error)
        return False

    async def _aask(self, attempt: Attempt) -> bool:
        call = attempt.ask(self._keys)
        try:
            return attempt.hear(await run_async(self._home.aclient.server, call))
        except Unavailable as error:
            attempt.away(error)
        return False

    def _give_up(self, attempt: Attempt) -> commands.Command[str]:
        return commands.lock_release(self._keys, name=self.name, token=attempt.token)

    def _hold(self, attempt: Attempt) -> None:
        held = Held(
            self._keys,
            self._home.client.server,
            name=self.name,
            token=attempt.token,
            fence=attempt.fence,
            ttl_ms=self._ttl_ms,
            asked_at=attempt.asked_at,
        )
        keeper_of(held.server).keep(held)
        self._held, self._fence, self._why = held, attempt.fence, ""

    def _take(self) -> Held | None:
        """Ends the renewal. None if there is nothing to give back: a forked child has nothing of its parent's."""
        held, self._held = self._held, None
        if held is None or not held.is_here:
            return None
        keeper_of(held.server).leave(held)
        self._why = held.lost
        return held

    def _mine(self) -> Held:
        held = self._held
        if held is None:
            raise LockLost(f"the lock {self.name!r} is not held{': ' if self._why else ''}{self._why}")
        if held.lost:
            raise LockLost(self._sentence(held.lost))
        return held

    def _extending(self, ttl: Duration | None) -> tuple[Held, int]:
        ttl_ms = self._ttl_ms if ttl is None else checked_ttl(ttl)
        return self._mine(), ttl_ms

    def _farewell_s(self, held: Held) -> float:
        """How long to try to give it back: no longer than it would last anyway, for whoever waits."""
        return max(_GIVE_UP_S, min(self._home.settings.deadline_ms / 1000, held.left_s))

    def _sentence(self, why: str) -> str:
        return f"the lock {self.name!r} (fence {self._fence}) was lost: {why}"

    def _tell(self, why: str, error: BaseException | None) -> None:
        """At the block's end: that the lock was lost meanwhile. An error of the block itself goes first."""
        self._why = why
        if not why:
            return
        if error is None:
            raise LockLost(self._sentence(why))
        error.add_note(self._sentence(why))

    def _unreleased(self, error: TaskQError) -> None:
        from taskq.log import get_logger  # it brings logging along

        get_logger(__name__).warning(
            "a lock could not be given back: it ends by itself",
            lock=self.name,
            ttl_s=self._ttl_ms / 1000,
            error=str(error),
        )

    def _off_the_loop(self) -> None:
        """Refuse to wait on an event loop's thread. Whoever never imported asyncio runs none."""
        asyncio = sys.modules.get("asyncio")
        if asyncio is not None and asyncio._get_running_loop() is not None:  # noqa: SLF001 (its only way that doesn't raise)
            raise RuntimeError(
                f"the lock {self.name!r} would block the event loop that runs on this thread: use `async with`"
            )


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _job() -> str:
    try:
        return current().id
    except NotInJob:
        return ""
