"""Why a job isn't running, in words: what the queue said, and what workers there are."""

from __future__ import annotations

import pytest

from taskq.commands import Shut
from taskq.errors import JobNotFound
from taskq.why import explain

NOW = 1_800_000_000_000
NODE = {"queues": ["email"], "tasks": ["mail.send"], "state": "active", "stats": {"slots": 40, "busy": 40}}
TURN = {"state": "available", "task": "mail.send", "lanes_ahead": "2", "jobs_ahead": "14", "more": "0",
        "class": "async", "needs": "executor=async"}  # fmt: skip


def told(word, nodes=(), **facts):
    return explain("email:1", Shut(word, NOW, {"state": "available", **facts}), nodes)


def gate(name, kind, **facts):
    return told("gate", **{"gate": name, "kind": kind, "held": "0", "most": "", "at": "", **facts})


@pytest.mark.parametrize(
    "why, text",
    [
        (gate("crm=acme", "limit", held="2", most="2", holders="email:7 email:8"),
         "limit crm=acme is at 2/2, held by email:7, email:8"),
        (gate("crm=a%20b", "limit", held="9", most="7", holders="email:7"),
         "limit crm=a b is at 9/7, held by email:7 and 8 more"),
        (gate("crm", "rate", at=str(NOW + 1200)), "limit crm: its next token comes in 1s200ms"),
        (gate("crm", "blocked", at=str(NOW + 61_000)), "limit crm is blocked for 1m1s"),
        (gate("!account=17", "lock", held="1", most="1", holders="email:9"), "lock account=17 is held by email:9"),
        (gate("*mail.send", "paused"), "task mail.send is paused: taskq task resume mail.send"),
        (gate("@acme", "paused"), "key acme is paused: taskq queue resume email --key acme"),
        (told("whole", gate="queue", kind="limit", held="3", most="3", at="", holders="email:7"),
         "the limit of queue email is at 3/3, held by email:7 and 2 more"),
        (told("paused", at=str(NOW)), "queue email is paused since 2027-01-15T08:00:00.000Z: taskq queue resume email"),
        (told("due", state="retryable", at=str(NOW + 90_000), attempt="2"),
         "its retry is due at 2027-01-15T08:01:30.000Z, in 1m30s"),
        (told("due", state="scheduled", at=str(NOW - 5_000), attempt="0"),
         "it was due 5s ago: no node has made it available yet"),
        (told("running", state="running", worker="n.1", attempt="2", lease=str(NOW + 1), offered=""),
         "it runs on n.1, attempt 2"),
        (told("running", state="running", worker="n.1", attempt="2", lease=str(NOW), offered=""),
         "it runs on n.1, attempt 2; its lease is over, and it will be reaped"),
        (told("running", state="running", worker="x", attempt="1", lease=str(NOW + 9_000), offered="1"),
         "it is offered to x, who has 9s left to start it"),
        (told("ended", state="failed", at=str(NOW), reason="no such user"),
         "it has ended: failed at 2027-01-15T08:00:00.000Z: no such user"),
        (told("pending"), "it waits for other jobs to end"),
        (told("damaged"), "its record is damaged: taskq fsck --repair"),
        (told("turn", **TURN), "no live worker serves queue email: taskq worker APP -q email"),
        (told("turn", [NODE | {"state": "draining"}], **TURN),
         "no live worker serves queue email (1 that do are draining): taskq worker APP -q email"),
        (told("turn", [NODE | {"tasks": ["x"]}] * 2, **TURN),
         "2 live nodes serve queue email, and none knows task mail.send"),
        (told("turn", [NODE], **TURN),
         "all slots are busy, 40/40; 14 jobs before it in its lane, 2 lanes before that"),
        (told("turn", [NODE | {"stats": {"slots": 40, "busy": 1}}], **TURN),
         "it waits for its turn: 14 jobs before it in its lane, 2 lanes before that"),
        (told("turn", [NODE], **(TURN | {"jobs_ahead": "0", "lanes_ahead": "0"})),
         "all slots are busy, 40/40; it is next"),
    ],
)  # fmt: skip
def test_it_says_in_a_sentence_what_holds_it(why, text):
    assert why.text == str(why) == text
    assert why.to_dict() | {"id": "email:1", "state": why.state, "gate": why.gate, "text": text} == why.to_dict()


def test_its_numbers_are_told_too():
    assert gate("crm=acme", "limit", held="2", most="2", holders="email:7 email:8").to_dict() == {
        "id": "email:1",
        "state": "available",
        "gate": "limit",
        "text": "limit crm=acme is at 2/2, held by email:7, email:8",
        "name": "crm=acme",
        "held": 2,
        "most": 2,
        "holders": ["email:7", "email:8"],
    }
    found = told("turn", [NODE], **TURN).numbers
    assert found == {"lanes_ahead": 2, "jobs_ahead": 14, "more": False, "slots": 40, "busy": 40, "nodes": 1}


def test_what_is_gone_is_an_error():
    with pytest.raises(JobNotFound):
        told("missing")
