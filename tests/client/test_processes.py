"""One app in several threads, and in a process and its fork, as gunicorn's preload makes them."""

from __future__ import annotations

import os
import threading
import warnings

from taskq import Client


def test_threads_share_an_app(app):
    task = app.by_name("x")
    made: list[str] = []

    def work():
        made.extend(task.enqueue().id for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 400
    assert app.queue("default").counts().available == 400


def test_a_forked_child_uses_connections_of_its_own(app):
    task = app.by_name("x")
    task.enqueue()  # so that there is an open connection to inherit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads; this child runs none
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if all(task.enqueue().created for _ in range(20)) else 1)
        finally:
            os._exit(2)
    assert all(task.enqueue().created for _ in range(20))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert app.queue("default").counts().available == 41


def test_a_client_of_its_own_needs_no_app(app, server_url, namespace):
    job = app.by_name("x").enqueue()
    client = Client(server_url, namespace=namespace)
    try:
        assert client.ping()
        assert client.job(job.id).task == "x"
        assert client.task_info("x") is None
    finally:
        client.close()


def test_a_closed_app_opens_again(app):
    app.ping()
    app.close()
    assert app.by_name("x").enqueue().created
