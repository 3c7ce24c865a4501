"""Tasks as users declare them, bare and with options: parameters and results keep their types."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, assert_type

from taskq import Backoff, Call, Job, Options, Retention, Task, TaskQ

app = TaskQ(
    "redis://localhost:6379/0",
    namespace="shop",
    include=("shop.mail", "shop.*.tasks"),
    defaults=Options(max_attempts=5, timeout="30s"),
    retention=Retention(completed="1h"),
    lease="8s",
    max_payload="1MiB",
)


@app.task
async def send(to: str, *, subject: str = "hi") -> int:
    return len(to + subject)


@app.task
def add(x: int, y: int = 1) -> int:
    return x + y


@app.task()
def parenthesised(x: int) -> str:
    return str(x)


@app.task(queue="email", name="mail.send", max_attempts=5, backoff=Backoff.exponential(base=2, cap="1h"), timeout=30)
async def send_slowly(to: str) -> bytes | None:
    return to.encode()


@app.task(executor="thread", priority=3, tags=["x"], backoff=lambda attempt, error: attempt * 2)
def render(page: int, *more: int, **named: str) -> list[int]:
    return [page, *more, len(named)]


@app.task
def nothing() -> None:
    return None


def plain_calls() -> None:
    assert_type(add(1), int)
    assert_type(render(1, 2, three="3"), list[int])


async def plain_async_calls() -> None:
    assert_type(await send("a@b.c"), int)
    assert_type(await send_slowly("a@b.c"), bytes | None)


def sync_enqueues() -> None:
    assert_type(send.enqueue("a@b.c", subject="x"), Job[int])
    assert_type(add.enqueue(1), Job[int])
    assert_type(parenthesised.enqueue(1), Job[str])
    assert_type(send_slowly.enqueue("a@b.c"), Job[bytes | None])
    assert_type(render.enqueue(1, 2, three="3"), Job[list[int]])
    assert_type(nothing.enqueue(), Job[None])
    assert_type(add.enqueue(1).result(timeout=5), int)
    assert_type(send.enqueue("a@b.c").result("5m"), int)


async def async_enqueues() -> None:
    assert_type(await send.aenqueue("a@b.c"), Job[int])
    assert_type(await add.aenqueue(1), Job[int])
    assert_type(await (await send_slowly.aenqueue("a@b.c")).aresult(5), bytes | None)


def options() -> None:
    other = send.using(delay="1m", priority=5, tags=["x"], meta={"request_id": "7"})
    assert_type(other.enqueue("a@b.c"), Job[int])
    assert_type(add.using(id="one", keep=0).using(expires=3.5).enqueue(1, y=2), Job[int])


def many() -> None:
    assert_type(send.call("a@b.c"), Call[int])
    assert_type(app.enqueue_many([send.call("a"), add.call(1)]), list[Job[int]])
    assert_type(app.enqueue_many((add.call(n) for n in range(3)), exists="raise"), list[Job[int]])


def handles() -> None:
    assert_type(send.job("default:x"), Job[int])
    assert_type(app.job("default:x"), Job[Any])
    job = add.job("default:x").refresh()
    assert_type(job, Job[int])
    assert_type(job.created, bool | None)
    assert_type(job.cancel(running=False), str)


def types_of_tasks(task: Task[[int], str], other: Task[[str], Coroutine[Any, Any, int]]) -> None:
    """How a task is named in an annotation: by what a plain call takes and gives."""
    assert_type(task.enqueue(1), Job[str])
    assert_type(other.enqueue("x"), Job[int])


types_of_tasks(parenthesised, app.by_name("x"))
