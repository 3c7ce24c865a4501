"""Producers without the tasks' code: stubs keep their types, names alone give Any."""

from __future__ import annotations

from typing import Any, assert_type

from taskq import Call, Job, Task, TaskQ

app = TaskQ()


@app.stub(name="mail.send", queue="email")
def send_mail(to: str) -> int:
    raise NotImplementedError


@app.stub
async def bare(to: str) -> str:
    raise NotImplementedError


def stubs() -> None:
    assert_type(send_mail.enqueue("a@b.c"), Job[int])
    assert_type(send_mail.using(delay=5).call("a@b.c"), Call[int])
    assert_type(bare.enqueue("a@b.c"), Job[str])


async def names() -> None:
    task = app.by_name("mail.send", queue="email")
    assert_type(task, Task[..., Any])
    assert_type(task.enqueue("a@b.c", anything=1), Job[Any])
    assert_type(await task.using(priority=3).aenqueue("a@b.c"), Job[Any])
