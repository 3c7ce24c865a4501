"""A node's capacity over its workers: together never more than there is, and nothing lies idle for long."""

from hypothesis import given
from hypothesis import strategies as st

from taskq.needs import part_of
from taskq.node.children.portions import Portions


def test_whole_units_stay_whole_and_the_odd_ones_go_to_the_first():
    portions = Portions({"gpu": 3000, "cpu": 500, "memory": 8000}, 2)
    assert portions.join("n.1") == {"gpu": 2000, "cpu": 250, "memory": 4000}
    assert portions.join("n.2") == {"gpu": 1000, "cpu": 250, "memory": 4000}


def test_nothing_declared_is_told_as_such():
    portions = Portions(None, 1)
    assert portions.join("n.1") is None
    assert portions.news() == {}


def test_who_takes_the_place_of_one_that_still_runs_has_nothing_until_it_ends():
    portions = Portions({"gpu": 2000}, 1)
    assert portions.join("n.1") == {"gpu": 2000}
    assert portions.join("n.2") == {"gpu": 0}
    portions.leave("n.1")
    assert portions.news() == {"n.2": {"gpu": 2000}}
    assert portions.news() == {}


def test_fewer_workers_share_once_those_too_many_have_ended():
    portions = Portions({"gpu": 4000}, 2)
    portions.join("n.1")
    portions.join("n.2")
    portions.resize(1)
    assert portions.news() == {}
    portions.leave("n.2")
    assert portions.news() == {"n.1": {"gpu": 4000}}
    portions.resize(4)
    assert portions.news() == {"n.1": {"gpu": 1000}}


@given(st.integers(0, 10**9), st.integers(1, 40))
def test_the_parts_are_the_whole(amount, parts):
    assert sum(part_of(amount, place, parts) for place in range(parts)) == amount
