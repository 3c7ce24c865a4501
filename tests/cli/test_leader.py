"""`taskq leader`."""

import contextlib
import json

from taskq import commands, keys
from taskq.connection import connect, run


def test_nobody(taskq):
    assert taskq("leader").stdout.startswith("nobody leads")
    assert json.loads(taskq("leader", "--json").stdout) == {"node": None, "term": None, "since": None, "until": None}


def test_who(taskq, settings):
    with contextlib.closing(connect(settings)) as server:
        run(server, commands.pulse(keys.cluster(settings.namespace), node="host-1-abc", leads=True, ttl_ms=6_000))
    found = json.loads(taskq("leader", "--json").stdout)
    assert found["node"] == "host-1-abc"
    assert found["term"] > 0
    assert "host-1-abc" in taskq("leader").stdout
