"""The two faces of taskq's operations: `Client` waits for each answer, `AsyncClient` awaits it.

They have the same methods, one line each over `operations`; what an operation
does, and what it raises, is said on its command in `taskq.commands`.
"""

from taskq.client.admission import Reservation
from taskq.client.asynchronous import AsyncClient
from taskq.client.claiming import ClaimedJob
from taskq.client.synchronous import Client

__all__ = ["AsyncClient", "ClaimedJob", "Client", "Reservation"]
