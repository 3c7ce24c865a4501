"""Named locks over all processes: `with app.lock("name") as lock:`.

`lock` is what users hold; `attempt` decides how one is waited for; `held` knows whether one is still held, by this
process's clock; `keeper` is the one thread that renews all of a process.
"""

from taskq.locks.lock import NamedLock

__all__ = ["NamedLock"]
