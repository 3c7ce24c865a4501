"""The command line on a keyspace that others have written into: no traceback, no byte that steers a terminal."""

from __future__ import annotations

import json
import random

import pytest

from taskq import keys
from tests.lua.room import Room
from tests.lua.test_hostile import JUNK_IDS, spoil
from tests.lua.tour import lively

ESCAPES = "\x1b[31m\x07\x9b2J\u202e\x00\udcff\n"
READING = (
    ("queue", "list"), ("queue", "list", "--json"), ("stats",), ("stats", "--json"),
    ("job", "list"), ("job", "list", "--json"), *(("job", "list", "--state", state) for state in ("failed", "running")),
    *(("job", "show", f"default:{state}") for state in ("available", "running", "failed")),
    ("job", "cancel", "--partial", "default:available", "default:nobody"),
    ("job", "retry", "--partial", "default:failed", "default:completed"),
    ("queue", "pause", "default"), ("queue", "resume", "default"),
    ("enqueue", "t", "--queue", "default"), ("enqueue", "t"),
    ("queue", "purge", "default", "--yes"), ("job", "clear", "--yes"),
)  # fmt: skip


def steered(text):
    """Lines that hold something else than what can be printed."""
    return [line for line in text.split("\n") if not line.isprintable()]


@pytest.mark.parametrize("seed", range(6))
def test_any_damage_at_all(taskq, raw, q, seed):
    room, draw = Room(raw, q), random.Random(seed)
    lively(room)
    for words in READING:
        for _ in range(3):
            spoil(room, draw)
        result = taskq(*words)
        assert result.exit_code in {0, 1}, (words, result.stderr)
        assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
        assert not steered(result.stdout + result.stderr), words
        if "--json" in words and not result.exit_code:
            json.loads(result.stdout)
    raw.flushall()


def test_ids_and_names_that_steer_terminals_are_shown_as_escapes(taskq, raw, q, run):
    room = Room(raw, q)
    lively(room)
    hostile = ESCAPES.encode(errors="surrogateescape")
    raw.hset(q.job("default:") + "\x1b[31m", mapping={"state": "failed", "task": hostile, "reason": hostile})
    raw.zadd(q.fixed("failed"), {b"default:\x1b[31m": 1})
    for n, junk in enumerate((*JUNK_IDS, hostile)):
        raw.hset(q.prefix.encode() + b"job:" + junk, mapping={"state": "failed", "task": "t", "reason": hostile})
        raw.zadd(q.fixed("failed"), {junk: n})
    raw.sadd(keys.cluster(q.namespace).fixed("queues"), hostile, "UPPER", "a b", "x" * 65)
    for words in READING[:8]:
        result = taskq(*words)
        assert result.exit_code == 0, (words, result.stderr)
        assert not steered(result.stdout), words
    shown = json.loads(taskq("job", "list", "--state", "failed", "--json").stdout)
    assert shown["total"] == len(JUNK_IDS) + 3
    assert [each["queue"] for each in json.loads(taskq("queue", "list", "--json").stdout)["data"]] == ["default"]
    raw.flushall()


def test_what_nodes_say_may_be_anything(taskq, raw, namespace):
    c = keys.cluster(namespace)
    for n, junk in enumerate(("{", "[" * 5000, "7", '"text"', '[1, null, "zzzz"]', "\xff")):
        raw.zadd(c.fixed("nodes"), {f"n{n}": 9e15})
        raw.hset(c.node(f"n{n}"), mapping={"tasks": junk, "queues": junk})
    refused = taskq("enqueue", "tt")
    assert (refused.exit_code, "did you mean" in refused.stderr) == (1, False)
    raw.hset(c.task("tt"), mapping={"queue": "NO NAME", "executor": "async", "last_seen": "1"})
    assert taskq("enqueue", "tt").exit_code == 1
    raw.hset(c.task("tt"), mapping={"queue": "email", "last_seen": "junk"})
    assert taskq("enqueue", "tt").exit_code == 1
    raw.hset(c.task("tt"), mapping={"queue": "email", "last_seen": "1"})
    assert taskq("enqueue", "tt").stdout.startswith("email:")
    raw.flushall()
