"""Named locks: one holder, a line in order, a fence that only grows, and no key that stays."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from taskq import commands, keys
from tests.lua.keyspace import Keyspace
from tests.lua.room import T0

TTL_MS = 30_000
LOOK_MS, PRESENT_MS = 3_000, 5_000


class Desk:
    """Asks for the lock `l`, at the room's time."""

    def __init__(self, room, namespace, raw):
        self.room, self.c = room, keys.cluster(namespace)
        self.keyspace = Keyspace(raw, self.c)
        self.places = {}

    def ask(self, token, *, name="l", ttl_ms=TTL_MS, waits=True, **options):
        answer = self.room.run(
            commands.lock_acquire(
                self.c, name=name, token=token, ttl_ms=ttl_ms, waits=waits, place=self.places.get(token, ""),
                owner=f"host:{token}", now=self.room.now, **options,
            )
        )  # fmt: skip
        if answer.place:
            self.places[token] = answer.place
        return answer

    def fence(self, token, **options):
        answer = self.ask(token, **options)
        assert answer.word == "held", answer
        return answer.fence

    def extend(self, token, ttl_ms=TTL_MS):
        return self.room.run(commands.lock_extend(self.c, name="l", token=token, ttl_ms=ttl_ms, now=self.room.now))

    def release(self, token="", fence=None):
        command = commands.lock_release(self.c, name="l", token=token, fence=fence, now=self.room.now)
        return self.room.run(command)

    def list(self, **options):
        return self.room.run(commands.locks(self.c, now=self.room.now, **options))

    def record(self):
        return self.keyspace.dump().get("lock:l", {})


@pytest.fixture
def desk(room, namespace, raw):
    return Desk(room, namespace, raw)


@pytest.fixture
def ear(raw, desk):
    """Hears whose turn it is said to be."""
    with raw.pubsub() as pubsub:
        pubsub.psubscribe(desk.c.turn("*"))
        pubsub.get_message(timeout=5)

        def told():
            found = []
            while message := pubsub.get_message(timeout=0.05):
                found.append(message["channel"].decode().rpartition(":")[2])
            return found

        yield told


def test_a_free_lock_is_held_with_a_fence(desk):
    assert desk.ask("a", job="email:1") == ("held", T0, "", 0, "host:a", "email:1")
    dump = desk.keyspace.dump()
    assert dump == {
        "lock:l": {
            "token": "a", "until": str(T0 + TTL_MS), "fence": str(T0), "owner": "host:a", "job": "email:1",
            "since": str(T0),
        },
        "locks": {"l": T0 + TTL_MS},
        "fence": {"last": str(T0)},
    }  # fmt: skip


def test_every_key_has_a_ttl(desk):
    for token in "abc":
        desk.ask(token)
    desk.release("b")
    assert (
        desk.keyspace.dump().keys() == desk.keyspace.ttls.keys() == {"lock:l", "locks", "fence", "line:l", "present:l"}
    )
    desk.release("a")
    desk.fence("c")
    desk.release("c")
    assert desk.keyspace.dump().keys() == desk.keyspace.ttls.keys() == {"lock:l", "fence"}
    assert desk.record()["released"] == "c"
    assert desk.keyspace.ttls["fence"] > 86_400_000


def test_the_same_call_again_is_answered_the_same_and_holds_it_anew(desk, room):
    first = desk.ask("a")
    room.now += 20_000
    assert desk.ask("a") == first
    assert desk.record()["until"] == str(room.now + TTL_MS)
    room.now += 20_000
    assert desk.ask("b").word == "waits"


def test_who_does_not_wait_leaves_no_trace(desk):
    desk.ask("a")
    before = desk.keyspace.dump()
    assert desk.ask("b", waits=False)[:3] == ("taken", 0, "")
    assert desk.keyspace.dump() == before


def test_it_goes_round_in_the_order_of_arrival(desk, ear):
    desk.ask("a")
    answers = [desk.ask(token) for token in "bcd"]
    assert [each.word for each in answers] == ["waits"] * 3
    assert len({each.place for each in answers}) == 3, "within a millisecond too"
    fences = []
    for holder, following in zip("abc", "bcd", strict=True):
        assert desk.release(holder) == "released"
        assert ear() == [following], "nobody else is woken"
        fences.append(desk.fence(following))
    assert fences == sorted(set(fences))


def test_nobody_overtakes_the_line(desk, ear):
    desk.ask("a")
    desk.ask("b")
    desk.release("a")
    ear()
    assert desk.ask("new", waits=False).word == "taken"
    assert desk.ask("new").word == "waits"
    assert ear() == ["b", "b"], "whoever finds it free tells whose turn it is"
    desk.fence("b")


def test_who_leaves_the_line_passes_its_turn_on(desk, ear):
    desk.ask("a")
    desk.ask("b")
    desk.ask("c")
    desk.release("a")
    ear()
    assert desk.release("b") == "left"
    assert ear() == ["c"]
    desk.fence("c")


def test_the_first_looks_when_the_lock_ends_the_others_now_and_then(desk, room):
    desk.ask("a", ttl_ms=2_000)
    assert desk.ask("b").look_ms == 2_001
    assert desk.ask("c").look_ms == LOOK_MS
    room.now += 2_000
    assert desk.ask("c").word == "waits", "b is before it"
    desk.fence("b")


def test_a_dead_waiter_costs_the_others_seconds(desk, room):
    desk.ask("a")
    desk.ask("dead")
    desk.ask("c")
    desk.release("a")
    answer = desk.ask("c")
    assert (answer.word, answer.look_ms) == ("waits", LOOK_MS)
    room.now += LOOK_MS
    answer = desk.ask("c")
    assert (answer.word, answer.look_ms) == ("waits", PRESENT_MS - LOOK_MS + 1)
    room.now += answer.look_ms
    desk.fence("c")


def test_many_dead_waiters_die_at_once(desk, room):
    desk.ask("a")
    for n in range(250):
        desk.ask(f"dead{n}")
    desk.release("a")
    room.now += PRESENT_MS
    answers = [desk.ask("c") for _ in range(3)]
    assert [(each.word, each.look_ms) for each in answers[:2]] == [("waits", 1)] * 2
    assert answers[2].word == "held"


def test_who_was_taken_for_dead_keeps_its_place(desk, room):
    desk.ask("a")
    for token in "bc":
        desk.ask(token)
    desk.release("a")
    room.now += PRESENT_MS
    assert desk.ask("d").word == "held", "nobody seemed to be there"
    room.now += 1
    assert [desk.ask(token).word for token in "cb"] == ["waits"] * 2
    desk.release("d")
    assert desk.ask("c").word == "waits"
    desk.fence("b")


def test_only_the_holder_extends_and_releases(desk):
    desk.ask("a")
    before = desk.keyspace.dump()
    assert (desk.extend("b"), desk.release("b"), desk.extend("")) == ("lost", "lost", "lost")
    assert desk.release("", fence=T0 - 1) == "lost"
    assert desk.keyspace.dump() == before


def test_extending_never_shortens(desk, room):
    desk.ask("a")
    assert desk.extend("a", 600_000) == "ok"
    assert desk.extend("a", 1_000) == "ok"
    assert desk.record()["until"] == str(T0 + 600_000)
    room.now += 599_999
    assert desk.extend("a", 1_000) == "ok"
    room.now += 1_000
    assert desk.extend("a") == "lost", "the end is the end, also if nobody else came"


def test_what_ended_is_anothers(desk, room):
    first = desk.fence("a")
    room.now += TTL_MS
    second = desk.fence("b")
    assert second > first
    assert (desk.extend("a"), desk.release("a")) == ("lost", "lost")
    assert desk.record()["token"] == "b"


def test_a_release_sent_again_says_so_again_and_changes_nothing(desk):
    desk.ask("a")
    assert [desk.release("a") for _ in range(2)] == ["released"] * 2
    desk.ask("b")
    before = desk.keyspace.dump()
    assert desk.release("a") == "released"
    assert desk.keyspace.dump() == before


def test_a_call_that_comes_after_its_own_release_takes_nothing(desk):
    desk.ask("a")
    desk.release("a")
    assert desk.ask("a").word == "taken"
    desk.fence("b")


def test_an_operator_takes_it_from_whom_they_saw(desk, ear):
    fence = desk.fence("a")
    desk.ask("b")
    assert desk.release("", fence=fence) == "released"
    assert (desk.extend("a"), desk.release("a")) == ("lost", "lost"), "its holder is told"
    assert ear() == ["b", "b"]
    desk.fence("b")
    assert desk.release("", fence=fence) == "lost"
    assert desk.extend("b") == "ok"


@pytest.mark.parametrize("ttl_ms", ["0", "-1", "0.0001", "nan", "1000000000000000", "", "x"])
def test_a_time_that_cannot_be_is_refused_before_anything_is_written(desk, room, ttl_ms):
    desk.ask("a")
    before = desk.keyspace.dump()
    for call in (lambda: desk.ask("a", ttl_ms=ttl_ms), lambda: desk.extend("a", ttl_ms)):
        with pytest.raises(ResponseError, match="ttl_ms cannot be"):
            call()
    assert desk.keyspace.dump() == before


def test_nobody_acquires_without_a_token(desk):
    with pytest.raises(ResponseError, match="token cannot be empty"):
        desk.ask("")


# --- the fence


@pytest.mark.parametrize("count", [50, pytest.param(10_000, marks=pytest.mark.long)])
def test_fences_grow_over_all_locks_faster_than_the_clock(desk, count):
    fences = [desk.fence(f"t{n}", name=f"l{n}") for n in range(count)]
    assert fences == list(range(T0, T0 + count))


@pytest.mark.parametrize("lost", ["lock:l", "fence", "locks"])
def test_a_fence_grows_though_a_key_is_lost(desk, raw, lost):
    """By hand, or in a failover. The holder notices at its next renewal."""
    first = desk.fence("a")
    raw.delete(desk.c.fixed(lost))
    if lost == "lock:l":
        assert desk.extend("a") == "lost"
    else:
        desk.release("a")
    assert desk.fence("b") > first


def test_a_fence_grows_though_the_server_was_emptied(desk, room, raw):
    first = desk.fence("a")
    raw.flushall()
    room.now += 1
    assert desk.fence("b") > first


def test_a_fence_grows_though_the_clock_was_set_back(desk, room):
    first = desk.fence("a")
    desk.release("a")
    room.now -= 3_600_000
    second = desk.fence("b")
    assert second == first + 1
    room.now -= 86_400_000
    assert desk.fence("c", name="other") == second + 1


@pytest.mark.parametrize("junk", ["", "x", "nan", "9" * 15, "9" * 16, "9" * 40, "-5"])
def test_a_fence_that_is_none_does_not_stop_the_count(desk, raw, junk):
    raw.hset(desk.c.fixed("fence"), "last", junk)
    fences = [desk.fence(f"t{n}", name=f"l{n}") for n in range(3)]
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("until", ["", "x", "nan", "9" * 15, "9" * 40])
def test_a_record_that_no_lock_can_have_is_no_lock(desk, raw, until):
    raw.hset(desk.c.lock("l"), mapping={"token": "t", "until": until})
    raw.expire(desk.c.lock("l"), 60)
    desk.fence("a")


# --- the list


def test_the_list_has_what_is_held_a_page_at_a_time(desk, room):
    for n in range(5):
        desk.ask(f"t{n}", name=f"l{n}", ttl_ms=1_000 * (n + 1))
    desk.ask("w", name="l3")
    room.now += 1_000
    page = desk.list(offset=1, limit=2)
    assert page.total == 4
    assert [(each.name, each.waiting, each.fields["owner"]) for each in page.locks] == [
        ("l2", 0, "host:t2"),
        ("l3", 1, "host:t3"),
    ]
    assert [each.name for each in desk.list(name="l3").locks] == ["l3"]
    assert desk.list(name="l0") == (0, [])


def test_what_ended_is_forgotten_in_the_list_by_the_next_who_comes(desk, room):
    for n in range(150):
        desk.ask(f"t{n}", name=f"l{n}", ttl_ms=1_000)
    room.now += 1_000
    assert desk.list() == (0, [])
    for n, left in enumerate((51, 2)):
        desk.ask(f"new{n}", name=f"new{n}")
        assert len(desk.keyspace.dump()["locks"]) == left
