"""`Home`: what tasks, jobs and queues need of the app they belong to, so that they need not know it."""

from __future__ import annotations

from typing import Protocol

from taskq.client import AsyncClient, Client
from taskq.codec import Types
from taskq.hearsay import Hearsay
from taskq.inspector import Inspector
from taskq.options import Options
from taskq.settings import Settings


class Home(Protocol):
    """An app, as its tasks, jobs and queues see it."""

    @property
    def client(self) -> Client:
        """The way to the server for threads."""

    @property
    def aclient(self) -> AsyncClient:
        """The way to the server for coroutines."""

    @property
    def inspector(self) -> Inspector:
        """Lists and counts."""

    @property
    def types(self) -> Types:
        """What can be stored beyond the built-in types."""

    @property
    def settings(self) -> Settings:
        """The app's settings."""

    @property
    def defaults(self) -> Options:
        """Options of every task that doesn't say otherwise."""

    @property
    def hearsay(self) -> Hearsay:
        """What the nodes have said of tasks that are known by name alone."""

    def freeze(self) -> None:
        """First use: from now on the settings stay as they are."""
