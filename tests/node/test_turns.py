"""Whose turn it is among a worker's queues."""

import pytest

from taskq.node.worker.turns import Turns


def play(turns, names, claims, jobs=1):
    taken = dict.fromkeys(names, 0)
    for _ in range(claims):
        name = turns.next(names)
        turns.took(name, jobs)
        taken[name] += jobs
    return taken


def test_without_weights_the_best_is_always_first():
    turns = Turns(["a", "b"], {})
    assert play(turns, ["a", "b"], 10) == {"a": 10, "b": 0}
    assert turns.next(["b"]) == "b"
    assert turns.next([]) is None
    assert turns.part("a", 100, ["a", "b"]) == 100


@pytest.mark.parametrize("jobs", [1, 7])
def test_by_weight(jobs):
    assert play(Turns(["a", "b"], {"a": 3, "b": 1}), ["a", "b"], 400, jobs) == {"a": 300 * jobs, "b": 100 * jobs}


def test_one_that_was_idle_has_saved_no_turns_up():
    turns = Turns(["a", "b"], {"a": 1, "b": 1})
    play(turns, ["a"], 1000)
    assert play(turns, ["a", "b"], 100) == {"a": 50, "b": 50}


def test_a_claim_takes_its_part_of_the_slots_while_others_contend():
    turns = Turns(["a", "b"], {"a": 3})
    assert turns.part("a", 100, ["a", "b"]) == 75
    assert turns.part("b", 100, ["a", "b"]) == 25
    assert turns.part("b", 1, ["a", "b"]) == 1
    assert turns.part("b", 100, ["b"]) == 100
    assert turns.part("b", -3, ["a"]) == -3
