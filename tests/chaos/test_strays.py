"""A host dies that alone served a queue: its job is given back there all the same, by a node that serves another."""

import pytest

from taskq import commands, keys
from taskq.connection import connect, run
from tests.waiting import wait_until


@pytest.mark.timeout(120)
def test_a_queue_that_nobody_serves_any_more_is_swept(fleet, shop, ledger, look, settings):
    node = fleet.start("-q", "default", TASKQ_LEASE="4s")
    job = shop.nap.enqueue(600)
    wait_until(lambda: ledger.starts(job.id))
    (known,) = wait_until(lambda: shop.app.nodes.list()["data"])
    node.kill()
    server = connect(settings)  # it lives no more in the registry: that takes half a minute by itself
    run(server, commands.depart(keys.cluster(settings.namespace), known["id"]))
    server.close()
    fleet.start("-q", "other", TASKQ_LEASE="4s")
    look.until([job], "available", 60)
    assert look.record(job).attempt == 1
    assert "lease expired" in fleet.nodes[1].text()
