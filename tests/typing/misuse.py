"""What checkers must refuse: each line here is wrong, and mypy reports an ignore that nothing needs any more."""

from __future__ import annotations

from taskq import Job, TaskQ

app = TaskQ()


@app.task
async def send(to: str, *, subject: str = "hi") -> int:
    return len(to + subject)


def wrong_arguments() -> None:
    send.enqueue(1)  # type: ignore[call-overload]
    send.enqueue("a@b.c", sbject="x")  # type: ignore[call-overload]
    send.enqueue()  # type: ignore[call-overload]
    send.call(to=b"x")  # type: ignore[call-overload]
    send.using(delay=1).enqueue(1)  # type: ignore[call-overload]


def wrong_results() -> None:
    job: Job[str] = send.enqueue("a@b.c")  # type: ignore[assignment]
    text: str = send.enqueue("a@b.c").result()  # type: ignore[assignment]
    assert job.id < text


def wrong_options() -> None:
    send.using(priority="high")  # type: ignore[arg-type]
    send.using(priorty=1)  # type: ignore[call-arg]
    send.using(executor="thread")  # type: ignore[call-arg]
    app.task(queue=7)  # type: ignore[call-overload]
    app.task(on_lease_lost="forget")  # type: ignore[call-overload]
    TaskQ(lease=object())  # type: ignore[arg-type]


def wrong_schedules() -> None:
    app.cron("@daily", missed="some")  # type: ignore[arg-type]
    app.cron("@daily", overlpa="skip")  # type: ignore[call-arg]
    app.every("5m", max_runs="3", priority=1)  # type: ignore[arg-type]
    app.schedules.put("s", send, every=5, jiter="1s")  # type: ignore[call-arg]
    app.schedules.put("s", send, every=5, priority=1)  # type: ignore[call-arg]


def wrong_states() -> None:
    app.queue("email").jobs("faild")  # type: ignore[arg-type]


async def not_awaited() -> None:
    number: int = send.aenqueue("a@b.c")  # type: ignore[assignment]
    assert number
