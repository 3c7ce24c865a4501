"""What an executor of one's own says, in threads: claims, leases, ends. The twin of `executing_async.py`.

How to write one stands in docs/executors.md, and for other languages in lua/README.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from taskq import commands, keys
from taskq.asked import spelled
from taskq.client import batch, claims, operations
from taskq.client.claiming import ClaimedJob, asked
from taskq.connection import Server, run
from taskq.errors import TaskQError, Unavailable
from taskq.keys import QueueKeys
from taskq.record.lease import Lease
from taskq.settings import Settings, checked_name
from taskq.units import Duration


class Executing:
    """A part of `Client`, which opens its connections."""

    settings: Settings
    server: Server
    _namespace: str
    _known: dict[str, float]

    def register(self, queue: str) -> None:
        """Makes a queue known to everybody who lists them; once a process is enough."""
        run(self.server, operations.register(self._namespace, queue))
        self._known[queue] = time.monotonic()

    @spelled
    def claim(
        self,
        queues: str | Sequence[str],
        *,
        worker: str,
        poller: str = "",
        limit: int = 1,
        start: bool = True,
        offer_ttl: Duration | None = None,
        lease: Duration | None = None,
        request: str | None = None,
        labels: Mapping[str, str] | None = None,
        free: Mapping[str, float | str] | None = None,
    ) -> list[ClaimedJob]:
        """Take waiting jobs, best first, queue after queue, for an executor of your own.

        Sent again because its answer was lost, it gives the same jobs: each call has a name of its own. Of several
        queues, what the first gave is returned though a later one doesn't answer.

        Args:
            queues: a queue's name, or several in the order in which they are asked. Each becomes known, as one that a
                worker serves does: an executor too may begin before the first job.
            worker: who will hold the jobs, such as "render-3": 1 to 128 of A-Z a-z 0-9 . _ : @ -
            poller: who of the worker asks, in the same letters; kept beside it. Default: nobody said.
            limit: at most so many jobs, 1 to 250; default 1.
            start: True (the default): they run at once, under a lease. False: they are offers, each to be started
                within `offer_ttl`, or it goes back to its place.
            offer_ttl: a duration from 1 ms to a day, with `start=False`; default 30 s.
            lease: how long a lease lasts unless it is renewed, from 1 ms to a day. Default: the client's (8 s).
            request: a name for this call. The same again within a minute, by the same worker, gives what of that call's
                jobs it still holds, and nothing new. Default: a new name each time.
            labels: what the executor is, such as {"gpu": "a100"}.
            free: what it has left of each resource, such as {"gpu": 1, "memory": "4GiB"}; a claim takes no more
                together. With `labels` or `free` (they may be empty) jobs are given too that need labels, resources, or
                this `worker` as their target, where all of it fits. With neither, only jobs that need none of it.

        Returns:
            What was given, possibly nothing: it doesn't wait for jobs.

        Raises:
            ValueError, TypeError: what can't be asked.
            Unavailable: no queue gave an answer in time.
        """
        what = asked(
            self.settings, queues, worker=worker, poller=poller, limit=limit, start=start, offer_ttl=offer_ttl,
            lease=lease, request=request, labels=labels, free=free,
        )  # fmt: skip
        given: list[ClaimedJob] = []
        for q in what.queues:
            if len(given) == limit:
                break
            try:
                if q.name not in self._known:
                    self.register(q.name)
                known = run(self.server, what.classes(q)) if what.place else None
                some = run(self.server, what.command(q, given, known))
            except Unavailable:
                if not given:
                    raise
                break
            self._remind(q.name)
            given += some
        return given

    def start(self, token: str, *, lease: Duration | None = None) -> None:
        """Make an offer a lease: from now on the job runs. Told again, it only renews.

        Args:
            token: of the claim, as `ClaimedJob.token` has it.
            lease: how long it lasts unless it is renewed, from 1 ms to a day. Default: the client's (8 s).

        Raises:
            ClaimNotFound: the offer is over, or this is no token: start nothing.
            ValueError: a lease that can't be.
            Unavailable: the server gave no answer in time.
        """
        run(self.server, claims.start(self.settings, token, lease))

    def release(self, token: str) -> str:
        """Give an offer or a job back untouched: it returns to its place, and the attempt isn't counted (up to 20
        times in a row).

        Args:
            token: of the claim.

        Returns:
            Where it went: "available", "cancelled" if that was asked, "failed" where that was its last attempt and
            it counted, or "ok" where it was told before.

        Raises:
            ClaimNotFound: this is no token.
            LeaseLost: another holds the job by now, or nobody; nothing was changed.
            JobNotFound: the job is gone.
            Unavailable: the server gave no answer in time.
        """
        return run(self.server, claims.release(self.settings, token))

    def renew(self, token: str, *, lease: Duration | None = None) -> str:
        """Extend a lease from now on. Do so about every third of it, else others get the job.

        Args:
            token: of the claim.
            lease: how long it lasts from now, from 1 ms to a day. Default: the client's (8 s).

        Returns:
            "ok"; or, renewed all the same, "cancel" if the job was asked to stop, "force" if that must not wait: stop
            it and call `fail`, which ends it as cancelled.

        Raises:
            LeaseLost: another holds the job by now, or nobody. Stop the work: nothing more that is said counts.
            InvalidTransition: it is an offer, which must be started first.
            ClaimNotFound: this is no token.
            JobNotFound: the job is gone.
            Unavailable: the server gave no answer in time.
        """
        return run(self.server, claims.renew(self.settings, token, lease))

    def complete(self, token: str, result: Any = None) -> None:
        """End a job well. Told again by the same holder, it is done once.

        Args:
            token: of the claim.
            result: what waiters get: any value that a task may return; None by default.

        Raises:
            LeaseLost: another holds the job by now, or nobody; nothing was changed.
            InvalidTransition: it is an offer, which must be started first.
            ClaimNotFound: this is no token.
            JobNotFound: the job is gone.
            Unencodable, PayloadTooLarge: the result can't be stored; the job still runs.
            Unavailable: the server gave no answer in time.
        """
        run(self.server, claims.complete(self.settings, token, result))

    def fail(self, token: str, error: BaseException | str, *, retry: bool = True, delay: Duration | None = None) -> str:
        """End an attempt badly.

        Args:
            token: of the claim.
            error: what went wrong: a text, or an exception, which is kept with its traceback.
            retry: whether it may be tried again while attempts are left; default True.
            delay: until the next attempt, a duration. Default: by the backoff that the job's call gave, else the usual
                one (15 s, doubled each time, at most 1 h).

        Returns:
            Where it went: "retryable", "failed" for good, "cancelled" if that was asked, or "ok" where it was told
            before.

        Raises:
            LeaseLost: another holds the job by now, or nobody; nothing was changed.
            InvalidTransition: it is an offer, which must be started first, or released.
            ClaimNotFound: this is no token.
            JobNotFound: the job is gone.
            ValueError, TypeError: an error or a delay that can't be.
            Unavailable: the server gave no answer in time.
        """
        found = run(self.server, claims.seen(self.settings, token))
        command = claims.fail(self.settings, token, error, retry=retry, delay=delay, found=found)
        return run(self.server, command)

    def report(self, token: str, n: float | None = None, total: float | None = None, note: str | None = None) -> None:
        """Keep how far a job is, for those who look at it. It doesn't renew the lease.

        Args:
            token: of the claim.
            n: how much is done, in units of your own.
            total: out of how much.
            note: a few words.

        Raises:
            LeaseLost, InvalidTransition, ClaimNotFound, JobNotFound, Unavailable: as `complete`.
        """
        run(self.server, claims.report(self.settings, token, n, total, note))

    def get_claim(self, token: str) -> Lease:
        """The claim as it stands: an offer or a lease.

        Args:
            token: of the claim.

        Raises:
            ClaimNotFound: it is over, or this is no token.
            Unavailable: the server gave no answer in time.
        """
        return run(self.server, claims.by_token(self.settings, token))

    def outstanding(self, queue: str | None = None) -> int:
        """How many jobs wait, in any of the waiting states, or are offered and not started.

        Args:
            queue: of one queue; None, the default: of all.

        Raises:
            QueueNotFound: nothing was ever enqueued there.
            Unavailable: the server gave no answer in time.
        """
        count = 0
        for q in self._chosen(queue):
            count += claims.waiting(run(self.server, commands.counts(q)))
            count += sum(lease.offered for lease in self._leases(q))
        return count

    def has_outstanding(self, attempt_key: str) -> bool:
        """Whether this attempt of a job waits, or is offered and not started.

        Args:
            attempt_key: `<job id>#<attempt>`, as `ClaimedJob.attempt_key` has it; False for what is no attempt's key.

        Raises:
            Unavailable: the server gave no answer in time.
        """
        command = claims.has_outstanding(self.settings, attempt_key)
        return command is not None and run(self.server, command)

    def lease(self, attempt_key: str) -> Lease:
        """Who holds this attempt of a job.

        Args:
            attempt_key: `<job id>#<attempt>`, as `ClaimedJob.attempt_key` has it.

        Raises:
            LeaseLost: nobody does, or this is no attempt's key.
            Unavailable: the server gave no answer in time.
        """
        return run(self.server, claims.by_key(self.settings, attempt_key))

    def leases(self, queue: str | None = None) -> list[Lease]:
        """All leases and offers, those that end first before the others.

        Args:
            queue: of one queue; None, the default: of all, queue after queue.

        Raises:
            QueueNotFound: nothing was ever enqueued there.
            Unavailable: the server gave no answer in time.
        """
        found: list[Lease] = []
        for q in self._chosen(queue):
            found += self._leases(q)
        return found

    def _chosen(self, queue: str | None) -> list[QueueKeys]:
        """One queue, which must exist, or all."""
        if queue is not None:
            return [self._there(queue)]
        names = run(self.server, commands.queues(keys.cluster(self._namespace)))
        return [keys.queue(self._namespace, name) for name in names]

    def _leases(self, q: QueueKeys) -> list[Lease]:
        found: dict[str, Lease] = {}
        offset = 0
        while True:
            page = run(self.server, commands.leases(q, offset=offset, limit=claims.PAGE))
            found |= {lease.id: lease for lease in claims.leases_of(page)}
            offset += claims.PAGE
            if offset >= page.total:
                return list(found.values())

    def _there(self, queue: str) -> QueueKeys:
        """The keys of a queue that exists: a mistyped name must not look like success."""
        q = keys.queue(self._namespace, checked_name(queue, name="queue"))
        if queue not in self._known:
            run(self.server, commands.expect_queue(keys.cluster(self._namespace), queue))
        return q

    def _remind(self, queue: str) -> None:
        """Registers a queue again, now and then: a server may have been emptied. If it fails now, the next will do."""
        if time.monotonic() - self._known[queue] > batch.REGISTER_AGAIN_S:
            self._known[queue] = time.monotonic()
            with suppress(TaskQError):
                run(self.server, operations.register(self._namespace, queue), deadline_s=1.0)
