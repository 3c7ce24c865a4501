"""What nodes say of a task known by name alone: which name was meant, and what still holds. No server is needed."""

from __future__ import annotations

import pytest

from taskq import Options
from taskq.hearsay import Hearsay, nearest_task, other_queue

KNOWN = ["shop.tasks.orders.report", "shop.tasks.mail.send", "other.mail.send", "mail.read"]


@pytest.mark.parametrize(
    "name,meant",
    [
        ("report", ["shop.tasks.orders.report"]),
        ("orders.report", ["shop.tasks.orders.report"]),
        ("mail.send", ["other.mail.send", "shop.tasks.mail.send"]),
        ("shop.tasks.orders.reprot", ["shop.tasks.orders.report"]),
        ("reprot", ["shop.tasks.orders.report"]),
        ("mail.raed", ["mail.read"]),
        ("port", ["shop.tasks.orders.report"]),
    ],
)
def test_the_task_that_was_meant_is_found_by_its_end_or_its_looks(name, meant):
    assert nearest_task(name, KNOWN) == f" (did you mean {' or '.join(map(repr, meant))}?)"


@pytest.mark.parametrize("name", ["", "nothing.like.it", "zzz"])
def test_what_is_like_nothing_gets_no_advice(name):
    assert nearest_task(name, KNOWN) == nearest_task("report", []) == ""


@pytest.mark.parametrize(
    "info,other",
    [
        ({}, None),
        ({"also": "b", "also_seen": "1000", "now": "121000"}, "b"),
        ({"also": "b", "also_seen": "1000", "now": "121001"}, None),
        ({"also": "a", "also_seen": "1000", "now": "1000"}, None),
        ({"also": "b", "also_seen": "x", "now": "1000"}, None),
    ],
)
def test_another_queue_counts_while_somebody_says_so(info, other):
    assert other_queue({"queue": "a", **info}) == other


def test_what_was_heard_is_kept_and_what_nobody_knew_is_asked_again():
    heard = Hearsay()
    assert heard.is_due("t", urgent=False)
    assert heard.take("t", None)
    assert not heard.is_due("t", urgent=False)
    assert heard.is_due("t", urgent=True)
    assert not heard.take("t", None), "said once"
    assert heard.options("t") == Options()
    heard.take("t", {"queue": "email", "options": '{"max_attempts":1}'})
    assert not heard.is_due("t", urgent=True)
    assert heard.options("t") == Options(queue="email", max_attempts=1)


def test_the_parameters_that_nodes_tell_of_are_known_by_place():
    heard = Hearsay()
    heard.take("t", {"queue": "q", "options": '{"order":["tenant","n"]}', "about": '{"parameters":"(tenant, n"}'})
    assert heard.order("t") == ["tenant", "n"]
    for damaged in ("", "x", "[]", '{"order":5}', '{"order":[5]}'):
        heard.take("t", {"queue": "q", "options": damaged})
        assert heard.order("t") == []
