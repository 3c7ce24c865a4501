"""Priority: higher first, whatever came first."""

from taskq import current
from tests.guide.app import app


@app.task(queue="guide-priority")
def work(name: str) -> int:
    return current().epoch  # when it was claimed


def test_the_urgent_one_is_claimed_first():
    queue = app.queue("guide-priority")
    queue.pause()
    usual = [work.enqueue("usual") for _ in range(3)]
    urgent = work.using(priority=10).enqueue("urgent")
    lazy = work.using(priority=-10).enqueue("lazy")
    listed = [job["id"] for job in queue.jobs("available")["data"]]
    assert listed == [urgent.id, *(job.id for job in usual), lazy.id]
    queue.resume()
    claimed = [job.result(timeout=10) for job in (urgent, *usual, lazy)]
    assert claimed == sorted(claimed)
