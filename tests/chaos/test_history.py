"""The check of the history itself: it is silent about a sound one, and names each kind of breach. So does the witness,
which must have seen what a real server was told.
"""

from __future__ import annotations

import pytest

from taskq import commands, keys
from taskq.calendar import every, rule_text
from taskq.commands import Declared
from taskq.errors import LeadershipLost
from tests.chaos.history import History, judged
from tests.chaos.witness import Call

LEADER, RUNS = "leader", "runs"
SINCE = ["HMGET", LEADER, "node", "term", "until", "since"]


def begins(node, term, until):
    record = ["HSET", LEADER, "node", node, "term", str(term), "until", str(until), "since", "1"]
    return Call("pulse", {"node": node}, [], [SINCE, record])


def resigns(node, term, at):
    return Call("resign", {"node": node, "term": str(term)}, [], [SINCE, ["HSET", LEADER, "until", str(at)]])


def fires(node, term, nominal, at):
    run = ["LPUSH", RUNS, f"{nominal} due {at} {term} sent "]
    return Call("fire", {"node": node, "term": str(term)}, [str(nominal)], [SINCE, run])


def asks(node, term):
    return Call("mark_dead", {"node": node, "term": str(term)}, [], [SINCE, ["ZRANGEBYSCORE", "nodes"]])


TERM = ["HGET", "q:meta", "term"]


def writes(term, script="untarget"):
    return Call(script, {"term": str(term)}, [], [["TIME"], TERM, ["ZREM", "q:leases", ""]])


def is_refused_by_a_queue(term):
    return Call("withdraw", {"term": str(term)}, [], [["TIME"], TERM])


def is_refused(node, term):
    return Call("fire", {"node": node, "term": str(term)}, [], [SINCE])


SOUND = [
    begins("a", 10, 100), fires("a", 10, 1, 20), writes(10, "receive"), begins("a", 10, 120), asks("a", 10),
    fires("a", 10, 2, 110), begins("b", 130, 190), is_refused("a", 10), writes(10), fires("b", 130, 3, 140),
    writes(130), is_refused_by_a_queue(10), resigns("b", 130, 150), begins("a", 151, 200), fires("a", 151, 4, 160),
]  # fmt: skip


def test_silent_about_a_sound_history():
    found = judged(SOUND, leader=LEADER, runs=RUNS)
    assert found.wrong == []
    assert found.terms == {10: "a", 130: "b", 151: "a"}
    assert (found.fired, found.accepted, found.refused, found.written) == ([1, 2, 3, 4], 8, 2, 3)


@pytest.mark.parametrize(
    "more, words",
    [
        (fires("b", 130, 5, 165), "fire of ('b', 130) was accepted while 'a' led in term 151"),
        (fires("b", 151, 5, 165), "fire of ('b', 151) was accepted while 'a' led in term 151"),
        (asks("b", 130), "mark_dead of ('b', 130) was accepted"),
        (writes(10), "untarget of term 10 was accepted after one of 130"),
        (writes(10, "receive"), "receive of term 10 was accepted after one of 130"),
        (fires("a", 151, 5, 200), "its term had ended at 200"),
        (fires("a", 151, 4, 165), "fired twice"),
        (fires("a", 151, 3, 165), "out of order"),
        (begins("b", 151, 260), "('b', 151) began after 'a' had led in term 151"),
        (begins("b", 140, 260), "('b', 140) began after 'a' had led in term 151"),
    ],
)
def test_names_each_breach(more, words):
    (wrong,) = judged([*SOUND, more], leader=LEADER, runs=RUNS).wrong
    assert words in wrong


def test_the_witness_sees_what_was_accepted_and_what_was_not(raw, run, namespace, q):
    c = keys.cluster(namespace)
    run(commands.declare_schedules(c, [Declared("s", rule_text(every("1s")), "allow", "default", "t", b"x")]))
    history = History(raw, c, "s")
    try:
        terms = []
        for node in ("a", "b"):
            terms.append(run(commands.pulse(c, node=node, leads=True, ttl_ms=6_000)).term)
            for name, term in zip(("a", "b"), terms, strict=False):
                leads = name == node
                (due,) = run(commands.due_schedules(c, node=node, term=terms[-1], limit=9)).schedules or [None]
                revision, now = due.revision, int(raw.time()[0]) * 1000
                fire = commands.fire(
                    c, node=name, term=term, name="s", revision=revision, after=now, next=now, look=0, times=[term]
                )
                assert run(fire) == ("ok" if leads else "lost")
            run(commands.untarget(q, "async;target=nowhere", why="lost", term=terms[-1]))
            for term in terms[:-1]:
                with pytest.raises(LeadershipLost):
                    run(commands.withdraw(q, "nobody", why="gone", term=term))
            run(commands.resign(c, node=node, term=terms[-1]))
        found = history.judged()
    finally:
        history.close()
    assert found.wrong == []
    assert found.terms == dict(zip(terms, ("a", "b"), strict=True))
    assert found.fired == terms
    assert (found.refused, found.written) == (2, 2)
