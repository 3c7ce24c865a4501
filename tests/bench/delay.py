"""A proxy that makes the way longer: what comes in goes out later, half of the added round trip each way.

`python -m tests.bench.delay PORT MS` stands before the server at that port and prints its own port. In a process of its
own, and nothing but callbacks, so that it delays much more than it slows.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast


class _Side(asyncio.Protocol):
    """One end of a line; what it hears it says at the other end, late."""

    def __init__(self, late_s: float) -> None:
        self._late_s = late_s
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self._early: list[bytes] = []  # heard before the other end was there

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.other is None or self.other.transport is None:
            self._early.append(data)
        elif self._late_s:
            self._loop.call_later(self._late_s, self.other.transport.write, data)
        else:
            self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def join(self, other: _Side) -> None:
        """From here on they are one line."""
        self.other, other.other = other, self
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)


async def main(port: int, added_ms: float) -> None:
    """Until it is ended."""
    loop = asyncio.get_running_loop()
    late_s = added_ms / 2000
    under_way: set[asyncio.Task[None]] = set()

    async def reach(side: _Side) -> None:
        _, server = await loop.create_connection(lambda: _Side(late_s), "127.0.0.1", port)
        side.join(server)

    def accept() -> _Side:
        side = _Side(late_s)
        task = asyncio.ensure_future(reach(side))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        return side

    server = await loop.create_server(accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2])))
