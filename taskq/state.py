"""The eight states of a job and the moves between them: one table.

`lua/lib/state.lua` holds the same table and is the only code that writes a
state; a test compares the two. ARCHITECTURE.md's picture is drawn from here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from taskq.errors import InvalidTransition, did_you_mean, shown


class State(StrEnum):
    """Where a job is in its life. A `str`: `State.RUNNING == "running"`."""

    PENDING = "pending"
    """Waits for other jobs."""
    SCHEDULED = "scheduled"
    """Waits for a time."""
    AVAILABLE = "available"
    """May be claimed now."""
    RUNNING = "running"
    """Held by one worker under a lease."""
    RETRYABLE = "retryable"
    """Failed, and waits for its backoff."""
    COMPLETED = "completed"
    """Ended well."""
    FAILED = "failed"
    """Ended badly: attempts exhausted, or told not to retry."""
    CANCELLED = "cancelled"
    """Ended by request."""


StateName: TypeAlias = Literal[
    "pending", "scheduled", "available", "running", "retryable", "completed", "failed", "cancelled"
]
"""A state as users write it; a `State` will do too."""

TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})
"""The states a job only leaves by hand or by retention."""

WAITING = frozenset({State.PENDING, State.SCHEDULED, State.AVAILABLE, State.RETRYABLE})
"""The states in which nobody runs the job and somebody will."""

INITIAL: dict[State, str] = {
    State.AVAILABLE: "enqueued",
    State.SCHEDULED: "enqueued for later",
    State.PENDING: "enqueued after other jobs",
}
"""The states a job may be born in, and when."""

# (from, to, when). What isn't here doesn't happen: retryable → failed is left out on purpose (only the holder of a
# running job may fail it), as are all moves of a state to itself.
_TABLE: tuple[tuple[State, State, str], ...] = (
    (State.PENDING, State.AVAILABLE, "what it waits for ended"),
    (State.PENDING, State.SCHEDULED, "what it waits for ended, its time is later"),
    (State.PENDING, State.CANCELLED, "cancelled, purged, expired, a parent failed"),
    (State.SCHEDULED, State.AVAILABLE, "due"),
    (State.SCHEDULED, State.CANCELLED, "cancelled, purged, expired"),
    (State.SCHEDULED, State.FAILED, "its lock's wait passed, its target was lost"),
    (State.AVAILABLE, State.RUNNING, "claimed"),
    (State.AVAILABLE, State.CANCELLED, "cancelled, purged, expired"),
    (State.AVAILABLE, State.FAILED, "its lock's wait passed, its target was lost"),
    (State.RUNNING, State.COMPLETED, "finished"),
    (State.RUNNING, State.RETRYABLE, "failed, attempts left"),
    (State.RUNNING, State.FAILED, "failed for good, or lost with no attempts left"),
    (State.RUNNING, State.AVAILABLE, "released, or lost with attempts left"),
    (State.RUNNING, State.SCHEDULED, "snoozed, or handed back"),
    (State.RUNNING, State.PENDING, "continues as a flow"),
    (State.RUNNING, State.CANCELLED, "cancel asked, and stopped"),
    (State.RETRYABLE, State.AVAILABLE, "due, or retried by hand"),
    (State.RETRYABLE, State.CANCELLED, "cancelled, purged, expired"),
    (State.COMPLETED, State.AVAILABLE, "retried by hand"),
    (State.FAILED, State.AVAILABLE, "retried by hand"),
    (State.CANCELLED, State.AVAILABLE, "retried by hand"),
)

TRANSITIONS: dict[State, frozenset[State]] = {
    state: frozenset(to for before, to, _ in _TABLE if before is state) for state in State
}
"""From each state, the states a job may go to."""


class Transition(NamedTuple):
    """A move from one state to another, whether or not it is allowed."""

    from_state: str
    to_state: str

    @property
    def valid(self) -> bool:
        """Whether the table has it; unknown states and moves to itself are not in it."""
        return valid(self.from_state) and self.to_state in TRANSITIONS[State(self.from_state)]


def valid(state: object) -> bool:
    """Whether this is the name of a state."""
    return isinstance(state, str) and state in State.__members__.values()


def terminal(state: object) -> bool:
    """Whether a job in this state has ended."""
    return isinstance(state, str) and state in TERMINAL


def validate_transition(from_state: str, to_state: str) -> None:
    """Do nothing if the move is allowed.

    Raises:
        InvalidTransition: it isn't; names both states, and where a job may go instead.
    """
    if Transition(from_state, to_state).valid:
        return
    for state in (from_state, to_state):
        if not valid(state):
            move = f"{shown(from_state)} to {shown(to_state)}"
            told = f"{shown(state)} is no state of a job{did_you_mean(str(state), State)}: {move}"
            raise InvalidTransition(told, from_state=from_state, to_state=to_state)
    ways = ", ".join(to for before, to, _ in _TABLE if before == from_state)
    raise InvalidTransition(
        f"a job can't go from {from_state} to {to_state}; from {from_state} it can go to: {ways}",
        from_state=from_state,
        to_state=to_state,
    )


def picture() -> str:
    """The state diagram as Mermaid text, for ARCHITECTURE.md."""
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {state}: {when}" for state, when in INITIAL.items()]
    lines += [f"    {before} --> {to}: {when}" for before, to, when in _TABLE]
    lines += [f"    {state} --> [*]: retention" for state in State if state in TERMINAL]
    return "\n".join(lines) + "\n"
