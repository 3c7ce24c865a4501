"""Every Redis key of taskq, one function each; none is built anywhere else.

All keys of a queue share the hash tag `{queue}`, so that one script can hold them in a cluster; what belongs to no
queue stands under `{_}`. `lua/lib/keys.lua` builds the same names on the server, and a test compares the two.
"""

from __future__ import annotations

from functools import lru_cache

from taskq.asked import checked_text
from taskq.errors import JobNotFound
from taskq.settings import checked_name


class QueueKeys:
    """The keys of one queue. `prefix` is what all of them start with, such as `taskq:{email}:`."""

    __slots__ = ("_lists", "name", "namespace", "prefix")

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self.prefix = f"{namespace}:{{{name}}}:"
        self._lists: dict[tuple[str, ...], tuple[str, ...]] = {}

    def fixed(self, name: str) -> str:
        """A key that is not named after a job, lane, class or worker: `leases`, `meta`, `events` ..."""
        return self.prefix + name

    def listed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The KEYS of a script, whose first name is always `prefix`. Remembered: an enqueue asks every time."""
        found = self._lists.get(names)
        if found is None:
            found = (self.prefix, *(self.prefix + name for name in names[1:]))
            self._lists[names] = found
        return found

    def job(self, id: str) -> str:
        """A job's record."""
        return f"{self.prefix}job:{id}"

    def levels(self, klass: str) -> str:
        """Priorities of a class that have work."""
        return f"{self.prefix}levels:{klass}"

    def groups(self, klass: str, priority: int) -> str:
        """Fairness keys with work at one priority."""
        return f"{self.prefix}groups:{klass}:{priority}"

    def lanes(self, klass: str, priority: int, group: str = "-") -> str:
        """Lanes with work of one fairness key, by the time of their head."""
        return f"{self.prefix}lanes:{klass}:{priority}:{group}"

    def body(self, lane: str) -> str:
        """Fresh jobs of a lane."""
        return f"{self.prefix}body:{lane}"

    def front(self, lane: str) -> str:
        """Returned jobs of a lane."""
        return f"{self.prefix}front:{lane}"

    def slots(self, gate: str) -> str:
        """The running jobs that hold a slot of a gate."""
        return f"{self.prefix}slots:{gate}"

    def rate(self, gate: str) -> str:
        """How far the rate of a gate is spent."""
        return f"{self.prefix}rate:{gate}"

    def parked(self, gate: str, klass: str) -> str:
        """Lanes of a class that wait for a gate."""
        return f"{self.prefix}parked:{gate}:{klass}"

    def parks(self, gate: str) -> str:
        """The classes that have lanes under a gate."""
        return f"{self.prefix}parks:{gate}"

    def tags(self, klass: str, priority: int) -> str:
        """What fairness keys were given at one priority, and how far its time has come."""
        return f"{self.prefix}tags:{klass}:{priority}"

    def wake(self, klass: str) -> str:
        """The marker on which idle workers block."""
        return f"{self.prefix}wake:{klass}"

    def claimed(self, worker: str) -> str:
        """What a worker's last claim gave it."""
        return f"{self.prefix}claimed:{worker}"

    def minute(self, number: int) -> str:
        """Statistics of one minute, counted from 1970."""
        return f"{self.prefix}stats:{number}"

    def done(self, id: str) -> str:
        """The channel on which the end of a job that somebody waits for is published."""
        return f"{self.prefix}done:{id}"

    def unique(self, key: str) -> str:
        """Who owns a unique key."""
        return f"{self.prefix}unique:{key}"

    def reserved(self, key: str) -> str:
        """Which reservation holds a key, and its job."""
        return f"{self.prefix}reserved:{key}"

    def reservation(self, token: str) -> str:
        """What is known of a reservation."""
        return f"{self.prefix}reservation:{token}"

    def merged(self, id: str) -> str:
        """Whose job a call of this id replaced."""
        return f"{self.prefix}merged:{id}"


class ClusterKeys(QueueKeys):
    """What belongs to no queue: the registry of queues, nodes and tasks; named locks; schedules."""

    __slots__ = ()

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace, "_")

    def node(self, id: str) -> str:
        """A node's record."""
        return f"{self.prefix}node:{id}"

    def task(self, name: str) -> str:
        """Who knows a task."""
        return f"{self.prefix}task:{name}"

    def lock(self, name: str) -> str:
        """Who holds a named lock, and until when."""
        return f"{self.prefix}lock:{name}"

    def line(self, name: str) -> str:
        """Who waits for a named lock, in order of arrival."""
        return f"{self.prefix}line:{name}"

    def present(self, name: str) -> str:
        """Until when each of those is taken to be alive."""
        return f"{self.prefix}present:{name}"

    def schedule(self, name: str) -> str:
        """A schedule: its rule, its template, and where it stands."""
        return f"{self.prefix}schedule:{name}"

    def runs(self, name: str) -> str:
        """A schedule's last firings."""
        return f"{self.prefix}runs:{name}"

    def outbox(self, queue: str) -> str:
        """Firings that are on their way to a queue."""
        return f"{self.prefix}outbox:{queue}"

    def turn(self, token: str) -> str:
        """The channel on which one who waits for a lock is told that it may be free."""
        return f"{self.prefix}turn:{token}"


@lru_cache(maxsize=4096)
def queue(namespace: str, name: str) -> QueueKeys:
    """The keys of one queue; the same object for the same names."""
    return QueueKeys(namespace, name)


@lru_cache(maxsize=64)
def cluster(namespace: str) -> ClusterKeys:
    """The keys under `{_}`."""
    return ClusterKeys(namespace)


def queue_of(id: str) -> str:
    """The queue that a full job id names: what stands before its colon ('' if there is none)."""
    return id.partition(":")[0] if ":" in id else ""


def of_job(namespace: str, id: str) -> QueueKeys:
    """The keys of the queue that an id names.

    Raises:
        JobNotFound: this can be no job's id.
        TypeError: it is no text.
    """
    try:
        return queue(namespace, checked_name(queue_of(checked_text(id, name="id", of="job")), name="queue"))
    except ValueError:
        raise JobNotFound(f"there is no job {id!r}: a full id is <queue>:<id>") from None
