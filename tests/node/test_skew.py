"""A host whose clock is wrong is told of, once; how long an answer takes is no difference."""

import pytest

from taskq.node.skew import AGAIN_S, BY_S, Skew


class Times:
    wall_s, monotonic_s = 1_000_000.0, 50.0

    def __init__(self):
        self.skew = Skew(lambda: self.wall_s, lambda: self.monotonic_s)

    def hear(self, server_s, took_s=0.0):
        self.skew.hear(self.wall_s - took_s, int(server_s * 1000))


@pytest.mark.parametrize("off_s", [-3600, -BY_S - 0.5, BY_S + 0.5, 3600])
def test_a_wrong_clock_is_said_once_an_hour_and_when_it_is_right_again(lines, off_s):
    times = Times()
    for _ in range(3):
        times.hear(times.wall_s + off_s)
    assert [(line["log_level"], line["ahead_s"]) for line in lines] == [("warning", -off_s)]
    times.monotonic_s += AGAIN_S
    times.hear(times.wall_s + off_s)
    assert len(lines) == 2
    for _ in range(2):
        times.hear(times.wall_s)
    assert [line["event"] for line in lines[2:]] == ["this host's clock agrees with Redis's again"]


def test_a_slow_answer_is_no_difference(lines):
    times = Times()
    times.hear(times.wall_s - 9.5, took_s=10.0)
    times.hear(times.wall_s - BY_S)
    times.hear(times.wall_s - 5, took_s=-20.0)  # the host's clock was set back meanwhile
    assert lines == []


async def test_each_pulse_is_a_look(ground, lines, monkeypatch):
    from taskq import keys
    from taskq.node.leader.lead import Leader

    leader = Leader(ground.queues(), keys.cluster(ground.namespace), "n", skew=Skew(lambda: 1_000.0))
    await leader.step()
    assert [line["ahead_s"] < -1_000_000 for line in lines if "differ" in line["event"]] == [True]
