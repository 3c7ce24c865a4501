"""Functions without annotations can be tasks, in strict programs too: their results are Any."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from taskq import Job, TaskQ

app = TaskQ()


@app.task
def bare(x, y=1):
    return x + y


@app.task(queue="email")
def optioned(x, y=1):
    return x + y


@app.task
async def on_the_loop(x):
    return x


@app.task
def returns_any(x: int) -> Any:
    return x


def use() -> None:
    one: Job[Any] = bare.enqueue(1, y=2)
    two: Job[Any] = optioned.enqueue(1)
    three: Job[Any] = on_the_loop.enqueue(1)
    four: Job[Any] = returns_any.using(delay=1).enqueue(1)
    app.enqueue_many([bare.call(1), on_the_loop.call(2)])
    assert one.result() is not two.result()
    assert three.id < four.queue
