"""Many jobs at once: in pipelined calls of 250, each all or nothing."""

from tests.guide.app import app


@app.task
async def square(n: int) -> int:
    return n * n


@app.task(queue="guide-words")
async def shout(text: str) -> str:
    return text.upper()


def test_many():
    jobs = app.enqueue_many([square.call(n) for n in range(600)])
    assert [job.result(timeout=20) for job in jobs] == [n * n for n in range(600)]


def test_several_tasks_and_queues_in_the_order_given():
    first, second = app.enqueue_many([shout.call("hi"), square.using(priority=5).call(3)])
    assert (first.queue, second.queue) == ("guide-words", "default")
    assert (first.result(timeout=10), second.result(timeout=10)) == ("HI", 9)


async def test_awaited():
    jobs = await app.aenqueue_many(square.call(n) for n in range(10))
    assert [await job.aresult(timeout=10) for job in jobs] == [n * n for n in range(10)]
