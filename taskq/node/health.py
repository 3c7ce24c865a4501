"""Whether the node is well, over HTTP, for whoever starts and watches containers.

`/healthz` fails when a loop of the node stands still, when jobs run and nothing was renewed for so long that Redis
can't be what is away, or when a worker is stopped (state T) and stays so: a restart would help. An outage of Redis
alone is none of these, and ends by itself. `/readyz` fails while the node drains, ends, has no worker that claims, or
doesn't reach Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

STILL_S = 30.0  # no loop's step takes longer, however slow Redis is
RENEWED_S = 30.0
STOPPED_S = 30.0
REACHED_S = 10.0
_REQUEST_S = 5.0
_REQUEST_BYTES = 8_192


class Health:
    """What the loops say of themselves, and what follows.

    Args:
        state: why the node isn't ready as far as it knows itself; '' if it is.
        busy: whether jobs run.
        stopped: the workers that are stopped now: they run nothing, and nobody renews for them.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        *,
        state: Callable[[], str],
        busy: Callable[[], bool],
        stopped: Callable[[], Iterable[str]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._busy = busy
        self._stopped = stopped
        self._clock = clock
        self._since: dict[str, float] = {}
        self._turned: dict[str, float] = {}
        self._well: dict[str, float] = {}

    def turned(self, loop: str, *, well: bool) -> None:
        """A loop is about to take a step, or has taken one; `well`: it was answered."""
        self._turned[loop] = self._clock()
        if well:
            self._well[loop] = self._clock()

    def sick(self) -> list[str]:
        """What stands still."""
        now = self._clock()
        found = [f"loop {name} stands still" for name, at in self._turned.items() if now - at > STILL_S]
        renewed, reached = self._well.get("keeper", now), self._well.get("reaper", float("-inf"))
        if self._busy() and now - renewed > RENEWED_S and now - reached < REACHED_S:
            found.append("nothing is renewed")
        # Since it was first seen so: whoever asks does so every few seconds.
        self._since = {worker: self._since.get(worker, now) for worker in self._stopped()}
        found += [f"worker {worker} is stopped" for worker, at in self._since.items() if now - at > STOPPED_S]
        return found

    def unready(self) -> list[str]:
        """Why nothing should be expected of this node."""
        found = [state] if (state := self._state()) else []
        if self._clock() - self._well.get("reaper", float("-inf")) > REACHED_S:
            found.append("Redis is not reached")
        return found


class PortRefused(Exception):
    """The port can't be listened on."""


@contextlib.asynccontextmanager
async def answering(health: Health, port: int) -> AsyncIterator[None]:
    """Answer on a port of all addresses of this host; with port 0 do nothing. Raises PortRefused."""
    if not port:
        yield
        return
    try:
        server = await asyncio.start_server(_Answers(health).answer, None, port, limit=_REQUEST_BYTES)
    except OSError as error:
        why = error.strerror or error
        raise PortRefused(f"port {port} can't be listened on: {why}; give --health-port another") from error
    try:
        yield
    finally:
        server.close()


class _Answers:
    """One question a connection, and its answer."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read the question, answer, close."""
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_REQUEST_S):
                words = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():  # the headers: a client may not like to be cut off
                    pass
                writer.write(self._reply(words))
                await writer.drain()
        writer.close()

    def _reply(self, words: list[str]) -> bytes:
        if len(words) < 2 or words[0] not in {"GET", "HEAD"}:
            return _response(405, {"error": "GET /healthz or /readyz"})
        answers = {"/healthz": self._health.sick, "/readyz": self._health.unready}
        ask = answers.get(words[1].partition("?")[0])
        if ask is None:
            return _response(404, {"error": "there are /healthz and /readyz"})
        found = ask()
        body = {"ok": not found, **({"why": found} if found else {})}
        return _response(503 if found else 200, body, head=words[0] == "HEAD")


_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


def _response(code: int, body: Mapping[str, object], *, head: bool = False) -> bytes:
    text = json.dumps(body).encode() + b"\n"
    lines = f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{lines}Content-Length: {len(text)}\r\n\r\n".encode() + (b"" if head else text)
