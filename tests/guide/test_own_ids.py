"""Own ids: whoever enqueues the same id again gets the job that is there."""

import pytest

from taskq import JobAlreadyExists
from tests.guide.app import app


@app.task
async def bill(month: str) -> str:
    return f"billed {month}"


def test_an_id_names_one_job():
    job = bill.using(id="bill-2026-01").enqueue("2026-01")
    assert job.id == "default:bill-2026-01"
    again = bill.using(id="bill-2026-01").enqueue("2026-01")
    assert again == job
    assert (job.created, again.created) == (True, False)
    assert again.result(timeout=10) == "billed 2026-01"


def test_or_refuses():
    calls = [bill.using(id="bill-2026-02").call("2026-02")]
    app.enqueue_many(calls, exists="raise")
    with pytest.raises(JobAlreadyExists):
        app.enqueue_many([*calls, bill.call("2026-03")], exists="raise")


def test_the_id_is_enough_to_find_it():
    bill.using(id="bill-2026-04").enqueue("2026-04")
    assert bill.job("default:bill-2026-04").result(timeout=10) == "billed 2026-04"
