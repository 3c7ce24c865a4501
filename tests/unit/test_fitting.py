"""Whether a job could ever run, by what the nodes say: a table, and the copy that is kept."""

from __future__ import annotations

from typing import Any

import pytest

from taskq import keys, needs
from taskq.errors import Unschedulable
from taskq.fitting import KEPT_S, UNANSWERED_S, Lately, refusal


def node(id: str = "n1", **said: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": id, "hostname": f"{id}.lan", "state": "active", "queues": ["default"]}
    plain |= {"tasks": ["t"], "workers": 1, "capacity": {}, "labels": {}, "stats": {}}
    return plain | said


def why(*nodes: dict[str, Any], labels=None, resources=None, target=None, strict=False, task="t") -> str | None:
    text = needs.text_of(labels, needs.checked_resources(resources or {}), target)
    return refusal("default", task, text, strict=strict, nodes=nodes)


SMALL, BIG = node("small", capacity={"cpu": 2, "gpu": 1}), node("big", capacity={"cpu": 8})


@pytest.mark.parametrize(
    "nodes, resources, said",
    [
        ([], {"cpu": 99}, None),
        ([SMALL, BIG], {"cpu": 8}, None),
        ([SMALL, BIG], {"cpu": 9}, "it needs cpu=9, and the largest worker of queue default has 8"),
        ([SMALL, BIG], {"gpu": 1.5}, "it needs gpu=1.5, and the largest worker of queue default has 1"),
        ([SMALL, BIG], {"mem": "2GiB"}, "it needs mem=2GiB, and the largest worker of queue default has"),
        ([SMALL, BIG], {"tpu": 1}, "it needs tpu=1, and the largest worker of queue default has 0"),
        ([SMALL, BIG], {"cpu": 4, "gpu": 1}, "gpu=1 together with cpu=4|cpu=4 together with gpu=1"),
        ([SMALL, BIG, node("unknown")], {"cpu": 9}, None),
        ([SMALL, node("other", queues=["b"], capacity={"cpu": 9})], {"cpu": 9}, "has 2"),
        ([SMALL, node("other", queues=["b"])], {"cpu": 9}, "has 2"),
        ([SMALL, node("dead", state="dead")], {"cpu": 9}, "has 2"),
        ([SMALL, node("drained", state="draining", capacity={"cpu": 9})], {"cpu": 9}, None),
        ([node(capacity={"cpu": 8}, workers=2)], {"cpu": 5}, "has 4"),
        ([node(capacity={"cpu": 7}, workers=2)], {"cpu": 4}, None),
        ([node(capacity={"cpu": 8}, workers=4, stats={"workers": {"least": 1, "most": 4}})], {"cpu": 8}, None),
        ([node(capacity={"memory": 2**30}, workers=None)], {"memory": "1GiB"}, None),
        ([SMALL] * 1000, {"cpu": 9}, None),
    ],
)
def test_what_is_too_large_for_every_worker_is_refused_by_name(nodes, resources, said):
    found = why(*nodes, resources=resources)
    assert (found is None) == (said is None), found
    assert said is None or any(each in found for each in said.split("|")), found


@pytest.mark.parametrize(
    "nodes, asked, said",
    [
        ([node()], {}, None),
        ([], {}, "no live node serves queue default"),
        ([node(queues=["b"])], {}, "no live node serves queue default"),
        ([node(tasks=["u"])], {}, "knows task t"),
        ([node(labels={"gpu": "a100"})], {"labels": {"gpu": "a100"}}, None),
        ([node(labels={"gpu": "v100"})], {"labels": {"gpu": "a100"}}, "is labelled gpu=a100"),
        ([node(tasks=[], labels={"gpu": "a100"}), node("n2")], {"labels": {"gpu": "a100"}}, "is labelled gpu=a100"),
        ([node()], {"target": "n1"}, None),
        ([node()], {"target": "n1.lan"}, None),
        ([node()], {"target": "n2"}, "target n2 is no live node"),
        ([node(labels={"a": "1"}), node("n2", capacity={"x": 1})], {"resources": {"x": 2}, "target": "n2"}, "x=2"),
    ],
)
def test_a_strict_job_is_for_somebody_who_is_there(nodes, asked, said):
    found = why(*nodes, **asked, strict=True)
    assert (found is None) == (said is None), found
    assert said is None or said in found
    if "resources" not in asked:
        assert why(*nodes, **asked) is None


class Plan:
    """As `Lately` reads one."""

    task, strict = "t", True
    needs = "label.a=1"

    q = keys.queue("ns", "default")


def test_the_nodes_are_kept_for_a_while_and_nobody_is_refused_by_an_old_copy():
    now = 100.0
    lately = Lately(lambda: now)
    assert lately.asks(Plan)
    lately.take([node(labels={"a": "1"})])
    assert not lately.asks(Plan)
    lately.check(Plan)
    now += KEPT_S
    assert lately.asks(Plan)
    lately.take([node()])
    assert lately.asks(Plan)
    with pytest.raises(Unschedulable, match="a job of task t would wait for ever: no live node of queue default"):
        lately.check(Plan)


def test_a_registry_that_is_away_is_not_asked_for_each_job():
    now = 100.0
    lately = Lately(lambda: now)
    lately.take([node()])
    lately.unanswered()
    assert not lately.asks(Loose)
    lately.check(Loose)  # nothing is known
    assert lately.asks(Plan), "it is strict"
    now += UNANSWERED_S
    assert lately.asks(Loose)
    lately.take([node()])
    assert not lately.asks(Loose)


class Loose(Plan):
    """A plan whose job may wait for somebody who isn't there."""

    strict = False
