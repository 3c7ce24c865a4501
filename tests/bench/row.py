"""One figure, its reference from the same run, and what it aims at."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A measurement. `ratio` is value / reference; `aim` says in words what would be good."""

    what: str
    value: float
    unit: str
    reference: float | None = None
    reference_is: str = ""
    aim: str = ""

    @property
    def ratio(self) -> float | None:
        """How the value compares with its reference."""
        return self.value / self.reference if self.reference else None

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        reference = f"{self.reference:,.4g} {self.reference_is}" if self.reference else ""
        return (
            self.what,
            f"{self.value:,.4g} {self.unit}",
            reference,
            f"{self.ratio:.2f}" if self.ratio else "",
            self.aim,
        )
