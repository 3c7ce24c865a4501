"""Programs that take a lock, for tests that stop and kill them.

`python -m tests.client.lockers ROLE URL NAMESPACE LOG`: each writes a line to LOG for what it does. That is a store's
view, in the one order in which things reached it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from taskq import LockLost, TaskQ


def holder(app: TaskQ, say: Callable[[str], None]) -> None:
    """Holds it until it is lost; says what it is told."""
    lock = app.lock("l", ttl="1s")
    try:
        with lock:
            say(f"in {lock.fence}")
            while not lock.lost:
                time.sleep(0.02)
            say(f"lost {lock.fence} {lock.remaining()}")
            say(f"released {lock.release()}")
            with app.lock("l", wait=10) as again:
                say(f"again {again.fence}")
    except LockLost:
        say("raised")


def waiter(app: TaskQ, say: Callable[[str], None]) -> None:
    """Waits for it, holds it for a moment."""
    say("waits")
    with app.lock("l") as lock:
        say(f"in {lock.fence}")
        say(f"out {lock.fence}")


def hammer(app: TaskQ, say: Callable[[str], None]) -> None:
    """Takes it again and again."""
    for _ in range(10):
        with app.lock("l", ttl="5s", wait="60s") as lock:
            say(f"in {lock.fence}")
            time.sleep(0.001)
            say(f"out {lock.fence}")


def start(role: str, url: str, namespace: str, log: Path) -> subprocess.Popen[bytes]:
    """One of them, in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "tests.client.lockers", role, url, namespace, str(log)])


def main(role: str, url: str, namespace: str, log: str) -> None:
    """Plays a role."""
    line = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(text: str) -> None:
        os.write(line, f"{text}\n".encode())  # one write at the end of the file: never mixed with another's

    app = TaskQ(url, namespace=namespace, deadline="1m")
    {"holder": holder, "waiter": waiter, "hammer": hammer}[role](app, say)
    app.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
