"""Classes: what jobs need decides which of them a claim may take, as a whole vector; a queue has so many."""

from __future__ import annotations

from hashlib import sha1

import pytest

from taskq import commands
from taskq.commands import NewJob, Release
from taskq.errors import TooManyClasses
from tests.lua.room import LEASE_MS, T0

GPU = "label.gpu=a100;takes.gpu=1000"
BIG = "takes.cpu=8000;takes.memory=1000"


def needy(name: str, needs: str, **options: object) -> NewJob:
    executor = str(options.pop("executor", "async"))
    return NewJob(f"default:{name}", "", "t", executor, 0, "", "", options, needs=needs)  # type: ignore[arg-type]


def claim(room, request, free, narrow, limit=100):
    """The names that a claim gives."""
    options = {"worker": "n.1", "request": request, "lease_ms": LEASE_MS, "limit": limit}
    answer = room.do(commands.claim, **options, free=free, narrow=narrow)
    assert answer.word == "ok"
    return [job.id.partition(":")[2] for job in answer.jobs]


def test_a_job_that_needs_something_waits_in_a_class_of_its_own(room):
    room.look()
    room.do(commands.enqueue, [needy("a", GPU)])
    changed = room.changed()
    assert changed["job:default:a class"] == f"async;{GPU}"
    assert changed[f"classes async;{GPU}"] == f"executor=async;{GPU}"
    assert changed["meta class_version"] == "1"
    assert changed[f"body:async;{GPU}:0"] == ["default:a"]
    assert changed[f"wake:async;{GPU} 1"] == changed["wake:async 1"] == T0
    assert "job:default:a needs" not in changed


@pytest.mark.parametrize("needs", ["label.zone=a%20b", "label.a=" + "b" * 120])
def test_what_is_long_or_has_other_characters_is_hashed_and_kept_in_the_record(room, needs):
    room.do(commands.enqueue, [needy("a", needs, executor="thread")])
    klass = f"thread;{sha1(needs.encode(), usedforsecurity=False).hexdigest()}"
    assert (room.job()["class"], room.job()["needs"]) == (klass, needs)
    assert room.do(lambda q, now: commands.classes(q)).classes == {klass: f"executor=thread;{needs}"}


def test_classes_are_told_to_whom_they_may_concern(room):
    room.add("plain")
    room.do(commands.enqueue, [needy("a", GPU), needy("b", "target=web-1"), needy("c", "takes.cpu=1;target=web-2")])
    assert room.run(commands.classes(room.q)).classes == {f"async;{GPU}": f"executor=async;{GPU}"}
    found = room.run(commands.classes(room.q, targets=["web-2", "web-3"]))
    assert found.classes.keys() == {f"async;{GPU}", "async;takes.cpu=1;target=web-2"}
    assert found.version == 2


def test_a_claim_takes_no_more_than_what_is_free_suffices_for_as_a_whole_vector(room):
    room.do(commands.enqueue, [needy(f"b{n}", BIG) for n in range(5)])
    klass = {f"async;{BIG}": {"async": 1, "+cpu": 8000, "+memory": 1000}}
    assert claim(room, 1, {"async": 9, "+cpu": 64_000, "+memory": 999}, klass) == []
    assert claim(room, 2, {"async": 9, "+cpu": 17_000, "+memory": 9000}, klass) == ["b0", "b1"]
    assert claim(room, 3, {"async": 1, "+cpu": 64_000, "+memory": 9000}, klass) == ["b2"]
    assert claim(room, 4, {"async": -1, "+cpu": 64_000, "+memory": 9000}, klass) == []


def test_what_does_not_fit_does_not_hold_up_what_does(room):
    room.do(commands.enqueue, [needy("big", BIG), needy("small", GPU)])
    room.add("plain")
    takes = {f"async;{BIG}": {"async": 1, "+cpu": 8000, "+memory": 1000}, f"async;{GPU}": {"async": 1, "+gpu": 1000}}
    pools = {"async": 9, "+cpu": 4000, "+memory": 10**9, "+gpu": 1000}
    assert sorted(claim(room, 1, pools, takes)) == ["plain", "small"]


def test_classes_share_pools_within_one_claim(room):
    room.do(commands.enqueue, [needy(f"a{n}", "takes.gpu=1000") for n in range(3)])
    room.do(commands.enqueue, [needy(f"b{n}", "takes.gpu=2000") for n in range(3)])
    takes = {"async;takes.gpu=1000": {"async": 1, "+gpu": 1000}, "async;takes.gpu=2000": {"async": 1, "+gpu": 2000}}
    assert claim(room, 1, {"async": 9, "+gpu": 5000}, takes) == ["a0", "a1", "a2", "b0"]


def test_the_best_priority_over_all_classes_goes_first(room):
    room.do(commands.enqueue, [needy("a", GPU), needy("b", BIG)._replace(priority=7)])
    room.add("c", priority=3)
    room.add("d", priority=9)
    takes = {f"async;{GPU}": {"async": 1}, f"async;{BIG}": {"async": 1}}
    assert claim(room, 1, {"async": 9}, takes) == ["d", "b", "c", "a"]


def test_a_plain_claim_takes_nothing_that_needs_more(room):
    room.do(commands.enqueue, [needy("a", GPU)])
    assert claim(room, 1, {"async": 9, "thread": 9}, {}) == []


@pytest.mark.parametrize("wants", [{"+gpu": 1}, {"async": 0}, {"async": -1}])
def test_a_class_that_takes_of_no_pool_or_nothing_is_refused(room, wants):
    room.add("a")
    with pytest.raises(Exception, match=r"cannot be|of no pool"):
        claim(room, 1, {"async": 9}, {"async;x=1": wants})


def test_a_job_of_the_wrong_kind_keeps_its_needs(room):
    needs = "label.zone=a%20b;takes.gpu=1000"
    room.do(commands.enqueue, [needy("a", needs)])
    hashed = sha1(needs.encode(), usedforsecurity=False).hexdigest()
    options = {"worker": "n.1", "request": 1, "lease_ms": LEASE_MS, "limit": 9}
    (job,) = room.do(
        commands.claim, **options, free={"async": 1, "+gpu": 1000}, narrow={f"async;{hashed}": {"async": 1}}
    ).jobs
    room.do(commands.release, worker="n.1", jobs=[Release(job.id, job.epoch, "thread")])
    assert room.job()["class"] == f"thread;{hashed}"
    assert room.run(commands.classes(room.q)).classes[f"thread;{hashed}"] == f"executor=thread;{needs}"


def test_the_257th_class_is_refused_whole(room):
    room.do(commands.enqueue, [needy(f"t{n}", f"target=node-{n}") for n in range(20)])
    room.do(commands.enqueue, [needy(f"a{n}", f"takes.cpu={n + 1}") for n in range(200)])
    room.do(commands.enqueue, [needy(f"b{n}", f"takes.cpu={n + 1001}") for n in range(56)])
    room.look()
    with pytest.raises(TooManyClasses) as refused:
        room.do(commands.enqueue, [needy("old", "takes.cpu=1"), needy("new", "takes.cpu=5000")])
    assert str(refused.value) == (
        "queue default has jobs that need 256 different sets of labels and resources, and may have no more: round"
        " amounts up, use fewer labels, or several queues. Nothing was added for a job that needs takes.cpu=5000."
    )
    assert room.changed() == {}
    room.do(commands.enqueue, [needy("old", "takes.cpu=1"), needy("there", "target=node-99")])


def test_the_1025th_target_is_refused_and_told_as_such(room):
    for at in range(0, 1000, 250):
        room.do(commands.enqueue, [needy(f"t{at + n}", f"target=node-{at + n}") for n in range(250)])
    room.do(commands.enqueue, [needy(f"u{n}", f"target=more-{n}") for n in range(24)])
    with pytest.raises(TooManyClasses, match="queue default has jobs that need 1024 different sets of targets"):
        room.do(commands.enqueue, [needy("new", "target=new")])


def sweep(room, idle=()):
    found = room.do(commands.sweep_classes, idle=list(idle))
    return found.swept, sorted(found.classes)


def test_a_class_of_which_no_job_waited_twice_is_forgotten(room):
    room.do(commands.enqueue, [needy("a", "takes.cpu=1"), needy("b", "takes.cpu=2")])
    room.do(commands.cancel, ["default:a"])
    assert sweep(room) == (0, ["async;takes.cpu=1"])
    room.look()
    assert sweep(room, ["async;takes.cpu=1", "async;takes.cpu=2", "async", "x"]) == (1, [])
    assert room.changed() == {"classes async;takes.cpu=1": None, "meta class_version": "2"}
    assert sweep(room, ["async;takes.cpu=1", "async;takes.cpu=2"]) == (0, [])


def test_its_marker_goes_with_it(room):
    room.do(commands.enqueue, [needy("a", "takes.cpu=1")])
    room.do(commands.purge)
    assert "wake:async;takes.cpu=1" in room.keyspace.dump()
    assert sweep(room, ["async;takes.cpu=1"]) == (1, [])
    assert "wake:async;takes.cpu=1" not in room.keyspace.dump()


def test_a_class_whose_lanes_are_parked_stays(room):
    room.do(commands.declare, kinds={}, retention={}, limits={"crm": "c=1"})
    room.add("holder", lane="-:crm")
    room.claim()
    room.do(commands.enqueue, [needy("a", GPU)._replace(lane="-:crm")])
    assert claim(room, 9, {"async": 1}, {f"async;{GPU}": {"async": 1}}) == []
    assert f"parked:crm:async;{GPU}" in room.keyspace.dump()
    assert sweep(room, [f"async;{GPU}"]) == (0, [])


@pytest.mark.parametrize("needs", [GPU, "label.zone=a%20b"])
@pytest.mark.parametrize("how", ["scheduled", "running", "retryable"])
def test_a_job_that_still_names_a_swept_class_brings_it_back(room, needs, how):
    room.do(commands.enqueue, [needy("a", needs)._replace(due="+5000" if how == "scheduled" else "")])
    klass = room.job()["class"]
    if how != "scheduled":
        options = {"worker": "n.1", "request": 1, "lease_ms": LEASE_MS, "limit": 9, "free": {"async": 1}}
        (job,) = room.do(commands.claim, **options, narrow={klass: {"async": 1}}).jobs
    if how == "retryable":
        row = commands.Failure(job.id, job.epoch, "retry", 5000, b"{}", "x")
        room.do(commands.fail, worker="n.1", failures=[row])
    assert sweep(room, [klass]) == (1, [])
    assert room.run(commands.classes(room.q)).classes == {}
    room.now += 5000
    if how == "running":
        room.do(commands.release, worker="n.1", jobs=[Release(job.id, job.epoch, "")])
    else:
        room.do(commands.promote)
    assert room.run(commands.classes(room.q)).classes == {klass: f"executor=async;{needs}"}
    assert claim(room, 2, {"async": 1}, {klass: {"async": 1}}) == ["a"]


def test_the_257th_is_taken_once_old_ones_were_swept(room):
    for at in (0, 200):
        room.do(commands.enqueue, [needy(f"a{n}", f"takes.cpu={n + 1}") for n in range(at, min(256, at + 200))])
    with pytest.raises(TooManyClasses):
        room.do(commands.enqueue, [needy("new", "takes.cpu=5000")])
    room.do(commands.cancel, ["default:a0"])
    _, idle = sweep(room)
    assert sweep(room, idle) == (1, [])
    room.do(commands.enqueue, [needy("new", "takes.cpu=5000")])
    with pytest.raises(TooManyClasses):
        room.do(commands.enqueue, [needy("newer", "takes.cpu=5001")])


def test_a_sweep_is_bounded(room):
    room.do(commands.enqueue, [needy(f"a{n}", f"takes.cpu={n + 1}") for n in range(20)])
    room.do(commands.purge)
    found = room.do(commands.sweep_classes, limit=8)
    assert (found.swept, len(found.classes)) == (0, 8)
    found = room.do(commands.sweep_classes, idle=[f"async;takes.cpu={n + 1}" for n in range(20)], limit=8)
    assert (found.swept, len(found.classes)) == (8, 8)


def test_a_class_that_was_dropped_comes_back_with_its_next_job(room):
    needs = "label.zone=a%20b"
    room.do(commands.enqueue, [needy("a", needs)._replace(due="+5000")])
    room.client.delete(room.q.fixed("classes"))
    room.now += 5000
    room.do(commands.promote)
    (klass,) = room.run(commands.classes(room.q)).classes
    assert klass == room.job()["class"]
