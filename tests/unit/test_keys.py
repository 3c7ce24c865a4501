"""Names of keys: one function each, all of a queue under one hash tag."""

from __future__ import annotations

import pytest

from taskq import keys

BUILT = {
    "job": (("email:1",), "job:email:1"),
    "levels": (("async",), "levels:async"),
    "groups": (("async", -512), "groups:async:-512"),
    "lanes": (("async", 5), "lanes:async:5:-"),
    "body": (("async:0",), "body:async:0"),
    "front": (("async:0",), "front:async:0"),
    "wake": (("thread",), "wake:thread"),
    "claimed": (("h-1-abcdef.1",), "claimed:h-1-abcdef.1"),
    "minute": ((30_000_000,), "stats:30000000"),
    "done": (("email:1",), "done:email:1"),
    "unique": (("t:k",), "unique:t:k"),
    "merged": (("email:1",), "merged:email:1"),
    "fixed": (("leases",), "leases"),
}


@pytest.mark.parametrize("name", BUILT)
def test_a_key_of_a_queue(name):
    arguments, ending = BUILT[name]
    assert getattr(keys.queue("ns", "email"), name)(*arguments) == "ns:{email}:" + ending


def test_what_belongs_to_no_queue_stands_under_its_own_tag():
    c = keys.cluster("ns")
    assert c.node("n") == "ns:{_}:node:n"
    assert c.task("mail.send") == "ns:{_}:task:mail.send"
    assert c.lock("a b") == "ns:{_}:lock:a b"
    assert c.line("a") == "ns:{_}:line:a"
    assert c.present("a") == "ns:{_}:present:a"
    assert c.turn("f00d") == "ns:{_}:turn:f00d"
    assert c.fixed("queues") == "ns:{_}:queues"
    assert isinstance(c, keys.QueueKeys)


def test_no_queue_can_stand_where_the_registry_does():
    """A queue's name begins with a letter or a digit."""
    assert keys.cluster("ns").name == "_"


def test_the_keys_of_a_script_begin_with_the_prefix():
    q = keys.queue("ns", "email")
    names = ("prefix", "meta", "leases")
    assert q.listed(names) == ("ns:{email}:", "ns:{email}:meta", "ns:{email}:leases")
    assert q.listed(names) is q.listed(names), "an enqueue asks each time"


def test_the_same_names_give_the_same_object():
    assert keys.queue("ns", "email") is keys.queue("ns", "email")
    assert keys.cluster("ns") is keys.cluster("ns")
    assert keys.queue("other", "email") is not keys.queue("ns", "email")


@pytest.mark.parametrize(
    "id, queue",
    [("email:0190f3a2", "email"), ("email:a:b", "email"), (":x", ""), ("email", ""), ("", "")],
)
def test_an_id_names_its_queue(id, queue):
    assert keys.queue_of(id) == queue
