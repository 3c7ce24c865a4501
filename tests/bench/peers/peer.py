"""Who is compared: what to install, how a worker of one process is started, and what a killed worker's jobs become."""

from __future__ import annotations

from typing import NamedTuple

_APPS = "tests.bench.peers.apps"


class Peer(NamedTuple):
    """A library.

    Attributes:
        name: as people call it; the first of `packages` says its version.
        packages: what pip installs.
        worker: the words behind the venv's `bin/` that start one worker process.
        keeps: whether a job whose worker is killed runs again: at least once.
        jobs: how many it is given; slow ones get fewer, or the bench would take an hour.
    """

    name: str
    packages: tuple[str, ...]
    worker: str
    keeps: str
    jobs: int


PEERS = (
    Peer("taskq", (), f"python -m taskq.cli worker {_APPS}.taskq_app --log-level warning", "yes", 20_000),
    Peer(
        "dramatiq",
        ("dramatiq[redis]", "hiredis"),
        f"dramatiq {_APPS}.dramatiq_app --processes 1 --threads 8",
        "yes, after a minute without heartbeat",
        5_000,
    ),
    Peer(
        "taskiq",
        ("taskiq-redis", "hiredis", "uvloop"),
        f"taskiq worker {_APPS}.taskiq_app:broker --workers 1 --max-async-tasks 100",
        "yes: a stream with acknowledgement",
        10_000,
    ),
    Peer("arq", ("arq", "hiredis", "uvloop"), f"arq {_APPS}.arq_app.WorkerSettings", "yes, after a timeout", 3_000),
    Peer(
        "celery",
        ("celery[redis]", "hiredis"),
        f"celery --app {_APPS}.celery_app worker --pool solo --loglevel ERROR --without-mingle --without-gossip",
        "yes, with acks_late (set here), after an hour",
        3_000,
    ),
    Peer(
        "rq",
        ("rq", "hiredis"),
        "rq worker --worker-class rq.worker.SimpleWorker --quiet --url {url}",
        "no: marked as failed, unless it has retries",
        2_000,
    ),
    Peer(
        "huey",
        ("huey", "redis", "hiredis"),
        f"huey_consumer {_APPS}.huey_app.huey --workers 1 --quiet",
        "no: gone",
        5_000,
    ),
)
