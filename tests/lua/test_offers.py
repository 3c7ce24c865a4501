"""Offers: claimed with `offer_ms`, started by their holder; or back with the attempt refunded, five times in a row."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from taskq import commands
from taskq.commands import Done, Failure, Held, Release, Reported, Snoozed
from taskq.presence import LIVENESS_MS
from taskq.record import JobRecord
from taskq.record.lease import lease_of
from tests.lua.room import LEASE_MS, T0, new

OFFER_MS = 30_000
A = "default:a"


def offered(room, name="a", worker="ext", **options):
    """Takes the only waiting job as an offer; its epoch."""
    (job,) = room.claim(worker, offer_ms=OFFER_MS, **options)
    assert job.id == f"default:{name}"
    return job.epoch


def start(room, epoch, *, worker="ext", name="a", lease_ms=LEASE_MS):
    (word,) = room.do(commands.start, worker=worker, lease_ms=lease_ms, offers=[(f"default:{name}", epoch)])
    return word


def lapse(room):
    """The time of the offers passes while somebody looks on, and they are reaped; what became of them."""
    room.watched()
    while room.now < T0 or not (found := room.do(commands.reap, lease_ms=LEASE_MS).moved):
        room.now += 2000
    return dict(found)


def record(room, name="a"):
    ((_, fields),) = room.run(commands.fetch(room.q, [f"default:{name}"]))
    return JobRecord.from_fields(f"default:{name}", fields)


# --- the offer


def test_an_offer_is_running_but_not_started(room):
    room.add("a")
    room.look()
    epoch = offered(room)
    assert room.changed() == {
        "body:async:0": [],
        "claimed:ext request": "1",
        f"claimed:ext {A}": str(epoch),
        "empty async:0": T0,
        "executors ext": T0 + OFFER_MS,
        f"job:{A} attempt": "1",
        f"job:{A} entry": None,
        f"job:{A} epoch": str(epoch),
        f"job:{A} lease": str(OFFER_MS),
        f"job:{A} offered": str(epoch),
        f"job:{A} started_at": "",
        f"job:{A} state": "running",
        f"job:{A} worker": "ext",
        "groups:async:0 -": None,
        "lanes:async:0:- async:0": None,
        f"leases {A}": T0 + OFFER_MS,
        "levels:async 0": None,
        "meta quiet_until": str(T0 + LEASE_MS),
        "meta seen": str(T0),
    }
    assert room.told == {"running": [A]}
    shown = record(room)
    assert (shown.offered, shown.started_at_ms, shown.to_dict()["started_at"]) == (True, None, None)


def test_starting_it_makes_it_a_lease(room):
    room.add("a")
    epoch = offered(room)
    room.look()
    room.now += 20_000
    assert start(room, epoch) == "ok"
    assert room.changed() == {
        "executors ext": T0 + 20_000 + LIVENESS_MS,
        f"job:{A} offered": f"-{T0 + 20_000}",
        f"job:{A} lease": str(LEASE_MS),
        f"job:{A} started_at": str(T0 + 20_000),
        f"leases {A}": T0 + 20_000 + LEASE_MS,
    }
    assert room.told == {"started": [A]}
    assert not record(room).offered


def test_the_run_time_counts_from_the_start(room):
    room.add("a", "b")
    a, b = room.claim("ext", offer_ms=OFFER_MS)
    room.now += 20_000
    for job in (a, b):
        room.do(commands.start, worker="ext", lease_ms=LEASE_MS, offers=[(job.id, job.epoch)])
        room.now += 300
    room.do(commands.complete, worker="ext", done=[Done(job.id, job.epoch, b"") for job in (a, b)])
    assert room.do(commands.demand).run_ms == 600 + 300
    room.add("c")
    (c,) = room.claim("n.1")
    room.now += 50
    room.do(commands.complete, worker="n.1", done=[Done(c.id, c.epoch, b"")])
    assert room.do(commands.demand).run_ms == 950


def test_the_run_time_of_a_later_attempt_counts_from_its_own_start(room):
    room.add("a")
    (first,) = room.claim("ext", offer_ms=OFFER_MS)
    room.do(commands.start, worker="ext", lease_ms=LEASE_MS, offers=[(first.id, first.epoch)])
    room.now += 100
    room.do(commands.fail, worker="ext", failures=[Failure(A, first.epoch, "retry", 0, "{}", "x")])
    room.do(commands.promote)
    (again,) = room.claim("n.1")
    room.now += 40
    assert not record(room).offered
    room.do(commands.complete, worker="n.1", done=[Done(A, again.epoch, b"")])
    assert room.do(commands.demand).run_ms == 40


def test_starting_it_again_only_renews(room):
    room.add("a")
    epoch = offered(room)
    start(room, epoch)
    room.look()
    room.now += 5000
    assert start(room, epoch) == "ok"
    assert room.changed() == {f"leases {A}": T0 + 5000 + LEASE_MS, "executors ext": T0 + 5000 + LIVENESS_MS}
    assert start(room, epoch, lease_ms=60_000) == "ok"
    changed = {f"leases {A}": T0 + 65_000, f"job:{A} lease": "60000", "executors ext": T0 + 65_000}
    assert room.changed() == changed


@pytest.mark.parametrize(
    "operation,options",
    [
        (commands.complete, {"worker": "ext", "done": lambda e: [Done(A, e, b"")]}),
        (commands.fail, {"worker": "ext", "failures": lambda e: [Failure(A, e, "retry", 5, "{}", "x")]}),
        (commands.snooze, {"worker": "ext", "grace_ms": 1, "jobs": lambda e: [Snoozed(A, e, "snooze", 5, "x")]}),
        (commands.report, {"worker": "ext", "reports": lambda e: [Reported(A, e, b"p")]}),
        (commands.renew, {"lease_ms": LEASE_MS, "held": lambda e: [Held(A, e, "ext")]}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_nothing_is_said_of_a_job_that_was_not_started(room, operation, options):
    """What nobody ran can't have ended, and an offer isn't lengthened: it is started, released, or lapses."""
    room.add("a")
    epoch = offered(room)
    room.look()
    made = {name: each(epoch) if callable(each) else each for name, each in options.items()}
    assert room.do(operation, **made) == ["offered"]
    assert room.changed() == {}
    start(room, epoch)
    assert room.do(operation, **made) != ["offered"]


def test_released_it_is_back_at_its_place_refunded(room):
    room.add("a")
    epoch = offered(room)
    room.look()
    assert room.do(commands.release, worker="ext", jobs=[Release(A, epoch, "")]) == ["available"]
    changed = room.changed()
    assert changed[f"job:{A} attempt"] == "0"
    assert changed[f"job:{A} released"] == "1"
    assert changed["front:async:0 default:a"] == T0
    assert start(room, epoch) == "lost"


def test_a_job_that_is_only_offered_is_cancelled_at_once(room):
    """Nobody runs it, so nobody must be asked."""
    room.add("a")
    epoch = offered(room)
    room.look()
    assert room.do(commands.cancel, [A], running=False) == ["removed"]
    changed = room.changed()
    assert (changed[f"job:{A} state"], changed[f"leases {A}"]) == ("cancelled", None)
    assert start(room, epoch) == "lost"


def test_the_same_claim_again_gives_its_offers_and_what_was_started(room):
    """A lost answer: under the same number, or the same name."""
    room.add("a", "b", "c")
    named = {"worker": "ext", "request": 1, "lease_ms": LEASE_MS, "free": {"async": 9}, "offer_ms": OFFER_MS}
    first = room.do(commands.claim, limit=2, call="x", **named)
    start(room, first.jobs[0].epoch)
    room.now += 1000
    again = room.do(commands.claim, limit=2, call="x", **named)
    assert [(job.id, job.epoch) for job in again.jobs] == [(job.id, job.epoch) for job in first.jobs]
    leases = room.keyspace.dump()["leases"]
    assert leases == {"default:a": room.now + LEASE_MS, "default:b": room.now + OFFER_MS}
    assert room.keyspace.ttls["claimed:ext/x"] <= 60_000
    other = room.do(commands.claim, limit=2, call="y", **named)
    assert [job.id for job in other.jobs] == ["default:c"]


# --- its time passes


def test_not_started_in_time_it_is_back_refunded(room):
    room.add("a")
    epoch = offered(room)
    assert lapse(room) == {A: "available"}
    job = room.job()
    assert (job["state"], job["attempt"], job["lapsed"], job["ended"]) == ("available", "0", "1", f"{epoch} reap")
    assert "error:1" not in job
    assert room.keyspace.dump()["front:async:0"] == {A: T0}


def test_started_too_late_is_lost_also_before_anybody_reaps(room):
    room.add("a")
    epoch = offered(room)
    room.look()
    room.now += OFFER_MS
    assert start(room, epoch) == "lost"
    changed = room.changed()
    assert (changed[f"job:{A} state"], changed[f"job:{A} attempt"]) == ("available", "0")
    assert changed["wake:async 1"] == room.now
    assert start(room, epoch) == "lost"
    assert [job.id for job in room.claim("n.1")] == [A]
    assert start(room, epoch) == "lost"


def test_in_the_last_millisecond_it_is_in_time(room):
    room.add("a")
    epoch = offered(room)
    room.now += OFFER_MS - 1
    assert start(room, epoch) == "ok"


def test_five_times_in_a_row_it_is_refunded_then_each_counts(room):
    room.add("a", max_attempts=2)
    seen = []
    for _ in range(7):
        offered(room)
        lapse(room)
        seen.append((room.job()["state"], int(room.job()["attempt"])))
    assert seen == [("available", 0)] * 5 + [("available", 1), ("failed", 2)]
    reason = "offer lapsed: worker ext did not start it in time"
    assert record(room).reason == reason
    assert [(error.attempt, error.message) for error in record(room).errors] == [(1, reason), (2, reason)]


@pytest.mark.parametrize("how", ["start", "claim"])
def test_a_start_ends_the_row(room, how):
    room.add("a", max_attempts=9)
    for _ in range(2):
        for _ in range(5):
            offered(room)
            lapse(room)
        assert room.job()["attempt"] == "0"
        if how == "start":
            epoch, worker = offered(room), "ext"
            start(room, epoch)
        else:
            (job,) = room.claim("n.1")
            epoch, worker = job.epoch, "n.1"
        assert room.job()["lapsed"] == "0"
        room.do(commands.release, worker=worker, jobs=[Release(A, epoch, "")])


def test_a_lapsed_offer_of_a_task_that_fails_when_its_lease_is_lost_is_offered_again(room):
    """Nothing ran."""
    room.add("a", on_lease_lost="fail")
    offered(room)
    assert lapse(room) == {A: "available"}


def test_only_offered_it_expires_as_one_that_nobody_had(room):
    room.add("a", expires="+100000")
    offered(room)
    assert "expiring" not in room.keyspace.dump()
    lapse(room)
    assert room.keyspace.dump()["expiring"] == {A: T0 + 100_000}
    room.now = T0 + 100_000
    assert room.do(commands.expire) == 1
    assert (room.job()["state"], room.job()["reason"]) == ("cancelled", "expired")


def test_started_and_released_it_does_not_expire(room):
    room.add("a", expires="+100000")
    epoch = offered(room)
    start(room, epoch)
    room.do(commands.release, worker="ext", jobs=[Release(A, epoch, "")])
    assert "expiring" not in room.keyspace.dump()
    room.now = T0 + 100_000
    assert [job.id for job in room.claim()] == [A]


def test_the_first_start_stays_through_offers(room):
    room.add("a")
    (job,) = room.claim("n.1")
    room.now += 1000
    room.do(commands.release, worker="n.1", jobs=[Release(A, job.epoch, "")])
    epoch = offered(room)
    assert record(room).started_at_ms == T0
    room.now += 1000
    start(room, epoch)
    assert record(room).started_at_ms == T0


def test_retried_by_hand_it_is_as_new(room):
    room.add("a", max_attempts=1)
    for _ in range(6):
        offered(room)
        lapse(room)
    assert room.job()["state"] == "failed"
    room.do(commands.retry, [A])
    assert "lapsed" not in room.job()
    room.now += 10
    start(room, offered(room))
    assert record(room).started_at_ms == room.now


# --- who may


def test_of_two_executors_each_has_its_own(room):
    room.add("a", "b")
    (one,) = room.claim("ext-1", 1, offer_ms=OFFER_MS)
    (two,) = room.claim("ext-2", 1, offer_ms=OFFER_MS)
    assert (one.id, two.id) == ("default:a", "default:b")
    assert start(room, one.epoch, worker="ext-2", name="a") == "lost"
    assert start(room, one.epoch + 1, worker="ext-1", name="a") == "lost"
    assert start(room, one.epoch, worker="ext-1", name="nobody") == "gone"
    assert start(room, one.epoch, worker="ext-1", name="a") == "ok"
    assert start(room, two.epoch, worker="ext-2", name="b") == "ok"


def test_ended_it_is_started_no_more(room):
    room.add("a")
    epoch = offered(room)
    start(room, epoch)
    assert room.do(commands.complete, worker="ext", done=[Done(A, epoch, b"r")]) == ["ok"]
    assert start(room, epoch) == "lost"
    assert room.do(commands.complete, worker="ext", done=[Done(A, epoch, b"r")]) == ["ok"]


# --- report


def test_a_report_is_kept_with_the_job(room):
    room.add("a")
    epoch = offered(room)
    start(room, epoch)
    room.look()
    assert room.do(commands.report, worker="ext", reports=[Reported(A, epoch, b"\x81\xa1n\x03")]) == ["ok"]
    assert record(room).to_dict()["progress"] == {"n": 3, "total": None, "note": None}
    room.look()
    for other in ({"worker": "n.2", "reports": [Reported(A, epoch, b"x")]},):
        assert room.do(commands.report, **other) == ["lost"]
    assert room.do(commands.report, worker="ext", reports=[Reported("default:b", epoch, b"x")]) == ["gone"]
    with pytest.raises(ResponseError, match="larger than 65536"):
        room.do(commands.report, worker="ext", reports=[Reported(A, epoch, b"x" * 65537)])
    assert room.changed() == {}


# --- looking


def leases(room, *ids, **options):
    found = room.do(commands.leases, ids, **options)
    return [lease and (lease.id, lease.worker, lease.offered, lease.age_ms) for lease in _seen(found)]


def _seen(found):
    return [lease_of(*job, found.now_ms) for job in found.jobs]


def test_leases_are_shown_those_that_end_first_before_the_others(room):
    room.add("a", "b", "c", "d")
    (a,) = room.claim("ext", 1, offer_ms=OFFER_MS, poller="p2")
    room.claim("n.1", 1)
    room.now += 3000
    (c,) = room.claim("n.2", 1)
    room.do(commands.renew, lease_ms=60_000, held=[Held(c.id, c.epoch, "n.2")])
    room.now += 1000
    room.look()
    assert leases(room) == [
        ("default:b", "n.1", False, 4000),
        ("default:a", "ext", True, 4000),
        ("default:c", "n.2", False, 1000),
    ]
    assert leases(room, offset=1, limit=1) == [("default:a", "ext", True, 4000)]
    assert leases(room, "default:c", "default:d", "default:nobody") == [("default:c", "n.2", False, 1000), None, None]
    assert room.do(commands.leases, limit=0).total == 3
    assert room.changed() == {}
    (seen,) = [each for each in _seen(room.do(commands.leases)) if each.id == A]
    assert (seen.poller, seen.claimed_at_ms, seen.expires_at_ms) == ("p2", a.epoch, T0 + OFFER_MS)


def test_a_poller_is_forgotten_with_the_next_claim(room):
    room.add("a")
    epoch = offered(room, poller="p2")
    room.do(commands.release, worker="ext", jobs=[Release(A, epoch, "")])
    room.claim("n.1")
    assert record(room).poller is None


def test_many_leases_are_pages(room):
    room.do(commands.enqueue, [new(f"j{n}") for n in range(150)])
    room.claim("n.1", 150, {"async": 150})
    found = [room.do(commands.leases, offset=at, limit=50) for at in (0, 50, 100, 150)]
    assert [len(page.jobs) for page in found] == [50, 50, 50, 0]
    assert len({job.id for page in found for job in page.jobs}) == 150


def test_a_key_until_the_start_is_held_until_a_real_start(room):
    """Only offered isn't started: a second call still meets the first."""
    unique = {"once": "t:1 started existing"}
    room.do(commands.enqueue, [new("a")._replace(**unique)])
    epoch = offered(room)
    assert room.do(commands.enqueue, [new("b")._replace(**unique)]) == [f"existing {A}"]
    start(room, epoch)
    assert room.do(commands.enqueue, [new("c")._replace(**unique)]) == ["available"]
