"""How many jobs a worker may run, and whom it tells."""

from taskq.node.worker.quota import Quota


def quota(most):
    said = []
    return Quota(most, ageing=lambda: said.append("ageing"), used_up=lambda: said.append("used up")), said


def run(made, jobs):
    made.took(jobs)
    for _ in range(jobs):
        made.began()


def test_a_tenth_before_the_end_another_is_asked_for_then_it_is_used_up_once():
    made, said = quota(100)
    made.begins()
    run(made, 89)
    assert (made.left, said) == (11, [])
    run(made, 6)
    assert (made.left, said) == (5, ["ageing"])
    run(made, 5)
    assert (made.left, said) == (0, ["ageing", "used up"])


def test_one_that_may_run_a_single_job_asks_before_it():
    made, said = quota(1)
    made.begins()
    assert said == ["ageing"]


def test_what_is_claimed_counts_at_once_and_what_is_handed_back_does_not():
    made, said = quota(10)
    made.took(10)
    assert (made.left, said) == (0, [])
    for _ in range(4):
        made.gave_back()
    assert made.left == 4


def test_without_an_end_nothing_is_said():
    made, said = quota(0)
    made.begins()
    run(made, 1000)
    assert (made.left > 10**9, said) == (True, [])
