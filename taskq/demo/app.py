"""The demo's application: one task. `taskq worker taskq.demo.app` runs it."""

from __future__ import annotations

from taskq import Backoff, Retention, TaskQ
from taskq.demo.reading import Reading, read_file

QUEUE = "files"

# A large tree has more files than a queue keeps ended jobs by default, and each is looked at in the end.
app = TaskQ(retention=Retention(max_completed=10_000_000, max_failed=10_000_000))


# In life a retry waits longer; here somebody is watching.
@app.task(queue=QUEUE, name="demo.read", max_attempts=3, backoff=Backoff.exponential(base="200ms", cap="1s"))
def read(path: str | bytes) -> Reading:
    """Read a file and say what is in it; fails if it can't be read or decoded."""
    return read_file(path)
