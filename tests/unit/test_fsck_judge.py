"""What fsck calls a breach, from facts alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from taskq.commands.fsck import JobFacts, Lane, LaneFacts, Row, Wanted, packed, unpacked
from taskq.fsck import Report, judge
from taskq.fsck.judge import Breach

NOW = 1_800_000_000_000


def facts(state="available", *places, kind="hash", **fields):
    record = {name.encode(): str(value).encode() for name, value in ({"state": state} | fields).items()}
    return JobFacts(Row(b"q:1"), kind, record, [(place, str(at)) for place, at in places], NOW)


def kinds(found):
    return [breach.kind for breach in judge.of_job(found)]


SOUND = [
    facts("available", ("body:async:0", "5-1"), entry="5-1"),
    facts("available", ("front:thread:-7", 5), **{"class": "thread", "priority": "-7"}),
    facts("available", ("front:async:0", 5), ("expiring", NOW), entry="", expires_at=NOW),
    facts("available", ("front:async:0", 5), expires_at=NOW, epoch=5),
    facts("available", ("front:async:0", 5), **{"class": "junk", "priority": "07"}),
    facts("running", ("leases", NOW + 8000)),
    facts("scheduled", ("scheduled", NOW)),
    facts("retryable", ("retryable", NOW)),
    facts("pending", ("pending", NOW)),
    facts("completed", ("completed", NOW), ("prune", NOW), finished_at=NOW),
    facts(kind="none"),
]


@pytest.mark.parametrize("found", SOUND)
def test_sound(found):
    assert kinds(found) == []


@pytest.mark.parametrize(
    "found, kind",
    [
        (facts("running", ("leases", 1), kind="none"), "no record"),
        (facts(kind="string"), "no job"),
        (facts("nowhere"), "no job"),
        (facts("running"), "no lease"),
        (facts("running", ("scheduled", 1)), "no lease"),
        (facts("running", ("leases", NOW * 2)), "long lease"),
        (facts("running", ("leases", "inf")), "long lease"),
        (facts("available"), "nowhere"),
        (facts("available", ("body:async:0", "5-1"), entry="5-2"), "nowhere"),
        (facts("available", ("body:async:1", "5-1"), entry="5-1"), "nowhere"),
        (facts("available", ("body:async:0", "5-1"), ("front:async:0", 1), entry="5-1"), "misplaced"),
        (facts("available", ("body:async:0", "5-1"), ("body:async:0", "5-2"), entry="5-1"), "misplaced"),
        (facts("available", ("front:async:0", 1), ("prune", 1)), "misplaced"),
        (facts("scheduled", ("scheduled", 1), ("retryable", 1)), "misplaced"),
        (facts("completed", ("completed", 1), finished_at=1), "no prune"),
        (facts("completed", ("completed", 1), ("prune", 1)), "no time"),
        (facts("completed", ("completed", 1), ("prune", 1), finished_at="-1"), "no time"),
        (facts("completed", ("completed", 1), ("prune", 1), finished_at="9" * 30), "no time"),
        (facts("scheduled", ("scheduled", 1), expires_at=5), "expiry"),
        (facts("scheduled", ("scheduled", 1), ("expiring", 6), expires_at=5), "expiry"),
        (facts("scheduled", ("scheduled", 1), ("expiring", 6)), "expiry"),
        (facts("running", ("leases", 1), ("expiring", 5), expires_at=5), "expiry"),
    ],
)
def test_breach(found, kind):
    assert kinds(found) == [kind]


def lane(waiting=0, **wrong):
    right = dict.fromkeys(("levels", "groups", "lanes"), waiting > 0)
    usual = {"body": True, "emptied": not waiting, "foreign": 0, "known": True, "marker": False, "paused": False,
             "parked": False}  # fmt: skip
    return LaneFacts(lane=Lane("async", "0"), waiting=waiting, **(usual | right | wrong))


@pytest.mark.parametrize(
    "found, kind",
    [
        (lane(), None),
        (lane(3), None),
        (lane(3, levels=False), "unreachable"),
        (lane(3, groups=False, lanes=False), "unreachable"),
        (lane(3, known=False), "unreachable"),
        (lane(3, levels=False, groups=False, lanes=False, parked=True), None),
        (lane(0, parked=True), "stale"),
        (lane(0, lanes=True), "stale"),
        (lane(0, emptied=False), "stale"),
        (lane(0, emptied=False, body=False), None),
        (lane(0, known=False), None),
        (lane(3, foreign=2), "foreign"),
    ],
)
def test_lane(found, kind):
    assert [breach.kind for breach in judge.of_lane(found)] == ([kind] if kind else [])


def test_a_marker_is_needed_while_work_waits():
    assert judge.needs_marker(lane(1))
    assert not judge.needs_marker(lane(0))
    assert not judge.needs_marker(lane(1, marker=True))
    assert not judge.needs_marker(lane(1, paused=True))
    assert not judge.needs_marker(lane(1, parked=True))


@pytest.mark.parametrize(
    "name, kind, ttl_ms, wrong",
    [
        ("leases", "zset", -1, None),
        ("leases", "none", -2, None),
        ("leases", "set", -1, "wrong kind"),
        ("body:async:0", "zset", -1, "wrong kind"),
        ("claimed:n.1", "hash", 5, None),
        ("claimed:n.1", "hash", -1, "no ttl"),
        ("claimed:n.1", "string", -1, "wrong kind"),
        ("stats:30000000", "hash", -1, "no ttl"),
        ("stats", "hash", -1, None),
        ("executors", "zset", 5, None),
        ("executors", "zset", -1, "no ttl"),
        ("aside:leases", "string", 5, None),
        ("aside:leases", "set", -1, "no ttl"),
    ],
)
def test_key(name, kind, ttl_ms, wrong):
    wanted = judge.wanted_key(name)
    assert [breach.kind for breach in judge.of_key(wanted, kind, ttl_ms)] == ([wrong] if wrong else [])


@pytest.mark.parametrize("name", ["", "lease", "leases2", "stats:x", "wake", "job", "body", "Leases"])
def test_what_is_none_of_ours(name):
    assert judge.wanted_key(name) is None


def test_every_key_of_the_table_is_known():
    from tests.leaks import PERMANENT

    for pattern in PERMANENT:
        if not pattern.startswith("job:"):
            assert isinstance(judge.wanted_key(pattern.replace(".+", "async:0")), Wanted), pattern


def test_every_key_that_is_explained_is_known():
    text = (Path(__file__).parents[2] / "lua" / "README.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \| (string|hash|set|sorted set|stream|list|any) \|", text, re.MULTILINE)
    names = [
        name for told, _ in rows for name in re.findall(r"`([^`]+)`", told) if not name.startswith(("{_}", "job:"))
    ]
    assert len(names) > 30
    unknown = [name for name in names if judge.wanted_key(re.sub(r"<\w+>", "7", name)) is None]
    assert unknown == []


@pytest.mark.parametrize("raw", [b"", b"a:b", "grüße".encode(), b"\xff\x00", b"\xed\xb3\xbf"])
def test_bytes_of_a_name_come_back(raw):
    assert packed(unpacked(raw)) == raw


def test_a_report_counts_each_breach_once_and_the_last_word_counts():
    report = Report("q")
    breach, other = Breach("nowhere", "q:1", "stands nowhere"), Breach("expiry", "q:1", "won't expire")
    report.tell([breach, other], [breach])
    assert (report.found.total(), report.left.total()) == (2, 2)
    report.tell([breach], [])
    assert (report.found.total(), report.left.total()) == (2, 1)
    assert report.told == [(breach, True), (other, False)]
    assert report.to_dict()["kinds"] == {"expiry": {"found": 1, "left": 1}, "nowhere": {"found": 1, "left": 0}}


def test_a_report_is_bounded():
    report = Report("q")
    some = [Breach("no record", f"q:{n}", "") for n in range(5000)]
    report.tell(some, some)
    report.tell(some, [])
    assert (report.found.total(), report.left.total(), len(report.told)) == (5000, 0, 1000)
    assert all(repaired for _, repaired in report.told)
