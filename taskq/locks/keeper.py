"""The keeper: a thread of this process that renews every lock it holds on a server, for threads and coroutines alike.

A thread, because the loop may be blocked by the very work that the lock is for; one for each server, because one that
is away must not delay the others. It begins with the first lock and ends a while after the last; it holds locks weakly,
so that one nobody refers to any more runs out.
"""

from __future__ import annotations

import os
import threading
import time
import weakref

from taskq.commands import Command
from taskq.connection import Server, run_many
from taskq.locks.held import Held

_LINGER_S = 2.0
_CALL_S = 1.0


class Keeper:
    """Renews what it was given, on one server, until that is lost or taken away."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: weakref.WeakSet[Held] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def keep(self, held: Held) -> None:
        """Renew this one from now on."""
        with self._changed:
            self._held.add(held)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="taskq-locks", daemon=True)
                thread.start()
                self._thread = thread
            self._changed.notify()

    def leave(self, held: Held) -> None:
        """Don't renew it any more."""
        with self._changed:
            self._held.discard(held)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._held and not self._changed.wait(_LINGER_S) and not self._held:
                    self._thread = None
                    return
                pause_s = self._pause_s()
                if pause_s > 0:
                    self._changed.wait(pause_s)
                due = self._due()
            if due:
                renew(due)
            del due  # no lock is referred to while nothing is done

    def _pause_s(self) -> float:
        soonest = min((each.due_at for each in self._held), default=0.0)
        return soonest - time.monotonic()

    def _due(self) -> list[Held]:
        now, due = time.monotonic(), []
        for each in list(self._held):
            if each.lost:
                self._held.discard(each)
            elif each.due_at <= now:
                due.append(each)
        return due


def renew(due: list[Held]) -> None:
    """Extends these, all of one server, in one round trip."""
    asked_at = time.monotonic()
    calls: list[Command[str]] = [each.extend() for each in due]
    deadline_s = max(0.05, min(_CALL_S, min(each.ends_at for each in due) - asked_at))
    try:
        words = run_many(due[0].server, calls, deadline_s=deadline_s)
    except Exception:  # noqa: BLE001 (whatever it was: no reply is no lock, and the thread goes on for the others)
        for each in due:
            each.unanswered()
    else:
        for each, word in zip(due, words, strict=True):
            each.answered(word, asked_at)


_keepers: weakref.WeakKeyDictionary[Server, Keeper] = weakref.WeakKeyDictionary()
_one_makes_it = threading.Lock()


def keeper_of(server: Server) -> Keeper:
    """The one of this process for a server."""
    with _one_makes_it:
        if (found := _keepers.get(server)) is None:
            found = _keepers[server] = Keeper()
        return found


def _in_a_child() -> None:
    """A forked child has no such threads, and the locks are its parent's."""
    global _keepers, _one_makes_it
    _keepers, _one_makes_it = weakref.WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_child)
