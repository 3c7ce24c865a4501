"""How late a schedule's job begins while a leader lives: from its nominal time to its start, second after second."""

from __future__ import annotations

import statistics
from datetime import datetime

from taskq import TaskQ
from tests.bench.process import node, until
from tests.bench.row import Row

SCHEDULES = 10
SECONDS = 20


def rows(url: str) -> list[Row]:
    """The median and the 99th percentile over ten schedules that fire each second."""
    app = TaskQ(url, namespace="bench")
    stamp = app.by_name("tests.bench.app.stamp", queue="default")
    late: list[float] = []
    with node(url):
        until(lambda: app.inspector.leader()["node"])
        names = [f"s{number}" for number in range(SCHEDULES)]
        for name in names:
            app.schedules.put(name, stamp.call(0), every=1, max_runs=SECONDS)
        until(lambda: all(app.schedules.get(name).state == "over" for name in names), every_s=0.5)
        for name in names:
            for run in app.schedules.get(name).runs[:-1]:  # the first was put in the middle of a second
                if run.job is not None:
                    app.job(run.job).join(timeout=30)
                    shown = app.job(run.job).to_dict()
                    late.append(1000 * (_at(shown["started_at"]) - _at(shown["scheduled_for"])))
    app.close()
    cut = statistics.quantiles(late, n=100)
    return [
        Row("lateness of schedules, p50", cut[49], "ms"),
        Row("lateness of schedules, p99", cut[98], "ms", None, "", "50 ms"),
    ]


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
