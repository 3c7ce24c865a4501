"""Rows 290–303: what the command line's own tests don't say in the rows' words."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from taskq.cli.main import cli
from taskq.cli.serve import queues_asked


@pytest.fixture
def taskq(server_url, namespace):
    return lambda *words: CliRunner().invoke(cli, [*words, "--url", server_url, "--namespace", namespace])


def test_clear_takes_the_states_that_the_reference_took(taskq, app, hand):
    """Row 301: `--states=failed,cancelled`, which is also what it clears when nothing is said."""
    failed, cancelled, completed = app.enqueue_many(app.by_name("x").call(n) for n in range(3))
    mine = {job.id: job for job in hand.claim()}
    hand.fail(mine[failed.id])
    cancelled.cancel()
    hand.fail(mine[cancelled.id], verb="retry")
    hand.complete(mine[completed.id])
    assert taskq("job", "clear", "--states=failed,cancelled", "--yes").stdout == "default: 2 deleted\n"
    left = app.queue("default").counts()
    assert (left.failed, left.cancelled, left.completed) == (0, 0, 1)
    assert taskq("job", "clear", "--yes").stdout.startswith("nothing to delete")


def test_every_command_that_needs_a_server_fails_without_one(monkeypatch):
    """Row 303: never a silent success."""
    monkeypatch.setenv("TASKQ_DEADLINE", "100ms")
    for words in (
        ("job", "list"),
        ("job", "show", "default:1"),
        ("job", "retry", "default:1"),
        ("job", "cancel", "default:1"),
        ("job", "clear", "--yes"),
        ("queue", "list"),
        ("queue", "pause", "default"),
        ("queue", "purge", "default", "--yes"),
        ("enqueue", "x", "--queue", "default"),
        ("dispatch",),
        ("stats",),
    ):
        said = CliRunner().invoke(cli, [*words, "--url", "redis://127.0.0.1:1/0"])
        assert (said.exit_code, said.stdout) == (1, ""), words
        assert "127.0.0.1:1" in said.stderr, words


def test_a_queue_that_is_named_twice_is_served_once():
    """Row 149: the first word on it counts."""
    assert queues_asked("email,default,email") == (("email", "default"), {}, {})
    assert queues_asked("email=3,default=1,email=9") == (("email", "default"), {"email": 3, "default": 1}, {})
    assert queues_asked("email=2..20,email=1..2") == (("email",), {}, {"email": (2, 20)})
