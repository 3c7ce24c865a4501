"""`make bench-peers`: drains no-op jobs with one worker process of each library; `python -m tests.bench.peers [NAME]`.

Each library lives in a virtual environment of its own under `--venvs`, made if missing, because they want different
versions of redis-py. Rounds go through all of them, so that what else the machine does strikes all alike.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from rich.console import Console
from rich.table import Table

from taskq import __version__
from taskq.embedded import Embedded
from tests.bench.peers.peer import PEERS, Peer
from tests.bench.process import environment

_TIMEOUT_S = 300.0


def main() -> int:
    """Measures who was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"of {', '.join(peer.name for peer in PEERS)}; default: all")
    parser.add_argument("--venvs", type=Path, default=Path(".venv-peers"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of jobs")
    asked = parser.parse_args()
    peers = [peer for peer in PEERS if not asked.name or peer.name in asked.name]
    console = Console(stderr=True, highlight=False)
    versions = {peer: _prepared(peer, asked.venvs) for peer in peers}
    rates: dict[Peer, list[float]] = {peer: [] for peer in peers}
    with Embedded(port=0) as server:
        for _ in range(asked.rounds):
            for peer in peers:
                rates[peer].append(_rate(peer, int(peer.jobs * asked.share), asked.venvs, server.url))
                console.print(f"  {peer.name}: {rates[peer][-1]:,.0f} jobs/s")
    own = statistics.median(rates.get(PEERS[0], [])) if PEERS[0] in rates else None
    table = Table("library", "version", "jobs/s, median", "taskq is × faster", "a killed worker's job runs again")
    for peer in sorted(peers, key=lambda peer: -statistics.median(rates[peer])):
        rate = statistics.median(rates[peer])
        ratio = f"{own / rate:,.1f}" if own and peer is not PEERS[0] else ""
        table.add_row(peer.name, versions[peer], f"{rate:,.0f}", ratio, peer.keeps)
    Console(width=120).print(table)
    return 0


def _bin(peer: Peer, venvs: Path) -> Path:
    return venvs.absolute() / peer.name / "bin" if peer.packages else Path(sys.executable).parent


def _prepared(peer: Peer, venvs: Path) -> str:
    """Sees that the library is installed; its version."""
    if not peer.packages:
        return __version__
    bin_ = _bin(peer, venvs)
    if not (bin_ / "pip").exists():
        subprocess.run([sys.executable, "-m", "venv", bin_.parent], check=True)
        pip = [bin_ / "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages]
        subprocess.run(pip, check=True)
    package = peer.packages[0].partition("[")[0]
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([bin_ / "python", "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _rate(peer: Peer, jobs: int, venvs: Path, url: str) -> float:
    bin_ = _bin(peer, venvs)
    with redis.Redis.from_url(url) as client:
        client.flushall()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "rate")
        env = environment(url) | {"PEER_JOBS": str(jobs), "PEER_RESULT": str(told)}
        env["PATH"] = f"{bin_}{os.pathsep}{env['PATH']}"
        subprocess.run([bin_ / "python", "-m", f"tests.bench.peers.apps.{peer.name}_app"], env=env, check=True)
        words = shlex.split(peer.worker.format(url=url))
        with Path(folder, "log").open("wb") as log:
            worker = subprocess.Popen([bin_ / words[0], *words[1:]], env=env, stdout=log, stderr=log)
            try:
                end = time.monotonic() + _TIMEOUT_S
                while not told.exists():
                    if worker.poll() is not None or time.monotonic() > end:
                        text = Path(folder, "log").read_text(encoding="utf-8", errors="replace")[-2000:]
                        raise RuntimeError(f"{peer.name} did not run {jobs} jobs in {_TIMEOUT_S:g} s:\n{text}")
                    time.sleep(0.05)
                return float(told.read_text(encoding="ascii"))
            finally:
                worker.send_signal(signal.SIGTERM)
                try:
                    worker.wait(15)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()


if __name__ == "__main__":
    sys.exit(main())
