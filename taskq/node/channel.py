"""The words a node and a worker say to each other: JSON, one line each, over a socketpair.

    node → worker   start     first of all: what to serve, and how
                    begin     claim, if start said to hold until now (Redis was looked at and will do), or after a rest
                    rest      claim nothing until begin; what runs goes on
                    slots     run so many coroutines at a time from now on; none is stopped for it
                    capacity  have so much of each resource from now on, by the same rule
                    limits    run so many jobs of each of these queues from now on, by the same rule
                    lost      the lease of this id and epoch is gone: stop the code, say nothing to Redis about it
                    cancel    somebody asked for this job's cancellation: stop it, then say so
                    force     the same, and without waiting for the code's consent
                    drain     claim no more; let jobs run for grace_ms, then stop and release them; say drained; exit 0
                    stop      the same with no grace at all, also in the middle of a drain
                    fired     a schedule has fired: tell APP's observers
    worker → node   hello     APP is loaded: its settings, queues and tasks
                    ready     from now on it claims
                    drained   nothing is left in its hands, it exits 0 next and must not be replaced: after drain or
                              stop, and in a burst as soon as its queues have nothing available, running or due
                    refused   Redis refused the end of this job, again and again: its lease is left to end
                    failed    it can't start, because APP can't be loaded say, with the text to show. Before the node's
                              first hello it ends the node
                    ageing    it will ask to be replaced soon: have another loaded, which begins when this one recycles
                    recycle   replace me (slots written off, say): it claims no more; the node starts another and sends
                              drain; patient: without a grace, as its jobs may take as long as they take

A verdict names id and epoch, never a slot, so one that comes late is known to be late. A side that reads the end of the
stream knows the other is gone. An unknown op or field is ignored: node and worker may differ by a version for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import socket
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

_LEAVE_S = 2.0  # a node that stands still doesn't hang up
LINE_BYTES = 16 * 1024 * 1024  # a hello with every task of a large program


@dataclass(frozen=True, slots=True)
class Start:
    """What the worker is told before anything else. Durations in ms. `queues` empty: all that APP names, and `default`.
    `flags`: settings given on the command line, as `settings.resolve` takes them. `log`: as `taskq.log` takes it.
    `hold`: claim nothing before `begin`: only a hello tells the node which Redis it is, and that may be unfit.
    `max_jobs`: run so many and then recycle; 0 = no such end. `weights`: queue → weight, where their
    order isn't strict. `limits`: queue → slots, as in `limits`. `labels`: of the node. `capacity`: resource → this
    worker's part, in thousandths; None: the node declares nothing. `host`: the node's, by which jobs may name it too.
    """

    op: ClassVar[str] = "start"
    app: str
    worker: str
    node: str
    queues: list[str] = field(default_factory=list)
    concurrency: int = 100
    threads: int = 16
    grace_ms: int = 25_000
    burst: bool = False
    flags: dict[str, str] = field(default_factory=dict)
    log: dict[str, Any] = field(default_factory=dict)
    hold: bool = False
    max_jobs: int = 0
    weights: dict[str, float] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    capacity: dict[str, int] | None = None
    host: str = ""


@dataclass(frozen=True, slots=True)
class Begin:
    """Claim from now on."""

    op: ClassVar[str] = "begin"


@dataclass(frozen=True, slots=True)
class Rest:
    """Claim nothing until `Begin`."""

    op: ClassVar[str] = "rest"


@dataclass(frozen=True, slots=True)
class Slots:
    """Run so many coroutines at a time."""

    op: ClassVar[str] = "slots"
    concurrency: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """Have so much of each resource, in thousandths."""

    op: ClassVar[str] = "capacity"
    amounts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """Run so many jobs of each of these queues at a time."""

    op: ClassVar[str] = "limits"
    slots: dict[str, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """lost, cancel or force, about one id and epoch."""

    op: Literal["lost", "cancel", "force"]
    id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Finish within `grace_ms`, release the rest, exit."""

    op: ClassVar[str] = "drain"
    grace_ms: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop and release everything now, exit."""

    op: ClassVar[str] = "stop"


@dataclass(frozen=True, slots=True)
class Fired:
    """A schedule has fired: `run` as `Run.to_dict`."""

    op: ClassVar[str] = "fired"
    run: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hello:
    """What the worker knows of APP. `settings`: `Settings` as a plain dict. `queues`: those it serves, best first.
    `tasks`: name → {"queue", "executor", "backoff": spec text, "options": as `options.told`}. `version`: of taskq.
    `schedules`: each as `commands.Declared`, its template in base64. `observes`: whether it wants to hear of firings.
    `limits`: queue → limit → its numbers, as `lua/lib/terms.lua` reads them.
    """

    op: ClassVar[str] = "hello"
    settings: dict[str, Any]
    queues: list[str]
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: str = ""
    schedules: list[list[str]] = field(default_factory=list)
    observes: bool = False
    limits: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker claims from now on."""

    op: ClassVar[str] = "ready"


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing is left in its hands; it exits 0 and is not replaced."""

    op: ClassVar[str] = "drained"


@dataclass(frozen=True, slots=True)
class Refused:
    """Redis refuses to be told how job `id` ended."""

    op: ClassVar[str] = "refused"
    id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It can't start, because APP can't be loaded say: `error` is the text for the user, in one or several lines."""

    op: ClassVar[str] = "failed"
    error: str


@dataclass(frozen=True, slots=True)
class Ageing:
    """The worker will recycle soon, for `reason`."""

    op: ClassVar[str] = "ageing"
    reason: str


@dataclass(frozen=True, slots=True)
class Recycle:
    """The worker asks for its own replacement, for `reason`; `patient`: nothing is wrong with what it runs."""

    op: ClassVar[str] = "recycle"
    reason: str
    patient: bool = False


ToWorker = Start | Begin | Rest | Slots | Capacity | Limits | Verdict | Drain | Stop | Fired
ToNode = Hello | Ready | Drained | Refused | Failed | Ageing | Recycle
Message = ToWorker | ToNode

_TO_WORKER = (Start, Begin, Rest, Slots, Capacity, Limits, Drain, Stop, Fired)
_TO_NODE = (Hello, Ready, Drained, Refused, Failed, Ageing, Recycle)
_KINDS: dict[str, type[Message]] = {kind.op: kind for kind in (*_TO_WORKER, *_TO_NODE)}
_KINDS |= dict.fromkeys(("lost", "cancel", "force"), Verdict)


def encode(message: Message) -> bytes:
    """The line that stands for `message`, with its newline."""
    fields = {"op": message.op} | {f.name: getattr(message, f.name) for f in dataclasses.fields(message)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message | None:
    """The message of a line; None for what this version can't read. Fields it doesn't know are dropped."""
    try:
        given = json.loads(line)
        kind = _KINDS[given["op"]]
        known = {f.name for f in dataclasses.fields(kind)}
        return kind(**{name: value for name, value in given.items() if name in known})
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


class Channel:
    """One end of the socketpair, on an event loop. `send` never blocks; `receive` waits for the next message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> Channel:
        """Take over a connected socket (it is closed with the channel)."""
        end.settimeout(0)
        reader, writer = await asyncio.open_unix_connection(sock=end, limit=LINE_BYTES)
        writer.transport.set_write_buffer_limits(0)  # so that flush waits for the last byte
        return cls(reader, writer)

    def send(self, message: Message) -> None:
        """Queue a message; what can't be delivered because the other side is gone is dropped."""
        if not self._writer.is_closing():
            self._writer.write(encode(message))

    async def flush(self) -> None:
        """Wait until what was sent has left (the worker's last word before it exits)."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def take_leave(self, message: Message) -> None:
        """Say the last word, and hang up once the other side has: what it said to a closed end would take along the
        word that it hasn't read yet.
        """
        self.send(message)
        await self.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                while await self.receive() is not None:
                    pass
        self.close()

    async def receive(self) -> Message | None:
        """The next message this version knows, or None once the other side is gone."""
        while True:
            try:
                line = await self._reader.readline()
            except ConnectionError:
                return None
            if not line.endswith(b"\n"):
                return None  # the end, or half a line of one who died while writing
            message = decode(line)
            if message is not None:
                return message

    def close(self) -> None:
        """Close this end. Safe to call twice."""
        self._writer.close()


def say(end: socket.socket, message: Message) -> None:
    """Send without an event loop: a worker that can't load APP has none yet."""
    end.sendall(encode(message))


def hear(end: socket.socket) -> Message | None:
    """Receive one message without an event loop, and not a byte more; None at the end of the stream."""
    line = bytearray()
    while not line.endswith(b"\n"):
        waiting = end.recv(65536, socket.MSG_PEEK)
        if not waiting:
            return None
        taken = waiting.find(b"\n") + 1 or len(waiting)
        line += end.recv(taken)
    return decode(bytes(line))
