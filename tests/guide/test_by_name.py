"""Producers without the task's code: by its name, or through a typed stub."""

import pytest

from taskq import BadArguments
from tests.guide.app import app
from tests.waiting import wait_until


@app.task(name="guide.mail", queue="guide-mail")
async def mail(to: str, *, subject: str = "hi") -> str:
    return f"{to}: {subject}"


@app.stub(name="guide.mail", queue="guide-mail")
def send_mail(to: str, *, subject: str = "hi") -> str:
    raise NotImplementedError


def test_by_name():
    job = app.by_name("guide.mail", queue="guide-mail").enqueue("a@b.c", subject="hello")
    assert job.result(timeout=10) == "a@b.c: hello"


def test_by_name_alone_asks_the_nodes_where_it_is_served():
    wait_until(lambda: app.client.task_info("guide.mail"), what="the node's word that it knows the task")
    job = app.by_name("guide.mail").enqueue("a@b.c")
    assert job.queue == "guide-mail"
    assert job.result(timeout=10) == "a@b.c: hi"


def test_a_stub_checks_the_arguments():
    assert send_mail.enqueue("a@b.c").result(timeout=10) == "a@b.c: hi"
    with pytest.raises(BadArguments):
        send_mail.enqueue("a@b.c", topic="hi")
