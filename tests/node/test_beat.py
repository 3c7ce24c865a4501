"""The node's beat stands in every child's table, without Redis and without waiting."""

from taskq.node.beat import EVERY_S, Beat
from taskq.node.table import now_ms
from taskq.node.worker.claimer import NODE_AGE_MS


async def test_a_step_beats_in_every_table(ground, monkeypatch):
    children = [ground.child(f"n.{n}") for n in range(3)]
    later = now_ms() + 60_000
    monkeypatch.setattr("taskq.node.table.now_ms", lambda: later)
    assert min(child.table.node_age_ms() for child in children) > NODE_AGE_MS
    delay_s = await Beat(lambda: children).step()
    assert [child.table.node_age_ms() for child in children] == [0, 0, 0]
    assert delay_s * 1000 * 4 < NODE_AGE_MS, "a few may be late"
    assert delay_s == EVERY_S
