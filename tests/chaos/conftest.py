"""What chaos needs: a ledger on a server of its own, the app `shop` on both sides, nodes to strike, and CONSERVE.

Every test here ends with the check that each accepted job is in exactly one state and in the structure of that state.
One that is marked with the fault it strikes is judged (trial.py), and the run ends with a table of all faults.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest
import redis

from taskq import connection
from taskq.commands import Command, NewJob
from taskq.embedded import Embedded
from taskq.errors import Unavailable
from taskq.keys import QueueKeys
from taskq.record import JobRecord
from tests.chaos.clean import unclean
from tests.chaos.conserve import complaints
from tests.chaos.proxy import Proxy
from tests.chaos.trial import Row, Trial, table
from tests.chaos.walks import Struck
from tests.fleet import Fleet
from tests.ledger import VARIABLE, Ledger
from tests.waiting import wait_until

T = TypeVar("T")

FOLDER = Path(__file__).parent
ROWS = pytest.StashKey[list[Row]]()
PASSED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A fault is judged only if its test held: whoever fails has said enough."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = terminalreporter.config.stash[ROWS]
    if rows:
        terminalreporter.section("faults")
        terminalreporter.write_line(table(rows))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is chaos."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.chaos)


@pytest.fixture(scope="session")
def _ledger() -> Iterator[Ledger]:
    with Embedded(port=0) as server:
        ledger = Ledger(server.url)
        yield ledger
        ledger.close()


@pytest.fixture
def own(server_binary: str | None, tmp_path: Path) -> Iterator[Struck]:
    """A server of this test's own, that keeps an append-only file, and sleeps when it is told to.

    What it answered is in its file, whoever kills it: with `everysec` it holds back what it should write while the disk
    is busy with the last second; with `no` it writes before it answers, and only the machine could lose that.
    """
    written = {"appendfsync": "no"}
    for config in ({**written, "enable-debug-command": "local"}, written):  # before 7.0 nobody had to allow it
        server = Struck(
            port=0, dir=tmp_path / "data", appendonly=True, binary=server_binary, config=config, timeout_s=60
        )
        try:
            server.start()
        except Unavailable:
            if not config:
                raise
        else:
            break
    yield server
    server.stop()


@pytest.fixture
def clean(request: pytest.FixtureRequest, raw: redis.Redis, namespace: str) -> Iterator[None]:
    """CLEAN, on a server of the test's own: asked once its nodes have ended. A test that failed has said enough."""
    yield
    if request.node.stash.get(PASSED, False):
        found = unclean(raw, namespace)
        assert not found, "\n".join(found)


@pytest.fixture
def ledger(_ledger: Ledger) -> Ledger:
    """The ledger, empty."""
    _ledger.clear()
    return _ledger


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    """Stands before the server, for those who are given its URL."""
    proxy = Proxy(int(server_url.rpartition(":")[2].partition("/")[0]))
    yield proxy
    proxy.close()


@pytest.fixture
def url(server_url: str) -> str:
    """What nodes and producers take for their server. A test that means them all overrides it by the proxy's."""
    return server_url


@pytest.fixture
def shop(url: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The app's module, as its producers import it, bound to this test's server and namespace."""
    monkeypatch.setenv("TASKQ_URL", url)
    monkeypatch.setenv("TASKQ_NAMESPACE", namespace)
    module = _load("shop", FOLDER / "shop.py", monkeypatch)
    yield module
    module.app.close()


def _load(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def accepted(shop: Any, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The id of every job that an enqueue of this test was told is there."""
    ids: set[str] = set()
    client = shop.app.client
    add, add_many = client.add, client.add_many

    def one(q: QueueKeys, job: NewJob, **options: Any) -> str:
        word: str = add(q, job, **options)
        ids.add(there(job, word))
        return word

    def many(jobs: list[NewJob], **options: Any) -> list[str]:
        words: list[str] = add_many(jobs, **options)
        ids.update(map(there, jobs, words))
        return words

    def there(job: NewJob, word: str) -> str:
        return word.partition(" ")[2] or job.id  # the owner of the job's unique key, where another is

    monkeypatch.setattr(client, "add", one)
    monkeypatch.setattr(client, "add_many", many)
    return ids


class Look:
    """What the server says now.

    Attributes:
        q: the keys of the queue `default`.
        ledger: what really ran.
        accepted: the jobs that must not be lost.
    """

    def __init__(self, shop: Any, raw: redis.Redis, q: QueueKeys, ledger: Ledger, accepted: set[str]) -> None:
        self.q = q
        self.ledger = ledger
        self.accepted = accepted
        self._client = shop.app.client
        self._raw = raw

    def run(self, command: Command[T]) -> T:
        """Do any operation, as anybody could."""
        return connection.run(self._client.server, command)

    def leases(self) -> int:
        """How many leases stand in the queue, good ones and expired ones."""
        count: int = self._raw.zcard(self.q.fixed("leases"))
        return count

    def record(self, job: Any) -> JobRecord:
        """A job's record."""
        found: JobRecord = self._client.job(job.id)
        return found

    def until(self, jobs: Sequence[Any], state: str, timeout: float = 10) -> None:
        """Wait until all of them are in that state."""
        wait_until(
            lambda: all(each and each.state == state for each in self._client.jobs([job.id for job in jobs])),
            timeout,
            what=f"{len(jobs)} jobs {state}",
        )

    def conserve(self) -> None:
        """CONSERVE: nothing accepted is lost, and every job is in exactly one structure, now."""
        found = complaints(self._raw, self.q, set(self.accepted))  # as they are now: others go on enqueueing
        assert not found, "\n".join(found)

    def now_ms(self) -> int:
        """The server's clock."""
        seconds, micros = self._raw.time()
        return int(seconds * 1000 + micros // 1000)


@pytest.fixture
def look(shop: Any, raw: redis.Redis, q: QueueKeys, ledger: Ledger, accepted: set[str]) -> Look:
    """Looks at this test's queue."""
    return Look(shop, raw, q, ledger, accepted)


@pytest.fixture
def fleet(url: str, proxy: Proxy, namespace: str, tmp_path: Path, look: Look) -> Iterator[Fleet]:
    """`fleet.start("-w", "2")` starts a node of `shop`; all end with the test, and then CONSERVE is checked.

    The proxy is asked for so that it outlives the nodes that may be behind it.
    """
    environment = {"TASKQ_URL": url, "TASKQ_NAMESPACE": namespace, VARIABLE: look.ledger.url}
    fleet = Fleet("shop", folder=FOLDER, environment=environment, logs=tmp_path)
    yield fleet
    try:
        look.conserve()
    finally:
        fleet.close()
    look.conserve()
    assert [fault for node in fleet.nodes for fault in node.faults()] == [], fleet.text()


@pytest.fixture(autouse=True)
def _on_trial(request: pytest.FixtureRequest) -> None:
    """Whoever is marked with a fault is judged."""
    if request.node.get_closest_marker("fault"):
        request.getfixturevalue("trial")


@pytest.fixture
def trial(request: pytest.FixtureRequest, shop: Any, raw: redis.Redis, look: Look, fleet: Fleet) -> Iterator[Trial]:
    """The fault that this test strikes."""
    trial = Trial(request.node.get_closest_marker("fault").args[0], shop, raw, look, fleet)
    if "own" in request.fixturenames:
        request.getfixturevalue("own").walks = trial.walks
    yield trial
    if request.node.stash.get(PASSED, False):
        request.config.stash[ROWS].append(trial.verdict())
