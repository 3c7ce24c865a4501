"""`Failed`: what the attempts of one call have met: whether to try again, and when; else which error to tell."""

from __future__ import annotations

from taskq.address import Address
from taskq.connection.patience import Patience
from taskq.connection.translate import passing, telling, translated
from taskq.errors import TaskQError


class Failed:
    """The failures of one call so far."""

    def __init__(self, patience: Patience, address: Address) -> None:
        self._patience = patience
        self._address = address
        self._told: BaseException | None = None

    def pause_s(self, error: BaseException) -> float:
        """How long to wait before the next attempt, in seconds. The error is the last attempt's.

        Raises:
            TaskQError: it won't pass, or there is no time left.
        """
        told = self._told = telling(error, self._told)
        pause_s = self._patience.pause_s() if passing(error) else None
        if pause_s is not None:
            return pause_s
        if isinstance(told, TaskQError):  # it says itself what caused it
            raise told
        raise translated(told, self._address) from told
