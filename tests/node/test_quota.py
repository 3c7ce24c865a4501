"""How many jobs a worker may claim, and whom it tells."""

from taskq.node.quota import Quota


def quota(most):
    said = []
    return Quota(most, ageing=lambda: said.append("ageing"), used_up=lambda: said.append("used up")), said


def test_a_tenth_before_the_end_another_is_asked_for_then_it_is_used_up_once():
    made, said = quota(100)
    made.begins()
    made.took(89)
    assert (made.left, said) == (11, [])
    made.took(1)
    made.took(5)
    assert (made.left, said) == (5, ["ageing"])
    made.took(5)
    made.took(1)  # of a claim that was in doubt
    assert (made.left, said) == (0, ["ageing", "used up"])


def test_one_that_may_run_a_single_job_asks_before_it():
    made, said = quota(1)
    made.begins()
    assert said == ["ageing"]


def test_all_at_once():
    made, said = quota(10)
    made.took(10)
    assert said == ["ageing", "used up"]


def test_without_an_end_nothing_is_said():
    made, said = quota(0)
    made.took(10**9)
    assert (made.left > 10**9, said) == (True, [])
