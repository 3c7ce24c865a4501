"""The states and their table, pair by pair against design section 3."""

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.errors import InvalidTransition
from taskq.state import (
    INITIAL,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    State,
    StateName,
    Transition,
    picture,
    terminal,
    valid,
    validate_transition,
)

NAMES = ["pending", "scheduled", "available", "running", "retryable", "completed", "failed", "cancelled"]

ALLOWED = {
    "pending": {"available", "scheduled", "cancelled"},
    "scheduled": {"available", "cancelled", "failed"},
    "available": {"running", "cancelled", "failed"},
    "running": {"completed", "retryable", "failed", "available", "scheduled", "pending", "cancelled"},
    "retryable": {"available", "cancelled"},
    "completed": {"available"},
    "failed": {"available"},
    "cancelled": {"available"},
}


@pytest.mark.parametrize("name", NAMES)
def test_each_state_is_known(name: str) -> None:
    assert valid(name)
    assert State(name) == name
    assert f"{State(name)}" == name


def test_there_are_no_others() -> None:
    assert [str(state) for state in State] == NAMES
    assert list(get_args(StateName)) == NAMES


@pytest.mark.parametrize("other", ["", "Pending", "done", "new", "gone", "running ", None, 5, b"running", ["running"]])
def test_nothing_else_is_valid(other: object) -> None:
    assert not valid(other)
    assert not terminal(other)


def test_three_are_terminal() -> None:
    assert {name for name in NAMES if terminal(name)} == {"completed", "failed", "cancelled"}
    assert TERMINAL | WAITING | {State.RUNNING} == set(State)


@pytest.mark.parametrize("before, after", list(itertools.product(NAMES, NAMES)))
def test_every_pair(before: str, after: str) -> None:
    allowed = after in ALLOWED[before]
    assert Transition(before, after).valid is allowed
    assert (after in TRANSITIONS[State(before)]) is allowed
    if allowed:
        validate_transition(before, after)
        return
    with pytest.raises(InvalidTransition, match=rf"from {before} to {after}") as refusal:
        validate_transition(before, after)
    assert (refusal.value.from_state, refusal.value.to_state) == (before, after)


def test_a_refusal_says_where_the_job_can_go() -> None:
    with pytest.raises(InvalidTransition, match="from retryable it can go to: available, cancelled"):
        validate_transition("retryable", "failed")


@pytest.mark.parametrize("before, after", [("runing", "failed"), ("running", "faild")])
def test_unknown_states_are_refused_by_name(before: str, after: str) -> None:
    assert not Transition(before, after).valid
    with pytest.raises(InvalidTransition, match=r"is no state of a job \(did you mean") as refusal:
        validate_transition(before, after)
    assert before in str(refusal.value)
    assert after in str(refusal.value)


@given(st.text(), st.sampled_from(NAMES))
def test_no_unknown_state_goes_anywhere(text: str, name: str) -> None:
    if text not in NAMES:
        assert not Transition(text, name).valid
        assert not Transition(name, text).valid


def test_every_state_can_be_reached_and_left() -> None:
    reached = set(INITIAL).union(*TRANSITIONS.values())
    assert reached == set(State)
    assert all(TRANSITIONS[state] for state in State)


def test_the_picture_shows_the_whole_table() -> None:
    lines = picture().splitlines()
    assert lines[0] == "stateDiagram-v2"
    arrows = {tuple(line.strip().split(": ")[0].split(" --> ")) for line in lines[1:]}
    table = {(before, after) for before, afters in ALLOWED.items() for after in afters}
    born = {("[*]", name) for name in ("available", "scheduled", "pending")}
    gone = {(name, "[*]") for name in ("completed", "failed", "cancelled")}
    assert arrows == table | born | gone
    assert len(lines) - 1 == len(arrows)
