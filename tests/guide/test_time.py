"""Later: after a delay, at a time, or not at all once it is too late."""

from datetime import UTC, datetime, timedelta

import pytest

from taskq import JobCancelled
from tests.guide.app import app


@app.task
async def remind(text: str) -> str:
    return text


@app.task(queue="guide-expiring")
async def offer(text: str) -> str:
    return text


def age_s(job) -> float:
    """From its creation to its start, by the server's clock."""
    record = job.refresh().record
    return (record.started_at_ms - record.created_at_ms) / 1000


def test_delay():
    job = remind.using(delay=0.3).enqueue("stand up")
    assert job.state == "scheduled"
    assert job.result(timeout=10) == "stand up"
    assert age_s(job) >= 0.3


def test_delay_as_text_or_timedelta():
    assert remind.using(delay="1h").enqueue("x").refresh().state == "scheduled"
    assert remind.using(delay=timedelta(minutes=5)).enqueue("x").refresh().state == "scheduled"


def test_at_a_time():
    job = remind.using(at=datetime.now(UTC) + timedelta(seconds=0.4)).enqueue("stand up")
    assert job.state == "scheduled"
    assert job.result(timeout=10) == "stand up"


def test_a_time_in_the_past_is_now():
    assert remind.using(at=datetime(2020, 1, 1, tzinfo=UTC)).enqueue("stand up").result(timeout=10) == "stand up"


def test_a_time_has_a_time_zone():
    with pytest.raises(ValueError, match="aware"):
        remind.using(at=datetime(2030, 1, 1)).enqueue("x")  # noqa: DTZ001 (that is the point)


def test_expires():
    app.queue("guide-expiring").pause()
    job = offer.using(expires=0.2).enqueue("today only")
    with pytest.raises(JobCancelled, match="expired"):
        job.result(timeout=10)
    app.queue("guide-expiring").resume()
