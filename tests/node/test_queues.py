"""A loop's work for many queues: all are tried, the error comes after, and those of a silent shard wait for nobody."""

import asyncio

import pytest

from taskq.errors import TaskQError, Unavailable
from taskq.node.queues import AT_ONCE, Queues


class Cluster:
    """Shards by the first letter of a queue's name; those that are silent are known to be."""

    def __init__(self):
        self.silent = set()
        self.tried, self.at_once, self.most = [], 0, 0

    def away(self, prefix):
        letter = prefix.partition("{")[2][0]
        return letter if letter in self.silent else None

    async def work(self, q):
        self.tried.append(q.name)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if q.name[0] in self.silent:
            raise Unavailable(q.name)
        if q.name.endswith("damaged"):
            raise TaskQError(q.name)


@pytest.fixture
def cluster():
    return Cluster()


def queues(cluster, *names):
    return Queues(cluster, "t", lambda: names)


async def test_all_are_done_a_few_at_a_time(cluster):
    names = [f"q{n}" for n in range(20)]
    await queues(cluster, *names).each(cluster.work)
    assert sorted(cluster.tried) == sorted(names)
    assert cluster.most == AT_ONCE


async def test_an_error_is_raised_after_all_were_tried_and_unavailable_last(cluster):
    cluster.silent = {"x"}
    with pytest.raises(TaskQError, match="b-damaged"):
        await queues(cluster, "x1", "b-damaged", "c").each(cluster.work)
    assert set(cluster.tried) == {"x1", "b-damaged", "c"}


async def test_of_a_silent_shard_few_are_tried_and_last(cluster):
    cluster.silent = {"x"}
    with pytest.raises(Unavailable):
        await queues(cluster, *(f"x{n}" for n in range(20)), "a", "b").each(cluster.work)
    assert cluster.tried[:2] == ["a", "b"]
    assert len(cluster.tried) <= 2 + AT_ONCE
