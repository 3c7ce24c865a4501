"""Keeps as many workers alive as were asked for: starts them, buries the dead, starts them again, sees them off.

Each place is a coroutine that holds one worker after another. Burying runs beside it: a replacement must not wait for
Redis, and its id is new. Before the node's first hello nothing is known of APP, so a worker that says it can't load it,
or dies three times on the way, ends the node; later the same is a death like any other (an edit, a full disk).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Sequence
from typing import Any

from taskq.log import get_logger
from taskq.node.channel import (
    Ageing,
    Begin,
    Capacity,
    Drained,
    Failed,
    Hello,
    Message,
    Ready,
    Recycle,
    Refused,
    Rest,
    Slots,
    Start,
)
from taskq.node.children.burial import Undertaker
from taskq.node.children.child import COMMAND, Child
from taskq.node.children.farewell import first, see_off, see_off_patiently
from taskq.node.children.portions import Portions
from taskq.node.children.restart import Restarts
from taskq.node.children.succession import until_replaced
from taskq.node.options import NodeOptions
from taskq.node.table import now_ms
from taskq.record.failure import line_of

DEATHS_BEFORE_HELLO = 3
_LAST_WORDS_S = 0.25
_LINGER_S = 5.0  # from its last word to its exit: what user code registered may take a moment
_BURIAL_S = 5.0

log = get_logger(__name__)


class Supervisor:
    """The workers of one node.

    Attributes:
        children: the workers that live now.
        hello: done with the node's first hello. `latest`: the last one; a worker started later may know more.
        undertaker: to be done with who buries, once Redis is connected.
        ending: set once the node ends.
        options: what was asked for, as orders have changed it.
        resting: it claims nothing, until it is told to go on; its workers stay.
        failure: why the node can't go on, as text for the user; '' while it can.
        killed: whether a process had to be killed, or died, while the node was ending; or the end of a job could not
            be told to Redis, whenever that was. The node then doesn't end with 0.
    """

    def __init__(self, app: str, node: str, options: NodeOptions, *, command: Sequence[str] = COMMAND) -> None:
        loop = asyncio.get_running_loop()
        self.children: list[Child] = []
        self.hello: asyncio.Future[Hello] = loop.create_future()
        self.undertaker: asyncio.Future[Undertaker] = loop.create_future()
        self.latest: Hello | None = None
        self.ending = asyncio.Event()
        self.resting = False
        self.failure = ""
        self.killed = False
        self._app = app
        self._node = node
        self.options = options
        self._portions = Portions(options.amounts, options.workers)
        self._command = command
        self._number = 0
        self._begun = False
        self._hurry = asyncio.Event()
        self._standing = 0  # places that go on
        self._excess = 0  # places that end before their next worker
        self._places: set[asyncio.Task[None]] = set()
        self._lives: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._burials: set[asyncio.Task[None]] = set()

    @property
    def queues(self) -> list[str]:
        """The queues this node serves, by its workers' last hello."""
        return self.latest.queues if self.latest else []

    async def run(self) -> None:
        """Keep every place until the node ends or each worker has drained; then wait for the burials."""
        self._fit()
        while self._places:
            await asyncio.wait(self._places)
        while self._leaving:
            await asyncio.wait(self._leaving)
        if self._burials:
            _, unburied = await asyncio.wait(self._burials, timeout=_BURIAL_S)
            if unburied:
                log.warning("Redis is away: what the ended workers held comes back when its leases end")
                self.killed = True

    def begin(self) -> None:
        """Redis will do: from now on workers may claim."""
        self._begun = True
        for child in self.children:
            self._let_begin(child)

    def drain(self) -> None:
        """End, within the grace. Said again: now."""
        if self.ending.is_set():
            self._hurry.set()
            return
        log.info("draining", grace_s=self.options.grace_ms / 1000, workers=len(self.children))
        self.ending.set()

    def rest(self) -> bool:
        """Claim nothing any more; what runs goes on. Whether that changed anything."""
        if self.resting:
            return False
        self.resting = True
        for child in self.children:
            child.send(Rest())
        return True

    def go_on(self) -> bool:
        """Claim again, after a rest. Whether that changed anything."""
        if not self.resting:
            return False
        self.resting = False
        for child in self.children:
            if child.holding:
                self._let_begin(child)
            else:
                child.send(Begin())
        return True

    def scale(self, **told: Any) -> bool:
        """Have so many workers, so many coroutines at a time in each; no job is stopped. Whether it changed anything.
        Arguments and errors as of `NodeOptions.scaled`.
        """
        before = self.options
        self.options = before.scaled(**told)
        self._portions.resize(self.options.workers)
        self._tell_portions()
        if self.options.concurrency != before.concurrency:
            for child in self.children:
                child.send(Slots(self.options.concurrency))
        if self._places and not self.ending.is_set():
            self._fit()
        return self.options != before

    def _fit(self) -> None:
        """Have as many places as there shall be workers. The youngest are too many; each ends when its jobs have."""
        while self._standing < self.options.workers:
            self._standing += 1
            if self._excess:
                self._excess -= 1
            else:
                self._beside(self._places, self._keep_place())
        serving = [each for each in reversed(self.children) if not each.spare and not each.leaving.is_set()]
        for child in serving[: self._standing - self.options.workers]:
            child.surplus = child.patient = True
            child.leaving.set()
            self._standing -= 1
        self._excess += self._standing - self.options.workers
        self._standing = self.options.workers

    def _is_too_many(self) -> bool:
        """Whether a place that is between two workers should end."""
        self._excess -= (found := self._excess > 0)
        return found

    def give_up(self, text: str) -> None:
        """End at once, because it makes no sense to go on."""
        self.failure = self.failure or text
        self._hurry.set()
        self.ending.set()

    async def _keep_place(self) -> None:
        restarts, spare = Restarts(), None
        while not self.ending.is_set() and (spare is not None or not self._is_too_many()):
            child = spare or self._start()
            if child is None:
                await first(self.ending, timeout_s=restarts.delay_s(0))
                continue
            child.spare = False
            self._let_begin(child)
            spare = await until_replaced(child, lambda: self._start(spare=True), self.ending, restarts)
            if not child.over.is_set():
                self._see_off(child)
                if child.surplus:
                    break
                if not self.ending.is_set():
                    continue  # it leaves beside its replacement
                await child.over.wait()
            if self.ending.is_set() or child.surplus or (child.drained and not child.leaving.is_set()):
                break
            if spare is None and (child.heavy or not child.killed_for):  # our own doing is no reason to wait
                await self._wait_to_restart(child, restarts)
        if spare is not None:
            self._see_off(spare)

    def _see_off(self, child: Child) -> None:
        grace_ms = self.options.grace_ms
        if child.patient and not self.ending.is_set():
            self._beside(self._leaving, see_off_patiently(child, grace_ms, self.ending, self._hurry))
        else:
            self._beside(self._leaving, see_off(child, grace_ms, self._hurry))

    async def _wait_to_restart(self, child: Child, restarts: Restarts) -> None:
        delay_s = restarts.delay_s(now_ms() - child.born_ms)
        if not self.hello.done() and restarts.in_a_row >= DEATHS_BEFORE_HELLO:
            self.give_up(f"{self._app}: its worker dies while loading it ({child.cause})")
        await first(self.ending, timeout_s=delay_s)

    def _start(self, *, spare: bool = False) -> Child | None:
        """Start a worker; a spare one isn't told to begin. None without memory or descriptors: there may be again."""
        self._number += 1
        start = Start(
            app=self._app,
            worker=f"{self._node}.{self._number}",
            node=self._node,
            queues=list(self.options.queues),
            concurrency=self.options.concurrency,
            threads=self.options.threads,
            grace_ms=self.options.grace_ms,
            burst=self.options.burst,
            flags=self.options.flags,
            log=self.options.log,
            hold=spare or self.resting or not self._begun,
            max_jobs=self.options.max_jobs,
            weights=self.options.weights,
            limits={queue: -(-least // self.options.workers) for queue, (least, _) in self.options.ranges.items()},
            labels=self.options.labels,
            capacity=self._portions.join(f"{self._node}.{self._number}"),
            host=socket.gethostname(),
        )
        try:
            child = Child(start, self.options.slots, command=self._command)
        except OSError as error:
            log.warning("a worker can't be started", error=str(error))
            self._portions.leave(start.worker)
            return None
        child.spare = spare
        self.children.append(child)
        log.info("worker started", worker=child.worker, worker_pid=child.pid)
        self._beside(self._lives, self._live(child))
        return child

    async def _live(self, child: Child) -> None:
        """From its start until its last words have been heard; then it is buried."""
        listening = asyncio.create_task(child.listen(self._heard))
        await child.ended.wait()
        await asyncio.wait({listening}, timeout=_LAST_WORDS_S)
        listening.cancel()
        self.children.remove(child)
        if not child.drained and not (child.holding and child.killed_for):
            held = len(child.held())
            log.warning("worker died", worker=child.worker, worker_pid=child.pid, cause=child.cause, held=held)
            self.killed |= self.ending.is_set() and child.ready
        child.over.set()
        self._portions.leave(child.worker)
        self._tell_portions()
        self._beside(self._burials, self._bury(child))

    def _tell_portions(self) -> None:
        news = self._portions.news()
        for child in self.children:
            if child.worker in news:
                child.send(Capacity(news[child.worker]))

    async def _bury(self, child: Child) -> None:
        try:
            if child.hello is not None and not child.holding:
                await (await asyncio.shield(self.undertaker)).bury(child)
        except Exception as error:  # noqa: BLE001 (whatever it is, the node has others to care for)
            log.error(
                "what a dead worker held comes back when its leases end", worker=child.worker, error=line_of(error)
            )
            self.killed = True
        finally:
            child.forget()

    def _heard(self, child: Child, message: Message) -> None:
        match message:
            case Hello():
                child.hello = self.latest = message
                child.loaded.set()
                self._let_begin(child)
                if not self.hello.done():
                    self.hello.set_result(message)
            case Ready():
                child.ready = True
                log.info("worker ready", worker=child.worker)
            case Drained():
                child.drained = True
                child.hang_up()
                asyncio.get_running_loop().call_later(_LINGER_S, child.kill, "did not exit")
            case Ageing() | Recycle():
                _will_leave(child, message)
            case Refused():
                self.killed = True
            case Failed(error=error):
                if self.hello.done():
                    log.error("a worker can't start", worker=child.worker, error=error)
                else:
                    self.give_up(error)  # which is the node's last word: it is said once
            case _:
                log.warning("unexpected message", worker=child.worker, op=message.op)

    def _let_begin(self, child: Child) -> None:
        if child.holding and not child.spare and child.hello is not None and self._begun and not self.resting:
            child.holding = False
            child.send(Begin())

    def _beside(self, tasks: set[asyncio.Task[None]], coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the places, kept in `tasks` until it is done."""
        task = asyncio.create_task(coroutine)
        tasks.add(task)
        task.add_done_callback(lambda task: self._done(tasks, task))

    def _done(self, tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a fault in the care for workers", exc_info=error)
            self.killed = True


def _will_leave(child: Child, message: Ageing | Recycle) -> None:
    if isinstance(message, Ageing):
        child.ageing.set()
        return
    say = log.info if message.patient else log.warning
    say("worker asks to be replaced", worker=child.worker, reason=message.reason)
    child.patient = message.patient
    child.leaving.set()
