"""Tags and meta: words of your own beside a job, for the code that runs it and for people who look."""

from taskq import current
from tests.guide.app import app


@app.task(tags=["report"])
async def report() -> dict[str, object]:
    job = current()
    return {"tags": job.tags, "meta": job.meta}


def test_the_job_sees_them():
    job = report.using(meta={"request_id": "7"}).enqueue()
    assert job.result(timeout=10) == {"tags": ["report"], "meta": {"request_id": "7"}}


def test_so_does_whoever_reads_it():
    job = report.using(tags=["report", "monthly"], meta={"request_id": "8"}).enqueue()
    job.join(timeout=10)
    shown = job.to_dict()
    assert (shown["tags"], shown["meta"]) == (["report", "monthly"], {"request_id": "8"})
