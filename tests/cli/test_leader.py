"""`taskq leader`."""

import contextlib
import json
from datetime import datetime, timedelta

import pytest

from taskq import commands, keys
from taskq.connection import connect, run


def test_nobody(taskq):
    assert taskq("leader").stdout.startswith("nobody leads")
    assert json.loads(taskq("leader", "--json").stdout) == {"node": None, "term": None, "since": None, "until": None}


def test_who(taskq, settings):
    with contextlib.closing(connect(settings)) as server:
        run(server, commands.pulse(keys.cluster(settings.namespace), node="host-1-abc", leads=True, ttl_ms=6_000))
        pulse = run(server, commands.pulse(keys.cluster(settings.namespace), node="x", leads=False, ttl_ms=6_000))
    found = json.loads(taskq("leader", "--json").stdout)
    assert (found["node"], found["term"]) == ("host-1-abc", pulse.term)
    since, until = (datetime.fromisoformat(found[name]) for name in ("since", "until"))
    assert until - since == timedelta(milliseconds=6_000)
    assert since.timestamp() * 1000 == pytest.approx(pulse.term, abs=1), "a term is the time of its beginning"
    lines = [line.split(None, 1) for line in taskq("leader").stdout.splitlines()]
    assert lines == [[name, str(found[name])] for name in ("node", "term", "since", "until")]


def test_nobody_while_all_nodes_drain(taskq, settings):
    with contextlib.closing(connect(settings)) as server:
        for node, state in (("a", "draining"), ("b", "active"), ("b", "draining")):
            told = taskq("leader").stdout
            assert "drain" not in told or node == "b"
            fields = {"state": state, "queues": "[]"}
            run(
                server,
                commands.register_node(keys.cluster(settings.namespace), node=node, ttl_ms=60_000, fields=fields),
            )
    assert taskq("leader").stdout == "nobody leads: all 2 nodes drain: no schedule fires until one resumes\n"
