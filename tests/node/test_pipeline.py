"""Each step of a job's way through a worker, and the whole way, without Redis."""

import asyncio
import functools
import json
import threading

import msgpack
import pytest
import structlog

from taskq import TaskQ, codec
from taskq.codec.wire import Code
from taskq.commands import Done, Failure, Release, Snoozed
from taskq.current import current
from taskq.errors import BadRecord, NotInJob, UnknownTask
from taskq.node.worker.executors import Threads
from taskq.node.worker.outcome import WrongExecutor
from taskq.node.worker.pipeline import NotBegun, Pipeline, begin, look_up
from taskq.node.worker.running import Stop
from taskq.retry import Backoff, Discard, Retry, Snooze
from tests.node.jobs import FakeKnown, running
from tests.waiting import await_until


class Way:
    """A pipeline whose outcomes are kept."""

    def __init__(self):
        self.endings = []
        self.middleware = []
        self.threads = Threads(4, asyncio.get_running_loop())

    async def run(self, fn, executor="async", before=None, known=None, **fields):
        """Run one job of `fn` as a worker does; gives its ending."""
        pipeline = Pipeline(
            threads=self.threads,
            middleware=self.middleware,
            types=codec.Types(),
            worker="w.1",
            max_bytes=10_000,
            begun=lambda _job: None,
            finish=lambda _job, ending: self.endings.append(ending),
        )
        known = known or FakeKnown(fn, executor)
        if executor == "thread":
            fields.setdefault("class", "thread")
        job = running(known, **fields)
        job.code = asyncio.get_running_loop().create_task(pipeline.run(job))
        if before:
            await before(job)
        await job.code
        assert job.ended
        return self.endings.pop()


@pytest.fixture
async def way():
    made = Way()
    yield made
    made.threads.close()


def error_of(ending):
    return json.loads(ending.error)


# --- the steps


def test_look_up_finds_the_task():
    known = FakeKnown()
    assert look_up(running(known)) is known


def test_look_up_tells_why_a_job_may_not_run_here():
    with pytest.raises(UnknownTask, match="no task 'mail"):
        look_up(running(None, task="mail.send"))
    with pytest.raises(WrongExecutor):
        look_up(running(FakeKnown(executor="thread")))
    stopped = running(FakeKnown())
    stopped.stop = Stop.SHUTDOWN
    with pytest.raises(NotBegun):
        look_up(stopped)


async def test_begin_sets_the_current_job_and_its_deadline():
    job = running(FakeKnown(timeout_ms=5000))
    begin(job)
    assert current() is job.current
    assert current().deadline is not None
    job.timer.cancel()
    untimed = running(FakeKnown())
    begin(untimed)
    assert current().deadline is None
    assert untimed.timer is None


# --- the whole way


async def add(a, b=1):
    return a + b


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_a_value_becomes_a_result(way, executor):
    fn = add if executor == "async" else lambda a, b=1: a + b
    assert await way.run(fn, executor, args=(2,), kwargs={"b": 3}) == Done("default:1", 1000, codec.encode_value(5))


async def nothing():
    pass


async def test_nothing_becomes_nothing(way):
    assert await way.run(nothing) == Done("default:1", 1000, b"")


@pytest.mark.parametrize("executor", ["async", "thread"])
@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
async def test_whatever_a_job_raises_is_its_failure(way, executor, kind):
    async def boom():
        raise kind("x")

    def boom_in_thread():
        raise kind("x")

    ending = await way.run(boom if executor == "async" else boom_in_thread, executor)
    assert ending.verb == "retry"
    assert error_of(ending)["type"] == kind.__name__


async def test_the_current_job_is_known_everywhere(way):
    async def on_the_loop():
        await asyncio.sleep(0)
        return [current().id, await asyncio.to_thread(lambda: current().attempt)]

    assert codec.decode_value((await way.run(on_the_loop)).result) == ["default:1", 1]
    assert codec.decode_value((await way.run(lambda: current().epoch, "thread")).result) == 1000
    with pytest.raises(NotInJob):
        current()


async def test_arguments_that_do_not_fit_are_handed_back(way):
    with structlog.testing.capture_logs() as lines:
        ending = await way.run(add, args=(1, 2, 3))
    assert isinstance(ending, Snoozed)
    assert ending.kind == "unknown"
    assert "BadArguments" in ending.reason
    (line,) = lines
    assert (line["job_id"], line["attempt"], line["queue"]) == ("default:1", 1, "default")
    assert line["event"].startswith("handed back")


async def test_a_type_error_of_the_body_is_no_bad_argument(way):
    async def body():
        raise TypeError("mine")

    assert (await way.run(body)).verb == "retry"


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_bad_arguments_that_the_body_raised_are_a_failed_attempt(way, executor):
    def body():
        add_task.call(1)

    add_task = TaskQ("redis://127.0.0.1:1/0").task(name="add")(lambda a, b: a + b)
    ending = await way.run(body, executor)
    assert (ending.verb, error_of(ending)["type"]) == ("retry", "BadArguments")


@pytest.mark.parametrize("payload", [b"\xff", b"\xc1", b"\x92\x90", b"\x90", b"\x93\x90\x80\x80", b"\xa1"])
async def test_a_damaged_payload_fails_at_once(way, payload):
    ending = await way.run(nothing, payload=payload)
    assert (ending.verb, error_of(ending)["type"]) == ("fail", "BadRecord")
    assert ending.reason.startswith("BadRecord: its arguments can't be read: ")


@pytest.mark.parametrize(
    "code, what", [(99, "extension 99"), (Code.DATACLASS, "isn't loaded"), (Code.OBJECT, "registered")]
)
async def test_a_payload_that_newer_code_may_know_is_handed_back(way, code, what):
    newer = msgpack.ExtType(code, msgpack.packb(["shop.newer:Parcel", {}]))
    ending = await way.run(nothing, payload=msgpack.packb([[newer], {}]))
    assert isinstance(ending, Snoozed)
    assert ending.kind == "unknown"
    assert what in ending.reason


async def test_a_task_whose_name_is_no_text_fails_at_once(way):
    job = running(None, task=b"\xff\xfe")
    with pytest.raises(BadRecord, match="no text"):
        look_up(job)


async def test_a_def_in_the_wrong_class_moves(way):
    known = FakeKnown(lambda: 1, "thread")
    assert await way.run(None, known=known) == Release("default:1", 1000, "thread")


async def test_a_def_that_returns_a_coroutine_is_awaited(way):
    assert codec.decode_value((await way.run(functools.partial(add, 1), "thread")).result) == 2


async def test_a_def_that_runs_on_the_loop_may_return_either(way):
    assert codec.decode_value((await way.run(lambda: 1)).result) == 1
    assert codec.decode_value((await way.run(functools.partial(add, 1, 2))).result) == 3


async def test_a_log_that_fails_costs_no_job_its_end(way, monkeypatch):
    def broken(*_args):
        raise OSError("disk full")

    async def boom():
        raise ValueError

    monkeypatch.setattr("taskq.node.worker.pipeline.tell", broken)
    ending = await way.run(boom)
    assert ending.verb == "retry"
    assert error_of(ending)["type"] == "ValueError"


class Evil(Exception):
    @property
    def __class__(self):
        raise KeyboardInterrupt


async def test_an_error_whose_class_can_not_be_asked_is_an_error_as_any_other(way):
    async def boom():
        raise Evil

    ending = await way.run(boom)
    assert ending.verb == "retry"
    assert error_of(ending)["type"] == "Evil"


async def test_a_value_whose_class_can_not_be_asked_is_the_jobs_failure(way):
    async def returns_evil():
        return Evil()

    assert isinstance(await way.run(returns_evil), Failure)


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_a_backoff_that_exits_costs_no_retry(way, executor):
    def leave(_attempt, _error):
        raise SystemExit(1)

    async def boom():
        raise ValueError

    def boom_in_thread():
        raise ValueError

    fn = boom if executor == "async" else boom_in_thread
    ending = await way.run(fn, executor, known=FakeKnown(fn, executor, backoff=Backoff.of(leave)))
    assert (ending.verb, error_of(ending)["type"]) == ("retry", "ValueError")


@pytest.mark.parametrize("attempt, verb", [(1, "retry"), (3, "fail")])
async def test_an_outcome_that_can_not_be_told_is_a_failed_attempt(way, monkeypatch, attempt, verb):
    def broken(*_args, **_named):
        raise SystemExit("no")

    monkeypatch.setattr("taskq.node.worker.outcome.of_error", broken)
    monkeypatch.setattr("taskq.node.worker.outcome.of_value", broken)
    ending = await way.run(add, args=(1,), attempt=attempt)
    assert ending.verb == verb
    assert "could not be told: SystemExit: no" in error_of(ending)["message"]


class Later(Snooze):
    def __init__(self):
        pass


class Never(Discard):
    def __init__(self):
        pass


class Again(Retry):
    def __init__(self):
        pass


class Odd(Retry):
    def __init__(self):
        self.delay_ms = "soon"


async def test_errors_of_the_users_own_that_do_not_call_ours(way):
    async def boom(which):
        raise {"Later": Later, "Never": Never, "Again": Again, "Odd": Odd}[which]

    assert (await way.run(boom, args=("Never",))).reason == "the task discarded the job"
    again = await way.run(boom, args=("Again",))
    assert (again.verb, again.delay_ms, error_of(again)["type"]) == ("retry", 7_000, "Again")
    for name in ("Later", "Odd"):
        ending = await way.run(boom, args=(name,))
        assert ending.verb == "retry"
        assert "super().__init__(delay)" in error_of(ending)["message"]


async def test_a_returned_coroutine_fails_without_a_warning(way):
    async def returns_one():
        return add(1)

    assert (await way.run(returns_one)).reason.startswith("result not serializable")


# --- middleware


async def test_middleware_stands_around_the_call_outermost_first(way):
    seen = []

    def named(name):
        async def middleware(job, call_next):
            seen.append(f"{name} {job.id}")
            value = await call_next()
            seen.append(f"{name} after")
            return value * 2

        return middleware

    way.middleware = [named("outer"), named("inner")]
    assert codec.decode_value((await way.run(add, args=(1,))).result) == 8
    assert seen == ["outer default:1", "inner default:1", "inner after", "outer after"]
    seen.clear()
    assert codec.decode_value((await way.run(lambda: 1, "thread")).result) == 4


async def test_middleware_may_fail_a_job(way):
    async def refuse(_job, _call_next):
        raise PermissionError("no")

    way.middleware = [refuse]
    assert error_of(await way.run(add, args=(1,)))["type"] == "PermissionError"


# --- stopping


async def test_a_timeout_is_a_failed_attempt(way):
    async def forever():
        await asyncio.Event().wait()

    ending = await way.run(forever, known=FakeKnown(forever, timeout_ms=10))
    assert (ending.verb, error_of(ending)["type"]) == ("retry", "JobTimeout")
    assert "forever" in error_of(ending)["traceback"]


async def test_a_jobs_own_timeout_is_stronger(way):
    async def forever():
        await asyncio.Event().wait()

    assert (
        error_of(await way.run(forever, known=FakeKnown(forever, timeout_ms=60_000), timeout=10))["type"]
        == "JobTimeout"
    )


async def test_a_thread_past_its_timeout_fails_when_it_returns(way):
    gate, told = threading.Event(), []

    def slow():
        gate.wait()
        told.append(current().cancel_requested)
        return "late"

    async def let_it_be_late(job):
        await await_until(lambda: job.stop)
        assert not job.ended
        gate.set()

    ending = await way.run(slow, "thread", before=let_it_be_late, known=FakeKnown(slow, "thread", timeout_ms=10))
    assert error_of(ending)["type"] == "JobTimeout"
    assert told == [True]


@pytest.mark.parametrize("why", [Stop.CANCEL, Stop.SHUTDOWN])
async def test_a_stopped_job_is_released_once_its_code_has_stopped(way, why):
    stopped = []

    async def tidy():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            stopped.append(True)

    async def stop(job):
        await asyncio.sleep(0)
        job.halt(why)

    assert await way.run(tidy, before=stop) == Release("default:1", 1000, "")
    assert stopped == [True]


async def test_a_job_stopped_before_its_first_line_never_begins(way):
    begun = []

    async def body():
        begun.append(True)

    async def stop(job):
        job.halt(Stop.SHUTDOWN)

    assert await way.run(body, before=stop) == Release("default:1", 1000, "")
    assert not begun


async def test_of_a_lost_job_nothing_is_told(way):
    async def forever():
        await asyncio.Event().wait()

    async def lose(job):
        await asyncio.sleep(0)
        job.halt(Stop.LOST)

    assert await way.run(forever, before=lose) is None

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 1

    assert await way.run(stubborn, before=lose) is None


async def test_a_cancel_asked_of_a_thread_is_its_own_to_heed(way):
    gate = threading.Event()

    def body(heed):
        gate.wait()
        if heed and current().cancel_requested:
            raise RuntimeError("stopped")
        return 1

    async def cancel(job):
        await await_until(lambda: job.current)
        job.halt(Stop.CANCEL)
        gate.set()

    assert isinstance(await way.run(body, "thread", before=cancel, args=(False,)), Done)
    gate.clear()
    assert isinstance(await way.run(body, "thread", before=cancel, args=(True,)), Release)


async def test_the_first_reason_stands_but_for_a_lost_lease():
    job = running(FakeKnown())
    job.halt(Stop.TIMEOUT)
    job.halt(Stop.SHUTDOWN)
    assert job.stop is Stop.TIMEOUT
    job.halt(Stop.LOST)
    assert job.stop is Stop.LOST


def test_timeouts_of_job_and_task():
    known = FakeKnown(timeout_ms=5_000, kill_after_ms=6_000)
    job = running(known)
    assert (job.timeout_ms, job.kill_after_ms) == (5_000, 6_000)
    job = running(known, timeout=1_000)
    assert (job.timeout_ms, job.kill_after_ms) == (1_000, 11_000)
    job = running(known, timeout=0)
    assert (job.timeout_ms, job.kill_after_ms) == (0, 0)
    job = running(known, timeout=1_000, hard_timeout=2_000)
    assert (job.timeout_ms, job.kill_after_ms) == (1_000, 2_000)
