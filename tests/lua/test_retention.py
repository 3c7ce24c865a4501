"""Retention: how long ended jobs stay, and that nothing of them stays behind."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Done, Failure
from tests.lua.room import T0, new

MINUTE_MS, DAY_MS = 60_000, 86_400_000


def complete(room, *names, result=b""):
    """Jobs added, run and completed one after the other."""
    for name in names:
        room.add(name)
    done = [Done(job.id, job.epoch, result) for job in room.claim()]
    assert room.do(commands.complete, worker="n.1", done=done) == ["ok"] * len(done)


def prune(room, limit=100):
    return room.do(commands.prune, limit=limit)


def retention(room, **settings):
    room.do(commands.declare, kinds={}, retention=settings)


def left(room):
    return sorted(name.removeprefix("job:default:") for name in room.keyspace.dump() if name.startswith("job:"))


# --- when a job may go


@pytest.mark.parametrize(
    "fields, result, after_ms",
    [
        ({}, b"", DAY_MS),
        ({}, b"r", DAY_MS),
        ({"keep": 3_600_000}, b"", 3_600_000),
        ({"keep": 1}, b"", 15_000),
        ({"keep": 1}, b"r", 300_000),
        ({"keep": 3_600_000, "keep_result": 5_000}, b"", 3_600_000),
        ({"keep": 20_000, "keep_result": 99 * DAY_MS}, b"r", 20_000),
    ],
    ids=str,
)
def test_a_record_stays_for_its_time_and_no_longer(room, fields, result, after_ms):
    room.add("a", **fields)
    (job,) = room.claim()
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, result)])
    room.now = T0 + after_ms - 1
    prune(room)
    assert left(room) == ["a"]
    room.now += 1
    prune(room)
    assert left(room) == []
    assert not {"completed", "prune"} & room.keyspace.dump().keys()


def test_keep_nothing_is_gone_at_once_and_told(room):
    epoch = room.held(keep=0)
    room.now += 1
    room.look()
    room.do(commands.complete, worker="n.1", done=[Done("default:a", epoch, b"r")])
    changed = room.changed()
    assert all(value is None for value in changed.values())
    assert changed.keys() >= {"leases default:a", "job:default:a state"}
    assert room.told == {"completed": ["default:a"]}
    assert room.do(commands.complete, worker="n.1", done=[Done("default:a", epoch, b"r")]) == ["gone"]


@pytest.mark.parametrize("end", ["failed", "cancelled", "expired"])
def test_keep_nothing_holds_for_every_end(room, end):
    room.add("a", keep=0, expires="+5")
    if end == "cancelled":
        room.do(commands.cancel, ["default:a"])
    elif end == "expired":
        room.now += 5
        room.do(commands.expire)
    else:
        (job,) = room.claim()
        room.do(commands.fail, worker="n.1", failures=[Failure(job.id, job.epoch, "fail", 0, "{}", "x")])
    assert not {"expiring", "leases", "prune", end} & room.keyspace.dump().keys()
    assert left(room) == []


def test_a_result_may_go_before_its_record(room):
    room.add("a", keep=3_600_000, keep_result=5_000)
    (job,) = room.claim()
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"r")])
    room.look()
    room.now += 5_000
    assert prune(room) == 1
    assert room.changed() == {
        "job:default:a result": None,
        "job:default:a dropped": "1",
        "prune default:a": T0 + 3_600_000,
    }
    room.now = T0 + 3_600_000
    assert (prune(room), left(room)) == (1, [])


def test_a_result_that_shall_not_be_kept_is_never_stored(room):
    room.add("a", keep_result=0)
    (job,) = room.claim()
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"r")])
    assert room.job()["dropped"] == "1"
    assert "result" not in room.job()


def test_each_end_has_a_time_of_its_own(room):
    retention(room, keep_completed=20_000, keep_failed=40_000, keep_cancelled=60_000)
    complete(room, "done")
    epoch = room.held("broken")
    room.do(commands.fail, worker="n.1", failures=[Failure("default:broken", epoch, "fail", 0, "{}", "x")])
    room.add("off")
    room.do(commands.cancel, ["default:off"])
    assert room.keyspace.dump()["prune"] == {
        "default:done": T0 + 20_000,
        "default:broken": T0 + 40_000,
        "default:off": T0 + 60_000,
    }


def test_a_repeated_enqueue_is_known_for_15_s_whatever_the_settings(room):
    retention(room, keep_completed=0, max_completed=0)
    complete(room, "a")
    room.now += 14_999
    prune(room)
    assert room.do(commands.enqueue, [new("a")]) == ["available"]
    assert room.do(commands.counts).available == 0


# --- by number


def test_beyond_a_number_the_oldest_go(room):
    retention(room, max_completed=2)
    for name in "abcd":
        complete(room, name)
        room.now += 1
    room.now += 15_000
    assert (prune(room), left(room)) == (2, ["c", "d"])


def test_what_is_young_stays_whatever_the_number(room):
    retention(room, max_completed=0)
    complete(room, "a")
    room.now += 14_999
    assert (prune(room), left(room)) == (0, ["a"])
    room.now += 1
    assert (prune(room), left(room)) == (1, [])


def test_a_result_may_be_fetched_for_five_minutes_whatever_the_number(room):
    retention(room, max_completed=0)
    complete(room, "a", result=b"r")
    room.now += 299_999
    prune(room)
    assert left(room) == ["a"]
    room.now += 1
    assert (prune(room), left(room)) == (1, [])


def test_failed_jobs_have_a_number_of_their_own(room):
    retention(room, max_failed=1, max_completed=0)
    for name in "abc":
        epoch = room.held(name)
        room.do(commands.fail, worker="n.1", failures=[Failure(f"default:{name}", epoch, "fail", 0, "{}", "x")])
        room.now += 1
    room.now += 15_000
    assert (prune(room), left(room)) == (2, ["c"])


# --- in steps


def test_a_step_is_bounded_and_says_whether_there_is_more(room):
    complete(room, *[f"j{n}" for n in range(7)])
    room.now += DAY_MS
    assert [prune(room, limit=3) for _ in range(4)] == [3, 3, 1, 0]


def test_finishing_cleans_up_as_it_goes(room):
    complete(room, *[f"j{n}" for n in range(9)])
    room.now += DAY_MS
    complete(room, "next")
    assert len(left(room)) == 9 + 1 - 4


def test_a_living_job_is_not_pruned_by_a_mark_that_is_wrong(room):
    """As after a record was deleted by hand, and its id used again."""
    room.add("a")
    room.client.zadd(room.q.fixed("prune"), {"default:a": 1, "default:x": 1})
    room.look()
    assert prune(room) == 2
    assert room.changed() == {"prune default:a": None, "prune default:x": None}


def test_everything_goes_in_the_end(room):
    for n, executor in enumerate(("async", "thread")):
        room.add(f"a{n}", executor=executor, priority=n, expires="+5")
        room.add(f"b{n}", executor=executor, due="+1")
    room.now += 1
    held = room.claim()
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"r") for job in held])
    room.now += DAY_MS
    while prune(room):
        pass
    found = {name.partition(":")[0] for name in room.keyspace.dump()}
    assert found <= {"classes", "meta", "stats", "wake", "claimed"}


# --- bodies of empty lanes


def test_an_empty_body_stays_for_a_minute_then_goes(room):
    complete(room, "a")
    room.now += MINUTE_MS - 1
    prune(room)
    assert room.keyspace.dump()["body:async:0"] == []
    room.now += 1
    assert prune(room) == 1
    assert not {"body:async:0", "empty"} & room.keyspace.dump().keys()


def test_a_body_in_use_again_is_left_alone(room):
    complete(room, "a")
    room.add("b")
    room.now += MINUTE_MS
    assert prune(room) == 1
    assert room.keyspace.dump()["body:async:0"] == ["default:b"]
    assert [job.id for job in room.claim()] == ["default:b"]


def test_a_body_that_ran_empty_while_the_lane_had_a_front_is_not_deleted_by_an_old_mark(room):
    epoch = room.held()
    room.now += MINUTE_MS
    room.do(commands.release, worker="n.1", jobs=[commands.Release("default:a", epoch, "")])
    prune(room)
    assert room.keyspace.dump()["body:async:0"] == []
    room.now += 1
    complete(room)
    assert room.keyspace.dump()["empty"] == {"async:0": room.now}


# --- clear


def test_clear_deletes_the_oldest_of_the_states_asked_for(room):
    complete(room, "a")
    room.now += 100
    complete(room, "b")
    room.add("c")
    room.do(commands.cancel, ["default:c"])
    room.now += 50
    assert room.do(commands.clear, states=["completed"], older_than_ms=100) == 1
    assert left(room) == ["b", "c"]
    assert room.do(commands.clear, states=["completed", "cancelled"], limit=1) == 1
    assert room.do(commands.clear, states=["completed", "cancelled"], limit=9) == 1
    assert not {"completed", "cancelled", "prune"} & room.keyspace.dump().keys()


def test_clear_keeps_what_ended_at_an_instant_or_after(room):
    """However late it is called, and the older of both bounds holds."""
    complete(room, "a")
    room.now += 100
    complete(room, "b")
    cut_ms = room.now
    room.now += 100
    complete(room, "c")
    room.now += 100
    assert room.do(commands.clear, states=["completed"], older_than_ms=301, before_ms=cut_ms) == 0
    assert room.do(commands.clear, states=["completed"], before_ms=cut_ms) == 1
    assert left(room) == ["b", "c"]
    assert room.do(commands.clear, states=["completed"], before_ms=room.now + 1, older_than_ms=200) == 1
    assert left(room) == ["c"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"states": ["running"]},
        {"states": ["completed", "job"]},
        {"older_than_ms": -1},
        {"before_ms": -1},
        {"limit": -1},
    ],
    ids=str,
)
def test_clear_touches_nothing_that_has_not_ended(room, wrong):
    complete(room, "a")
    room.held("b")
    room.look()
    with pytest.raises(Exception, match="cannot be"):
        room.do(commands.clear, **({"states": ["completed"]} | wrong))
    assert room.changed() == {}


# --- declare


def test_code_sets_retention_unless_an_operator_did(room):
    retention(room, keep_completed=20_000)
    assert room.keyspace.dump()["meta"] == {"keep_completed": "20000", "retention_at": str(room.now)}
    room.client.hset(room.q.fixed("meta"), "retention_overridden", 1)
    retention(room, keep_completed=99_000)
    assert room.keyspace.dump()["meta"]["keep_completed"] == "20000"


@pytest.mark.parametrize("how", ["keep=0", "clear"])
def test_an_id_that_comes_again_at_once_gets_another_epoch(room, how):
    """Its record went within the millisecond in which it was claimed, and with it its epoch."""
    options = {"keep": 0} if how == "keep=0" else {}
    epochs = []
    for _ in range(5):
        epoch = room.held("a", **options)
        room.do(commands.complete, worker="n.1", done=[Done("default:a", epoch, b"")])
        if how == "clear":
            room.do(commands.clear, states=["completed"])
        assert room.job() is None
        epochs.append(epoch)
    assert epochs == sorted(set(epochs))
