"""What the demo shows: a progress bar on a terminal, plain lines elsewhere, and at the end the figures."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import click

Advance = Callable[[int], None]
"""Says how many are done so far."""

_STEPS = 5  # lines of a bar that isn't drawn


def say(text: str = "") -> None:
    """A line of the demo's story."""
    click.echo(text)
    sys.stdout.flush()


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Advance]:
    """A bar, or a line at every fifth of the way."""
    if sys.stdout.isatty():
        with _bar(label, total) as advance:
            yield advance
    else:
        yield _Lines(label, total)


@contextlib.contextmanager
def _bar(label: str, total: int) -> Iterator[Advance]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as drawn:
        task = drawn.add_task(label, total=total)
        yield lambda done: drawn.update(task, completed=done)


class _Lines:
    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._told = 0

    def __call__(self, done: int) -> None:
        step = done * _STEPS // self._total if self._total else 0
        if step > self._told:
            self._told = step
            say(f"{self._label}  {done} of {self._total}")
