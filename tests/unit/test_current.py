"""What a running job may know about itself."""

from __future__ import annotations

import threading
from contextvars import copy_context
from datetime import UTC, datetime

import pytest

from taskq import current
from taskq.current import CurrentJob, _current
from taskq.errors import NotInJob

FIELDS = {b"task": b"shop.send"}


def running(**more):
    fields = FIELDS | {name.encode(): value for name, value in more.items()}
    return CurrentJob("email:7", epoch=1700, attempt=1, fields=fields)


@pytest.fixture
def here():
    """Makes a job the current one for the test."""
    tokens = []

    def put(job):
        tokens.append(_current.set(job))
        return job

    yield put
    for token in reversed(tokens):
        _current.reset(token)


def test_outside_a_job_there_is_none():
    with pytest.raises(NotInJob, match="no job runs here"):
        current()


def test_the_job_is_the_same_object_wherever_the_context_goes(here):
    job = here(running())
    seen = []
    context = copy_context()
    thread = threading.Thread(target=context.run, args=(lambda: seen.append(current()),))
    thread.start()
    thread.join()
    assert seen == [job] and current() is job  # noqa: PT018


def test_a_record_without_options_reads_as_the_defaults():
    job = running()
    assert (job.id, job.task, job.queue, job.epoch, job.attempt) == ("email:7", "shop.send", "email", 1700, 1)
    assert (job.max_attempts, job.tags, job.meta, job.scheduled_for, job.deadline) == (3, [], {}, None, None)
    assert not job.cancel_requested


def test_what_was_said_is_read_back():
    job = running(max_attempts=b"5", tags='["ä","b"]'.encode(), meta=b'{"request_id":"7"}', scheduled_for=b"1500")
    assert (job.max_attempts, job.tags, job.meta) == (5, ["ä", "b"], {"request_id": "7"})
    assert job.scheduled_for == datetime.fromtimestamp(1.5, UTC)


def test_what_a_task_changes_stays_its_own():
    job = running(meta=b'{"a":"b"}')
    job.meta["a"] = "c"
    assert job.meta == {"a": "b"}


@pytest.mark.parametrize("stored", [b"0", b"-1"])
def test_a_maximum_that_is_not_positive_means_three(stored):
    assert running(max_attempts=stored).max_attempts == 3
    assert not CurrentJob("q:1", epoch=1, attempt=2, fields={b"max_attempts": stored}).is_last_attempt


@pytest.mark.parametrize("attempt,last", [(1, False), (2, False), (3, True), (4, True)])
def test_the_last_attempt_is_known(attempt, last):
    assert CurrentJob("q:1", epoch=1, attempt=attempt, fields=FIELDS).is_last_attempt is last
