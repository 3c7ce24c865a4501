"""counts, peek, fetch, wait: looking changes nothing."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Counts
from tests.lua.room import new
from tests.lua.test_cancel import seed

STATES = ("scheduled", "running", "retryable", "completed", "failed", "cancelled", "available")


@pytest.fixture
def one_of_each(room):
    for state in STATES:
        seed(room, state, state)
        room.now += 1
    room.look()
    return room


def test_counts_know_every_state(one_of_each):
    room = one_of_each
    assert room.do(commands.counts) == Counts(0, 1, 1, 1, 1, 1, 1, 1, paused=False)
    assert room.changed() == {}


def test_counts_of_an_empty_queue_are_zero(room):
    assert room.do(commands.counts) == Counts(*[0] * 8, paused=False)
    room.do(commands.pause)
    assert room.do(commands.counts).paused


def test_counts_span_lanes_fronts_and_bodies(room):
    room.do(commands.enqueue, [new(f"{kind}{p}{n}", executor=kind, priority=p)
                               for kind in ("async", "thread") for p in (-5, 0, 5) for n in "ab"])  # fmt: skip
    held = room.claim(limit=3)
    room.do(commands.release, worker="n.1", jobs=[commands.Release(job.id, job.epoch, "") for job in held])
    assert room.do(commands.counts).available == 12


@pytest.mark.parametrize("state", STATES)
def test_peek_shows_the_records_of_a_state(one_of_each, state):
    room = one_of_each
    page = room.do(commands.peek, state)
    assert page.total == 1
    ((id, fields),) = page.records
    assert id == f"default:{state}"
    assert fields == room.client.hgetall(room.q.job(id))
    assert room.changed() == {}


def test_newest_first_by_entry_into_the_state(room):
    for n in (2, 0, 1):
        seed(room, "cancelled", f"j{n}")
        room.now += 1
    page = room.do(commands.peek, "cancelled", offset=1, limit=1)
    assert (page.total, [id for id, _ in page.records]) == (3, ["default:j0"])


@pytest.mark.parametrize("state", [each for each in STATES if each != "available"])
def test_entered_gives_the_order_of_a_page(room, state):
    for n in (2, 0, 1):
        seed(room, state, f"j{n}")
        room.now += 1
    room.look()
    times = room.do(commands.entered, state)
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(room.do(commands.peek, state).records) == 3
    assert room.do(commands.entered, state, offset=1, limit=1) == times[1:2]
    assert room.do(commands.entered, state, offset=3) == []
    assert room.changed() == {}


def test_available_jobs_have_no_such_order(room):
    with pytest.raises(Exception, match="state cannot be"):
        room.do(commands.entered, "available")


@pytest.mark.parametrize("offset", [0, 1, 3, 6, 7, 100])
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_available_jobs_are_shown_as_they_would_be_claimed(room, offset, limit):
    room.do(commands.enqueue, [new(f"{p}{n}", priority=p) for p in (0, 5) for n in "abcd"])
    held = room.claim(limit=2)
    room.do(commands.release, worker="n.1", jobs=[commands.Release(job.id, job.epoch, "") for job in held])
    page = room.do(commands.peek, "available", offset=offset, limit=limit)
    order = [f"default:{p}{n}" for p in (5, 0) for n in "abcd"]
    assert page.total == 8
    assert [id for id, _ in page.records] == order[offset : offset + limit]


def test_peek_leaves_out_what_is_gone_and_shows_damage(room):
    for name in "abc":
        seed(room, "cancelled", name)
    room.client.delete(room.q.job("default:a"), room.q.job("default:b"))
    room.client.set(room.q.job("default:b"), "damage")
    room.client.hset(room.q.job("default:c"), "state", "nowhere")
    page = room.do(commands.peek, "cancelled")
    assert page.total == 3
    shown = dict(page.records)
    assert shown.keys() == {"default:b", "default:c"}
    assert shown["default:b"] == {b"state": b"damaged"}
    assert shown["default:c"][b"task"] == b"t"


def test_peek_of_no_state_is_an_error(room):
    with pytest.raises(Exception, match="state cannot be"):
        room.do(commands.peek, "meta")


def test_fetch_answers_in_order(room):
    room.add("a", "b", payload=b"\xff\x00")
    found = room.run(commands.fetch(room.q, ["default:b", "default:x", "default:a"]))
    assert [None if each is None else each[0] for each in found] == ["default:b", None, "default:a"]
    assert found[0][1][b"payload"] == b"\xff\x00"


def test_wait_marks_what_has_not_ended(room):
    room.add("a")
    room.look()
    fields = room.run(commands.wait(room.q, "default:a"))
    assert fields[b"state"] == b"available"
    assert room.changed() == {"job:default:a waited": "1"}
    room.run(commands.wait(room.q, "default:a"))
    assert room.changed() == {}


def test_wait_marks_nothing_that_has_ended_or_is_not_there(room):
    seed(room, "cancelled")
    room.look()
    assert room.run(commands.wait(room.q, "default:a"))[b"state"] == b"cancelled"
    assert room.run(commands.wait(room.q, "default:x")) is None
    assert room.changed() == {}


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("keep", [0, 10**6])
def test_the_end_of_a_job_that_somebody_waits_for_is_published(room, end, keep):
    epoch = room.held(keep=keep)
    room.run(commands.wait(room.q, "default:a"))
    with room.client.pubsub() as heard:
        heard.subscribe(room.q.done("default:a"))
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        if end == "completed":
            room.do(commands.complete, worker="n.1", done=[commands.Done("default:a", epoch, b"")])
        else:
            if end == "cancelled":
                room.do(commands.cancel, ["default:a"])
            verb = "retry" if end == "cancelled" else "fail"
            failures = [commands.Failure("default:a", epoch, verb, 0, "{}", "x")]
            room.do(commands.fail, worker="n.1", failures=failures)
        assert heard.get_message(timeout=5)["data"] == end.encode()


def test_a_page_is_bounded_however_deep(room):
    """A stream has no offset: what is skipped is read, so there is an end to it."""
    for start in range(0, 2_100, 250):
        room.do(commands.enqueue, [new(f"{n}") for n in range(start, start + 250)])
    page = room.do(commands.peek, "available", offset=2_000, limit=2)
    assert [id for id, _ in page.records] == ["default:2000", "default:2001"]
    with pytest.raises(Exception, match="offset cannot be"):
        room.do(commands.peek, "available", offset=2_001)
    assert room.do(commands.peek, "available", offset=10**6).records == []
    with pytest.raises(Exception, match="limit cannot be"):
        room.do(commands.peek, "available", limit=10**6)


def test_a_page_is_bounded_in_bytes(room):
    """What is large is left out once the page has 4 MiB, and the record says so."""
    for n in range(12):
        room.add(f"j{n}", payload=b"x" * 1_000_000, tags='["a"]')
    page = room.do(commands.peek, "available")
    assert [id for id, _ in page.records] == [f"default:j{n}" for n in range(12)]
    whole = [fields for _, fields in page.records if b"omitted" not in fields]
    assert len(whole) == 5
    assert all(len(fields[b"payload"]) == 1_000_000 for fields in whole)
    assert [sorted(fields) for _, fields in page.records[5:]] == [
        sorted([b"omitted", b"task", b"state", b"created_at", b"entry", b"tags"])
    ] * 7
