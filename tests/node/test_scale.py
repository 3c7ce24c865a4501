"""How slots follow need: by numbers alone, and in a simulation of a queue with a step, a ramp, a burst."""

import itertools
import random

import pytest

from taskq.node.leader.scale import DRAIN_S, EVERY_S, Crew, Load, Reading, Site, Steady, balance, divide, hands, share

LOW, HIGH = 2, 40
EACH = 10  # slots of a worker, in the simulation of workers


class Queue:
    """A queue whose jobs take `mean_s`, served by as many as `slots` says; one second a tick."""

    def __init__(self, mean_s=2.0, seed=1):
        self.mean_s, self.random = mean_s, random.Random(seed)
        self.now, self.waiting, self.running = 0, 0, []
        self.arrived = self.completed = self.run_ms = 0
        self.load, self.steady, self.slots = Load(), Steady(LOW), LOW
        self.history = []

    def tick(self, rate, extra=0):
        come = extra + int(rate) + (self.random.random() < rate % 1)
        self.waiting += come
        self.arrived += come
        self.running = [left - 1 for left in self.running]
        ended = sum(1 for left in self.running if left <= 0)
        self.completed += ended
        self.run_ms += int(ended * self.mean_s * 1000)
        self.running = [left for left in self.running if left > 0]
        start = max(0, min(self.waiting, self.slots - len(self.running)))  # never is a running job preempted
        self.waiting -= start
        self.running += [self.mean_s] * start
        self.now += 1
        if self.now % EVERY_S == 0:
            reading = Reading(self.now, self.waiting, len(self.running), self.arrived, self.completed, self.run_ms)
            self.load.take(reading)
            self.slots = self.steady.follow(self.load.need, LOW, HIGH)
            self.history.append(self.slots)

    def turns(self):
        """How often the number of slots began to go the other way."""
        moves = [b - a for a, b in zip(self.history, self.history[1:], strict=False) if b != a]
        return sum(1 for a, b in itertools.pairwise(moves) if (a > 0) != (b > 0))


def test_an_idle_queue_stays_at_its_least():
    queue = Queue()
    for _ in range(300):
        queue.tick(0)
    assert set(queue.history) == {LOW}


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_met_within_a_minute_and_held(seed):
    queue = Queue(seed=seed)
    for _ in range(60):
        queue.tick(0.5)
    for _ in range(300):
        queue.tick(6)  # 12 slots
    at_first, later = queue.history[12:24], queue.history[30:]
    assert max(at_first) >= 12
    assert all(12 <= n <= 18 for n in later)
    assert queue.waiting < 6 * DRAIN_S / 2
    assert queue.turns() <= 2


@pytest.mark.parametrize("seed", range(5))
def test_a_ramp_is_followed_up_and_down(seed):
    queue = Queue(seed=seed)
    for second in range(300):
        queue.tick(10 * second / 300)
        assert queue.waiting < 150
    top = queue.slots
    assert 18 <= top <= 30
    for second in range(300):
        queue.tick(10 - 10 * second / 300)
    for _ in range(120):
        queue.tick(0)
    assert queue.slots == LOW
    assert queue.turns() <= 4


def test_a_burst_is_drained_in_about_the_time_and_then_given_back():
    queue = Queue()
    queue.tick(0, extra=600)
    drained = None
    for _ in range(240):
        queue.tick(0)
        if drained is None and not queue.waiting:
            drained = queue.now
    assert drained <= 2 * DRAIN_S
    assert max(queue.history) >= 30
    assert queue.slots == LOW
    assert queue.turns() <= 1


def test_noise_does_not_make_it_flap():
    queue, noise = Queue(seed=3), random.Random(7)
    for _ in range(1200):
        queue.tick(noise.choice([2, 3, 4, 5, 6, 7]))
    changes = sum(1 for a, b in zip(queue.history[24:], queue.history[25:], strict=False) if a != b)
    assert changes <= 16  # of 216 decisions
    assert queue.waiting < 60


def test_long_jobs_that_nobody_waits_for_need_no_more():
    queue = Queue(mean_s=600.0)
    queue.tick(0, extra=2)
    for _ in range(300):
        queue.tick(0)
    assert set(queue.history) == {LOW}


def test_long_jobs_that_wait_are_met_before_any_has_ended():
    queue = Queue(mean_s=600.0)
    queue.tick(0, extra=100)
    for _ in range(60):
        queue.tick(0)
    assert queue.slots == HIGH


def test_totals_that_begin_anew_are_no_arrivals():
    load = Load()
    load.take(Reading(0, 0, 0, 10_000, 10_000, 10_000))
    load.take(Reading(5, 3, 0, 3, 0, 0))
    assert (load.rate, load.waiting) == (0, 3)
    load.take(Reading(5, 3, 0, 3, 0, 0))
    load.take(Reading(10, 0, 0, 13, 10, 5_000))
    assert load.rate == pytest.approx(0.4 * 2)
    assert load.mean_s == 0.5


def test_new_bounds_hold_at_once():
    steady = Steady(5)
    assert steady.follow(5, 8, 20) == 8
    assert steady.follow(50, 8, 20) == 20
    assert steady.follow(50, 2, 10) == 10
    assert steady.follow(0, 2, 8) == 8, "and no more is taken in a hurry"


# --- over queues and nodes


def test_dividing_rounds_by_the_largest_remainder_and_loses_nothing():
    assert divide(10, {"a": 1, "b": 1, "c": 1}) == {"a": 1, "b": 1, "c": 1}
    assert divide(2, {"a": 5, "b": 5, "c": 5}) == {"a": 1, "b": 1, "c": 0}
    assert divide(0, {"a": 5}) == {"a": 0}
    assert divide(5, {}) == {}


def test_nobody_goes_below_its_least_when_not_all_can_be_had():
    assert share({"a": 50, "b": 4}, {"a": 2, "b": 2}, 20) == {"a": 17, "b": 3}
    assert share({"a": 5, "b": 4}, {"a": 2, "b": 2}, 20) == {"a": 5, "b": 4}


def test_nodes_get_alike_when_they_are_alike():
    sites = {node: Site({"email": (2, 20)}, 100) for node in ("a", "b", "c")}
    assert balance({"email": 21}, sites) == {node: {"email": 7} for node in sites}
    assert balance({"email": 1}, sites) == {node: {"email": 2} for node in sites}
    assert balance({"email": 1000}, sites) == {node: {"email": 20} for node in sites}


def test_what_does_not_fit_on_one_node_goes_to_another():
    sites = {"a": Site({"email": (1, 20), "web": (1, 20)}, 10), "b": Site({"email": (1, 40)}, 40)}
    given = balance({"email": 30, "web": 9}, sites)
    assert sum(given["a"].values()) <= 10
    assert given["a"]["email"] + given["b"]["email"] == 30
    assert given["a"]["web"] == 9


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_wanted_bounds_and_totals_hold(seed):
    pick = random.Random(seed)
    sites = {}
    for node in range(pick.randint(1, 6)):
        ranges = {}
        for queue in pick.sample("abcd", pick.randint(1, 4)):
            low = pick.randint(1, 5)
            ranges[queue] = (low, low + pick.randint(0, 30))
        least = sum(low for low, _ in ranges.values())
        sites[str(node)] = Site(ranges, least + pick.randint(0, 40))
    wanted = {queue: pick.randint(0, 120) for queue in {q for site in sites.values() for q in site.ranges}}
    given = balance(wanted, sites)
    for node, site in sites.items():
        assert sum(given[node].values()) <= site.total
        for queue, (low, high) in site.ranges.items():
            assert low <= given[node][queue] <= high


# --- workers


class Host:
    """One node with 1 to 8 workers, each of EACH slots and one core; jobs wait for `wait_s`, compute for `cpu_s`.
    A worker that is too many claims no more, and goes once its jobs have ended.
    """

    def __init__(self, wait_s, cpu_s=0.0, seed=1):
        self.wait_s, self.cpu_s, self.random = wait_s, cpu_s, random.Random(seed)
        self.now, self.waiting = 0, 0
        self.arrived = self.completed = self.run_ms = 0
        self.serving, self.leaving = [[]], []
        self.load, self.steady = Load(), Steady(1)
        self.history, self.cores = [], 0.0

    def turn(self, worker):
        """A second of a worker: its jobs wait side by side, and share its core. The core's part that is used."""
        left = 1.0
        for job in worker:
            job[0] -= 1
            used = min(job[1], left, 1.0)
            job[1] -= used
            left -= used
        ended = [job for job in worker if job[0] <= 0 and job[1] <= 1e-9]
        self.completed += len(ended)
        self.run_ms += sum(1000 * (self.now - job[2]) for job in ended)
        worker[:] = [job for job in worker if job not in ended]
        return 1.0 - left

    def tick(self, rate, extra=0):
        come = extra + int(rate) + (self.random.random() < rate % 1)
        self.waiting += come
        self.arrived += come
        for worker in sorted(self.serving, key=len):
            start = min(self.waiting, EACH - len(worker))
            self.waiting -= start
            worker += [[self.wait_s, self.cpu_s, self.now] for _ in range(start)]
        self.now += 1
        self.cores += sum(self.turn(worker) for worker in self.serving + self.leaving) / EVERY_S
        self.leaving = [worker for worker in self.leaving if worker]
        if self.now % EVERY_S == 0:
            self.decide()

    def decide(self):
        running = sum(map(len, self.serving + self.leaving))
        self.load.take(Reading(self.now, self.waiting, running, self.arrived, self.completed, self.run_ms))
        crew = Crew(1, 8, len(self.serving), EACH, self.cores, {"q"})
        self.cores = 0.0
        wanted = self.steady.follow(hands({"q": self.load.need}, {"n": crew}, {})["n"], crew.least, crew.most)
        self.serving += [[] for _ in range(wanted - len(self.serving))]
        self.leaving += self.serving[wanted:]
        del self.serving[wanted:]
        self.history.append(wanted)

    turns = Queue.turns


@pytest.mark.parametrize("seed", range(5))
def test_workers_meet_a_step_and_stay(seed):
    host = Host(2, seed=seed)
    for _ in range(60):
        host.tick(0.5)
    assert set(host.history) == {1}
    for _ in range(300):
        host.tick(16)  # 32 slots
    assert max(host.history[12:24]) >= 4
    assert all(4 <= n <= 5 for n in host.history[36:])
    assert host.waiting < 50
    assert host.turns() <= 2


@pytest.mark.parametrize("seed", range(5))
def test_workers_follow_a_ramp_up_and_down(seed):
    host = Host(2, seed=seed)
    for second in range(300):
        host.tick(30 * second / 300)
        assert host.waiting < 300
    assert 6 <= len(host.serving) <= 8
    for second in range(300):
        host.tick(30 - 30 * second / 300)
    for _ in range(120):
        host.tick(0)
    assert host.history[-1] == 1
    assert host.turns() <= 4


def test_workers_come_for_a_burst_and_go_when_it_is_done():
    host = Host(3)
    host.tick(0, extra=800)
    for _ in range(300):
        host.tick(0)
    assert max(host.history) == 8
    assert host.completed == 800, "whatever a worker had that went, it finished"
    assert (host.history[-1], host.leaving) == (1, [])
    assert host.turns() <= 1


@pytest.mark.parametrize("seed", range(5))
def test_jobs_that_compute_are_given_cores_and_that_does_not_flap(seed):
    host = Host(0, cpu_s=0.2, seed=seed)
    for _ in range(60):
        host.tick(1)  # a fifth of a core
    assert set(host.history) == {1}
    for _ in range(600):
        host.tick(15)  # three cores; within few slots, once there are the cores
    assert all(n >= 4 for n in host.history[30:])
    assert host.waiting < 15
    assert host.turns() <= 4


def test_a_need_is_divided_over_nodes_beside_the_slots_they_were_given():
    crews = {node: Crew(1, 4, 1, 10, 0.0, {"web"}) for node in ("a", "b")}
    assert hands({"web": 40.0}, crews, {}) == {"a": 2.0, "b": 2.0}
    assert hands({"web": 40.0}, crews, {"a": {"email": 20}}) == {"a": 3.3, "b": 2.7}
    assert hands({"web": 1000.0}, crews, {"a": {"email": 20}}) == {"a": 4.0, "b": 4.0}
    only = {"c": Crew(1, 4, 1, 10, 1.6, set())}
    assert hands({}, only, {"c": {"email": 5}}) == {"c": 2.0}, "by its cores"
