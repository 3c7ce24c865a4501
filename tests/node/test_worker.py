"""A worker with all its parts, on this test's loop, against the real server. The test is its node."""

import asyncio
import threading
import time

import pytest

from taskq import Backoff, Discard, Retry, Snooze, TaskQ, commands, current
from taskq.codec import encode_value
from taskq.errors import JobCancelled, JobFailed, JobTimeout
from taskq.node.channel import Ageing, Drain, Drained, Ready, Recycle, Refused, Start, Stop, Verdict
from taskq.node.table import Table
from taskq.node.worker.load import greeting
from taskq.node.worker.process import Worker
from tests.waiting import await_until

seen = []


class PlayedNode:
    """The worker's end of a channel whose other end is the test."""

    def __init__(self):
        self.said = []
        self.messages = asyncio.Queue()

    def send(self, message):
        self.said.append(message)

    def close(self):
        """It leaves with the process."""

    async def flush(self):
        pass

    async def take_leave(self, message):
        self.send(message)

    async def receive(self):
        return await self.messages.get()

    def has_said(self, kind):
        return any(isinstance(message, kind) for message in self.said)


class Played:
    """A worker under way, and its node."""

    def __init__(self, app, **start):
        self.node = PlayedNode()
        start = Start("app", f"w.{time.monotonic_ns()}", "w", **{"concurrency": 10, "threads": 2, **start})
        self.table = Table.create(200)
        self.worker = Worker(start, greeting(app, start.queues), app, self.table, self.node)
        self.id = start.worker
        self.serving = asyncio.create_task(self.worker.serve())
        self.beating = asyncio.create_task(self.beat())

    async def beat(self):
        while True:
            self.table.beat_node()
            await asyncio.sleep(0.1)

    def say(self, message):
        self.node.messages.put_nowait(message)

    async def epoch(self):
        """Of the one job that it holds."""
        return (await await_until(self.table.read))[0].epoch

    async def end(self):
        if not self.serving.done():
            self.say(Stop())
        await asyncio.wait_for(self.serving, 10)
        self.beating.cancel()
        assert self.table.read() == []
        self.table.close()


@pytest.fixture
async def app(settings):
    made = TaskQ(url=settings.url, namespace=settings.namespace)
    seen.clear()
    yield made
    await made.aclient.close()


@pytest.fixture
def gate():
    """What code in a thread waits for; open at the end of the test, so that no thread outlives it."""
    made = threading.Event()
    yield made
    made.set()


@pytest.fixture
async def play(app, gate):
    """`play()` starts a worker of this test's app."""
    workers = []

    async def play(**start):
        workers.append(Played(app, **start))
        await await_until(lambda: workers[-1].node.has_said(Ready))
        return workers[-1]

    yield play
    gate.set()
    for played in workers:
        await played.end()


async def stays_running(job):
    await await_until(lambda: _is_running(job))


async def _is_running(job):
    await job.arefresh()
    return job.state == "running"


async def test_jobs_of_both_kinds_run_and_give_their_results(app, play):
    @app.task(name="add")
    async def add(a, b=1):
        return a + b

    @app.task(name="join")
    def join(*words):
        return " ".join(words)

    await play()
    assert await (await add.aenqueue(2, b=3)).aresult("5s") == 5
    assert await (await join.aenqueue("a", "b")).aresult("5s") == "a b"


async def test_what_waited_before_the_worker_came_is_run(app, play):
    @app.task(name="square")
    async def square(n):
        return n * n

    jobs = await app.aenqueue_many([square.call(n) for n in range(300)])
    await play()
    assert [await job.aresult("5s") for job in jobs] == [n * n for n in range(300)]


def calls(raw):
    """The last call of each connection that workers have."""
    return [client["cmd"] for client in raw.client_list() if client["name"] == "taskq:worker"]


async def test_a_job_enqueued_to_an_idle_worker_starts_at_once(app, play, raw):
    @app.task(name="now")
    async def now():
        return time.monotonic()

    await play()
    await await_until(lambda: "bzpopmin" in calls(raw))  # it is idle
    before = time.monotonic()
    began = await (await now.aenqueue()).aresult("5s")
    assert began - before < 0.5


async def test_a_failure_is_retried_then_final(app, play):
    @app.task(name="fails", max_attempts=3, backoff=Backoff.fixed(0.05, jitter=False))
    async def fails():
        seen.append(current().attempt)
        raise ValueError("boom")

    await play()
    with pytest.raises(JobFailed, match="ValueError: boom") as caught:
        await (await fails.aenqueue()).aresult("10s")
    assert seen == [1, 2, 3]
    assert [error["message"] for error in caught.value.errors] == ["boom"] * 3


async def test_a_task_decides_for_itself(app, play):
    @app.task(name="decides")
    async def decides():
        seen.append(current().attempt)
        if len(seen) == 1:
            raise Snooze(0.05)
        if len(seen) == 2:
            raise Retry(delay=0.05)
        raise Discard("enough")

    await play()
    with pytest.raises(JobFailed, match="enough"):
        await (await decides.aenqueue()).aresult("10s")
    assert seen == [1, 1, 2]  # the snooze cost no attempt


async def test_a_timeout_fails_the_attempt_and_nothing_else(app, play):
    @app.task(name="slow", max_attempts=1, timeout=0.05)
    async def slow():
        await asyncio.sleep(30)

    @app.task(name="fast")
    async def fast():
        return 1

    await play()
    late, other = await slow.aenqueue(), await fast.aenqueue()
    with pytest.raises(JobTimeout):
        await late.aresult("10s")
    assert await other.aresult("5s") == 1


async def test_exactly_so_many_timeouts_as_attempts(app, play):
    @app.task(name="always", max_attempts=3, timeout=0.02, backoff=Backoff.fixed(0, jitter=False))
    async def always():
        seen.append(1)
        await asyncio.sleep(30)

    await play()
    with pytest.raises(JobTimeout) as caught:
        await (await always.aenqueue()).aresult("10s")
    assert len(seen) == 3
    assert [error["type"] for error in caught.value.errors] == ["JobTimeout"] * 3


async def test_a_result_that_cannot_be_stored_fails_at_once(app, play):
    @app.task(name="lock")
    async def lock():
        seen.append(1)
        return threading.Lock()

    await play()
    with pytest.raises(JobFailed, match="result not serializable"):
        await (await lock.aenqueue()).aresult("5s")
    assert len(seen) == 1


async def test_an_unknown_task_is_handed_back(app, play):
    await play()
    job = await app.by_name("of.newer.code", queue="default").aenqueue()
    await await_until(lambda: _is_in(job, "scheduled"))
    assert job.attempt == 0
    assert job.record is not None


async def _is_in(job, state):
    await job.arefresh()
    return job.state == state


async def test_a_def_claimed_as_async_moves_to_a_thread(app, play, q, settings):
    @app.task(name="blocks")
    def blocks():
        return threading.current_thread() is not threading.main_thread()

    # Enqueued by one who doesn't know the code, before any worker has told.
    job = await app.by_name("blocks", queue="default").aenqueue()
    await play()
    assert await job.aresult("5s") is True
    await job.arefresh()
    assert job.attempt == 1


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
async def test_a_job_cannot_end_its_worker(app, play, kind):
    @app.task(name="quits", max_attempts=1)
    async def quits():
        raise kind(3)

    @app.task(name="quits_too", max_attempts=1)
    def quits_too():
        raise kind(3)

    @app.task(name="fine")
    async def fine():
        return 1

    await play()
    for task in (quits, quits_too):
        with pytest.raises(JobFailed, match=kind.__name__):
            await (await task.aenqueue()).aresult("5s")
    assert await (await fine.aenqueue()).aresult("5s") == 1


async def test_a_cancel_stops_a_coroutine(app, play):
    @app.task(name="waits")
    async def waits():
        seen.append("began")
        try:
            await asyncio.sleep(30)
        finally:
            seen.append("stopped")

    worker = await play()
    job = await waits.aenqueue()
    await await_until(lambda: seen)
    assert await app.aclient.cancel(job.id) == "requested"
    worker.say(Verdict("cancel", job.id, await worker.epoch()))
    with pytest.raises(JobCancelled):
        await job.aresult("5s")
    assert seen == ["began", "stopped"]


async def test_a_thread_sees_that_it_shall_stop(app, play):
    @app.task(name="looks")
    def looks():
        while not current().cancel_requested:
            time.sleep(0.01)
        raise RuntimeError("stopped as asked")

    worker = await play()
    job = await looks.aenqueue()
    await stays_running(job)
    await app.aclient.cancel(job.id)
    worker.say(Verdict("cancel", job.id, await worker.epoch()))
    with pytest.raises(JobCancelled):
        await job.aresult("5s")


async def test_a_late_finish_changes_nothing(app, play, run, gate):
    @app.task(name="holds")
    async def holds():
        await asyncio.to_thread(gate.wait)
        return "late"

    worker = await play()
    job = await holds.aenqueue()
    await stays_running(job)
    epoch = await worker.epoch()
    q = worker.worker.claimer._sources[0].keys
    run(commands.complete(q, worker=worker.id, done=[commands.Done(job.id, epoch, encode_value("first"))]))
    gate.set()
    await await_until(lambda: not worker.table.read())
    assert await job.aresult("5s") == "first"


async def test_the_node_is_told_of_a_finish_that_redis_refuses(app, play, monkeypatch):
    @app.task(name="ends")
    async def ends():
        pass

    async def refuse(_commands):
        raise ValueError("damaged")

    monkeypatch.setattr("taskq.node.worker.committer.again_s", lambda _failures: 0.001)
    worker = await play()
    worker.worker.committer._send = refuse
    job = await ends.aenqueue()
    await await_until(lambda: Refused(job.id) in worker.node.said)
    await await_until(lambda: not worker.table.read())  # the lease is left to end
    await await_until(lambda: worker.node.has_said(Recycle))
    worker.say(Drain(60_000))
    await asyncio.wait_for(worker.serving, 5)  # it claims no more, and another takes its place
    assert [type(message) for message in worker.node.said if isinstance(message, Recycle)] == [Recycle]


# --- leaving


async def test_a_drain_lets_running_jobs_end_and_starts_no_other(app, play, gate):
    @app.task(name="step")
    async def step():
        seen.append(current().id)
        await asyncio.to_thread(gate.wait)
        return 1

    worker = await play()
    running = await step.aenqueue()
    await await_until(lambda: seen)
    worker.say(Drain(20_000))
    await await_until(lambda: worker.worker.claimer.stopping)
    waiting = await step.aenqueue()
    gate.set()
    await asyncio.wait_for(worker.serving, 5)
    assert worker.node.has_said(Drained)
    assert await running.aresult("1s") == 1
    await waiting.arefresh()
    assert waiting.state == "available"
    assert seen == [running.id]


async def test_what_outlasts_the_grace_is_stopped_then_released(app, play):
    @app.task(name="long")
    async def long():
        seen.append("began")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            seen.append("tidied up")

    worker = await play()
    job = await long.aenqueue()
    await await_until(lambda: seen)
    worker.say(Drain(100))
    await asyncio.wait_for(worker.serving, 5)
    await job.arefresh()
    assert (job.state, job.attempt) == ("available", 0)
    assert seen == ["began", "tidied up"]


async def test_a_second_word_shortens_the_grace(app, play):
    @app.task(name="long")
    async def long():
        await asyncio.sleep(60)

    worker = await play()
    job = await long.aenqueue()
    await stays_running(job)
    worker.say(Drain(60_000))
    worker.say(Stop())
    await asyncio.wait_for(worker.serving, 5)
    await job.arefresh()
    assert job.state == "available"


async def test_a_burst_ends_when_nothing_is_left(app, play):
    @app.task(name="child")
    async def child():
        seen.append("child")

    @app.task(name="parent")
    async def parent():
        seen.append("parent")
        await child.aenqueue()

    await parent.aenqueue()
    later = await child.using(delay="1h").aenqueue()
    worker = await play(burst=True)
    await asyncio.wait_for(worker.serving, 10)
    assert seen == ["parent", "child"]
    assert worker.node.has_said(Drained)
    await later.arefresh()
    assert later.state == "scheduled"


async def test_after_its_last_job_it_claims_no_more_finishes_and_asks_to_be_replaced(app, play, gate):
    @app.task(name="held")
    def held():
        gate.wait(10)

    jobs = [await held.aenqueue() for _ in range(5)]
    worker = await play(max_jobs=2)
    await await_until(lambda: worker.node.has_said(Recycle))
    said = [message for message in worker.node.said if isinstance(message, Ageing | Recycle)]
    assert [message.op for message in said] == ["ageing", "recycle"]
    assert said[1].patient
    gate.set()
    worker.say(Drain(60_000))
    await asyncio.wait_for(worker.serving, 10)
    assert worker.node.has_said(Drained)
    states = [(await job.arefresh()).state for job in jobs]
    assert sorted(states) == ["available"] * 3 + ["completed"] * 2


async def test_a_burst_waits_for_a_retry_that_is_due_at_once(app, play):
    @app.task(name="twice", backoff=Backoff.fixed(0, jitter=False))
    async def twice():
        seen.append(1)
        if len(seen) == 1:
            raise ValueError

    await twice.aenqueue()
    worker = await play(burst=True)
    await asyncio.wait_for(worker.serving, 10)
    assert len(seen) == 2


async def test_a_worker_declared_dead_gives_up_its_jobs(app, play, run):
    @app.task(name="waits")
    async def waits():
        await asyncio.sleep(60)

    worker = await play()
    job = await waits.aenqueue()
    await stays_running(job)
    q = worker.worker.claimer._sources[0].keys
    run(commands.bury(q, worker=worker.id, why="a mistake", jobs=[]))
    other = await waits.aenqueue()
    await await_until(lambda: worker.node.has_said(Recycle))
    await await_until(lambda: not worker.table.read())
    await other.arefresh()
    assert other.state == "available"


async def test_what_could_not_begin_costs_nothing_should_its_worker_die_now(app, play, monkeypatch):
    @app.task(name="strict")
    async def strict():
        pass

    worker = await play()
    monkeypatch.setattr(worker.worker.desk, "_commit", lambda *_: None)  # its answer is still to come
    await app.by_name("strict", queue="default").aenqueue("too much")
    (entry,) = await await_until(worker.table.read)
    await await_until(lambda: worker.worker.claimer.free["async"] == 10)
    (entry,) = worker.table.read()
    assert not entry.begun
    (held,) = worker.worker.desk.held.values()
    worker.worker.desk.settled(held, "ok")


async def test_a_worker_that_is_idle_again_holds_two_connections(app, play, raw, monkeypatch):
    @app.task(name="nap")
    async def nap():
        await asyncio.sleep(0.01)

    monkeypatch.setattr("taskq.connection.lines.SPARE_S", 0.2)
    monkeypatch.setattr("taskq.node.worker.claimer.EVERY_S", 0.05)
    worker = await play()
    # Several calls at a time, as when a busy worker claims and finishes.
    await asyncio.gather(*(worker.worker.server.ping() for _ in range(5)))
    assert len(calls(raw)) > 2
    await await_until(lambda: len(calls(raw)) == 2)
    assert await (await nap.aenqueue()).aresult("5s") is None


async def test_a_job_of_a_better_queue_is_next_but_a_few_however_long_the_others_line(app, play):
    """There is never a free slot in which its marker could be waited for."""
    order = []

    @app.task(name="step", queue="other")
    async def step(n):
        order.append(n)
        await asyncio.sleep(0.05)

    await app.aenqueue_many([step.call(n) for n in range(60)])
    await play(queues=("best", "other"), concurrency=1)
    await await_until(lambda: len(order) >= 5)
    before = len(order)
    await step.using(queue="best").aenqueue("best")
    await await_until(lambda: "best" in order)
    assert order.index("best") - before <= 10
    await await_until(lambda: len(order) == 61)
