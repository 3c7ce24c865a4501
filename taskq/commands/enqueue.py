"""Adding jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from taskq.commands.command import Arg, Command, build, text, texts
from taskq.errors import DuplicateJob, JobAlreadyExists, TaskQError, TooManyClasses
from taskq.keys import QueueKeys
from taskq.needs import NOTHING, parsed

#: The most jobs that one call may carry: longer calls held the server for too long (measured: 1,000 jobs, 40 ms).
BATCH_MAX = 250
#: How long a call may be sent again after it was first sent: a record that tells of it lasts at least 15 s.
RESEND_S = 10.0


class NewJob(NamedTuple):
    """A job that is to be added.

    Attributes:
        id: the full id, `<queue>:<rest>`.
        token: names the call, so that it may be repeated; '' for an id that is unique by itself.
        task: the task's name.
        executor: `async`, `thread`, or '' where the producer doesn't know; the workers' own word beats it.
        priority: −512 … 511, higher first.
        due: when it may start: '' (now), '+<ms from now>' or '<ms since 1970>'.
        expires: by when it must have started, in the same form.
        fields: further fields of the record (`taskq.record`), without those above.
        lane: '<fairness key>:<gates>', where it has keys (`taskq.lanes`); '' for a plain lane.
        once: what it is unique by (`taskq.once`); '' for nothing.
        needs: what it needs of a worker beside an executor (`taskq.needs`); '' for nothing.
    """

    id: str
    token: str
    task: str
    executor: str
    priority: int
    due: str
    expires: str
    fields: Mapping[str, Arg]
    lane: str = ""
    once: str = ""
    needs: str = ""

    def put_into(self, args: list[Arg]) -> None:
        """Appends it as scripts read it (`lua/lib/birth.lua`)."""
        args += (self.id, self.token, self.task, self.executor, self.needs, self.priority, self.due, self.expires)
        args += (self.lane, self.once, len(self.fields))
        for pair in self.fields.items():
            args += pair


def enqueue(
    q: QueueKeys, jobs: Sequence[NewJob], *, exists: str = "existing", now: int | None = None
) -> Command[list[str]]:
    """Adds jobs to a queue, all or none; at most 250 a call.

    Answers for each job `available` or `scheduled` (it was created, by this call or by the same call before), or
    `existing` (its id was taken; that job is untouched). Where its unique key is another job's: `existing <id>`, or
    `replaced <id>` (the waiting job is now what this call says), with that job's id.

    Args:
        q: the queue.
        jobs: what to add.
        exists: `raise` refuses the whole call if any id is taken, also twice within it.
        now: the time in ms; None for the server's clock.

    Raises (when read):
        JobAlreadyExists: with `exists="raise"`; nothing was added.
        DuplicateJob: the unique key of a job that asks for it is another's; nothing was added.
        TooManyClasses: jobs of this queue need so many different things already; nothing was added.
    """
    rest: list[Arg] = []
    for job in jobs:
        job.put_into(rest)
    durable = tuple([job.id for job in jobs])

    def read(reply: Any) -> list[str]:
        return _read(reply, q)

    return build("enqueue", q, read, {"now": now, "exists": exists}, rest, durable=durable, resend_s=RESEND_S)


def _read(reply: Any, q: QueueKeys) -> list[str]:
    if reply[0] == b"exists":
        message = f"job {text(reply[1])} exists already; nothing was added"
        raise JobAlreadyExists(message)
    if reply[0] in {b"duplicate", b"classes"}:
        word, *facts = texts(reply)
        raise refused(word, facts, q)
    return texts(reply[1:])


def refused(word: str, facts: Sequence[str], q: QueueKeys) -> TaskQError:
    """The error of a call that adds jobs and was refused, `duplicate` or `classes`, with what its script tells."""
    if word == "duplicate":
        _, key, owner = facts
        return DuplicateJob(f"job {owner} owns the unique key {key}; nothing was added", owner=owner)
    needs, most = facts
    what, advice = "labels and resources", "round amounts up, use fewer labels, or several queues"
    if (parsed(needs) or NOTHING).target:
        what, advice = "targets", "name fewer targets, or use several queues"
    return TooManyClasses(
        f"queue {q.name} has jobs that need {most} different sets of {what}, and may have no more: {advice}. Nothing"
        f" was added for a job that needs {needs}."
    )
