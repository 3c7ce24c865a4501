"""Whether the jobs said the truth: each compared with a plain single pass over the same files. Pure but for reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from taskq.demo.reading import Reading, read_file
from taskq.demo.tree import File, mark
from taskq.record import JobRecord
from taskq.state import TERMINAL, State


@dataclass(slots=True)
class Totals:
    """What a pass over the files adds up to."""

    read: int = 0
    failed: int = 0
    size: int = 0
    lines: int = 0
    longest: int = 0
    compressed: int = 0

    def add(self, outcome: Reading | str | None) -> None:
        """Count one file; a text is the error that it failed with."""
        if outcome is None:
            return
        if isinstance(outcome, str):
            self.failed += 1
            return
        self.read += 1
        self.size += outcome["size"]
        self.lines += outcome["lines"]
        self.longest = max(self.longest, outcome["longest"])
        self.compressed += outcome["compressed"]


@dataclass(slots=True)
class Verdict:
    """The jobs beside the plain pass.

    Attributes:
        lost: jobs without a record, or that haven't ended.
        wrong: jobs that say something else than the plain pass.
        changed: files that were changed while the demo ran; nothing can be said of them.
        jobs, plain: the totals of both, without changed files.
        examples: a line for each of the first differences.
    """

    lost: int = 0
    wrong: int = 0
    changed: int = 0
    jobs: Totals = field(default_factory=Totals)
    plain: Totals = field(default_factory=Totals)
    examples: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether every number is the same."""
        return not self.lost and not self.wrong and self.jobs == self.plain


def compare(files: Sequence[File], expected: Sequence[Reading | str], records: Sequence[JobRecord | None]) -> Verdict:
    """Compare what the jobs say with what is expected of each file."""
    verdict = Verdict()
    for file, wanted, record in zip(files, expected, records, strict=True):
        if mark(file.path) != file.mark:
            verdict.changed += 1
            continue
        verdict.plain.add(wanted)
        said = outcome(record, wanted)
        verdict.jobs.add(said)
        if said is None:
            verdict.lost += 1
        elif said != wanted:
            verdict.wrong += 1
        if said != wanted and len(verdict.examples) < 10:
            state = "gone" if record is None else str(record.state)
            verdict.examples.append(f"{file.path}: expected {wanted}, the job is {state}: {said}")
    return verdict


def outcome(record: JobRecord | None, wanted: Reading | str) -> Reading | str | None:
    """What a job says of its file: a reading, the error it failed with, or None if it hasn't ended.

    A job that failed at every attempt, one of which was cut short by the kill, is one that failed with its error.
    """
    if record is None or record.state not in TERMINAL:
        return None
    if record.state is State.COMPLETED:
        reading: Reading = record.result()
        return reading
    kinds = [error.type for error in record.errors]
    if record.state is State.FAILED and wanted in kinds:
        return wanted
    return kinds[-1] if kinds else record.reason or str(record.state)


def plain_pass(files: Sequence[File]) -> Iterator[Reading | str]:
    """The same work without any queue: a reading for each file, or the error's name."""
    for file in files:
        try:
            yield read_file(file.path)
        except (OSError, UnicodeDecodeError) as error:
            yield type(error).__name__


@dataclass(frozen=True, slots=True)
class Kill:
    """What a kill did: how many jobs the worker held, and the seconds until all of them ran again, if that is known."""

    held: int
    seconds: float | None


def kill_of(records: Sequence[JobRecord | None], worker: str, at_ms: float) -> Kill:
    """What became of the jobs of a worker that was killed at this time (ms since 1970).

    A job's epoch is the time of its last claim: of those that ran once more and no further it says when.
    """
    held, again = 0, []
    for record in records:
        crash = next((each for each in record.errors if each.type == "JobCrashed"), None) if record else None
        if record is None or crash is None or crash.worker != worker:
            continue
        held += 1
        if record.attempt == crash.attempt + 1 and record.epoch is not None:
            again.append(record.epoch)
    return Kill(held, max(0.0, (max(again) - at_ms) / 1000) if again else None)
