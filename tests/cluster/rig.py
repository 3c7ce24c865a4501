"""What tests of several servers share: the app `shop` on a URL, nodes beside it, many queues, and CONSERVE over all.

`Rig` remembers every job that an enqueue was told is there, through whichever call, and checks them at the end.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from taskq import keys
from taskq.keys import QueueKeys
from tests.chaos.conserve import complaints
from tests.fleet import Fleet
from tests.ledger import VARIABLE, Ledger
from tests.waiting import wait_until

SHOP = Path(__file__).parents[1] / "chaos" / "shop.py"


class Rig:
    """An app, its nodes, its ledger.

    Attributes:
        app: the tasks' app, as a producer imports it. `shop`: its module.
        accepted: id of each job that is surely there.
    """

    def __init__(
        self, url: str, namespace: str, ledger: Ledger, logs: Path, client_of: Callable[[QueueKeys], redis.Redis]
    ) -> None:
        self.namespace = namespace
        self.ledger = ledger
        self.accepted: set[str] = set()
        self.shop = _load("shop", SHOP)
        self.shop.app.configure(url=url, namespace=namespace)
        self.app = self.shop.app
        self._client_of = client_of
        environment = {"TASKQ_URL": url, "TASKQ_NAMESPACE": namespace, VARIABLE: ledger.url}
        self.fleet = Fleet("shop", folder=SHOP.parent, environment=environment, logs=logs)

    def q(self, queue: str) -> QueueKeys:
        """A queue's keys."""
        return keys.queue(self.namespace, queue)

    def enqueue(self, task: Any, *args: Any, queue: str, **options: Any) -> Any:
        """One job, noted."""
        job = task.using(queue=queue, **options).enqueue(*args)
        self.accepted.add(job.id)
        return job

    def enqueue_many(self, calls: Iterable[Any]) -> list[Any]:
        """Jobs, noted."""
        jobs = self.app.enqueue_many(calls)
        self.accepted |= {job.id for job in jobs}
        return jobs

    def states(self, jobs: Sequence[Any]) -> dict[str, str]:
        """Each job's state now, by id; `gone` where there is none."""
        records = self.app.client.jobs([job.id for job in jobs])
        return {job.id: str(record.state) if record else "gone" for job, record in zip(jobs, records, strict=True)}

    def until(self, jobs: Sequence[Any], state: str = "completed", timeout: float = 20) -> None:
        """Wait until all are in that state."""
        wait_until(lambda: set(self.states(jobs).values()) == {state}, timeout, what=f"{len(jobs)} jobs {state}")

    def wait(self, predicate: Callable[[], Any], timeout: float = 30) -> None:
        """Wait until it is true; else show the ends of the nodes' logs."""
        try:
            wait_until(predicate, timeout)
        except AssertionError as error:
            logs = "\n".join(f"--- {node.log.name}\n{node.text()[-4000:]}" for node in self.fleet.nodes)
            raise AssertionError(f"{error}\n{logs}") from None

    def leases(self, queue: str) -> int:
        """How many leases stand in a queue, good ones and expired ones."""
        q = self.q(queue)
        count: int = self._client_of(q).zcard(q.fixed("leases"))
        return count

    def conserve(self, queues: Iterable[str]) -> None:
        """Nothing accepted is lost, and each job is in exactly one structure, on the server that has it."""
        found: list[str] = []
        for queue in queues:
            mine = {id for id in self.accepted if id.startswith(f"{queue}:")}
            found += complaints(self._client_of(self.q(queue)), self.q(queue), mine)
        assert not found, "\n".join(found[:20])

    def ran_once(self, jobs: Iterable[Any]) -> None:
        """Each job's code began once and reached its end once, by the ledger that no fault touches."""
        starts = [each.job for each in self.ledger.starts()]
        ends = [each.job for each in self.ledger.ends()]
        wrong = {
            job.id: (starts.count(job.id), ends.count(job.id))
            for job in jobs
            if (starts.count(job.id), ends.count(job.id)) != (1, 1)
        }
        assert not wrong, f"began and ended: {wrong}"

    def close(self) -> None:
        """End the nodes and close the app."""
        self.fleet.close()
        self.app.close()
        sys.modules.pop("shop", None)


@contextmanager
def rig(
    url: str, namespace: str, ledger: Ledger, logs: Path, client_of: Callable[[QueueKeys], redis.Redis]
) -> Iterator[Rig]:
    """A rig that ends with the block; no node may have met a fault of ours."""
    made = Rig(url, namespace, ledger, logs, client_of)
    try:
        yield made
    finally:
        made.close()
    faults = [fault for node in made.fleet.nodes for fault in node.faults()]
    assert not faults, "\n".join(faults)


def _load(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
