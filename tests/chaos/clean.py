"""CLEAN: once all work has drained and retention has passed, a queue has what every queue has, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import redis

from taskq import commands, keys
from taskq.commands import Command
from tests.leaks import leaked

#: Of a queue that was used, whatever went through it. Everything else is of jobs, or has a time to live.
ITS_OWN = frozenset({"meta", "classes", "kinds", "events", "stats", "limits", "weights"})
_YEAR_MS = 365 * 86_400_000
_TAG = re.compile(rb"\{(.+?)\}")


def unclean(client: redis.Redis, namespace: str) -> list[str]:
    """Removes all ended jobs of every queue, as if a year had passed; what is left then and shouldn't be."""
    tags = {found[1].decode() for key in client.scan_iter(count=1000) if (found := _TAG.search(key))} - {"_"}
    for tag in tags:
        q, later = keys.queue(namespace, tag), int(client.time()[0]) * 1000 + _YEAR_MS
        while _run(client, commands.prune(q, limit=250, now=later)):
            pass
    found = leaked(client, namespace)
    for tag in sorted(tags):
        prefix = keys.queue(namespace, tag).prefix
        for key in client.scan_iter(prefix + "*", count=1000):
            name = key.decode().removeprefix(prefix)
            if name not in ITS_OWN and client.pttl(key) == -1:
                found.append(f"{name} of queue {tag} is left though no job is")
    return found


def _run(client: redis.Redis, command: Command[Any]) -> Any:
    return command.read(client.eval(command.script.source, len(command.keys), *command.keys, *command.args))
