"""What a worker runs, in memory it shares with its node: one file of numbers, no locks, no messages.

The node must know what to renew while the worker's loop is blocked or its GIL is held, and what to return when the
worker is gone: so the worker writes each job here before it runs it, and the mapping outlives the worker. A memfd is
inherited by descriptor; a named segment was unlinked by a child's exit (measured). Where there is no memfd (macOS) a
temporary file without a name stands for it.

    words   0 magic | 1 slots | 2 loop beat | 3 thread beat | 4 node beat | 5 highest slot used, plus one
    slot    version | epoch | hard deadline | length of id, task, threaded | stage | id    written by the worker
    lease   epoch | until                                                            written by the node

All times are CLOCK_MONOTONIC in ms, which all processes of a host share. A slot is a seqlock: its version is odd while
it is being filled. A torn slot is ignored: a worker killed while filling it had not begun the job, which its last claim
remembers. All else is one aligned store of one word, which is never torn: begun, ended, freed (epoch 0).

The stage says whether a job's code runs, set before its first line and after its last: a job that only waits its turn,
or for the answer to its finish, killed nobody, and its hard timeout doesn't count.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
from dataclasses import dataclass

ID_BYTES = 136  # a queue's name, a colon, an own id: 129 at most
_MAGIC = 0x7461736B71_05
_SLOTS, _LOOP, _THREAD, _NODE, _HIGH = 1, 2, 3, 4, 5
_HEADER = 8
_SLOT = 5 + ID_BYTES // 8
_FILLED = struct.Struct(f"@QQQQ{ID_BYTES}s")  # all of a slot but its version
_LEASE = 2
_THREADED = 1 << 32
_TASK = 33
_CLAIMED, _BEGUN, _ENDED = 0, 1, 2


def now_ms() -> int:
    """The monotonic clock in ms, the one clock a table speaks."""
    return time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One job in a table: the slot it stands in, its epoch and id, its hard deadline (monotonic ms, 0 = none), whether
    it runs in a thread (it can then hold the worker's loop only through the GIL), whether its code has begun, and has
    ended, and the place of its task in the worker's hello (-1: none of them).
    """

    slot: int
    epoch: int
    id: str
    hard_deadline: int
    threaded: bool = False
    begun: bool = True
    ended: bool = False
    task: int = -1

    @property
    def runs(self) -> bool:
        """Whether its code is running."""
        return self.begun and not self.ended


class Table:
    """The shared table of one worker. The node makes it with `create`, the worker opens it with `attach`.

    Worker's side: `fill`, `begin`, `end`, `free`, `until`, `room`, `beat`, `beat_thread`, `node_age_ms`.
    Node's side: `read`, `stands`, `set_until`, `beat_node`, `worker_age_ms`, `thread_age_ms`.
    Each side writes only what is its own; neither ever waits for the other.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, os.fstat(fd).st_size)
        self._bytes = memoryview(self._map)
        self._words = self._bytes.cast("Q")
        if self._words[0] != _MAGIC:
            raise ValueError("descriptor is not a table of this version")
        self.slots: int = self._words[_SLOTS]
        self._leases = _HEADER + self.slots * _SLOT
        self._until = [0] * self.slots  # until the node has renewed: what the claim itself promised
        self._free = list(range(self.slots - 1, -1, -1))  # lowest first, so that the node reads only a short prefix

    @classmethod
    def create(cls, slots: int) -> Table:
        """A new empty table of `slots` slots (at least 1). Its `.fd` is passed on to the worker."""
        if slots < 1:
            raise ValueError("a table has at least one slot")
        fd = _shared_file()
        os.ftruncate(fd, 8 * (_HEADER + slots * (_SLOT + _LEASE)))
        with mmap.mmap(fd, 8 * _HEADER) as head, memoryview(head) as raw, raw.cast("Q") as words:
            words[_SLOTS] = slots
            words[_LOOP] = words[_NODE] = now_ms()
            words[0] = _MAGIC
        return cls(fd)

    @classmethod
    def attach(cls, fd: int) -> Table:
        """The table behind an inherited descriptor. Raises ValueError if it is none."""
        return cls(fd)

    # The worker's side.

    @property
    def room(self) -> int:
        """How many slots are free: a worker never claims more than that."""
        return len(self._free)

    def fill(self, epoch: int, id: str, *, until_ms: int = 0, threaded: bool = False, task: int = -1) -> int:
        """Write a claimed job down and return its slot. `until_ms`: end of the lease the claim gave (monotonic, from
        the request's start). `task`: the place of its task in the hello, -1 for none. Raises RuntimeError when the
        table is full, ValueError for an id over 136 bytes.
        """
        raw = id.encode()
        if len(raw) > ID_BYTES:
            raise ValueError(f"id of {len(raw)} bytes: at most {ID_BYTES}")
        if not self._free:
            raise RuntimeError(f"the table is full: {self.slots} jobs")
        slot = self._free.pop()
        words, base = self._words, _HEADER + slot * _SLOT
        version = words[base]
        words[base] = version + 1
        about = len(raw) | (task + 1 << _TASK) | (_THREADED if threaded else 0)
        _FILLED.pack_into(self._map, 8 * base + 8, epoch, 0, about, 0, raw)
        words[base] = version + 2
        if slot >= words[_HIGH]:
            words[_HIGH] = slot + 1
        self._until[slot] = until_ms
        return slot

    def begin(self, slot: int, hard_deadline_ms: int = 0) -> None:
        """The job's code begins. `hard_deadline_ms`: monotonic ms after which the node kills this worker, 0 = never."""
        if hard_deadline_ms:
            self._words[_HEADER + slot * _SLOT + 2] = hard_deadline_ms
        self._words[_HEADER + slot * _SLOT + 4] = _BEGUN

    def end(self, slot: int) -> None:
        """The job's code has ended; its finish is still to be answered."""
        self._words[_HEADER + slot * _SLOT + 4] = _ENDED

    def take_back(self, slot: int) -> None:
        """The job's code will not begin after all (its arguments don't fit): the worker's death costs it nothing."""
        self._words[_HEADER + slot * _SLOT + 2] = 0
        self._words[_HEADER + slot * _SLOT + 4] = _CLAIMED

    def set_hard_deadline(self, slot: int, hard_deadline_ms: int) -> None:
        """Set the hard deadline of a job that runs (monotonic ms, 0 = none): the node then kills this worker."""
        self._words[_HEADER + slot * _SLOT + 2] = hard_deadline_ms

    def free(self, slot: int) -> None:
        """Give a slot back: its job's finish has been answered, or its lease is lost and its code has stopped."""
        self._words[_HEADER + slot * _SLOT + 1] = 0
        self._until[slot] = 0
        self._free.append(slot)

    def until(self, slot: int) -> int:
        """When the lease in `slot` ends (monotonic ms): by the node's last renewal, else by the claim itself."""
        lease = self._leases + slot * _LEASE
        epoch = self._words[lease]
        renewed = self._words[lease + 1]
        if epoch and epoch == self._words[_HEADER + slot * _SLOT + 1] and epoch == self._words[lease]:
            return max(renewed, self._until[slot])
        return self._until[slot]

    def beat(self) -> None:
        """The worker's loop turns. Called by the loop about once a second."""
        self._words[_LOOP] = now_ms()

    def beat_thread(self) -> None:
        """The worker's interpreter turns. Called by its watching thread about once a second."""
        self._words[_THREAD] = now_ms()

    def node_age_ms(self) -> int:
        """How long ago the node last beat. Over 3 s: nobody renews; claim nothing."""
        return now_ms() - int(self._words[_NODE])

    # The node's side.

    def read(self) -> list[Entry]:
        """The jobs that stand in the table now; a slot being written is left out."""
        words, entries = self._words, []
        for slot in range(min(words[_HIGH], self.slots)):
            base = _HEADER + slot * _SLOT
            version = words[base]
            epoch = words[base + 1]
            if version & 1 or not epoch:
                continue
            deadline, about, stage = words[base + 2], words[base + 3], words[base + 4]
            start = 8 * (base + 5)
            raw = bytes(self._bytes[start : start + (about & 0xFFFF)])
            if words[base] != version:
                continue
            threaded, begun, ended = bool(about & _THREADED), stage >= _BEGUN, stage == _ENDED
            id, task = raw.decode(errors="replace"), (about >> _TASK) - 1
            entries.append(Entry(slot, epoch, id, deadline, threaded, begun, ended, task))
        return entries

    def stands(self, slot: int, epoch: int) -> bool:
        """Whether `slot` still holds the job of `epoch`: it may have been freed since it was read."""
        return bool(self._words[_HEADER + slot * _SLOT + 1] == epoch)

    def set_until(self, slot: int, epoch: int, until_ms: int) -> None:
        """Tell the worker how long the lease of `epoch` in `slot` is good for. The epoch is cleared first, so that no
        reader pairs one job's time with another's epoch.
        """
        lease = self._leases + slot * _LEASE
        self._words[lease] = 0
        self._words[lease + 1] = until_ms
        self._words[lease] = epoch

    def beat_node(self) -> None:
        """The node lives and will renew."""
        self._words[_NODE] = now_ms()

    def worker_age_ms(self) -> int:
        """How long ago the worker's loop last beat (from the table's making until its first)."""
        return now_ms() - int(self._words[_LOOP])

    def thread_age_ms(self) -> int:
        """How long ago the worker's watching thread last beat; 0 before its first."""
        beat = int(self._words[_THREAD])
        return now_ms() - beat if beat else 0

    def close(self) -> None:
        """Unmap and close. The other side's mapping stays good. Safe to call twice."""
        if self.fd < 0:
            return
        self._words.release()
        self._bytes.release()
        self._map.close()
        os.close(self.fd)
        self.fd = -1


def _shared_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("taskq-table", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
