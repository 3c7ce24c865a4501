"""Once only: one living job a key, freed on every route a job can leave by, and what a second call meets instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from taskq import commands
from taskq.commands import Buried, Failure, Incoming, Release, Snoozed
from taskq.errors import DuplicateJob
from tests.lua.keyspace import flat
from tests.lua.room import T0, Room, new

KEY = "t:k"
PLAIN = f"{KEY} finished existing"
RAISE = f"{KEY} finished raise"
REPLACE = f"{KEY} finished replace"
STARTED = f"{KEY} started existing"


def send(room: Room, *jobs: commands.NewJob) -> list[str]:
    words: list[str] = room.do(commands.enqueue, list(jobs))
    return words


def owner(room: Room, key: str = KEY) -> str | None:
    found = room.keyspace.dump().get(f"unique:{key}")
    assert found is None or isinstance(found, str)
    return found


# --- what a call meets


def test_the_first_owns_the_key(room):
    assert send(room, new("a", once=PLAIN)) == ["available"]
    changed = room.changed()
    assert changed["unique:t:k"] == "default:a"
    assert changed["job:default:a once"] == PLAIN


def test_a_second_call_is_told_whose_it_is_and_changes_nothing(room):
    room.add("a", once=PLAIN)
    room.look()
    assert send(room, new("b", once=PLAIN, payload=b"x", due="+5")) == ["existing default:a"]
    assert room.changed() == {}


def test_another_key_is_another_matter(room):
    room.add("a", once=PLAIN)
    assert send(room, new("b", once="t:other finished existing"), new("c", once=":k finished existing")) == [
        "available",
        "available",
    ]


def test_one_that_asks_is_refused_and_with_it_the_whole_call(room):
    room.add("a", once=PLAIN)
    room.look()
    with pytest.raises(DuplicateJob, match="job default:a owns the unique key t:k; nothing was added") as caught:
        send(room, new("free"), new("b", once=RAISE))
    assert caught.value.owner == "default:a"
    assert room.changed() == {}


def test_in_one_call_the_first_wins(room):
    assert send(room, new("a", once=PLAIN), new("b", once=PLAIN)) == ["available", "existing default:a"]
    assert room.job("b") is None
    with pytest.raises(DuplicateJob):
        send(room, new("c", once="t:x finished raise"), new("d", once="t:x finished raise"))
    assert room.job("c") is None


@pytest.mark.parametrize(
    "text",
    [
        *("k", "k finished", "k finished maybe", "k never existing", "k within/ existing", "k within/x existing"),
        *("k within/-5 existing", "a b finished existing", "k;x finished existing", "k" * 300 + " finished existing"),
    ],
)
def test_what_is_no_such_text_is_refused_before_anything_is_written(room, text):
    room.look()
    with pytest.raises(Exception, match="cannot be unique by"):
        send(room, new("z"), new("a", once=text))
    assert room.changed() == {}


# --- sent again


def test_the_same_call_again_is_answered_as_before(room):
    calls = [new("a", once=PLAIN), new("b", once=PLAIN), new("c", token="x", once="t:y finished raise")]
    first = send(room, *calls)
    room.claim()
    room.look()
    assert send(room, *calls) == first
    assert room.changed() == {}


def test_a_replacing_call_again_replaces_nothing(room):
    room.add("a", once=REPLACE, payload=b"1")
    assert send(room, new("b", once=REPLACE, payload=b"2")) == ["replaced default:a"]
    assert send(room, new("c", once=REPLACE, payload=b"3")) == ["replaced default:a"]
    room.claim()
    room.look()
    assert send(room, new("b", once=REPLACE, payload=b"2")) == ["replaced default:a"]
    assert room.changed() == {}
    assert 0 < room.keyspace.ttls["merged:default:b"] <= 15_000


# --- replaced in place


def test_a_waiting_owner_becomes_what_the_last_call_says(room):
    room.add("a", once=REPLACE, payload=b"1", meta='{"k":"1"}', token="x", due="+5000", expires="+9000")
    room.look()
    room.now += 10
    again = new("b", once=REPLACE, payload=b"2", task="u", token="y", priority=3, due="+70", timeout=5)
    assert send(room, again) == ["replaced default:a"]
    assert room.changed() == {
        "job:default:a payload": "2",
        "job:default:a task": "u",
        "job:default:a priority": "3",
        "job:default:a timeout": "5",
        "job:default:a scheduled_at": str(T0 + 80),
        "job:default:a meta": None,
        "job:default:a expires_at": None,
        "expiring default:a": None,
        "scheduled default:a": T0 + 80,
        "merged:default:b": "default:a",
        "wake:async 1": T0 + 10,
    }
    assert room.told == {"replaced": ["default:a"], "scheduled": ["default:a"]}


def test_one_that_is_available_keeps_its_place(room):
    room.add("z", "a", once="")
    room.add("b", once=REPLACE, payload=b"1")
    room.add("c")
    room.look()
    room.now += 10
    send(room, new("d", once=REPLACE, payload=b"2"))
    changed = room.changed()
    assert changed == {"job:default:b payload": "2", "merged:default:d": "default:b"}
    assert [job.id[-1] for job in room.claim()] == ["z", "a", "b", "c"]


def test_one_whose_level_changes_moves(room):
    room.add("a", "b", once="")
    room.add("c", once=REPLACE)
    send(room, new("d", once=REPLACE, priority=1, executor="thread"))
    assert [(job.id[-1], job.fields[b"priority"]) for job in room.claim(limit=1)] == [("c", b"1")]


def test_now_becomes_later_and_later_now(room):
    room.add("a", once=REPLACE)
    send(room, new("b", once=REPLACE, due="+100"))
    assert room.claim() == []
    assert room.job()["state"] == "scheduled"
    send(room, new("c", once=REPLACE))
    assert room.job()["state"] == "available"
    (job,) = room.claim()
    assert job.id == "default:a"
    assert "scheduled" not in room.keyspace.dump()


def test_one_that_failed_begins_anew(room):
    epoch = room.held(once=REPLACE, max_attempts=5)
    room.do(commands.fail, worker="n.1", failures=[Failure("default:a", epoch, "retry", 500, "{}", "no")])
    room.now += 10
    assert send(room, new("b", once=REPLACE, payload=b"2")) == ["replaced default:a"]
    record = room.job()
    assert record["state"] == "available"
    assert record["epoch"] == str(epoch)
    assert not {"attempt", "error:1", "max_attempts", "worker"} & record.keys()
    (job,) = room.claim()
    assert job.attempt == 1
    assert job.epoch > epoch
    assert "retryable" not in room.keyspace.dump()
    # What its former holder still says changes nothing.
    assert room.do(commands.complete, worker="n.1", done=[commands.Done("default:a", epoch, b"")]) == ["lost"]


def test_one_that_runs_is_left_alone(room):
    room.held(once=REPLACE, payload=b"1")
    room.look()
    assert send(room, new("b", once=REPLACE, payload=b"2")) == ["existing default:a"]
    assert room.changed() == {}


def test_in_one_call_the_last_wins(room):
    jobs = [new("a", once=REPLACE, payload=b"1"), new("b", once=REPLACE, payload=b"2", priority=4, due="+9")]
    assert send(room, *jobs) == ["available", "replaced default:a"]
    record = room.job()
    assert (record["payload"], record["priority"], record["state"]) == ("2", "4", "scheduled")
    assert room.job("b") is None
    room.look()
    assert send(room, *jobs) == ["available", "replaced default:a"]
    assert room.changed() == {}


def test_a_waiting_result_is_still_told(room):
    room.add("a", once=REPLACE)
    room.run(commands.wait(room.q, "default:a"))
    send(room, new("b", once=REPLACE, due="+5"))
    assert room.job()["waited"] == "1"


# --- freed


def _held(room: Room) -> tuple[str, int]:
    (job,) = room.claim()
    return job.id, job.epoch


def completed(room: Room) -> None:
    held = _held(room)
    room.do(commands.complete, worker="n.1", done=[commands.Done(*held, b"")])


def failed(room: Room) -> None:
    held = _held(room)
    room.do(commands.fail, worker="n.1", failures=[Failure(*held, "fail", 0, "{}", "no")])


def cancelled(room: Room) -> None:
    assert room.do(commands.cancel, ["default:a"]) == ["removed"]


def cancelled_while_running(room: Room) -> None:
    held = _held(room)
    room.do(commands.cancel, ["default:a"])
    room.do(commands.release, worker="n.1", jobs=[Release(*held, "")])


def purged(room: Room) -> None:
    room.do(commands.purge)


def expired(room: Room) -> None:
    room.now += 100_000
    assert room.do(commands.expire) == 1


def expired_at_a_claim(room: Room) -> None:
    room.now += 100_000
    assert room.claim() == []


def reaped(room: Room) -> None:
    _held(room)
    room.watched()


def buried(room: Room) -> None:
    held = _held(room)
    room.do(commands.bury, worker="n.1", why="SIGKILL", jobs=[Buried(*held, "lost")])


def damaged(room: Room) -> None:
    room.client.hset(room.q.job("default:a"), "created_at", "nan")
    assert room.claim() == []


def condemned(room: Room) -> None:
    room.client.hset(room.q.job("default:a"), "state", "nowhere")
    assert room.claim() == []


ENDS = [
    *(completed, failed, cancelled, cancelled_while_running, purged, expired, expired_at_a_claim, reaped, buried),
    *(damaged, condemned),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("keep", [None, 0])
@pytest.mark.parametrize("until", ["finished", "started", "within/900000"])
def test_every_end_frees_the_key(room, end: Callable[[Room], None], keep, until):
    once = f"{KEY} {until} existing"
    fields = {} if keep is None else {"keep": keep}
    room.add("a", once=once, expires="+90000", max_attempts=1, **fields)
    assert owner(room)
    end(room)
    assert owner(room) is None
    assert send(room, new("b", once=once)) == ["available"]
    assert owner(room).split()[0] == "default:b"


def released(room: Room, held: tuple[str, int]) -> None:
    room.do(commands.release, worker="n.1", jobs=[Release(*held, "")])


def snoozed(room: Room, held: tuple[str, int]) -> None:
    room.do(commands.snooze, worker="n.1", grace_ms=1000, jobs=[Snoozed(*held, "snooze", 50, "")])


def to_be_retried(room: Room, held: tuple[str, int]) -> None:
    room.do(commands.fail, worker="n.1", failures=[Failure(*held, "retry", 50, "{}", "no")])


def lost(room: Room, held: tuple[str, int]) -> None:
    room.do(commands.bury, worker="n.1", why="SIGKILL", jobs=[Buried(*held, "lost")])


@pytest.mark.parametrize("back", [released, snoozed, to_be_retried, lost])
def test_one_that_comes_back_owns_its_key_all_along(room, back):
    room.add("a", once=PLAIN)
    held = _held(room)
    assert send(room, new("b", once=PLAIN)) == ["existing default:a"]
    back(room, held)
    assert send(room, new("b", once=PLAIN)) == ["existing default:a"]


@pytest.mark.parametrize("back", [released, snoozed, to_be_retried, lost])
def test_until_it_starts_is_until_its_first_start(room, back):
    room.add("a", once=STARTED)
    assert send(room, new("b", once=STARTED)) == ["existing default:a"]
    held = _held(room)
    assert owner(room) is None
    assert send(room, new("b", once=STARTED)) == ["available"]
    back(room, held)
    room.now += 50
    assert {job.id for job in room.claim("n.2")} == {"default:a", "default:b"}
    assert owner(room) is None


def test_an_earlier_owner_frees_nothing_of_a_later_one(room):
    once = f"{KEY} within/50 existing"
    room.add("a", once=once)
    held = _held(room)
    room.now += 49
    assert send(room, new("b", once=once)) == ["existing default:a"]
    room.now += 1
    assert send(room, new("b", once=once)) == ["available"]
    room.do(commands.complete, worker="n.1", done=[commands.Done(*held, b"")])
    assert owner(room) == f"default:b {room.now + 50}"
    assert 0 < room.keyspace.ttls["unique:t:k"] <= 1050


# --- a key that nobody owns


def forgotten(client: Redis, room: Room) -> None:
    client.delete(room.q.job("default:a"))


def evicted_into_a_stub(client: Redis, room: Room) -> None:
    client.delete(room.q.job("default:a"))
    client.hset(room.q.job("default:a"), "waited", "1")


def of_another_kind(client: Redis, room: Room) -> None:
    client.delete(room.q.job("default:a"))
    client.set(room.q.job("default:a"), "x")


def used_again(client: Redis, room: Room) -> None:
    """Its own id was used again, by a job of another key."""
    client.hset(room.q.job("default:a"), "once", "t:else finished existing")


def ended_behind_our_back(client: Redis, room: Room) -> None:
    client.hset(room.q.job("default:a"), "state", "completed")


def key_is_a_list(client: Redis, room: Room) -> None:
    client.delete(room.q.unique(KEY))
    client.rpush(room.q.unique(KEY), "x")


def key_is_nonsense(client: Redis, room: Room) -> None:
    client.set(room.q.unique(KEY), b"\xff \x00 what")


def key_is_empty(client: Redis, room: Room) -> None:
    client.set(room.q.unique(KEY), "")


@pytest.mark.parametrize(
    "spoil",
    [
        *(forgotten, evicted_into_a_stub, of_another_kind, used_again, ended_behind_our_back),
        *(key_is_a_list, key_is_nonsense, key_is_empty),
    ],
)
@pytest.mark.parametrize("conflict", ["existing", "raise", "replace"])
def test_a_key_whose_job_is_gone_never_blocks(room, spoil, conflict):
    room.add("a", once=PLAIN)
    spoil(room.client, room)
    assert send(room, new("b", once=f"{KEY} finished {conflict}")) == ["available"]
    assert owner(room) == "default:b"


@pytest.mark.parametrize("text", ["", "x", "t:k", "t:k finished", "\n", "k" * 400, "t:k throttle/9 existing"])
def test_a_record_that_says_nonsense_ends_as_any(room, text):
    room.add("a", once=PLAIN)
    room.client.hset(room.q.job("default:a"), "once", text)
    completed(room)
    assert room.job()["state"] == "completed"


# --- run again by hand


def test_a_job_that_is_run_again_takes_its_key_back(room):
    room.add("a", once=PLAIN)
    completed(room)
    room.do(commands.retry, ["default:a"])
    assert owner(room) == "default:a"
    assert send(room, new("b", once=PLAIN)) == ["existing default:a"]


def test_while_another_job_owns_its_key_it_is_refused(room):
    room.add("a", once=PLAIN)
    failed(room)
    room.add("b", once=PLAIN)
    room.look()
    with pytest.raises(DuplicateJob, match="job default:b owns the unique key of default:a") as caught:
        room.do(commands.retry, ["default:a"])
    assert caught.value.owner == "default:b"
    assert room.do(commands.retry, ["default:a", "default:b"], partial=True) == ["duplicate default:b", "waiting"]
    assert room.changed() == {}
    cancel = room.do(commands.cancel, ["default:b"])
    assert cancel == ["removed"]
    assert room.do(commands.retry, ["default:a"]) == ["available"]


def test_of_two_of_one_key_only_one_is_run_again(room):
    for name in "ab":
        room.add(name, once=PLAIN)
        completed(room)
    with pytest.raises(DuplicateJob):
        room.do(commands.retry, ["default:a", "default:b"])
    assert owner(room) is None
    assert room.do(commands.retry, ["default:a", "default:b"], partial=True) == ["available", "duplicate default:a"]
    assert owner(room) == "default:a"


def test_one_that_waits_to_be_retried_may_be(room):
    room.add("a", once=PLAIN)
    to_be_retried(room, _held(room))
    assert room.do(commands.retry, ["default:a"]) == ["available"]
    assert owner(room) == "default:a"


# --- debounced, throttled

DEBOUNCE = f"{KEY} debounce/1000/3000 replace"
THROTTLE = f"{KEY} throttle/1000 existing"


def test_each_call_puts_a_debounced_job_off_but_not_for_ever(room):
    send(room, new("a", once=DEBOUNCE, payload=b"0", due="+1000"))
    assert room.job()["scheduled_at"] == str(T0 + 1000)
    dues = []
    for n in range(1, 5):
        room.now = T0 + 700 * n
        if room.job()["state"] == "scheduled":
            send(room, new(f"b{n}", once=DEBOUNCE, payload=b"%d" % n, due="+1000"))
            dues.append(int(room.job()["scheduled_at"]) - T0)
    assert dues == [1700, 2400, 3000, 3000]
    room.now = T0 + 3000
    (job,) = room.claim()
    assert (job.id, job.fields[b"payload"]) == ("default:a", b"4")
    assert send(room, new("n", once=DEBOUNCE, due="+1000")) == ["scheduled"]


def test_past_its_last_moment_a_debounced_job_starts(room):
    send(room, new("a", once=DEBOUNCE, due="+1000"))
    room.now += 5000
    assert send(room, new("b", once=DEBOUNCE, due="+1000")) == ["replaced default:a"]
    assert room.job()["state"] == "available"


def test_without_a_most_it_waits_for_quiet(room):
    once = f"{KEY} debounce/1000/- replace"
    send(room, new("a", once=once, due="+1000"))
    for n in range(50):
        room.now += 900
        assert send(room, new(f"b{n}", once=once, due="+1000")) == ["replaced default:a"]
    assert int(room.job()["scheduled_at"]) == room.now + 1000


def test_in_one_call_too(room):
    words = send(room, *(new(f"a{n}", once=DEBOUNCE, payload=b"%d" % n, due="+1000") for n in range(3)))
    assert words == ["scheduled", "replaced default:a0", "replaced default:a0"]
    assert room.job("a0")["payload"] == "2"


def test_the_first_call_of_a_period_wins_whatever_becomes_of_it(room):
    assert send(room, new("a", once=THROTTLE, keep=0)) == ["available"]
    completed(room)
    assert room.job() is None
    room.now += 999
    assert send(room, new("b", once=THROTTLE)) == ["existing default:a"]
    room.now += 1
    assert send(room, new("c", once=THROTTLE)) == ["available"]
    assert owner(room) == f"default:c {room.now + 1000} throttle"


# --- nothing stays


def test_nothing_stays_of_a_hundred_keys(room):
    room.do(commands.enqueue, [new(f"a{n}", once=f"t:{n} finished existing", keep=0) for n in range(100)])
    jobs = room.claim()
    room.do(commands.complete, worker="n.1", done=[commands.Done(job.id, job.epoch, b"") for job in jobs])
    assert not [name for name in flat(room.keyspace.dump()) if name.startswith(("unique", "merged", "job"))]


# --- beside other keys


def keyed(name: str, lane: str, **options: object) -> commands.NewJob:
    return new(name, once=REPLACE, **options)._replace(lane=lane)  # type: ignore[arg-type]


def test_a_job_of_a_keyed_lane_is_replaced_in_place_too(room):
    send(
        room, new("z")._replace(lane="a:crm=1"), keyed("a", "a:crm=1", payload=b"1"), new("y")._replace(lane="a:crm=1")
    )
    room.look()
    room.now += 10
    assert send(room, keyed("b", "a:crm=1", payload=b"2")) == ["replaced default:a"]
    assert room.changed() == {"job:default:a payload": "2", "merged:default:b": "default:a"}
    assert [job.id[-1] for job in room.claim()] == ["z", "a", "y"]


@pytest.mark.parametrize("lanes", [("a:crm=1", "b:crm=1"), ("", "a:"), ("a:", ""), ("a:!x", "a:!x,y")])
def test_one_whose_keys_change_moves_and_leaves_nothing(room, lanes):
    send(room, keyed("a", lanes[0], payload=b"1"))
    assert send(room, keyed("b", lanes[1], payload=b"2")) == ["replaced default:a"]
    assert room.job().get("lane", "") == lanes[1]
    (job,) = room.claim()
    assert job.fields[b"payload"] == b"2"
    room.do(commands.complete, worker="n.1", done=[commands.Done(job.id, job.epoch, b"")])
    left = flat(room.keyspace.dump())
    assert not [name for name in left if name.startswith(("front", "lanes", "groups", "levels", "slots", "unique"))]


def test_the_wait_for_a_lock_begins_with_the_job_and_anew_when_it_is_replaced(room):
    send(room, keyed("a", "-:!x", lock_wait=500))
    assert room.changed()["expiring default:a"] == T0 + 500
    room.now += 100
    send(room, keyed("b", "-:!x", lock_wait=700))
    assert room.changed()["expiring default:a"] == T0 + 800
    send(room, keyed("c", "-:!x"))
    assert "expiring" not in room.keyspace.dump()
    assert "lock_until" not in room.job()


# --- jobs of schedules


def fired(room: Room, nominal: int, once: str, overlap: str = "allow", **fields: object) -> tuple[str, str]:
    job = new(f"s-{nominal}", once=once, **fields)  # type: ignore[arg-type]
    (answer,) = room.do(commands.receive, [Incoming("s", "due", nominal, nominal, overlap, job)], term=None)
    word, rest = answer
    return str(word), str(rest)


def test_a_firing_whose_key_is_owned_makes_no_job(room):
    room.add("a", once=PLAIN)
    assert fired(room, T0, PLAIN) == ("existing", "default:a")
    assert fired(room, T0, PLAIN)[0] == "existing"
    assert room.job(f"s-{T0}") is None
    assert fired(room, T0 + 1, RAISE) == ("refused", "job default:a owns its unique key")
    assert fired(room, T0 + 2, REPLACE, payload=b"2") == ("existing", "default:a")
    assert (room.job()["payload"], owner(room)) == ("2", "default:a")
    completed(room)
    assert fired(room, T0 + 3, PLAIN) == ("fired", f"default:s-{T0 + 3}")
    assert owner(room) == f"default:s-{T0 + 3}"


def test_the_owner_counts_as_the_last_run(room):
    room.add("a", once=PLAIN)
    assert fired(room, T0, PLAIN)[0] == "existing"
    assert fired(room, T0 + 1, "", "skip") == ("skipped", "job default:a has not ended")
    completed(room)
    assert fired(room, T0 + 2, "", "skip")[0] == "fired"


def test_in_one_call_the_last_says_also_what_it_needs(room):
    gpu = "label.gpu=a100;takes.gpu=1000"
    jobs = [new("a", once=REPLACE), new("b", once=REPLACE)._replace(needs=gpu)]
    assert send(room, *jobs) == ["available", "replaced default:a"]
    assert room.job()["class"] == f"async;{gpu}"
    assert room.claim() == []
    assert send(room, new("c", once=REPLACE)) == ["replaced default:a"]
    assert [job.id for job in room.claim()] == ["default:a"]
