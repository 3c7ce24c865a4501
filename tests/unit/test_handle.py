"""`Job`: what it holds without asking, and how a job's end becomes a value or an error. No server is needed."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest

from taskq import TaskQ, errors
from taskq.client.ending import ended, failure_of, result_of, still_waits, until
from taskq.codec import DEFAULT, encode_value
from taskq.handle import Job
from taskq.record import JobRecord
from taskq.state import State

ID = "email:7"


def record(**fields) -> JobRecord:
    stored = {"task": "shop.send", "state": "completed", **fields}
    return JobRecord.from_fields(
        ID,
        {name.encode(): value if isinstance(value, bytes) else str(value).encode() for name, value in stored.items()},
    )


def error(kind: str) -> str:
    return json.dumps({"type": kind, "message": "boom", "at": 1000, "worker": "n.1"})


# --- the handle


def test_a_handle_by_id_knows_what_the_id_says():
    job = TaskQ().job(ID)
    assert (job.id, job.queue) == (ID, "email")
    assert (job.task, job.state, job.created, job.record, job.attempt) == (None, None, None, None, 0)


def test_its_repr_says_where_it_is_too():
    """The same id may exist in several namespaces."""
    assert repr(TaskQ(namespace="shop").job(ID)) == "<Job shop/email:7 not read yet>"
    job = TaskQ(namespace="shop").by_name("mail.send").job(ID)
    job.state = State.FAILED
    assert repr(job) == "<Job shop/email:7 mail.send failed>"


def test_a_tasks_handle_knows_the_task():
    assert TaskQ().by_name("mail.send").job(ID).task == "mail.send"


def test_handles_of_the_same_job_are_equal():
    app = TaskQ()
    assert app.job(ID) == app.job(ID) != app.job("email:8")
    assert app.job(ID) != TaskQ().job(ID)
    assert len({app.job(ID), app.job(ID)}) == 1


@pytest.mark.parametrize("method", ["result", "join"])
async def test_waiting_would_block_a_running_loop_and_names_the_twin(method):
    with pytest.raises(RuntimeError, match=rf"await job\.a{method}\(\) instead"):
        getattr(TaskQ().job(ID), method)()


def test_every_method_that_asks_the_server_has_a_twin():
    methods = {name for name in vars(Job) if not name.startswith("_") and callable(getattr(Job, name))}
    plain = {name for name in methods if f"a{name}" in methods}
    assert methods == plain | {f"a{name}" for name in plain}
    assert plain == {"result", "join", "refresh", "to_dict", "cancel", "retry", "reprioritise", "why"}


class FakeClient:
    """Answers `wait` with a record it was given."""

    def __init__(self, found: JobRecord | None) -> None:
        self.found = found

    def wait(self, id: str, *, timeout: object = None) -> JobRecord | None:
        return self.found


def handle(found: JobRecord | None, state: State | None = None) -> Job[object]:
    return Job(SimpleNamespace(client=FakeClient(found), types=DEFAULT), ID, state=state)


def test_a_result_fills_the_handle():
    job = handle(record(result=encode_value(7), attempt=2, epoch=5))
    assert job.result() == 7
    assert (job.task, job.state, job.attempt) == ("shop.send", "completed", 2)
    assert job.record is not None


def test_join_gives_the_final_state_and_raises_for_none_of_them():
    assert handle(record(state="failed", reason="no")).join() == "failed"
    assert handle(record(state="cancelled")).join() == "cancelled"


def test_a_job_that_was_there_has_expired_another_never_was():
    with pytest.raises(errors.ResultExpired, match="no longer kept"):
        handle(None, State.AVAILABLE).result()
    with pytest.raises(errors.JobNotFound):
        handle(None).result()
    with pytest.raises(errors.JobNotFound):
        handle(None).join()


# --- how a job's end is told


def test_nothing_returned_is_none():
    assert result_of(record(), DEFAULT) is None


def test_a_result_given_up_before_its_record_has_expired():
    with pytest.raises(errors.ResultExpired, match="keep_result="):
        result_of(record(dropped=1), DEFAULT)


def test_a_cancelled_job_says_why():
    with pytest.raises(errors.JobCancelled, match="email:7 was cancelled: purged") as caught:
        result_of(record(state="cancelled", reason="purged"), DEFAULT)
    assert (caught.value.job_id, caught.value.reason) == (ID, "purged")


@pytest.mark.parametrize("reason", [None, "cancelled"])
def test_a_cancelled_job_doesnt_say_so_twice(reason):
    fields = {"state": "cancelled"} | ({"reason": reason} if reason else {})
    with pytest.raises(errors.JobCancelled) as caught:
        result_of(record(**fields), DEFAULT)
    assert str(caught.value) == "job email:7 was cancelled"
    assert caught.value.reason == reason


def test_the_errors_of_a_failure_are_those_of_the_record():
    failed = record(state="failed", **{"error:1": error("OSError")})
    (mine,), (theirs,) = failure_of(failed).errors, failed.errors
    assert mine == theirs == {
        "attempt": 1, "type": "OSError", "message": "boom", "traceback": None, "at": "1970-01-01T00:00:01.000Z",
        "worker": "n.1",
    }  # fmt: skip
    assert (theirs.type, theirs["type"], theirs.at_ms) == ("OSError", "OSError", 1000)
    assert json.loads(json.dumps(failure_of(failed).errors)) == failed.to_dict()["errors"]


@pytest.mark.parametrize(
    "last,reason,kind",
    [
        ("JobTimeout", "attempts exhausted (3 of 3): JobTimeout: too long", errors.JobTimeout),
        ("JobCrashed", "worker died: n.1 (SIGKILL)", errors.JobCrashed),
        ("ValueError", "attempts exhausted (3 of 3): ValueError: boom", errors.AttemptsExhausted),
        ("Discard", "enough", errors.JobFailed),
        (None, "attempts exhausted", errors.AttemptsExhausted),
        (None, None, errors.JobFailed),
    ],
)
def test_a_failure_is_of_the_kind_of_its_last_attempt(last, reason, kind):
    fields = {"state": "failed"} | ({"reason": reason} if reason else {})
    if last:
        fields |= {"error:1": error("OSError"), "error:2": error(last)}
    failure = failure_of(record(**fields))
    assert type(failure) is kind
    assert isinstance(failure, errors.JobFailed)
    assert (failure.job_id, failure.reason) == (ID, reason)
    assert [each["type"] for each in failure.errors] == (["OSError", last] if last else [])
    assert str(failure).startswith("job email:7 failed: ")


# --- waiting


@pytest.mark.parametrize(
    "state,over",
    [("available", False), ("running", False), ("retryable", False), ("completed", True), ("cancelled", True)],
)
def test_waiting_is_over_when_the_job_has_ended(state, over):
    assert ended(record(state=state)) is over


def test_there_is_no_waiting_for_what_is_not_there():
    assert ended(None)


def test_time_that_is_over_says_what_the_job_does():
    with pytest.raises(errors.ResultTimeout, match=r"email:7 has not ended within 0s \(it is running\)"):
        still_waits(ID, record(state="running"), "0s", until("0s"))


@pytest.mark.parametrize("timeout,told", [(0.2, "200ms"), (2, "2s"), ("90", "1m30s"), (timedelta(hours=1), "1h")])
def test_the_time_is_told_with_its_unit(timeout, told):
    with pytest.raises(errors.ResultTimeout, match=f"within {told} "):
        still_waits(ID, None, timeout, 0)


def test_a_look_is_due_every_few_seconds_and_never_after_the_time():
    assert still_waits(ID, None, None, None) == 3.0
    assert still_waits(ID, None, "1h", until("1h")) == 3.0
    assert 0 < still_waits(ID, None, 1, until(1)) <= 1.0
