"""When a dead worker is started again."""

from taskq.node.children.restart import Restarts


def test_at_once_then_ever_later():
    restarts = Restarts()
    assert [restarts.delay_s(100) for _ in range(10)] == [0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_a_settled_life_starts_the_count_afresh():
    restarts = Restarts()
    for _ in range(5):
        restarts.delay_s(100)
    assert restarts.delay_s(30_000) == 0
    assert restarts.delay_s(100) == 0.5


def test_a_million_deaths_dont_overflow():
    restarts = Restarts()
    restarts.in_a_row = 10**6
    assert restarts.delay_s(0) == 30
