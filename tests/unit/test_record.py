"""Records as they stand in Redis: what is read, what JSON shows, and what damage does."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskq import codec
from taskq.errors import BadRecord, InvalidPayload
from taskq.record import JobRecord, damaged, node_of
from taskq.state import State

ID = "email:018f0000-0000-7000-8000-000000000001"
LEAST = {b"task": b"mail.send", b"state": b"available"}
MS = 1_700_000_000_123
_SURFACE = """
    id queue task state priority attempt max_attempts epoch worker node tags meta args kwargs result errors progress
    created_at scheduled_at started_at finished_at expires_at timeout unique lock limits fair labels resources target
    schedule scheduled_for batch flow parent reason
"""
SURFACE = _SURFACE.split()


def record(**fields):
    return JobRecord.from_fields(ID, {**LEAST, **{name.encode(): value for name, value in fields.items()}})


def failure(attempt, worker="host-1-abc123.1", **more):
    text = {"type": "ValueError", "message": "no", "traceback": "Traceback…", "at": MS, "worker": worker, **more}
    return {f"error:{attempt}": json.dumps(text, ensure_ascii=False).encode()}


FULL = {
    "state": b"failed",
    "payload": codec.encode(("a@b.c",), {"n": (1,)}),
    "priority": b"-5",
    "class": b"thread",
    "max_attempts": b"2",
    "attempt": b"2",
    "epoch": str(MS + 9).encode(),
    "worker": b"host.example-1-abc123.2",
    "entry": b"",
    "place": str(MS).encode(),
    "created_at": str(MS).encode(),
    "scheduled_at": str(MS + 1000).encode(),
    "started_at": str(MS + 2).encode(),
    "finished_at": str(MS + 3).encode(),
    "expires_at": str(MS + 4).encode(),
    "timeout": b"30000",
    "hard_timeout": b"40500",
    "backoff": b"fixed:1000:1000",
    "tags": b'["x","\xc3\xa9"]',
    "meta": b'{"request_id":"7"}',
    "keep": b"0",
    "keep_result": b"60000",
    "on_lease_lost": b"fail",
    "token": b"t",
    "result": codec.encode_value({1, 2}),
    "reason": b"ValueError: no",
    "ended": b"1 fail",
    "cancel": b"1",
    "waited": b"1",
    "released": b"2",
    "unknown_since": str(MS).encode(),
    "progress": codec.encode_value({"n": 1, "total": 2, "note": "half", "more": 3}),
    "colour_of_the_future": b"\xff",
    **failure(10, worker="host.example-1-abc123.2"),
    **failure(2),
}


def test_a_fresh_record_is_all_defaults():
    fresh = record(created_at=b"%d" % MS)
    assert (fresh.id, fresh.queue, fresh.task, fresh.state) == (ID, "email", "mail.send", State.AVAILABLE)
    assert (fresh.priority, fresh.attempt, fresh.max_attempts, fresh.executor) == (0, 0, 3, "async")
    assert (fresh.tags, fresh.meta, fresh.errors, fresh.attempted_by) == ((), {}, (), ())
    assert fresh.arguments() == ((), {})
    assert fresh.result() is None
    assert fresh.epoch is fresh.worker is fresh.node is fresh.started_at_ms is fresh.timeout_ms is None


def test_a_full_record_is_read_whole():
    full = record(**FULL)
    assert full.arguments() == (("a@b.c",), {"n": (1,)})
    assert full.result() == {1, 2}
    assert (full.priority, full.executor, full.max_attempts, full.attempt) == (-5, "thread", 2, 2)
    assert (full.timeout_ms, full.hard_timeout_ms, full.keep_ms, full.keep_result_ms) == (30000, 40500, 0, 60000)
    assert (full.worker, full.node) == ("host.example-1-abc123.2", "host.example-1-abc123")
    assert (full.tags, full.meta, full.cancel) == (("x", "é"), {"request_id": "7"}, "1")
    assert [error.attempt for error in full.errors] == [2, 10], "by number, not by text"
    assert full.errors[0].message == "no"
    assert full.errors[0].at_ms == MS


def test_what_is_unknown_is_kept_and_ignored():
    assert record(**FULL).fields[b"colour_of_the_future"] == b"\xff"


def test_json_has_exactly_the_fields_of_the_surface_in_their_order():
    for shown in (record().to_dict(), record(**FULL).to_dict()):
        assert list(shown) == SURFACE
        json.dumps(shown, allow_nan=False)


def test_json_of_a_fresh_record():
    shown = record().to_dict()
    assert {name: value for name, value in shown.items() if value is not None} == {
        "id": ID,
        "queue": "email",
        "task": "mail.send",
        "state": "available",
        "priority": 0,
        "attempt": 0,
        "max_attempts": 3,
        "tags": [],
        "meta": {},
        "args": [],
        "kwargs": {},
        "errors": [],
    }
    assert type(shown["state"]) is str


def test_json_of_a_full_record():
    shown = record(**FULL).to_dict()
    assert shown["created_at"] == "2023-11-14T22:13:20.123Z"
    assert shown["scheduled_at"] == "2023-11-14T22:13:21.123Z"
    assert shown["timeout"] == 30
    assert record(timeout=b"1500").to_dict()["timeout"] == 1.5
    assert (shown["worker"], shown["node"]) == ("host.example-1-abc123.2", "host.example-1-abc123")
    assert (shown["args"], shown["kwargs"]) == (["a@b.c"], {"n": {"$type": "tuple", "value": [1]}})
    assert shown["result"] == {"$type": "set", "value": [1, 2]}
    assert shown["progress"] == {"n": 1, "total": 2, "note": "half"}
    assert shown["errors"][1] == {
        "attempt": 10,
        "type": "ValueError",
        "message": "no",
        "traceback": "Traceback…",
        "at": "2023-11-14T22:13:20.123Z",
        "worker": "host.example-1-abc123.2",
    }


def test_the_nodes_that_ran_the_attempts():
    first, second = failure(1, worker="a-1-f00.1"), failure(2, worker="b-1-f00.3")
    assert record(**first, **second, attempt=b"2", worker=b"b-1-f00.3").attempted_by == ("a-1-f00", "b-1-f00")
    assert record(**first, attempt=b"2", worker=b"c-1-f00.1").attempted_by == ("a-1-f00", "c-1-f00")
    assert record(attempt=b"0", worker=b"c-1-f00.1").attempted_by == (), "released: that was no attempt"


def test_the_first_start_is_the_epoch_until_it_is_written():
    assert record(attempt=b"1", epoch=b"%d" % MS).started_at_ms == MS
    assert record(attempt=b"2", epoch=b"%d" % (MS + 5), started_at=b"%d" % MS).started_at_ms == MS
    assert record(attempt=b"0", epoch=b"%d" % MS).started_at_ms is None
    assert record(attempt=b"1", epoch=b"%d" % MS, started_at=b"").started_at_ms is None, "a new life, not begun"


def test_an_empty_field_is_absent():
    assert record(worker=b"", priority=b"", tags=b"", result=b"", payload=b"").to_dict() == record().to_dict()


def test_no_maximum_is_the_default_maximum():
    assert record(max_attempts=b"0").max_attempts == 3


def test_errors_written_by_scripts_are_read():
    written = {"error:1": b'{"at":1.700000000123e+12,"message":"worker died","type":"JobCrashed","worker":"w.1"}'}
    assert record(**written).errors[0].at_ms == MS
    assert record(**written).to_dict()["errors"][0]["traceback"] is None


@pytest.mark.parametrize("worker, node", [("n.1", "n"), ("a.b-1-ff.12", "a.b-1-ff"), ("n", None), (None, None)])
def test_the_node_of_a_worker(worker, node):
    assert node_of(worker) == node


# --- damage ---------------------------------------------------------------------

BAD = [
    ("state", b"sleeping", "is no state"),
    ("state", b"\xff", "is no state"),
    ("task", b"\xff", "can't be read"),
    ("priority", b"high", "is no number"),
    ("attempt", b"-1", "is negative"),
    ("attempt", b"1_0", "is no number"),
    ("attempt", b" 1", "is no number"),
    ("attempt", b"9" * 5000, "is no number"),
    ("created_at", b"2024-01-01", "is no number"),
    ("created_at", b"253402300800000", "is no time before the year 10000"),
    ("epoch", b"nan", "is no number"),
    ("tags", b"x", "can't be read"),
    ("tags", b'"x"', "is no JSON list of texts"),
    ("tags", b"[1]", "is no JSON list of texts"),
    ("tags", b"[" * 100_000, "can't be read"),
    ("meta", b"[]", "is no JSON object of texts"),
    ("meta", b'{"a":1}', "is no JSON object of texts"),
    ("error:1", b"", "can't be read"),
    ("error:1", b"[]", "is no JSON object"),
    ("error:1", b'{"type":1}', "something else than text"),
    ("error:1", b'{"at":"noon"}', "is no number"),
    ("error:1", b'{"at":Infinity}', "can't be read"),
    ("error:x", b"{}", "is no number"),
    ("reason", b"\xc3", "can't be read"),
]


@pytest.mark.parametrize("name, raw, says", BAD)
def test_damage_is_named(name, raw, says):
    with pytest.raises(BadRecord) as caught:
        record(**{name: raw})
    assert str(caught.value).startswith(f"job {ID}: the field {name} ")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", [b"task", b"state"])
def test_a_record_without_its_first_fields_is_damaged(name):
    fields = {key: value for key, value in LEAST.items() if key != name}
    with pytest.raises(BadRecord, match=f"has no field {name.decode()}"):
        JobRecord.from_fields(ID, fields)


def test_damaged_bytes_fail_only_whoever_decodes_them():
    bad = record(payload=b"\xc1", result=b"\xc1", progress=b"\xc1")
    for read in (bad.arguments, bad.result):
        with pytest.raises(InvalidPayload):
            read()
    shown = bad.to_dict()
    raw = {"$type": "bytes", "value": "wQ=="}
    assert (shown["args"], shown["kwargs"], shown["result"], shown["progress"]) == (raw, None, raw, raw)


@pytest.mark.parametrize("name, raw, says", BAD)
def test_a_damaged_record_is_still_shown(name, raw, says):
    fields = {**LEAST, b"priority": b"3", **failure_fields(), name.encode(): raw}
    with pytest.raises(BadRecord) as caught:
        JobRecord.from_fields(ID, fields)
    shown = damaged(ID, fields, caught.value)
    assert list(shown) == SURFACE
    assert shown["reason"].startswith(f"BadRecord: job {ID}: the field {name} ")
    assert shown["priority"] == (0 if name == "priority" else 3)
    assert shown["task"] == (None if name == "task" else "mail.send")
    assert shown["state"] == (None if name == "state" else "available")
    assert len(shown["errors"]) == 1


def failure_fields():
    return {name.encode(): raw for name, raw in failure(7).items()}


def test_even_an_empty_record_is_shown():
    shown = damaged(ID, {}, BadRecord("gone"))
    assert (shown["task"], shown["state"], shown["reason"]) == (None, None, "BadRecord: gone")


KNOWN = [name.encode() for name in FULL] + [b"task", b"error:1", b"error:", b""]


@given(st.dictionaries(st.sampled_from(KNOWN) | st.binary(max_size=5), st.binary(max_size=20) | st.just(b"1")))
@settings(deadline=None)
def test_any_hash_is_a_record_or_damaged(fields):
    fields = {**LEAST, **fields}
    try:
        shown = JobRecord.from_fields(ID, fields).to_dict()
    except BadRecord as error:
        shown = damaged(ID, fields, error)
    assert list(shown) == SURFACE
    json.dumps(shown, allow_nan=False)


def test_the_record_of_the_scripts_is_the_record_we_read():
    """Every field that lua/README.md lists is read, or is the scripts' own business."""
    text = (Path(__file__).parents[2] / "lua" / "README.md").read_text()
    listed = set(text.partition("A job's record has `")[2].partition("`")[0].split())
    ours = {"token", "said", "entry", "place", "ended", "waited", "released", "lapsed"}
    from taskq.record.fields import _FIELDS

    read = {name.decode() for name in _FIELDS} | {"payload", "result", "progress", "error:<attempt>"}
    assert listed <= read | ours
    assert read - listed <= {"dropped", "omitted", "scheduled_for"}


def test_what_a_long_page_leaves_out_is_none() -> None:
    shown = JobRecord.from_fields("q:1", {b"task": b"t", b"state": b"available", b"omitted": b"1"}).to_dict()
    assert [shown[name] for name in ("args", "kwargs", "result", "progress")] == [None] * 4
