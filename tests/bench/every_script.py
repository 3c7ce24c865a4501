"""`make bench-scripts`: every script beside a backlog, and on an empty queue, so that one sees what grows.

By default 1,000,000 waiting, 1,000,000 scheduled and 100,000 failed jobs, which takes some minutes and 2 GB; `--jobs`
makes it smaller. A call carries a batch of 100 jobs where it carries any. The slowest call is told by the clock and by
the server's CPU: on a machine that others use too, only the second says anything of the script.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import redis
from rich.console import Console
from rich.table import Table

from taskq.embedded import Embedded
from tests.bench.__main__ import CONFIG
from tests.bench.backlog import NONE, Backlog, Sizes
from tests.bench.tally import Cost, costs, grown

BATCH = 100
SLOW_US = 10_000


def main() -> int:
    """Fills, measures, prints; `+` marks calls that ask more of the server beside the backlog than without it.

    1 if one asks more than retention explains: its cost grows with what waits.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench.every_script", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="waiting, as many scheduled, a tenth failed")
    parser.add_argument("--rounds", type=int, default=20, help="calls of each script; the slowest counts")
    asked = parser.parse_args()
    sizes = Sizes(asked.jobs, asked.jobs, asked.jobs // 10)
    console = Console(stderr=True, highlight=False)
    with console.status("") as status:
        empty = _measured(NONE, asked.rounds, status.update)
        full = _measured(sizes, asked.rounds, status.update)
    table = Table(
        "call",
        *("slowest µs", "CPU", "median CPU", "redis.calls"),
        *("slowest µs", "CPU", "median CPU", "redis.calls"),
        title=f"every script: {sizes.waiting:,} waiting, {sizes.scheduled:,} scheduled, {sizes.failed:,} failed; "
        "then an empty queue",
    )
    for title, cost in full.items():
        beside = empty[title]
        table.add_row(title, *_cells(cost, grown=cost.calls > beside.calls), *_cells(beside))
    Console(width=140).print(table)
    for what, slowest in (("by the clock", _wall), ("by the server's CPU", _cpu)):
        title = max(full, key=lambda each, of=slowest: of(full[each]))
        print(f"slowest call {what}: {title}, {slowest(full[title]) / 1000:.1f} ms")
    slow = [title for title, cost in full.items() if cost.median_cpu_us > SLOW_US]
    print(f"more than {SLOW_US / 1000:g} ms of CPU as a rule: {', '.join(slow) or 'none'}")
    growing = [title for title, cost in full.items() if grown(cost, empty[title], BATCH)]
    print(f"redis.calls that grow with the backlog: {', '.join(growing) or 'none'}")
    return 1 if growing else 0


def _wall(cost: Cost) -> int:
    return cost.slowest_us


def _cpu(cost: Cost) -> int:
    return cost.slowest_cpu_us


def _cells(cost: Cost, *, grown: bool = False) -> list[str]:
    times = [f"{us:,}" for us in (cost.slowest_us, cost.slowest_cpu_us, cost.median_cpu_us)]
    return [*times, f"{cost.calls:,}{' +' if grown else ''}"]


def _measured(sizes: Sizes, rounds: int, tell: Callable[[str], None]) -> dict[str, Cost]:
    with Embedded(port=0, config=CONFIG) as server, redis.Redis.from_url(server.url, socket_timeout=60) as client:
        backlog, start = Backlog(client, sizes, batch=BATCH), time.monotonic()
        backlog.fill(lambda what, done, of: tell(f"{what}: {done:,} of {of:,}, {time.monotonic() - start:.0f} s"))
        return costs(backlog, rounds, tell)


if __name__ == "__main__":
    sys.exit(main())
