"""What Redis is told of a job, for everything that a job's code can come to."""

import asyncio
import json
import threading

import pytest

from taskq import codec
from taskq.commands import Done, Failure, Release, Snoozed
from taskq.errors import BadArguments, BadRecord, InvalidPayload, UnknownTask
from taskq.node.worker import outcome
from taskq.node.worker.outcome import WrongExecutor
from taskq.node.worker.pipeline import begin
from taskq.node.worker.running import Stop
from taskq.retry import Backoff, Discard, Retry, Snooze
from tests.node.jobs import FakeKnown, running


def of_error(job, error):
    return outcome.of_error(job, error, worker="w.1")


def of_value(job, value, max_bytes=1000):
    return outcome.of_value(job, value, worker="w.1", max_bytes=max_bytes, types=codec.Types())


def told(failure):
    return json.loads(failure.error)


def test_a_value_completes():
    assert of_value(running(), 202) == Done("default:1", 1000, codec.encode_value(202))
    assert of_value(running(), None) == Done("default:1", 1000, b"")


class Evil:
    def __reduce__(self):
        raise SystemExit


@pytest.mark.parametrize("value", [threading.Lock(), (n for n in ()), "x" * 2000, Evil(), [[Evil()]]])
def test_what_cannot_be_stored_fails_at_once(value):
    ending = of_value(running(attempt=1), value)
    assert ending.verb == "fail"
    assert ending.reason.startswith("result not serializable: ")


async def test_a_returned_coroutine_is_not_left_unawaited():
    ending = of_value(running(), asyncio.sleep(0))
    assert ending.reason.startswith("result not serializable: ")


def test_an_error_is_retried_after_the_tasks_backoff():
    ending = of_error(running(FakeKnown(), attempt=1), ValueError("boom"))
    assert (ending.verb, ending.delay_ms) == ("retry", 7000)
    assert told(ending)["type"] == "ValueError"
    assert told(ending)["worker"] == "w.1"


def test_the_jobs_own_backoff_is_stronger():
    job = running(FakeKnown(), backoff=Backoff.fixed(2, jitter=False).spec())
    assert of_error(job, ValueError()).delay_ms == 2000


def test_a_damaged_backoff_does_not_cost_the_retry():
    assert of_error(running(FakeKnown(), backoff="?"), ValueError()).verb == "retry"


@pytest.mark.parametrize(
    "attempt,most,verb",
    [(1, 3, "retry"), (2, 3, "retry"), (3, 3, "fail"), (9, 3, "fail"), (2, 0, "retry"), (3, "x", "fail")],
)
def test_attempts_are_bounded(attempt, most, verb):
    assert of_error(running(attempt=attempt, max_attempts=most), ValueError()).verb == verb


def test_the_last_failure_says_why():
    ending = of_error(running(attempt=3), ValueError("boom"))
    assert ending.reason == "attempts exhausted (3 of 3): ValueError: boom"


def test_retry_says_when_and_keeps_its_cause():
    error = Retry(delay="1m")
    error.__cause__ = KeyError("k")
    ending = of_error(running(), error)
    assert (ending.verb, ending.delay_ms, told(ending)["type"]) == ("retry", 60_000, "KeyError")
    assert of_error(running(FakeKnown()), Retry()).delay_ms == 7000
    assert of_error(running(attempt=3), Retry(delay=1)).verb == "fail"


def test_snooze_and_discard():
    assert of_error(running(attempt=3), Snooze(30)) == Snoozed("default:1", 1000, "snooze", 30_000, "")
    ending = of_error(running(attempt=1), Discard("no such account"))
    assert (ending.verb, ending.reason) == ("fail", "no such account")


@pytest.mark.parametrize("error", [UnknownTask("unknown task"), BadArguments("missing a")])
def test_what_newer_code_may_know_is_handed_back(error):
    ending = of_error(running(attempt=3), error)
    assert isinstance(ending, Snoozed)
    assert ending.kind == "unknown"
    assert 4_000 <= ending.delay_ms <= 6_000


def test_the_longer_nobody_knows_it_the_less_often_it_is_tried():
    assert of_error(running(epoch=10_000_000, unknown_since=10_000_000 - 100_000), UnknownTask()).delay_ms >= 20_000
    assert of_error(running(epoch=10_000_000, unknown_since=1), UnknownTask()).delay_ms <= 72_000


def test_a_bad_payload_fails_at_once():
    assert of_error(running(attempt=1), InvalidPayload("damaged")).verb == "fail"


@pytest.mark.parametrize("kind", [UnknownTask, BadArguments, InvalidPayload, BadRecord])
async def test_once_its_code_has_begun_they_are_errors_as_all_others(kind):
    job = running(FakeKnown(), attempt=1)
    begin(job)
    ending = of_error(job, kind("of another task's enqueue"))
    assert (ending.verb, ending.delay_ms, told(ending)["type"]) == ("retry", 7000, kind.__name__)


def test_the_wrong_executor_moves_the_job():
    assert of_error(running(), WrongExecutor("thread")) == Release("default:1", 1000, "thread")


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_what_would_end_a_program_only_fails_the_job(error):
    assert isinstance(of_error(running(), error), Failure)


def stopped(why, **fields):
    job = running(FakeKnown(timeout_ms=1500), **fields)
    job.stop = why
    return job


def test_the_reasons_of_a_stop_end_differently():
    cancelled = asyncio.CancelledError()
    timeout = of_error(stopped(Stop.TIMEOUT), cancelled)
    assert (timeout.verb, told(timeout)["type"]) == ("retry", "JobTimeout")
    assert told(timeout)["message"] == "ran longer than its timeout of 1.5 s"
    assert of_error(stopped(Stop.TIMEOUT, attempt=3), cancelled).verb == "fail"
    assert of_error(stopped(Stop.CANCEL), cancelled) == Release("default:1", 1000, "")
    assert of_error(stopped(Stop.SHUTDOWN), cancelled) == Release("default:1", 1000, "")
    assert of_error(stopped(Stop.LOST), cancelled) is None


def test_an_error_while_being_stopped_is_the_stop():
    assert isinstance(of_error(stopped(Stop.SHUTDOWN), ValueError("cut short")), Release)
    assert told(of_error(stopped(Stop.TIMEOUT), ValueError("cut short")))["type"] == "JobTimeout"
