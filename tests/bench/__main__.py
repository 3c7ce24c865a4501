"""Runs the rows and prints one table: `python -m tests.bench [ROW …]`, `--list`, `--json FILE`.

Ratios bind, absolute values are aims: machines differ, and a busy one is slow in every column. Rows run one after
another on a server of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from taskq.embedded import Embedded
from tests.bench import crowd, drain, enqueueing, fair, firing, footprint, idle, latency, scripts
from tests.bench.row import Row

ROWS: dict[str, Callable[[str], list[Row]]] = {
    "drain": drain.rows,
    "far": crowd.far,
    "crowd": crowd.crowd,
    "two": crowd.two,
    "enqueue": enqueueing.rows,
    "latency": latency.rows,
    "firing": firing.rows,
    "memory": footprint.rows,
    "scripts": scripts.rows,
    "lanes": fair.lanes,
    "tenants": fair.waits,
    "idle": idle.rows,
    "idle-nodes": idle.many,
}

# The listpack setting that the README recommends: records of small jobs stay compact.
CONFIG = {"hash-max-listpack-value": "1024"}


def main() -> int:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("row", nargs="*", help=f"of {', '.join(ROWS)}; default: all")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    asked = parser.parse_args()
    if unknown := set(asked.row) - set(ROWS):
        parser.error(f"no row is called {', '.join(sorted(unknown))}")
    if asked.list:
        print("\n".join(ROWS))
        return 0
    table = Table("what", "taskq", "reference", "ratio", "aim", title="taskq bench")
    found: list[Row] = []
    for name in asked.row or ROWS:
        with Embedded(port=0, config=CONFIG) as server:
            for row in ROWS[name](server.url):
                found.append(row)
                table.add_row(*row.cells())
                Console(stderr=True).print(f"  {row.what}: {row.value:,.4g} {row.unit}", highlight=False)
    Console(width=150).print(table)
    if asked.json:
        asked.json.write_text(json.dumps([row._asdict() for row in found], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
