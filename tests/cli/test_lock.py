"""`taskq lock list | release`."""

from __future__ import annotations

import json

import pytest

from taskq import LockLost


def test_list_has_what_is_held_and_by_whom(taskq, app):
    with app.lock("report:1") as lock, app.lock("other", ttl="1h"):
        page = json.loads(taskq("lock", "list", "--json").stdout)
        assert (page["total"], page["limit"], page["offset"]) == (2, 50, 0)
        assert [each["name"] for each in page["data"]] == ["report:1", "other"]
        row = page["data"][0]
        assert row.keys() == {"name", "fence", "owner", "job", "acquired_at", "ends_at", "waiting"}
        assert row["fence"] == lock.fence
        lines = taskq("lock", "list").stdout.splitlines()
        assert lines[0].split("  ")[0] == "name"
        assert lines[1].split()[:3] == ["report:1", row["owner"], "-"]
        assert len(json.loads(taskq("lock", "list", "--json", "--limit", "1", "--offset", "1").stdout)["data"]) == 1
        assert taskq("lock", "list", "--limit", "1").stderr == "1–1 of 2; the next page: --offset 1\n"
        assert taskq("lock", "list", "--limit", "1", "--offset", "1").stderr == ""
    assert json.loads(taskq("lock", "list", "--json").stdout)["data"] == []


def test_release_says_who_has_it_and_takes_it_away(taskq, app):
    lock = app.lock("report", ttl="1h").acquire()
    result = taskq("lock", "release", "report", "--yes")
    assert (result.exit_code, result.stdout) == (0, "report: released\n")
    assert "holds it since 20" in result.stderr
    with pytest.raises(LockLost):
        lock.extend()
    with app.lock("report", wait=0):
        pass


def test_release_asks_or_needs_yes(taskq, app):
    with app.lock("report") as lock:
        result = taskq("lock", "release", "report")
        assert result.exit_code == 2
        assert "takes a lock from its holder, and nobody can be asked here; add --yes" in result.stderr
        lock.extend()


def test_a_lock_that_nobody_holds_is_refused_with_the_nearest(taskq, app):
    with app.lock("report"):
        result = taskq("lock", "release", "reprot", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == ("taskq: nobody holds a lock 'reprot' (did you mean 'report'?): see `taskq lock list`\n")


def test_a_name_that_no_lock_can_have_is_wrong_usage(taskq):
    result = taskq("lock", "release", "x" * 201, "--yes")
    assert result.exit_code == 2
    assert "is no lock's name: use 1 to 200 printable characters" in result.stderr
