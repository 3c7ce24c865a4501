"""What isn't ours under our names: keys of the wrong kind, members that are no ids, numbers that are none, records of
anything. Every script answers, a new job runs, and what was there stays to be found.
"""

from __future__ import annotations

import random

import pytest

from taskq import commands, keys, scripts
from taskq.commands import Done
from tests.lua.room import T0
from tests.lua.tour import STATES, drains, lively, stops, tour

ZSETS = (*STATES[:5], "pending", "expiring", "leases", "prune", "empty")
STRUCTURES = {
    **dict.fromkeys(ZSETS, "zset"),
    **dict.fromkeys(("classes", "kinds", "meta", "stats", f"stats:{T0 // 60000}", "claimed:n.9", "fired"), "hash"),
    **dict.fromkeys(("levels:async", "groups:async:0", "lanes:async:0:-", "front:async:0", "front:async:1"), "zset"),
    **dict.fromkeys(("wake:async", "levels:thread"), "zset"),
    **dict.fromkeys(("body:async:0", "events"), "stream"),
}
REGISTRY = {
    "queues": "set",
    "nodes": "zset",
    "node:n": "hash",
    "task:t": "hash",
    "leader": "hash",
    "control": "stream",
    **dict.fromkeys(("schedules", "outboxes"), "zset"),
    "schedule:s": "hash",
    "runs:s": "list",
    "outbox:default": "stream",
    "locks": "zset",
    "fence": "hash",
    "lock:l": "hash",
    "line:l": "zset",
    "present:l": "hash",
}
JUNK_TEXTS = ("", "junk", "NaN", "-inf", "1e309", "0x10", "-1", "9" * 30, "\xff\x00", "{", "default:a", "1-1")
JUNK_IDS = (b"", b"\xff\xfe", b"nobody", b"default:", b"default:a b", b"email:7", b"default:" + b"x" * 300, b"a\x00b")
JUNK_SCORES = (float("inf"), float("-inf"), -1, 0, 1e18, T0)
FIELDS = (
    "state", "task", "class", "priority", "epoch", "worker", "attempt", "max_attempts", "entry", "place", "created_at",
    "expires_at", "scheduled_at", "started_at", "finished_at", "keep", "keep_result", "waited", "cancel", "released",
    "on_lease_lost", "unknown_since", "timeout", "hard_timeout", "backoff", "tags", "meta", "payload", "result",
    "reason", "error:1", "ended", "token", "progress", "dropped", "id", "key", "taken", "", "lane", "once", "lock_wait",
    "lock_until", "offered", "said", "needs", "on_target_lost", "poller", "lease", "schedule", "scheduled_for",
    "unknown_reason",
)  # fmt: skip


def put(client, key, kind):
    client.delete(key)
    if kind == "string":
        client.set(key, "junk")
    elif kind == "list":
        client.rpush(key, "default:a", "junk")
    elif kind == "set":
        client.sadd(key, "default:a", "junk")
    elif kind == "hash":
        client.hset(key, mapping={"default:a": "junk", "x": "1"})
    elif kind == "zset":
        client.zadd(key, {"default:a": 1, "junk": 2})
    else:
        client.xadd(key, {"junk": "default:a"})


def test_the_tour_leads_to_every_script(room):
    epochs = lively(room)
    called = set()
    for command in stops(room, epochs):
        called.add(command.script.name)
        room.run(command)
    assert called == set(scripts.names())


# --- keys of the wrong kind


@pytest.mark.parametrize("name, right", STRUCTURES.items())
@pytest.mark.parametrize("wrong", ["string", "set", "stream"])
def test_a_structure_of_the_wrong_kind_is_put_aside(room, name, right, wrong):
    if wrong == right:
        return
    epochs = lively(room)
    put(room.client, room.q.fixed(name), wrong)
    tour(room, epochs)
    drains(room)
    aside = room.client.type(room.q.fixed(f"aside:{name}")).decode()
    assert aside in {wrong, "none"}  # none: nothing asked for it
    assert room.client.type(room.q.fixed(name)).decode() in ({right, "none"} if aside != "none" else {wrong, right})
    if aside != "none":
        assert room.client.pttl(room.q.fixed(f"aside:{name}")) > 86_400_000
    room.client.delete(room.q.fixed(name))


@pytest.mark.parametrize("name, right", REGISTRY.items())
@pytest.mark.parametrize("wrong", ["string", "list", "stream"])
def test_so_it_is_in_the_registry(room, name, right, wrong):
    if wrong == right:
        return
    epochs = lively(room)
    c = keys.cluster(room.q.namespace)
    put(room.client, c.fixed(name), wrong)
    tour(room, epochs)
    assert room.client.type(c.fixed(name)).decode() in {right, "none"}
    room.client.delete(c.fixed(name))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("wrong", ["string", "set", "zset", "stream", "hash"])
def test_a_record_of_the_wrong_kind_stops_nothing(room, state, wrong):
    epochs = lively(room)
    put(room.client, room.q.job(f"default:{state}"), wrong)
    tour(room, epochs)
    drains(room)


def test_what_is_put_aside_is_not_lost(room):
    room.add("a")
    room.client.delete(room.q.fixed("stats"))
    room.client.set(room.q.fixed("stats"), "somebody's own")
    room.add("b")
    assert room.client.get(room.q.fixed("aside:stats")) == b"somebody's own"


# --- members, numbers and entries that are none of ours


@pytest.mark.parametrize("zset", [name for name, kind in STRUCTURES.items() if kind == "zset"])
def test_members_that_are_no_ids(room, zset):
    epochs = lively(room)
    for n, junk in enumerate(JUNK_IDS):
        room.client.zadd(room.q.fixed(zset), {junk: JUNK_SCORES[n % len(JUNK_SCORES)]})
    for state in STATES:
        room.client.zadd(room.q.fixed(zset), {f"default:{state}": 1}, nx=True)
    tour(room, epochs)
    drains(room)
    room.client.delete(room.q.fixed(zset))


@pytest.mark.parametrize("score", JUNK_SCORES)
def test_scores_that_are_no_times(room, score):
    epochs = lively(room)
    for zset in (name for name, kind in STRUCTURES.items() if kind == "zset"):
        for member in room.client.zrange(room.q.fixed(zset), 0, -1):
            room.client.zadd(room.q.fixed(zset), {member: score})
    tour(room, epochs)
    drains(room)


@pytest.mark.parametrize("junk", JUNK_IDS)
def test_a_record_under_an_id_that_is_none_fails_and_is_shown(room, junk):
    """The id's bytes would go through every reply, table and message on the way."""
    room.add("good")
    key = room.q.fixed("job:").encode() + junk
    room.client.hset(key, mapping={"state": "available", "task": "t", "created_at": T0})
    room.client.zadd(room.q.front("async:0"), {junk: 1})
    assert [job.id for job in room.claim()] == ["default:good"]
    assert room.client.hget(key, "state") == b"failed"
    assert room.client.hget(key, "reason") == b"BadRecord: its id is none of this queue"
    ((id, fields),) = room.do(commands.peek, "failed").records
    assert (id, fields[b"state"]) == (junk.decode(errors="replace"), b"failed")
    room.client.delete(key)


def test_entries_of_a_body_that_are_none_of_ours(room):
    epochs = lively(room)
    body = room.q.body("async:0")
    for fields in ({"id": "nobody"}, {"x": b"\xff"}, {"a": "1", "b": "2"}, {"id": "default:running"}):
        room.client.xadd(body, fields)
    room.client.xadd(body, {"id": "nobody"}, id="9999999999999-18446744073709551615")
    tour(room, epochs)
    drains(room)


@pytest.mark.parametrize("name", ["body:async:0", "events"])
def test_a_stream_that_has_come_to_its_end(room, name):
    epochs = lively(room)
    room.client.xadd(room.q.fixed(name), {"id": "nobody"}, id="18446744073709551615-18446744073709551615")
    tour(room, epochs)
    drains(room)


@pytest.mark.parametrize("name", ["meta", "stats", "classes", "kinds", f"stats:{T0 // 60000}", "claimed:n.9"])
@pytest.mark.parametrize("junk", JUNK_TEXTS)
def test_fields_that_hold_no_number(room, name, junk):
    epochs = lively(room)
    key = room.q.fixed(name)
    fields = {field: junk for field in room.client.hkeys(key) if name != "kinds"}
    extra = ("seen", "quiet_until", "timer_at", "class_version", "max_completed", "request", "keep_failed", junk)
    room.client.hset(key, mapping=fields | dict.fromkeys(extra, junk))
    tour(room, epochs)
    if name == "meta":
        room.client.hdel(key, "paused")
    drains(room)
    room.client.delete(room.q.wake(""))


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("first", [0, 5])
def test_a_field_of_every_record_is_junk(room, field, first):
    epochs = lively(room)
    for n, record in enumerate(sorted(room.client.scan_iter(room.q.job("*")))):
        room.client.hset(record, field, JUNK_TEXTS[(first + n) % len(JUNK_TEXTS)])
    tour(room, epochs)
    drains(room)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_every_record_is_missing(room, field):
    epochs = lively(room)
    for record in room.client.scan_iter(room.q.job("*")):
        room.client.hdel(record, field)
    if field == "task":
        room.add("without")
        room.client.hdel(room.q.job("default:without"), field)
    tour(room, epochs)
    drains(room)
    if field == "task":
        told = room.client.hmget(room.q.job("default:without"), "state", "reason")
        assert told == [b"failed", b"BadRecord: it has no field task"]


# --- everything at once


def spoil(room, draw):
    """Does one random thing to the keyspace that no script of ours would do."""
    every = [key for key in room.client.scan_iter(room.q.prefix + "*", count=1000) if b"aside:" not in key]
    key = draw.choice(every)
    kind = room.client.type(key).decode()
    junk_id = draw.choice([*JUNK_IDS, *(f"default:{state}".encode() for state in STATES)])
    what = draw.randrange(5)
    if what == 0:
        room.client.delete(key)
    elif what == 1:
        put(room.client, key, draw.choice(["string", "list", "set", "hash", "zset", "stream"]))
    elif kind == "hash":
        named = draw.choice([*FIELDS, *room.client.hkeys(key)])
        room.client.hset(key, named, draw.choice([*JUNK_TEXTS, *STATES]))
    elif kind == "zset":
        room.client.zadd(key, {junk_id: draw.choice(JUNK_SCORES)})
    elif kind == "stream":
        room.client.xadd(key, {draw.choice(["id", "x"]): junk_id})


@pytest.mark.parametrize("seed", range(20))
def test_any_damage_at_all(room, seed):
    draw = random.Random(seed)
    epochs = lively(room)
    for turn in range(3):
        for _ in range(draw.randrange(1, 8)):
            spoil(room, draw)
        tour(room, epochs, f"n.t{turn}")
        room.now += 1000
    room.client.hdel(room.q.fixed("meta"), "paused")
    drains(room)
    for key in room.client.scan_iter(room.q.prefix + "*"):
        room.client.delete(key)


def test_a_claim_whose_jobs_were_spoiled_since_can_be_repeated(room):
    room.add("a", "b")
    jobs = room.claim()
    room.client.hset(room.q.job("default:a"), mapping={"attempt": "junk", "released": "junk"})
    room._requests["n.1"] -= 1
    again = room.claim()
    assert [(job.id, job.epoch) for job in again] == [(job.id, job.epoch) for job in jobs]
    done = [Done(job.id, job.epoch, b"") for job in again]
    assert room.do(commands.complete, worker="n.1", done=done) == ["ok", "ok"]
