"""What a worker claims and when, against a Redis that the test plays."""

import asyncio
import time

import pytest

from taskq import keys
from taskq.commands import Claim, Classes
from taskq.errors import Unavailable
from taskq.node.loop import Outage
from taskq.node.worker import claimer as module
from taskq.node.worker.claimer import Claimer
from taskq.node.worker.source import Source
from tests.node.jobs import claimed
from tests.waiting import await_until

Q = keys.queue("t", "default")
SLOTS = {"async": 4, "thread": 2}


def answer(*jobs, word="ok", next_ms=None):
    return Claim(word, list(jobs), next_ms, 0)


def jobs(count, **fields):
    return [claimed(f"default:{n}", **fields) for n in range(count)]


# --- what one queue's next claim asks for


def ask(source, free=SLOTS, room=100):
    return source.ask(free, SLOTS, room, 0.0)


def test_a_claim_offers_every_free_slot():
    offer = ask(Source(Q))
    assert (offer.request, offer.free, offer.limit) == (1, SLOTS, 6)


def test_an_unanswered_claim_is_sent_again_as_it_was_however_long_it_takes():
    source = Source(Q)
    offer = ask(source)
    for now in (1.0, 8.0, 86_400.0):
        assert source.ask({"async": 1, "thread": 1}, SLOTS, 100, now) is offer


def test_nothing_is_asked_when_the_last_answer_had_less_than_offered():
    source = Source(Q)
    ask(source)
    source.answer(answer(*jobs(3)), {"async": 3})
    assert ask(source) is None


def test_a_class_that_gave_all_is_asked_again_by_halves():
    source = Source(Q)
    ask(source)
    source.answer(answer(*jobs(4)), {"async": 4})
    assert ask(source, {"async": 0, "thread": 2}) is None
    assert ask(source, {"async": 4, "thread": 2}).free == {"async": 2, "thread": 1}


def test_no_more_is_claimed_than_can_be_written_down():
    assert ask(Source(Q), room=3).limit == 3
    assert ask(Source(Q), room=0) is None


def test_no_claim_asks_for_more_than_a_call_may_carry():
    many = {"async": 1000}
    assert Source(Q).ask(many, many, 5000, 0.0).limit == 250


def test_a_class_without_slots_is_not_offered():
    assert Source(Q).ask({"async": 4, "thread": 0}, {"async": 4, "thread": 0}, 9, 0.0).free == {"async": 4}


def test_a_class_that_runs_more_than_it_has_slots_for_takes_none_from_the_others():
    """Below zero: slots lent while a claim was in doubt, which then gave jobs after all."""
    offer = ask(Source(Q), {"async": -3, "thread": 2})
    assert (offer.free, offer.limit) == ({"async": 0, "thread": 2}, 2)
    source = Source(Q)
    ask(source)
    source.answer(answer(*jobs(4)), {"async": 4})
    assert ask(source, {"async": -1, "thread": 0}) is None


@pytest.mark.parametrize(
    "given,empty",
    [
        (answer(), True),
        (answer(next_ms=5), True),
        (answer(next_ms=0), False),
        (answer(*jobs(1)), False),
        (answer(word="paused"), True),
        (answer(word="stale"), False),
    ],
)
def test_whether_a_queue_is_empty(given, empty):
    source = Source(Q)
    ask(source)
    source.answer(given, {"async": len(given.jobs)})
    assert source.empty is empty


# --- the claimer


class PlayedRedis:
    """Answers claims from a script of the test's, and lets markers be popped."""

    def __init__(self):
        self.answers = []  # for the next claims: a Claim or an exception
        self.claims = []  # (queue, request, limit, free)
        self.wakes = []
        self.blocked = None
        self.blocks = 0
        self.slow_s = {}  # queue -> how long its claims take

    async def run(self, command):
        await asyncio.sleep(0)
        queue = command.keys[0]
        if command.script.name == "classes":
            return Classes(0, {})
        if command.script.name == "wake":
            self.wakes.append((queue, command.args[1:]))
            return "ok"
        named = len(command.script.args)
        said, free = dict(zip(command.script.args, command.args[:named], strict=True)), command.args[named:]
        self.claims.append((queue, said["request"], said["limit"], dict(zip(free[::2], free[1::2], strict=True))))
        await asyncio.sleep(self.slow_s.get(queue, 0))
        given = self.answers.pop(0) if self.answers else answer()
        if isinstance(given, Exception):
            raise given
        return given

    async def block(self, keys, _timeout_s):
        self.blocked = asyncio.get_running_loop().create_future()
        self.blocked.keys = keys
        self.blocks += 1
        try:
            return await self.blocked
        finally:
            self.blocked = None

    async def unblock(self, _key=None):
        if self.blocked is not None and not self.blocked.done():
            self.blocked.set_result(None)

    def pop(self, key):
        self.blocked.set_result(key)


class Played:
    def __init__(self, redis, queues=(Q,), slots=SLOTS, room=100):
        self.redis = redis
        self.started = []
        self.node_age_ms = 0
        self.looks = 0
        self.is_gone = False
        self.claimer = Claimer(
            redis,
            queues,
            slots,
            worker="w.1",
            lease_ms=8_000,
            start=self.start,
            room=lambda: room,
            node_age_ms=self.look_at_the_node,
            gone=self.gone,
            outage=Outage(),
        )

    def start(self, _queue, claimed, _until_ms, _free=None):
        self.started.extend(claimed)
        return {"async": len(claimed)}

    def look_at_the_node(self):
        self.looks += 1
        return self.node_age_ms

    def gone(self):
        self.is_gone = True


@pytest.fixture
async def play():
    """`play(answers...)` starts a claimer whose first claims get these answers."""
    running = []

    async def play(*answers, redis=None, **options):
        redis = redis or PlayedRedis()
        redis.answers = list(answers)
        played = Played(redis, **options)
        running.append((played, asyncio.create_task(played.claimer.run())))
        return played

    yield play
    for played, task in running:
        played.claimer.stop()
        await asyncio.wait_for(task, 5)


async def at_rest(played):
    """Wait until the claimer blocks on markers."""
    await await_until(lambda: played.redis.blocked is not None)


async def test_a_worker_claims_at_once_then_waits_for_markers(play):
    played = await play(answer(*jobs(3)))
    await at_rest(played)
    assert len(played.started) == 3
    assert [claim[1] for claim in played.redis.claims] == [1]
    assert set(played.redis.blocked.keys) == {Q.wake("async"), Q.wake("thread")}


async def test_a_marker_makes_it_claim(play):
    played = await play()
    await at_rest(played)
    played.redis.answers = [answer(*jobs(1))]
    played.redis.pop(Q.wake("async"))
    await await_until(lambda: played.started)
    assert played.claimer.free == {"async": 3, "thread": 2}


async def test_while_there_is_more_it_claims_until_its_slots_are_full(play):
    played = await play(answer(*jobs(4)), answer())
    await at_rest(played)
    assert played.claimer.free["async"] == 0
    # A full class is neither claimed for nor waited for.
    assert list(played.redis.blocked.keys) == [Q.wake("thread")]
    assert len(played.redis.claims) == 1


async def test_a_freed_slot_is_claimed_for_when_there_is_more(play):
    played = await play(answer(*jobs(4)))
    await at_rest(played)
    played.redis.answers = [answer(*jobs(1))]
    played.claimer.freed("async", "default")
    await await_until(lambda: len(played.started) == 5)
    assert played.redis.claims[1][3]["async"] == 1


async def test_a_freed_slot_of_an_emptied_class_is_waited_for(play):
    played = await play(answer(*jobs(4)), answer())
    await at_rest(played)
    played.claimer.freed("async", "default")
    await await_until(lambda: played.redis.blocked and len(played.redis.blocked.keys) == 2)


@pytest.mark.parametrize("free", [0, -1])
async def test_a_marker_that_cannot_be_acted_on_is_set_again(play, free):
    played = await play(slots={"async": 1})
    await at_rest(played)
    # The slot is taken between the pop and the claim, by a claim that found work at another queue, say.
    played.claimer.free["async"] = free
    played.redis.pop(Q.wake("async"))
    await await_until(lambda: played.redis.wakes)
    assert played.redis.wakes == [(Q.prefix, ["async"])]


async def test_an_unanswered_claim_is_repeated_with_its_number(play, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.01)
    played = await play(Unavailable("cut"), Unavailable("cut"), answer(*jobs(1)))
    await await_until(lambda: played.started)
    assert [claim[1:] for claim in played.redis.claims[:3]] == [(1, 6, SLOTS)] * 3
    assert played.claimer.free == {"async": 3, "thread": 2}


async def test_jobs_of_an_answer_that_is_read_late_are_asked_for_once_more(play, monkeypatch):
    """A worker that stood still: the jobs may be others' by now. The same number gives what is still its own."""
    late = iter([0, 4_001])  # ms between the question and its answer, by the worker's clock

    class Clock:
        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def monotonic_ns():
            return time.monotonic_ns() + next(late, 0) * 1_000_000

    monkeypatch.setattr(module, "time", Clock)
    played = await play(answer(*jobs(2)), answer(*jobs(1)))
    await await_until(lambda: played.started)
    assert [claim[1:] for claim in played.redis.claims[:2]] == [(1, 6, SLOTS)] * 2
    assert len(played.started) == 1
    await await_until(lambda: played.claimer.free == {"async": 3, "thread": 2})


async def test_while_a_claim_is_in_doubt_its_slots_are_taken(play, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.05)
    played = await play(Unavailable("cut"), answer())
    await await_until(lambda: played.redis.claims)
    assert played.claimer.free == {"async": 0, "thread": 0}
    await at_rest(played)
    assert played.claimer.free == SLOTS


async def test_a_refused_claim_does_not_end_the_claimer(play, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.01)
    played = await play(ValueError("a fault of ours"), answer(*jobs(1)))
    await await_until(lambda: played.started)


async def test_a_claim_that_is_refused_in_doubt_keeps_its_number_and_one_that_got_nothing_does_not(play, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.01)
    answers = ValueError("damaged"), Unavailable("cut"), ValueError("damaged"), answer(*jobs(1))
    played = await play(*answers)
    await await_until(lambda: played.started)
    assert [claim[1] for claim in played.redis.claims[:4]] == [1, 2, 2, 2]
    assert played.claimer.free == {"async": 3, "thread": 2}


async def test_a_queue_that_cannot_be_read_takes_nothing_from_the_others(play):
    bad, good = keys.queue("t", "bad"), keys.queue("t", "good")
    played = await play(ValueError("damaged"), answer(*jobs(2)), queues=(bad, good))
    await await_until(lambda: played.started)
    assert [claim[0] for claim in played.redis.claims[:2]] == [bad.prefix, good.prefix]
    assert played.redis.claims[1][3] == SLOTS


async def test_queues_are_asked_best_first(play):
    best, other = keys.queue("t", "best"), keys.queue("t", "other")
    played = await play(answer(*jobs(4)), answer(), queues=(best, other))
    await at_rest(played)
    # The best one filled its class; the other is offered what is left.
    assert [claim[0] for claim in played.redis.claims] == [best.prefix, other.prefix]
    assert played.redis.claims[1][3] == {"async": 0, "thread": 2}


async def test_a_better_queue_is_heard_of_though_another_takes_each_slot_that_gets_free(play, monkeypatch):
    monkeypatch.setattr(module, "UNHEARD_S", 0.0)
    best, other = keys.queue("t", "best"), keys.queue("t", "other")
    played = await play(answer(), answer(*jobs(4)), queues=(best, other))
    await at_rest(played)
    played.redis.claims.clear()
    played.redis.answers = [answer(*jobs(1))]
    played.claimer.freed("async", "other")
    await await_until(lambda: len(played.started) == 5)
    assert [claim[0] for claim in played.redis.claims] == [best.prefix]


async def busy(played, turns, others):
    """The last queue has more and more, a job a turn; gives how often each other one was asked meanwhile."""
    played.redis.claims.clear()
    for _ in range(turns):
        began = len(played.started)
        played.claimer.freed("async", "other")
        await await_until(lambda began=began: len(played.started) > began)
    asked = [claim[0] for claim in played.redis.claims]
    return [asked.count(each.prefix) for each in others]


class Endless(PlayedRedis):
    """One queue always has what is asked for; the others have nothing."""

    async def run(self, command):
        if command.script.name == "claim":
            few = command.args[command.script.args.index("limit")]
            self.answers = [answer(*jobs(min(few, 4)))] if ":{other}:" in command.keys[0] else [answer()]
        return await super().run(command)


async def test_the_unheard_are_asked_one_now_and_then(play, monkeypatch):
    """However many there are, each in its turn."""
    monkeypatch.setattr(module, "UNHEARD_S", 0.05)
    idle = [keys.queue("t", name) for name in ("a", "b", "c")]
    played = await play(queues=(*idle, keys.queue("t", "other")), slots={"async": 4}, redis=Endless())
    await await_until(lambda: len(played.started) == 4)
    began = time.monotonic()
    asked = [0, 0, 0]
    while min(asked) < 2:
        asked = [sum(each) for each in zip(asked, await busy(played, 5, idle), strict=True)]
    assert sum(asked) <= (time.monotonic() - began) / 0.05 + 1
    assert max(asked) - min(asked) <= 1


async def test_a_slow_queue_takes_little_of_a_busy_ones_time(play, monkeypatch):
    monkeypatch.setattr(module, "UNHEARD_S", 0.0)
    slow = keys.queue("t", "slow")
    redis = Endless()
    played = await play(queues=(slow, keys.queue("t", "other")), slots={"async": 4}, redis=redis)
    await await_until(lambda: len(played.started) == 4)
    redis.slow_s[slow.prefix] = 0.3
    assert await busy(played, 20, [slow]) == [1]


async def test_it_claims_exactly_when_something_is_due(play):
    played = await play(answer(next_ms=30))
    await await_until(lambda: len(played.redis.claims) == 2, timeout=2)


async def test_nothing_is_claimed_while_the_node_is_silent(play, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_AGAIN_S", 0.01)
    played = await play()
    await at_rest(played)
    before = len(played.redis.claims)
    played.node_age_ms = 3_001
    played.redis.pop(Q.wake("async"))
    looks = played.looks
    await await_until(lambda: played.looks >= looks + 10)
    assert len(played.redis.claims) == before
    assert played.redis.blocked is None
    played.node_age_ms = 0
    await await_until(lambda: len(played.redis.claims) > before)


async def test_a_worker_declared_dead_stops(play):
    played = await play(answer(word="gone"))
    await await_until(lambda: played.is_gone)
    assert played.claimer.stopping


async def test_stopping_passes_a_popped_marker_on(play):
    played = await play()
    await at_rest(played)
    played.redis.pop(Q.wake("thread"))
    played.claimer.stop()
    await await_until(lambda: played.redis.wakes)
    assert played.redis.wakes == [(Q.prefix, ["thread"])]
    assert len(played.redis.claims) == 1


def test_nothing_is_left_if_no_claim_since_the_question_found_anything():
    source = Source(Q)
    ask(source)
    source.question()
    source.answer(answer(), {})
    assert source.empty is None
    ask(source)
    source.answer(answer(), {})
    assert source.empty is True


def test_what_a_claim_under_way_finds_is_something_left():
    source = Source(Q)
    ask(source)
    source.question()
    source.answer(answer(*jobs(4)), {"async": 4})
    assert ask(source, {"async": 0, "thread": 2}).free["async"] == 0
    source.answer(answer(), {})
    assert source.empty is False


async def test_stopping_waits_for_the_claim_in_doubt(play, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.01)
    played = await play(Unavailable("cut"), answer(*jobs(2)))
    await await_until(lambda: played.redis.claims)
    played.claimer.stop()
    await await_until(lambda: len(played.started) == 2)
    assert [claim[1] for claim in played.redis.claims] == [1, 1]


async def test_an_unblock_that_comes_too_early_is_repeated(play, monkeypatch):
    played = await play()
    await at_rest(played)
    calls = []
    unblock = played.redis.unblock

    async def deaf_at_first(_key):
        calls.append(1)
        if len(calls) > 2:
            await unblock()

    played.redis.unblock = deaf_at_first
    played.claimer.stop()
    await await_until(lambda: played.redis.blocked is None)
    assert len(calls) > 2


async def test_a_burst_asks_once_more(play):
    played = await play(answer(*jobs(1)), answer(next_ms=5000))
    await at_rest(played)
    assert await asyncio.wait_for(played.claimer.nothing_left(), 2)
    played.redis.answers = [answer(next_ms=0)]
    assert not await asyncio.wait_for(played.claimer.nothing_left(), 2)


async def test_a_cut_while_waiting_makes_it_look_at_everything(play, monkeypatch):
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.01)
    played = await play()
    await at_rest(played)
    before = len(played.redis.claims)
    played.redis.blocked.set_exception(Unavailable("cut"))
    await await_until(lambda: len(played.redis.claims) > before)
    await at_rest(played)


async def test_what_became_due_while_a_claim_was_in_doubt_is_claimed_once_that_is_answered(play, monkeypatch):
    """Nothing else would kick it, and until a claim was made it waits for no marker."""
    monkeypatch.setattr(module, "again_s", lambda _failures: 0.05)
    played = await play()
    await at_rest(played)
    played.redis.answers = [Unavailable("cut")]
    played.redis.pop(Q.wake("async"))
    await await_until(lambda: len(played.redis.claims) == 2)
    await asyncio.sleep(0)
    played.claimer.resize("async", 5)  # as a cut wait does: a claim is due
    await await_until(lambda: len(played.redis.claims) == 4, 2, what="a claim after the one in doubt")
    assert [claim[1] for claim in played.redis.claims] == [1, 2, 2, 3]
    await at_rest(played)


async def test_an_idle_claimer_sends_next_to_nothing(play):
    played = await play()
    await at_rest(played)
    for _ in range(200):  # whatever doesn't wait for a timer has its turns
        await asyncio.sleep(0)
    assert len(played.redis.claims) == 1
    assert played.redis.blocks == 1
    assert played.claimer._alarm._again is None
    assert played.claimer._alarm._due == {}


async def test_classes_that_are_read_after_the_first_finishes_hold_up_no_claim(play, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_FINISHES_S", 3600)
    played = await play(answer(*jobs(4)), answer(*jobs(4)))
    await await_until(lambda: played.started)
    for _ in range(4):
        played.claimer.freed("async", "default")
    await await_until(lambda: len(played.started) == 8)


async def test_a_class_that_comes_while_the_classes_are_read_is_read_too(play):
    played = await play()
    await at_rest(played)
    redis, asked = played.redis, []
    released = asyncio.Event()
    run = redis.run

    async def slow(command):
        if command.script.name != "classes":
            return await run(command)
        asked.append(command)
        if len(asked) == 1:
            await released.wait()
        return Classes(len(asked), {})

    redis.run = slow
    redis.answers = [Claim("ok", jobs(4), None, 1), Claim("ok", jobs(1), None, 2), Claim("ok", [], None, 2)]
    redis.pop(Q.wake("async"))
    await await_until(lambda: asked)
    for _ in range(4):
        played.claimer.freed("async", "default")
    await await_until(lambda: len(played.started) == 5)
    released.set()
    await await_until(lambda: len(asked) == 2)


# --- a rest


async def test_a_resting_worker_claims_nothing_and_leaves_markers_to_others(play):
    played = await play()
    await at_rest(played)
    played.claimer.rest()
    played.redis.answers = [answer(*jobs(1))]
    played.redis.pop(Q.wake("async"))  # the wait was under way
    await await_until(lambda: played.redis.wakes == [(Q.prefix, ["async"])])
    played.claimer.freed("async", "default")
    await asyncio.sleep(0.05)
    assert (len(played.redis.claims), played.redis.blocked, played.started) == (1, None, [])
    played.claimer.go_on()
    await await_until(lambda: played.started)
    await at_rest(played)


async def test_what_a_claim_under_way_gives_runs_though_it_rests(play):
    played = await play(answer(*jobs(2)))
    await await_until(lambda: played.redis.claims)
    played.claimer.rest()
    await await_until(lambda: len(played.started) == 2)


async def test_a_resting_worker_can_leave():
    played = Played(PlayedRedis())
    running = asyncio.create_task(played.claimer.run())
    await at_rest(played)
    played.claimer.rest()
    played.claimer.stop()
    await await_until(running.done)
    assert running.exception() is None


async def test_going_on_without_a_rest_changes_nothing(play):
    played = await play()
    await at_rest(played)
    played.claimer.go_on()
    await asyncio.sleep(0.02)
    assert len(played.redis.claims) == 1


# --- other numbers of slots


async def test_more_slots_are_claimed_for_at_once(play):
    played = await play(answer(*jobs(4)))
    await at_rest(played)
    played.redis.answers = [answer(*jobs(2))]
    played.claimer.resize("async", 8)
    await await_until(lambda: len(played.started) == 6)
    assert played.claimer.free == {"async": 2, "thread": 2}


async def test_fewer_slots_than_run_take_nothing_until_enough_have_ended(play):
    played = await play(answer(*jobs(4)))
    await at_rest(played)
    played.claimer.resize("async", 1)
    for _ in range(3):
        played.claimer.freed("async", "default")
    await asyncio.sleep(0.05)
    assert played.claimer.free["async"] == 0
    assert all(claim[3].get("async", 0) == 0 for claim in played.redis.claims[1:])
    played.redis.answers = [answer(*jobs(1))]
    played.claimer.freed("async", "default")
    played.redis.pop(Q.wake("thread"))
    await await_until(lambda: len(played.started) == 5)


async def test_no_slot_at_all_is_none(play):
    played = await play()
    await at_rest(played)
    played.claimer.resize("async", 0)
    await asyncio.sleep(0.05)
    before = played.redis.blocks
    played.redis.pop(Q.wake("thread"))
    await await_until(lambda: played.redis.blocks > before)
    assert list(played.redis.blocked.keys) == [Q.wake("thread")]
