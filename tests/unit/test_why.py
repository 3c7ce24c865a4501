"""Why a job isn't running, in words: what the queue said, and what workers there are."""

from __future__ import annotations

import pytest

from taskq import limited
from taskq.commands import HeldJob, HeldJobs, Shut
from taskq.errors import JobNotFound
from taskq.why import explain, takers

NOW = 1_800_000_000_000
NODE = {
    "id": "n1", "hostname": "web-1", "state": "active", "queues": ["email"], "tasks": ["mail.send"], "workers": 3,
    "concurrency": {"async": 10, "thread": 5}, "labels": {}, "capacity": {}, "stats": {"slots": 40, "busy": 40},
}  # fmt: skip
TURN = {"state": "available", "task": "mail.send", "lanes_ahead": "2", "jobs_ahead": "14", "more": "0",
        "class": "async", "needs": "executor=async"}  # fmt: skip
FAR = [NODE | {"id": "n2", "hostname": "web-2"}, NODE | {"workers": 1}]
SMALL, LARGE = (NODE | {"capacity": capacity} for capacity in ({"cpu": 12, "gpu": 3}, {"cpu": 24}))


def told(word, nodes=(), **facts):
    return explain("email:1", Shut(word, NOW, {"state": "available", **facts}), nodes)


def needing(needs, *nodes, kind="async", **facts):
    return told("turn", nodes, **(TURN | {"class": f"{kind};{needs}", "needs": f"executor={kind};{needs}"} | facts))


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
        (gate("crm", "blocked", at=str(NOW + 61_000)),
         "limit crm is blocked for 1m1s: taskq queue limit email crm --block 0"),
        (gate("crm=acme", "blocked", at=str(NOW + 61_000), by="crm=acme"),
         "limit crm=acme is blocked for 1m1s: taskq queue limit email crm --key acme --block 0"),
        (gate("crm=acme", "blocked", at=str(NOW + 61_000), by="op:crm"),
         "limit crm, for all its keys, is blocked for 1m1s: taskq queue limit email crm --block 0"),
        (gate("crm=acme", "limit", held="0", most="0"),
         "limit crm=acme is at 0/0, so nothing runs: taskq queue limit email crm --key acme --concurrency N"),
        (gate("!account=17", "lock", held="1", most="1", holders="email:9"),
         "it waits for lock account=17, held by email:9"),
        (gate("crm", "saving"),
         "limit crm: what is free of its rate is kept for a job that came first and costs more"),
        (gate("*mail.send", "paused"), "task mail.send is paused: taskq task resume mail.send --queue email"),
        (gate("@acme", "paused"), "key acme is paused: taskq queue resume email --key acme"),
        (gate("@a%20b", "paused"), "key a b is paused: taskq queue resume email --key 'a b'"),
        (gate("@%", "paused"), "key  is paused: taskq queue resume email --key ''"),
        (gate("crm=%", "limit", held="2", most="2", holders=""), "limit crm= is at 2/2"),
        (gate("%2Acrm", "limit", held="2", most="2", holders=""), "limit *crm is at 2/2"),
        (gate("%40crm=7", "limit", held="2", most="2", holders=""), "limit @crm=7 is at 2/2"),
        (gate("%21crm", "rate", at=str(NOW + 1500)), "limit !crm: its next token comes in 1s500ms"),
        (gate("!%21a=%3D", "lock", held="1", most="1", holders="email:7"), "it waits for lock !a==, held by email:7"),
        (told("whole", gate="queue", kind="limit", held="3", most="3", at="", holders="email:7"),
         "the limit of queue email is at 3/3, held by email:7 and 2 more"),
        (told("whole", gate="queue", kind="limit", held="5", most="5", at="", holders="email:7", reserved="2"),
         "the limit of queue email is at 5/5, held by email:7 and 2 more, 2 reserved"),
        (told("whole", gate="queue", kind="limit", held="2", most="2", at="", holders="", reserved="2"),
         "the limit of queue email is at 2/2, 2 reserved"),
        (told("paused", at=str(NOW)), "queue email is paused since 2027-01-15T08:00:00.000Z: taskq queue resume email"),
        (told("due", state="retryable", at=str(NOW + 90_000), attempt="2"),
         "its retry is due at 2027-01-15T08:01:30.000Z, in 1m30s"),
        (told("due", state="scheduled", at=str(NOW - 5_000), attempt="0"),
         "it was due 5s ago: no node has made it available yet"),
        (told("due", state="scheduled", at=str(NOW + 5_000), attempt="0", unknown="UnknownTask: no task mail.send"),
         "a worker handed it back: UnknownTask: no task mail.send; it is tried again in 5s"),
        (told("running", state="running", worker="n.1", attempt="2", lease=str(NOW + 1), offered=""),
         "it runs on n.1, attempt 2"),
        (told("running", state="running", worker="n.1", attempt="2", lease=str(NOW), offered=""),
         "it runs on n.1, attempt 2; its lease is over, and it will be reaped"),
        (told("running", state="running", worker="n.1", attempt="2", lease=str(NOW + 1), offered="", cancel="1"),
         "it runs on n.1, attempt 2; it was asked to stop: `taskq job cancel --force` ends what can't be interrupted"),
        (told("running", state="running", worker="n.1", attempt="2", lease=str(NOW + 1), offered="", cancel="force"),
         "it runs on n.1, attempt 2; it was asked to stop, and will be by force"),
        (told("running", state="running", worker="x", attempt="1", lease=str(NOW + 9_000), offered="1"),
         "it is offered to x, who has 9s left to start it"),
        (told("ended", state="failed", at=str(NOW), reason="no such user"),
         "it has ended: failed at 2027-01-15T08:00:00.000Z: no such user"),
        (told("pending"), "it waits for other jobs to end"),
        (told("damaged"), "its record is damaged: taskq fsck --repair"),
        (told("turn", **TURN), "no live taskq worker serves queue email: taskq worker APP -q email"),
        (told("turn", [NODE | {"state": "draining"}], **TURN),
         "no live taskq worker serves queue email (1 that do are draining): taskq worker APP -q email"),
        (told("turn", [NODE | {"tasks": ["x"]}] * 2, **TURN),
         "2 live nodes serve queue email, and none knows task mail.send"),
        (told("turn", [NODE], **TURN),
         "all slots are busy, 40/40; 14 jobs before it in its lane, 2 lanes before that"),
        (told("turn", [NODE | {"stats": {"slots": 40, "busy": 1}}], **TURN),
         "it waits for its turn: 14 jobs before it in its lane, 2 lanes before that"),
        (told("turn", [NODE], **(TURN | {"jobs_ahead": "0", "lanes_ahead": "0"})),
         "all slots are busy, 40/40; it is next"),
        (needing("takes.gpu=1", *FAR), "it needs gpu=1, 4 live workers, none with it: none was given a --capacity"),
        (needing("takes.gpu=1", LARGE), "it needs gpu=1, 3 live workers, none with it"),
        (needing("takes.cpu=4", LARGE | {"stats": {"slots": 40, "busy": 6}}, jobs_ahead="0", lanes_ahead="0"),
         "it waits for its turn: it is next, once cpu=4 is free on one worker"),
        (needing("takes.gpu=2", SMALL, LARGE), "it needs gpu=2, 6 live workers, none with it: the largest has gpu=1"),
        (needing("label.zone=eu;takes.tpu=1", SMALL),
         "it needs label zone=eu and tpu=1, 3 live workers, none with them"),
        (needing("label.zone=eu;takes.gpu=1", SMALL), "it needs label zone=eu, 3 live workers, none with it"),
        (needing("takes.cpu=8;takes.gpu=1", SMALL, LARGE),
         "it needs cpu=8 and gpu=1 on one worker, 6 live workers, none with all of it"),
        (needing("label.gpu=a100;takes.cpu=8;takes.gpu=1", SMALL | {"labels": {"gpu": "a100"}}, LARGE),
         "it needs label gpu=a100, cpu=8 and gpu=1 on one worker, 6 live workers, none with all of it"),
        (needing("takes.cpu=4;takes.gpu=1", SMALL, LARGE),
         "all slots are busy, 40/40; 14 jobs before it in its lane, 2 lanes before that"),
        (needing("target=web-9", *FAR), "its target web-9 is not there: 2 live nodes, none of that name"),
        (needing("target=web-9"), "its target web-9 is not there: 0 live nodes, none of that name"),
        (needing("target=n1", NODE | {"state": "draining"}), "its target n1 is draining"),
        (needing("target=n1", NODE | {"queues": ["x"]}), "its target n1 does not serve queue email"),
        (needing("target=web-1", NODE | {"tasks": []}), "its target web-1 does not know task mail.send"),
        (needing("takes.gpu=1;target=web-1", NODE | {"capacity": {"cpu": 1}}),
         "it needs gpu=1, 3 live workers, none with it (its target is web-1)"),
        (needing("target=web-1", *FAR),
         "all slots are busy, 40/40; 14 jobs before it in its lane, 2 lanes before that"),
        (needing("", NODE | {"concurrency": {"async": 0}}),
         "it needs a slot for async tasks, 3 live workers, none with one: taskq worker APP -c N"),
        (needing("", NODE | {"stats": {"slots": 40, "busy": 5, "executors": {"async": {"slots": 5, "busy": 5}}}}),
         "all slots are busy, 5/5; 14 jobs before it in its lane, 2 lanes before that"),
        (needing("target=ext", comes="1", executors="1"),
         "it waits for ext, an executor that claims here: 14 jobs before it in its lane, 2 lanes before that"),
        (told("turn", **(TURN | {"executors": "1", "who": "ext"})),
         "ext, an executor of another kind, claims here and has not taken it; no live taskq worker serves queue email"),
        (told("turn", **(TURN | {"executors": "5", "who": "a b c"})),
         ("a, b, c and 2 more, executors of another kind, claim here and have not taken it; no live taskq worker serves"
          " queue email")),
        (needing("takes.gpu=1", LARGE, executors="2", who="a b"),
         ("a and b, executors of another kind, claim here and have not taken it; it needs gpu=1, 3 live workers, none"
          " with it")),
        (told("turn", [NODE], **(TURN | {"class": "async;takes.gpu=1", "needs": ""})),
         "it needs gpu=1, 3 live workers, none with it: none was given a --capacity"),
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
        "kind": "limit",
        "name": "crm",
        "key": "acme",
        "held": 2,
        "most": 2,
        "holders": ["email:7", "email:8"],
    }
    found = told("turn", [NODE], **TURN).numbers
    assert found == {"lanes_ahead": 2, "jobs_ahead": 14, "more": False, "slots": 40, "busy": 40, "nodes": 1}


@pytest.mark.parametrize(
    "entry, named",
    [
        ("*wk.sync", ("task", "wk.sync", None)),
        ("@acme", ("fairness key", None, "acme")),
        ("@@a", ("fairness key", None, "@a")),
        ("!account=1", ("lock", "account", "1")),
        ("!account", ("lock", "account", None)),
        ("crm", ("limit", "crm", None)),
        ("%2Acrm=a%20b", ("limit", "*crm", "a b")),
        ("queue", ("queue", None, None)),
    ],
)
def test_what_is_shut_is_named_as_people_know_it(entry, named):
    found = gate(entry, "rate", at=str(NOW)).to_dict()
    assert (found["kind"], found["name"], found["key"]) == named == limited.named(entry)


def running(n, worker, klass="", total=None):
    fields = {b"state": b"running", b"worker": worker.encode()} | ({b"class": klass.encode()} if klass else {})
    return HeldJobs(NOW, n if total is None else total, [HeldJob(f"email:{i}", NOW, fields) for i in range(n)])


@pytest.mark.parametrize(
    "busy, pages, told",
    [
        (3, [running(5, "n1.0")], 5),
        (5, [running(2, "n1.1")], 2),
        (3, [running(2, "n1.0"), running(3, "n1.1", "async;takes.cpu=1")], 5),
        (3, [running(5, "n1.0", "thread")], 0),
        (3, [running(5, "n2.0")], 0),
        (3, [running(5, "n1")], 0),
        (4, [running(2, "n1.0", total=1500)], 4),  # not all leases were read: the nodes may know of more
        (4, [running(5, "n1.0", total=1500)], 5),
        (4, [running(0, "n1.0")] * 16, 4),  # nor all queues
        (4, [], 4),
    ],
)
def test_what_runs_is_counted_by_leases_where_all_were_read(busy, pages, told):
    node = NODE | {"stats": {"slots": 5, "busy": busy}}
    found = explain("email:1", Shut("turn", NOW, TURN), [node], pages)
    assert (found.numbers["busy"], found.numbers["slots"]) == (told, 5)
    assert found.text.startswith("all slots are busy, 5/5; " if told == 5 else "it waits for its turn: ")


def test_what_runs_is_asked_only_of_queues_that_its_nodes_serve():
    asked = takers(
        "ns", "email:1", Shut("turn", NOW, TURN), [NODE | {"queues": ["email", "a"]}, NODE | {"queues": ["b"]}]
    )
    assert [command.keys[0] for command in asked] == ["ns:{email}:", "ns:{a}:"]
    assert takers("ns", "email:1", Shut("turn", NOW, TURN), [NODE | {"queues": ["b"]}]) == []


def test_what_is_gone_is_an_error():
    with pytest.raises(JobNotFound):
        told("missing")


def test_what_is_missing_is_told_as_numbers():
    found = needing("label.zone=eu;takes.cpu=0.5;takes.gpu=1;target=web-1", SMALL)
    assert found.gate == "worker"
    assert found.numbers == {
        "needs": {"labels": {"zone": "eu"}, "resources": {"cpu": 0.5, "gpu": 1}, "target": "web-1"},
        "missing": ["label zone=eu"],
        "workers": 3,
        "nodes": 1,
    }
    assert needing("takes.cpu=8;takes.gpu=1", SMALL, LARGE).numbers["missing"] == []
