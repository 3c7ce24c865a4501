"""Who runs next, on three shards: limits, fairness, locks, routing, keys, pauses, reservations and claims of others.

All tests share three nodes, one of which is killed before the first begins; at the end nothing is held by anybody.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections import Counter

import pytest

from taskq import ClaimNotFound, Concurrency, Debounce, DuplicateJob, Lock, Rate, Throttle, Unique, Unschedulable
from tests.cluster import dispatchers
from tests.cluster.conftest import QUEUES, emptied, rig_on
from tests.cluster.floor import Floor
from tests.fleet import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def floor(_shards, _ledger, tmp_path_factory):
    _ledger.clear()
    namespace = f"t{uuid.uuid4().hex[:8]}"
    logs = tmp_path_factory.mktemp("floor")
    with emptied(_shards, namespace) as shards, rig_on(shards, namespace, _ledger, logs) as shop:
        floor = Floor(shop, shards, QUEUES)
        yield floor
        wait_until(lambda: not any(map(floor.held, floor.queues)), 20, what="nothing that is held")
        wait_until(lambda: not any(map(shop.leases, floor.queues)), 40, what="the end of what a killed node had held")


def test_limits_are_kept_under_load(floor):
    """Two at once for each key, and 20 a second for all; what isn't limited overtakes what waits."""
    limits = [Concurrency(2, by="who", name="crm"), Rate("20/s", name="api", burst=5)]
    jobs, free = {}, []
    for queue in floor.queues:
        floor.shop.app.queue(queue).limit("crm", concurrency=2)
        floor.shop.app.queue(queue).limit("api", rate="20/s", burst=5)
    for queue in floor.queues:
        jobs[queue] = {who: floor.add_many(queue, [who] * 20, 0.1, limits=limits) for who in ("acme", "bolt")}
        free.append(floor.add(queue, "free", priority=-1))
    floor.shop.until(free)
    whys = [found["acme"][-1].why() for found in jobs.values()]
    assert {why.gate for why in whys} <= {"limit", "rate", "turn"}, whys  # turn: something is free just now
    assert {why.gate for why in whys} & {"limit", "rate"}, whys
    for found in jobs.values():
        floor.shop.until([*found["acme"], *found["bolt"]], timeout=40)
        assert {who: floor.most_at_once(each) for who, each in found.items()} == {"acme": 2, "bolt": 2}
        starts = sorted(job.refresh().record.epoch for each in found.values() for job in each)
        assert max(sum(first <= each < first + 1000 for each in starts) for first in starts) <= 20 + 5 + 1


def test_keys_share_by_weight_whatever_their_backlog(floor):
    jobs = {}
    for queue in floor.queues:
        line = floor.shop.app.queue(queue)
        line.weights(heavy=3)
        line.limit(concurrency=2)
        line.pause()
        found = floor.add_many(queue, ["heavy"] * 60 + ["light"] * 40, 0.01, fair="who")
        jobs[queue] = found + floor.add_many(queue, ["rare"] * 3, 0.01, fair="who")
    for queue in floor.queues:
        floor.shop.app.queue(queue).resume()
    for queue, found in jobs.items():
        floor.shop.until(found, timeout=40)
        who = dict(zip([job.id for job in found], ["heavy"] * 60 + ["light"] * 40 + ["rare"] * 3, strict=True))
        order = [who[id] for id in floor.begun(found)]
        assert max(place for place, each in enumerate(order) if each == "rare") < 30, order
        early = Counter(order[:43])
        assert 26 <= early["heavy"] <= 34, order
        assert floor.most_at_once(found) <= 2
        line = floor.shop.app.queue(queue)
        line.limit(reset=True)
        line.weights(heavy=None)


def test_a_jobs_lock_lets_one_run_and_has_an_end(floor):
    lock = Lock("account", by="who", wait="60s")
    jobs = {queue: floor.add_many(queue, ["a"] * 5 + ["b"], 0.2, lock=lock) for queue in floor.queues}
    holders = [floor.add(queue, "long", 4, lock=Lock("account", by="who")) for queue in floor.queues]
    floor.shop.until(holders, "running")
    short = Lock("account", by="who", wait="1s")
    late = {queue: floor.add(queue, "long", 0, lock=short) for queue in floor.queues}
    for holder, job in zip(holders, late.values(), strict=True):
        assert job.why().text == f"it waits for lock account=long, held by {holder.id}"
    floor.shop.until([*late.values()], "failed", 15)
    assert {job.to_dict()["reason"] for job in late.values()} == {"lock account=long was not free within 1 s"}
    assert not floor.begun(late.values())
    for found in jobs.values():
        floor.shop.until(found, timeout=30)
        assert floor.most_at_once(found[:-1]) == 1
    floor.shop.until(holders)


def test_jobs_run_where_they_fit_and_never_too_many(floor):
    """Labels, and amounts as whole vectors over the queues of all shards together."""
    east, west = set(floor.east.workers()), set(floor.west.workers())
    labelled, small, large, plain = [], [], [], []
    for queue in floor.queues:
        labelled += floor.add_many(queue, "abc", labels={"zone": "west"})
        large += floor.add_many(queue, "abcd", 0.2, resources={"gpu": 2})
        small += floor.add_many(queue, "abcd", 0.2, resources={"gpu": 1}, priority=1)
        plain.append(floor.add(queue, "free", priority=-1))
    floor.shop.until([*labelled, *plain, *small, *large], timeout=40)
    assert floor.pids(labelled) == west
    assert floor.pids(large) <= east
    for pid, most in [*((pid, 2) for pid in east), *((pid, 1) for pid in west)]:
        assert floor.most_at_once(small, {pid}) <= most
        assert floor.most_at_once(large, {pid}) <= most // 2
        assert floor.most_at_once(small + large, {pid}) <= most
    for queue in floor.queues:
        with pytest.raises(Unschedulable, match=f"gpu=3, and the largest worker of queue {queue} has 2"):
            floor.task(queue, resources={"gpu": 3}).enqueue("x")
        with pytest.raises(Unschedulable, match="zone=south"):
            floor.task(queue, labels={"zone": "south"}, strict=True).enqueue("x")


def test_one_job_for_each_key(floor):
    """Unique, debounced, throttled."""
    shop = floor.shop
    for queue in floor.queues:
        unique = floor.task(queue, unique=Unique(by="who"))
        first = unique.enqueue("acme", 1.5)
        shop.accepted.add(first.id)
        assert (unique.enqueue("acme", 1.5).id, unique.enqueue("acme").created) == (first.id, False)
        with pytest.raises(DuplicateJob):
            floor.task(queue, unique=Unique(by="who", on_conflict="raise")).enqueue("acme")
        debounced = floor.task(queue, debounce=Debounce("500ms", max_wait="10s", by="who"))
        calls = [debounced.enqueue("d", n / 1000) for n in range(5)]
        assert [job.created for job in calls] == [True, False, False, False, False]
        throttled = [floor.task(queue, throttle=Throttle("1s", by="who")).enqueue("t") for _ in range(3)]
        assert len({job.id for job in throttled}) == 1
        shop.until([first, calls[0], throttled[0]])
        assert calls[0].to_dict()["args"] == ["d", 0.004]
        assert floor.begun([first, *calls, *throttled]).count(calls[0].id) == 1
        kept = {name: ttl_ms for name, ttl_ms in floor.held(queue).items() if name.startswith("unique:")}
        assert kept.keys() <= {"unique:shop.turn:throttle:t"}, "freed by the end of its job"
        assert all(0 < ttl_ms < 60_000 for ttl_ms in kept.values()), "a throttle's key goes with its time"
        again = unique.enqueue("acme")
        assert again.created
        shop.until([again])


def test_a_key_and_a_task_stand_still_on_all_nodes(floor):
    shop = floor.shop
    running = [floor.add(queue, "acme", 2, fair="who") for queue in floor.queues]
    shop.until(running, "running")
    for queue in floor.queues:
        shop.app.queue(queue).pause(key="acme")
        shop.app.queue(queue).pause(task="shop.quick")
    paused = [job for queue in floor.queues for job in floor.add_many(queue, ["acme"] * 4, fair="who")]
    quick = [shop.enqueue(shop.shop.quick, queue=queue) for queue in floor.queues]
    others = [job for queue in floor.queues for job in floor.add_many(queue, ["bolt"] * 4, fair="who")]
    shop.until([*others, *running])
    assert {job.why().gate for job in (*paused, *quick)} == {"paused"}
    assert not floor.begun([*paused, *quick])
    for queue in floor.queues:
        shop.app.queue(queue).resume(key="acme")
        shop.app.queue(queue).resume(task="shop.quick")
    shop.until([*paused, *quick])


def test_slots_are_reserved_by_many_processes(floor):
    """No slot too many, and no key twice, also while their jobs run."""
    shop = floor.shop
    command = [sys.executable, "-m", "tests.cluster.dispatchers", floor.shards.url, shop.namespace, *floor.queues]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        seen = []
        while process.poll() is None:
            seen += [shop.app.queue(queue).reservations()["total"] for queue in floor.queues]
            time.sleep(0.02)
        assert process.stdout is not None
        told = json.loads(process.stdout.read())
    assert process.returncode == 0
    assert max(seen) <= dispatchers.SLOTS
    assert {word for each in told for word in each["words"]} == {"reserved", "duplicate", "no_capacity"}
    made = [job for each in told for job in each["jobs"]]
    assert all(created and id == again for _, _, id, created, again in made)
    jobs = {id: shop.app.job(id) for _, _, id, _, _ in made}
    assert len(jobs) == len(made)
    shop.accepted |= set(jobs)
    shop.until([*jobs.values()])
    for queue in floor.queues:
        mine = [(key, jobs[id]) for at, key, id, _, _ in made if at == queue]
        assert {key for key, _ in mine} == {str(n) for n in range(dispatchers.KEYS)}
        assert 1 < floor.most_at_once(job for _, job in mine) <= dispatchers.SLOTS
        for key in range(dispatchers.KEYS):
            assert floor.most_at_once(job for name, job in mine if name == str(key)) == 1


def test_an_executor_of_somebody_else(floor):
    """It claims from queues of every shard that no node serves, keeps to limits, and loses what it doesn't start."""
    shop, client = floor.shop, floor.shop.app.client
    queues = [f"ext-{queue}" for queue in QUEUES]
    ports = {floor.shards.of(shop.q(queue).prefix).port for queue in queues}
    assert len(ports) == len(floor.shards.all)
    limited = {}
    for queue in queues:
        limited[queue] = floor.add(queue, "acme", limits=[Concurrency(1, name="crm")])
        shop.app.queue(queue).limit("crm", concurrency=1)
        floor.add(queue, "acme", limits=[Concurrency(1, name="crm")])
    offers = client.claim(queues, worker="ext-1", limit=250, start=False)
    assert sorted(offer.id for offer in offers) == sorted(job.id for job in limited.values())
    assert client.claim(queues, worker="ext-2", limit=250) == []
    for offer in offers[1:]:
        client.start(offer.token)
        assert client.renew(offer.token) == "ok"
    assert {lease.id for lease in client.leases() if lease.worker == "ext-1"} == {offer.id for offer in offers}
    for offer in offers[1:]:
        client.complete(offer.token, "done")
    client.release(offers[0].token)
    with pytest.raises(ClaimNotFound):
        client.start(offers[0].token)
    assert {job.refresh().state for queue, job in limited.items() if queue != offers[0].queue} == {"completed"}
    rest = []
    while found := client.claim(queues, worker="ext-2", limit=250):
        assert len({job.queue for job in found}) == len(found), "two of a limit of one"
        for job in found:
            client.complete(job.token)
        rest += found
    assert len(rest) == len(queues) + 1
    assert client.outstanding(queues[0]) == 0
    assert not [name for queue in queues for name in floor.held(queue)]


def test_why_tells_a_place_by_its_numbers(floor):
    """Where nodes serve the queue, and all they have is taken."""
    busy, behind = {}, {}
    for queue in floor.queues:
        busy[queue] = floor.add_many(queue, ["any"] * 8, 600, resources={"gpu": 1})
        behind[queue] = floor.add_many(queue, ["any"] * 3, 600, resources={"gpu": 1})
    running = [job for found in busy.values() for job in found]
    wait_until(lambda: sum(each == "running" for each in floor.shop.states(running).values()) == 5, what="no gpu left")
    for queue, found in behind.items():
        waiting = [job for job in busy[queue] if floor.shop.states([job])[job.id] == "available"]
        told = floor.why(found[2])
        ahead = len(waiting) + 2
        assert [told[name] for name in ("gate", "lanes_ahead", "jobs_ahead")] == ["turn", 0, ahead], told
    jobs = [job for found in (busy, behind) for each in found.values() for job in each]
    for job in reversed(jobs):
        job.cancel()
    floor.shop.until(jobs, "cancelled")


def test_who_was_moved_and_who_has_waited_long_comes_first(floor):
    for queue in floor.elsewhere("late"):
        first, moved, high = (floor.add(queue, "any", priority=n) for n in (0, 0, 5))
        moved.reprioritise(9)
        assert moved.refresh().record.priority == 9
        assert floor.one_by_one(queue) == [moved.id, high.id, first.id]
        line = floor.shop.app.queue(queue)
        for age, is_old_first in (("100ms", True), (0, False)):
            line.age(age)
            old = floor.add(queue, "any")
            floor.wait_ms(queue, 600)
            young = floor.add(queue, "any", priority=3)
            assert floor.one_by_one(queue) == ([old.id, young.id] if is_old_first else [young.id, old.id])


def test_why_tells_its_numbers(floor):
    limits = {"one": [Concurrency(1, by="who", name="one")], "few": [Rate("1/min", name="few")]}
    for queue in floor.elsewhere("why"):
        line, client = floor.shop.app.queue(queue), floor.shop.app.client
        held, spent = (floor.add(queue, "acme", limits=each) for each in limits.values())
        running = client.claim(queue, worker="ext-why", limit=2)
        assert {job.id for job in running} == {held.id, spent.id}
        second, later = (floor.add(queue, "acme", limits=each) for each in limits.values())
        line.block("one", "1m", key="bolt")
        blocked = floor.add(queue, "bolt", limits=limits["one"])
        lane = floor.add_many(queue, "abc")
        high = floor.add(queue, "any", priority=1)
        told = {name: floor.why(job) for name, job in (("limit", second), ("rate", later), ("blocked", blocked))}
        assert {name: each["gate"] for name, each in told.items()} == {name: name for name in told}
        assert [told["limit"][name] for name in ("kind", "name", "key")] == ["limit", "one", "acme"]
        assert [told["limit"][name] for name in ("held", "most", "holders")] == [1, 1, [held.id]]
        assert 0 < told["rate"]["in"] <= 60
        assert 0 < told["blocked"]["in"] <= 60
        place = floor.why(lane[2])
        assert (place["gate"], place["executors"]) == ("worker", 1), "no node serves it, and one who claims there does"
        line.block("one", 0, key="bolt")
        line.limit("few", rate="1000/s", burst=1000)
        for job in running:
            client.complete(job.token)
        assert floor.one_by_one(queue)[0] == high.id
        assert {job.refresh().state for job in (second, later, blocked, *lane)} == {"completed"}


def test_an_executor_takes_what_fits_into_it_over_all_queues(floor):
    """Whole vectors, labels, what is active and outstanding meanwhile."""
    queues, client = floor.elsewhere("fit"), floor.shop.app.client
    needs = {"labels": {"zone": "x"}, "resources": {"gpu": 1, "memory": "2GiB"}}
    jobs = {floor.add(queue, "any", **needs).id for queue in queues}
    assert client.claim(queues, worker="ext-none", limit=9) == []
    assert (
        client.claim(queues, worker="ext-other", limit=9, labels={"zone": "y"}, free={"gpu": 9, "memory": "9GiB"}) == []
    )
    zone = {"labels": {"zone": "x"}, "limit": 9, "start": False}
    assert client.claim(queues, worker="ext-small", free={"gpu": 9, "memory": "1GiB"}, **zone) == []
    two = client.claim(queues, worker="ext-two", free={"gpu": 9, "memory": "5GiB"}, **zone)
    assert len(two) == 2
    rest = client.claim(queues, worker="ext-rest", free={"gpu": 1, "memory": "64GiB"}, **zone)
    assert {job.id for job in two + rest} == jobs
    waiting = floor.add(queues[0], "any")
    assert [client.has_outstanding(f"{waiting.id}#{n}") for n in (1, 2)] == [True, False]
    assert all(client.has_outstanding(job.attempt_key) for job in two + rest)
    total = floor.shop.app.inspector.active()["total"]
    pages = [floor.shop.app.inspector.active(limit=1, offset=n)["data"] for n in range(total)]
    shown = [each for page in pages for each in page if each["queue"] in queues]
    assert {(each["id"], each["worker"], each["offered"]) for each in shown} == {
        (job.id, job.worker, True) for job in two + rest
    }
    for job in two + rest:
        client.start(job.token)
        assert not client.has_outstanding(job.attempt_key)
        client.complete(job.token)
    assert [floor.shop.app.inspector.active(queue=queue)["data"] for queue in queues] == [[]] * len(queues)
    assert floor.one_by_one(queues[0]) == [waiting.id]


def test_slots_that_are_kept_for_nobody_are_taken_back(floor):
    for queue in floor.elsewhere("slots"):
        line = floor.shop.app.queue(queue)
        assert line.reserve("a", max_concurrency=2, ttl="1m").token
        assert line.reserve("b", max_concurrency=2, ttl="50ms").token
        assert line.reserve("c", max_concurrency=2).reason == "no_capacity"
        assert line.finalize("a") is True, "no job was bound to it"
        assert line.reserve("a", max_concurrency=2, ttl="1m").token
        wait_until(lambda line=line: line.reservations()["total"] == 1, what="the other lapsed")
        line.finalize("b")
        again = line.reserve("b", max_concurrency=2)
        job = line.bind(again.token, floor.task(queue).call("any"))
        floor.shop.accepted.add(job.id)
        assert line.cleanup_reservations(older_than=0) == 1, "what is bound, and its job waits, stays"
        assert line.finalize("b") is False
        assert floor.one_by_one(queue) == [job.id]
        assert line.finalize("b") is False, "its end has freed it"
        assert line.reservations()["total"] == 0


def test_what_expires_holds_nothing_though_it_was_parked_or_paused(floor):
    limits, holders, late = [Concurrency(1, by="who", name="one")], [], []
    for queue in floor.queues:
        floor.shop.app.queue(queue).pause(key="still")
        holders.append(floor.add(queue, "acme", 4, limits=limits))
    floor.shop.until(holders, "running")
    unique = Unique(by="who")
    for queue in floor.queues:
        late.append(floor.add(queue, "still", fair="who", expires="1s", unique=unique))
        late.append(floor.add(queue, "acme", limits=limits, expires="1s", unique=unique))
    floor.shop.until(late, "cancelled")
    assert {job.to_dict()["reason"] for job in late} == {"expired"}
    again = [floor.add(queue, who, unique=unique) for queue in floor.queues for who in ("still", "acme")]
    assert all(job.created for job in again)
    for queue in floor.queues:
        floor.shop.app.queue(queue).resume(key="still")
    floor.shop.until([*again, *holders])
    assert not floor.begun(late)


def test_a_key_that_is_blocked_comes_back_by_itself(floor):
    limits, shop = [Concurrency(9, by="who", name="api")], floor.shop
    for queue in floor.queues:
        shop.app.queue(queue).block("api", "3s", key="acme")
    blocked = [floor.add(queue, "acme", limits=limits) for queue in floor.queues]
    others = [floor.add(queue, "bolt", limits=limits) for queue in floor.queues]
    shop.until(others)
    assert {job.why().gate for job in blocked} == {"blocked"}
    assert not floor.begun(blocked)
    shop.until(blocked)
    for queue in floor.queues:
        assert not [each for each in shop.app.queue(queue).limits() if each["blocked_until"]]


def test_a_target_that_died(floor):
    """Its jobs run elsewhere, or fail if they were to; also those that ran there when it was killed."""
    bound = [floor.add(queue, "any", target=floor.lost) for queue in floor.queues]
    fails = [floor.add(queue, "fail", target=floor.lost, on_target_lost="fail") for queue in floor.queues]
    doomed = [*floor.doomed.values()]
    floor.shop.until([*bound, *doomed], timeout=120)
    floor.shop.until(fails, "failed", 30)
    assert {job.to_dict()["reason"] for job in fails} == {f"target lost: {floor.lost}"}
    alive = {*floor.east.workers(), *floor.west.workers()}
    assert floor.pids(bound) <= alive
    assert all(len(floor.shop.ledger.starts(job.id)) == 2 for job in doomed)
    assert not floor.begun(fails)
