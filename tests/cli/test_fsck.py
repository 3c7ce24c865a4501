"""`taskq fsck [--repair] [--queue Q] [--json]`."""

from __future__ import annotations

import json

import pytest

from taskq import keys
from tests.lua.room import Room
from tests.lua.tour import lively


@pytest.fixture
def room(raw, q, monkeypatch):
    monkeypatch.setattr("taskq.cli.fsck._BETWEEN_S", 0.01)
    room = Room(raw, q)
    seconds, micros = raw.time()
    room.now = seconds * 1000 + micros // 1000
    lively(room)
    return room


def test_a_sound_namespace(taskq, room, raw):
    before = {key: raw.dump(key) for key in raw.scan_iter()}
    result = taskq("fsck")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("default: 9 jobs, ")
    assert result.stdout.endswith("keys, sound\n")
    assert {key: raw.dump(key) for key in raw.scan_iter()} == before


def test_a_breach_is_told_and_repaired_and_gone(taskq, room, raw, q):
    raw.delete(q.fixed("leases"), q.fixed("levels:async"))
    told = taskq("fsck")
    assert told.exit_code == 1
    assert "  default:running runs without a lease\n" in told.stdout
    assert "  async:1 has work, and levels don't lead to it\n" in told.stdout
    assert told.stderr.count("\n") == 1
    assert "breaches are left: taskq fsck --repair" in told.stderr
    assert not raw.exists(q.fixed("leases")), "looking changes nothing"
    repaired = taskq("fsck", "--repair")
    assert (repaired.exit_code, repaired.stderr) == (0, "")
    assert "  default:running runs without a lease: repaired\n" in repaired.stdout
    assert taskq("fsck").stdout.endswith("keys, sound\n")


def test_json(taskq, room, raw, q):
    raw.delete(q.fixed("leases"))
    raw.set(q.fixed("foreign"), 1)
    result = taskq("fsck", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["namespace"], told["found"], told["left"]) == (q.namespace, 1, 1)
    (queue,) = told["queues"]
    assert queue["kinds"] == {"no lease": {"found": 1, "left": 1}}
    assert queue["breaches"] == [
        {"kind": "no lease", "of": "default:running", "text": "runs without a lease", "repaired": False}
    ]
    assert (queue["queue"], queue["jobs"], queue["foreign"]) == ("default", 9, ["foreign"])
    raw.delete(q.fixed("foreign"))


def test_one_queue_or_all_of_them(taskq, room, raw, namespace):
    other = keys.queue(namespace, "email")
    raw.zadd(other.fixed("leases"), {"email:1": 1})
    assert taskq("fsck", "--queue", "default").exit_code == 0
    result = taskq("fsck")
    assert "email: 0 jobs, 1 other keys, 2 breaches" in result.stdout
    assert "email:1 stands in leases, and there is no record of it" in result.stdout
    assert "email has keys, and stands in no list of queues" in result.stdout
    assert taskq("fsck", "--repair").exit_code == 0
    raw.delete(keys.cluster(namespace).fixed("queues"))
    assert "1 repaired" in taskq("fsck", "--repair").stdout
    assert json.loads(taskq("queue", "list", "--json").stdout)["total"] == 2
    refused = taskq("fsck", "--queue", "NO NAME")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_work_for_which_nobody_is_woken(taskq, room, raw, q):
    raw.delete(q.wake("async"))
    assert "async:0 has work, and nobody is woken for it" in taskq("fsck").stdout
    assert taskq("fsck", "--repair").exit_code == 0
    assert raw.exists(q.wake("async"))


def test_much_of_one_kind_is_told_in_few_lines(taskq, room, raw, q):
    raw.zadd(q.fixed("leases"), {f"default:{n}": 1 for n in range(300)})
    raw.hset(q.job("default:available"), "tags", "\x1b[31m{")
    lines = taskq("fsck").stdout.splitlines()
    assert len(lines) < 30
    assert "  ... and 280 more (no record)" in lines
    assert any("note: job default:available: the field tags can't be read" in line for line in lines)
    assert all(line.isprintable() for line in lines)
    assert "300 repaired" in taskq("fsck", "--repair").stdout


def test_nothing_there(taskq):
    assert taskq("fsck").stdout == "there is no queue\n"


def test_a_queue_that_never_was_is_not_sound(taskq, app):
    app.by_name("x.y", queue="email").enqueue()
    result = taskq("fsck", "-q", "emial")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no queue 'emial' (did you mean 'email'?)" in result.stderr
