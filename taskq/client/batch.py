"""Many jobs at once: cut into calls that a server takes without stalling, and told apart when one of them fails. Pure.

A call carries at most 250 jobs of one queue and at most 1 MiB, unless it is a
single job; a few calls travel together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from taskq import commands, keys
from taskq.commands import Command, NewJob
from taskq.errors import TaskQError, Unavailable
from taskq.keys import QueueKeys

CALL_BYTES_MAX = 1_048_576
CALLS_AT_ONCE = 16
"""How many calls one pipeline holds: enough to hide the way to the server, little to hold twice in memory."""

REGISTER_AGAIN_S = 60.0
"""How often a queue is registered again by a process that goes on enqueueing in it."""

_ROUGH_REST = 200  # bytes a job that stand around its fields: ids, names, numbers


class Call(NamedTuple):
    """One call of the script: which of the jobs it adds."""

    q: QueueKeys
    places: list[int]


def calls(namespace: str, jobs: Sequence[NewJob]) -> list[Call]:
    """The jobs' places, cut into calls: queue by queue, each in the order given."""
    by_queue: dict[str, list[int]] = {}
    for place, job in enumerate(jobs):
        by_queue.setdefault(keys.queue_of(job.id), []).append(place)
    return [Call(keys.queue(namespace, queue), cut) for queue, places in by_queue.items() for cut in _cut(jobs, places)]


def _cut(jobs: Sequence[NewJob], places: list[int]) -> Iterator[list[int]]:
    some: list[int] = []
    size = 0
    for place in places:
        more = _bytes(jobs[place])
        if some and (len(some) == commands.BATCH_MAX or size + more > CALL_BYTES_MAX):
            yield some
            some, size = [], 0
        some.append(place)
        size += more
    if some:
        yield some


def _bytes(job: NewJob) -> int:
    size = _ROUGH_REST
    for value in job.fields.values():
        if isinstance(value, bytes):
            size += len(value)
        elif isinstance(value, str):
            size += len(value) if value.isascii() else len(value.encode(errors="replace"))
    return size


def command(call: Call, jobs: Sequence[NewJob], exists: str) -> Command[list[str]]:
    """The call as a command."""
    return commands.enqueue(call.q, [jobs[place] for place in call.places], exists=exists)


def told_apart(command: Command[list[str]]) -> Command[list[str] | TaskQError]:
    """The command with its refusal as an answer, so that it doesn't hide the answers of others in the pipeline."""

    def read(reply: Any) -> list[str] | TaskQError:
        try:
            return command.read(reply)
        except TaskQError as error:
            return error

    return Command(command.script, command.keys, command.args, read, command.durable, command.resend_s)


class Progress:
    """What is known of a batch so far: a word for each job that was surely added."""

    def __init__(self, jobs: int, calls: int) -> None:
        self.words: list[str | None] = [None] * jobs
        self.calls = calls

    def take(self, sent: Sequence[Call], answers: Sequence[list[str] | TaskQError]) -> TaskQError | None:
        """Notes the answers; gives back the first refusal among them."""
        refusal = None
        for call, answer in zip(sent, answers, strict=True):
            if isinstance(answer, TaskQError):
                refusal = refusal or answer
                continue
            for place, word in zip(call.places, answer, strict=True):
                self.words[place] = word
        return refusal

    def interrupt(self, error: TaskQError) -> NoReturn:
        """Stops the batch: with the error itself if surely nothing was added, else with what was.

        When the server fell silent, jobs of a call that nobody answered may be there: they are sent again by
        their ids, so the batch must not be lost.
        """
        if self.calls == 1 or not (any(self.words) or isinstance(error, Unavailable)):
            raise error
        raise Interrupted(self.words, error) from error

    def answer(self) -> list[str]:
        """All words, once every call was answered."""
        return [word for word in self.words if word is not None]


class Interrupted(Exception):
    """A batch stopped part-way; users see it as EnqueueFailed. `words` has None for a job not surely added."""

    def __init__(self, words: list[str | None], error: TaskQError) -> None:
        super().__init__(str(error))
        self.words = words
        self.error = error
