"""Whether a failed attempt is followed by another, and how long the wait is.

Pure policy: `next_state` decides, the worker acts. Delays are clamped before
they are computed, so that attempt 1,000 waits the cap and not 2^999 seconds.
"""

from __future__ import annotations

import inspect
import random as chance
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeGuard, TypeVar

from taskq.errors import did_you_mean, shown
from taskq.log import get_logger
from taskq.state import State
from taskq.units import LONGEST_MS, Duration, duration_ms, duration_text

log = get_logger(__name__)

E = TypeVar("E", bound=BaseException)

BackoffFunction: TypeAlias = Callable[[int, BaseException | None], Duration]
"""`callable(attempt, error)` → how long to wait, in seconds or as any other duration."""

DEFAULT_MAX_ATTEMPTS = 3
"""How many times a job is run at most, if nobody says otherwise."""

_STRATEGIES = ("exponential", "fibonacci", "fixed")


def _base_ms(base: Duration) -> int:
    base_ms = duration_ms(base, name="base")
    if base_ms == 0:
        raise ValueError("base=0 never grows: give more, or Backoff.fixed(0) for retries at once")
    return base_ms


def _fibonacci_ms(attempt: int, base_ms: int, cap_ms: int) -> int:
    now, then = 1, 2
    for _ in range(attempt - 1):
        if now * base_ms >= cap_ms:
            break
        now, then = then, now + then
    return min(now * base_ms, cap_ms)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a job waits after a failed attempt.

    Made by `Backoff.exponential`, `.fibonacci`, `.fixed` or `.of(callable)`. With jitter a delay lies
    evenly within ±20 % of its strategy's, at the cap within 60–100 % of it, and never above the cap:
    a thousand jobs that failed together don't come back together. A callable's delay is used as it is.
    """

    strategy: str
    base_ms: int
    cap_ms: int
    jitter: bool = True
    function: BackoffFunction | None = field(default=None, repr=False)

    @classmethod
    def exponential(cls, base: Duration = 2, cap: Duration = "24h", *, jitter: bool = True) -> Backoff:
        """`base` · 2^(attempt - 1), at most `cap`: by default 2 s, 4 s, 8 s … 24 h.

        Raises:
            ValueError: not a duration, or a base of 0.
        """
        return cls("exponential", _base_ms(base), duration_ms(cap, name="cap"), jitter)

    @classmethod
    def fibonacci(cls, base: Duration = 1, cap: Duration = "24h", *, jitter: bool = True) -> Backoff:
        """`base` · 1, 2, 3, 5, 8 …, at most `cap`: by default 1 s, 2 s, 3 s, 5 s … 24 h.

        Raises:
            ValueError: not a duration, or a base of 0.
        """
        return cls("fibonacci", _base_ms(base), duration_ms(cap, name="cap"), jitter)

    @classmethod
    def fixed(cls, delay: Duration, cap: Duration = "24h", *, jitter: bool = True) -> Backoff:
        """The same `delay` after every attempt, at most `cap`; 0 means at once.

        Raises:
            ValueError: not a duration.
        """
        return cls("fixed", duration_ms(delay, name="delay"), duration_ms(cap, name="cap"), jitter)

    @classmethod
    def of(cls, value: Backoff | BackoffFunction) -> Backoff:
        """The backoff itself, or one around `callable(attempt, error)` → seconds.

        Raises:
            ValueError: neither of them.
        """
        if isinstance(value, Backoff):
            return value
        if getattr(value, "__self__", None) is cls:
            raise ValueError(f"call it: backoff=Backoff.{getattr(value, '__name__', '')}(…)")
        if isinstance(value, type) or not callable(value):
            raise ValueError(  # noqa: TRY004 (refusals of options are ValueErrors throughout)
                f"backoff={shown(value)} is none: give Backoff.exponential(), .fibonacci(), .fixed('5s'),"
                " or a callable(attempt, error) that returns seconds"
            )
        try:
            signature = inspect.signature(value)
        except (ValueError, TypeError):  # some that are written in C don't tell, and some say what is none
            signature = None
        if signature is not None:
            try:
                signature.bind(1, None)
            except TypeError as error:
                raise ValueError(
                    f"the callable of backoff= takes {signature}, and is called with (attempt, error): {error}"
                ) from None
        return cls("callable", 0, LONGEST_MS, jitter=False, function=value)

    def nominal_ms(self, attempt: int) -> int:
        """The strategy's delay after this attempt (1 is the first), without jitter.

        Raises:
            ValueError: a callable has none.
        """
        if self.function is not None:
            raise ValueError("a callable backoff says its delay only for an error: use delay_ms")
        if self.base_ms >= self.cap_ms:
            return self.cap_ms
        if self.strategy == "fixed":
            return self.base_ms
        if self.strategy == "fibonacci":
            return _fibonacci_ms(attempt, self.base_ms, self.cap_ms)
        doublings = max(attempt, 1) - 1
        # 2^doublings is only computed while it is known to stay near the cap.
        if doublings >= (self.cap_ms // self.base_ms).bit_length():
            return self.cap_ms
        return min(self.base_ms << doublings, self.cap_ms)

    def delay_ms(
        self, attempt: int, error: BaseException | None = None, *, random: Callable[[], float] = chance.random
    ) -> int:
        """How long to wait after this attempt, in ms.

        Args:
            attempt: the number of the attempt that failed; the first is 1.
            error: what it failed with; only a callable looks at it.
            random: a number in [0, 1); tests pass their own.

        Never raises: a callable that does, or says no duration, is logged and the default backoff speaks.
        """
        if self.function is not None:
            try:
                return duration_ms(self.function(attempt, error), name="backoff()")
            except BaseException:  # user code: even a sys.exit() there must not end the worker
                # The job has failed already; a second failure here must not cost it its retry.
                log.exception("a task's backoff failed; the default backoff is used")
                return DEFAULT_BACKOFF.delay_ms(attempt, random=random)
        nominal = self.nominal_ms(attempt)
        if not self.jitter:
            return nominal
        low, high = (0.6, 1.0) if nominal >= self.cap_ms else (0.8, 1.2)
        # The range ends at the cap: cutting afterwards would let many jobs meet exactly there.
        least, most = nominal * low, min(nominal * high, self.cap_ms)
        return min(round(least + (most - least) * random()), self.cap_ms)

    def delay_s(
        self, attempt: int, error: BaseException | None = None, *, random: Callable[[], float] = chance.random
    ) -> float:
        """As `delay_ms`, in seconds."""
        return self.delay_ms(attempt, error, random=random) / 1000

    def spec(self) -> str:
        """The text form kept in the record: "exponential:15000:3600000" (base and cap in ms).

        Raises:
            ValueError: a callable can't be stored; it lives in the task's code.
        """
        if self.function is not None:
            raise ValueError("a callable backoff can't be stored with a job: give it to the task instead of using()")
        return f"{self.strategy}:{self.base_ms}:{self.cap_ms}" + ("" if self.jitter else ":exact")

    @classmethod
    def from_spec(cls, spec: str) -> Backoff:
        """The reverse of `spec`. A strategy of a later version waits exponentially meanwhile.

        Raises:
            ValueError: not a backoff's text form.
        """
        parts = re.fullmatch(r"([a-z_]{1,32}):([0-9]{1,13}):([0-9]{1,13})(:exact)?", spec)
        if parts is None:
            raise ValueError(f"{spec[:60]!r} is no backoff{did_you_mean(spec.partition(':')[0], _STRATEGIES)}")
        strategy = parts[1] if parts[1] in _STRATEGIES else "exponential"
        base_ms, cap_ms = int(parts[2]), min(int(parts[3]), LONGEST_MS)
        return cls(strategy, base_ms if strategy == "fixed" else max(base_ms, 1), cap_ms, jitter=not parts[4])


DEFAULT_BACKOFF = Backoff.exponential(base=15, cap="1h")
"""A task's backoff if nobody says otherwise: 15 s, 30 s, 1 min … 1 h."""


# --- what a task may raise to decide for itself -------------------------------


class Retry(Exception):
    """Raise it in a task to end this attempt as failed and have another.

    Args:
        delay: how long to wait, or None for the task's backoff.
        reason: a line for people.

    It counts as an attempt: the last one fails the job. `raise Retry(…) from error` keeps the error.

    Raises:
        ValueError: not a duration.
    """

    delay_ms: int | None = None  # here too, for a class of the user's that doesn't call ours
    reason: str = ""

    def __init__(self, delay: Duration | None = None, reason: str = "") -> None:
        super().__init__(delay, reason)
        self.delay_ms = None if delay is None else duration_ms(delay, name="Retry(delay)")
        self.reason = reason

    def __str__(self) -> str:
        after = "" if self.delay_ms is None else f" in {duration_text(self.delay_ms)}"
        return str(self.reason or f"the task asked for another attempt{after}")


class Snooze(Exception):
    """Raise it in a task to put the job off without using an attempt.

    Args:
        delay: how long to wait.
        reason: a line for people.

    Raises:
        ValueError: not a duration.
    """

    delay_ms: int | None = None  # as in Retry; without one it can't be told, and the attempt fails with that
    reason: str = ""

    def __init__(self, delay: Duration, reason: str = "") -> None:
        super().__init__(delay, reason)
        self.delay_ms = duration_ms(delay, name="Snooze(delay)")
        self.reason = reason

    def __str__(self) -> str:
        after = "" if self.delay_ms is None else f" for {duration_text(self.delay_ms)}"
        return str(self.reason or f"the task put itself off{after}")


class Discard(Exception):
    """Raise it in a task to fail the job for good, whatever attempts are left.

    Args:
        reason: a line for people; becomes the job's `reason`.
    """

    reason: str = ""  # as in Retry

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.reason or "the task discarded the job")  # whatever was given, such as an error


class NextState(NamedTuple):
    """What becomes of a job after an attempt.

    `delay_ms` counts for retryable and scheduled, `reason` for failed; `refund` says that the attempt
    doesn't count.
    """

    state: State
    delay_ms: int = 0
    reason: str = ""
    refund: bool = False


def next_state(
    attempt: int,
    max_attempts: int,
    error: BaseException | None = None,
    *,
    backoff: Backoff = DEFAULT_BACKOFF,
    random: Callable[[], float] = chance.random,
) -> NextState:
    """What becomes of a job whose attempt has ended.

    Args:
        attempt: the attempt's number, which the claim has counted already: the first is 1.
        max_attempts: how many there may be; 0 or less is read as 3, and 3 means exactly three runs.
        error: what the attempt raised, or None.
        backoff: the wait, unless the error brings its own.
        random: as in `Backoff.delay_ms`.
    """
    if error is None:
        return NextState(State.COMPLETED)
    if is_a(error, Snooze):
        return NextState(State.SCHEDULED, _asked_ms(error.delay_ms), refund=True)
    if is_a(error, Discard):
        return NextState(State.FAILED, reason=_said(error))
    most = max_attempts if max_attempts > 0 else DEFAULT_MAX_ATTEMPTS
    if attempt >= most:
        return NextState(State.FAILED, reason=f"attempts exhausted ({attempt} of {most})")
    if is_a(error, Retry) and error.delay_ms is not None:
        return NextState(State.RETRYABLE, _asked_ms(error.delay_ms))
    return NextState(State.RETRYABLE, backoff.delay_ms(attempt, error, random=random))


def is_a(error: BaseException, *kinds: type[E]) -> TypeGuard[E]:
    """Whether the error is of one of these classes. Not isinstance: that asks the error itself, whose `__class__` may
    be a property of the user's which raises.
    """
    return issubclass(type(error), kinds)


def _said(error: BaseException) -> str:
    """What a Discard says. One that can't be asked fails the job all the same: that much it said."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 (user code)
        return str(Discard())


def _asked_ms(delay_ms: object) -> int:
    """A delay that an error of the user's own class brings: whatever its `__init__` made of it."""
    if type(delay_ms) is not int or not 0 <= delay_ms <= LONGEST_MS:
        raise ValueError(f"delay_ms={shown(delay_ms)} is no delay: call super().__init__(delay)")
    return delay_ms
