"""Whether a server can carry taskq: what a node asks before its first worker claims, and `taskq doctor` shows.

A command that is missing or forbidden in the middle of a script leaves half of it done, so that is found before. Of the
clients only those ask whose URL names a user, since permissions may lack something: a server that is too old can at
worst take jobs that no node will touch, and a round trip at every start of every program would cost more (`login`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from taskq.address import parse_url
from taskq.connection.ask import Line, Refusal, asked
from taskq.connection.needs import probes, rules
from taskq.errors import ServerUnsupported, Unavailable
from taskq.settings import Settings

OLDEST = (6, 2)
_CONFIG = ("save", "dir", "hash-max-*-value")

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `advice`: what to do; '' if nothing. `unseen`: it could not be told."""

    name: str
    level: Level
    found: str
    advice: str = ""
    unseen: bool = False


#: Replies to the probes, by command; None if they could not be made: outside a transaction they would be real.
Probed = dict[str, object] | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself; what it won't say is missing."""

    hello: dict[str, str] = field(default_factory=dict)
    info: dict[str, str] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    script: object = 1

    @property
    def product(self) -> str:
        """Such as "Redis 7.0.15"."""
        name = self.hello.get("server") or self.info.get("server_name") or "redis"
        return f"{name.capitalize()} {self.version or 'of an unknown version'}"

    @property
    def version(self) -> str:
        """Its own, not that of the Redis it resembles."""
        return self.hello.get("version") or self.info.get("redis_version") or ""

    @property
    def clustered(self) -> bool:
        """Whether it is in cluster mode."""
        return self.hello.get("mode", self.info.get("redis_mode")) == "cluster"


def facts(line: Line) -> Facts:
    """Asks a server. HELLO is allowed to every login, and there since Redis 6."""
    hello, info, script, *config = line.ask(
        ("HELLO", 2),
        ("INFO",),
        ("EVAL", "return 1", 0),
        *(("CONFIG", "GET", each) for each in _CONFIG),
    )
    configured = {name: value for each in config for name, value in _flat(each).items()}
    return Facts(_flat(hello), _lines(info), configured, script)


def probed(line: Line, settings: Settings, *, fsck: bool = False) -> Probed:
    """The replies to the probes. The line can't be used for anything else: its end discards the transaction."""
    if isinstance(line.ask(("MULTI",))[0], Refusal):
        return None
    calls = probes(settings, fsck=fsck)
    return dict(zip(calls, line.ask(*calls.values()), strict=True))


def check(settings: Settings, *, deadline_s: float | None = None) -> list[Finding]:
    """Looks at the server within the deadline and gives the warnings, none of which keeps taskq from working.

    Raises:
        Unavailable: it does not answer, or forbids what taskq needs.
        ServerUnsupported: it is too old, or lacks something.
    """
    kind, where = parse_url(settings.url).kind, parse_url(settings.url).where
    known = asked(settings, facts, deadline_s=deadline_s)
    replies = asked(settings, lambda line: probed(line, settings), deadline_s=deadline_s)
    for finding in (version(known), mode(known, kind, replies), permissions(replies, settings)):
        if finding.level == "fail":
            error = Unavailable if finding.name == "permissions" else ServerUnsupported
            raise error(f"the server at {where} {finding.found}: {finding.advice}")
    return [each for each in (eviction(known), persistence(known)) if each.level != "ok" and not each.unseen]


# --- what the facts mean ------------------------------------------------------


def version(known: Facts) -> Finding:
    """Redis 6.2 or newer, or any Valkey, able to run scripts."""
    number = tuple(int(part) for part in re.findall("[0-9]+", known.version)[:2])
    if number and number < OLDEST:
        return Finding("version", "fail", f"is {known.product}", "taskq needs Redis 6.2 or newer, or Valkey")
    if isinstance(known.script, Refusal) and not known.script.forbids:
        return Finding("version", "fail", f"runs no scripts ({known.script.text})", "taskq needs Lua scripts (EVAL)")
    if not number:
        return Finding("version", "warn", "doesn't tell its version", "taskq needs Redis 6.2 or newer", unseen=True)
    return Finding("version", "ok", known.product)


def mode(known: Facts, kind: str, replies: Probed) -> Finding:
    """A cluster is addressed as one, and nothing else is."""
    if kind == "cluster" and not known.clustered and known.hello:
        return Finding("mode", "fail", "is not in cluster mode", "write redis:// instead of redis+cluster://")
    if kind != "cluster" and known.clustered:
        moved = any(isinstance(reply, Refusal) and "MOVED" in reply.text for reply in (replies or {}).values())
        advice = "write redis+cluster:// instead of redis:// (rediss+cluster:// with TLS)"
        if moved:
            return Finding("mode", "fail", "is one shard of a cluster", advice)
        return Finding("mode", "warn", "is in cluster mode", f"{advice}: with a second shard this stops working")
    return Finding("mode", "ok", "cluster" if known.clustered else "one server")


def permissions(replies: Probed, settings: Settings) -> Finding:
    """Every needed command is there and allowed, on the keys and channels of the namespace."""
    name = "permissions"
    if replies is None:
        advice = "allow +multi to have them checked"
        return Finding(name, "warn", "can't be looked at: MULTI is refused", advice, unseen=True)
    refused = {each: reply for each, reply in replies.items() if isinstance(reply, Refusal)}
    lacking = [each for each, reply in refused.items() if reply.unknown]
    if lacking:
        return Finding(name, "fail", f"lacks {_listed(lacking)}", "taskq needs Redis 6.2 or newer, whole")
    forbidden = {each: reply.text for each, reply in refused.items() if reply.forbids}
    if not forbidden:
        return Finding(name, "ok", f"all {len(replies)} commands that taskq sends")
    found, advice = forbids(forbidden, settings)
    return Finding(name, "fail", found, advice)


def forbids(forbidden: Mapping[str, str], settings: Settings) -> tuple[str, str]:
    """What a server forbids its user, and the command that allows it. `forbidden`: refusals by command."""
    user = parse_url(settings.url).username or "default"
    where = [kind for kind in ("key", "channel") if any(_of(kind, text) for text in forbidden.values())]
    commands = [each for each, text in forbidden.items() if not (_of("key", text) or _of("channel", text))]
    patterns = [rules(settings.namespace).split()[1 + ("key", "channel").index(kind)] for kind in where]
    told = [f"the {kind}s {pattern[1:]}" for kind, pattern in zip(where, patterns, strict=True)]
    told += [_listed(commands)] if commands else []
    grant = " ".join([*patterns, *(f"+{each}" for each in commands)])
    return f"forbids user {user} {' and '.join(told)}", f"ACL SETUSER {user} {grant}"


def eviction(known: Facts) -> Finding:
    """A server that evicts throws away jobs."""
    policy = known.info.get("maxmemory_policy")
    if policy is None:
        return _unseen("eviction", "+info")
    if policy == "noeviction":
        return Finding("eviction", "ok", policy)
    advice = "set maxmemory-policy noeviction: when memory is short, this one deletes jobs"
    return Finding("eviction", "warn", f"maxmemory-policy is {policy}", advice)


def persistence(known: Facts) -> Finding:
    """A server that writes nothing down loses all jobs when it restarts; one that can't write takes no more."""
    name, info, save = "persistence", known.info, known.config.get("save")
    if not info:
        return _unseen(name, "+info")
    aof = info.get("aof_enabled") == "1"
    if aof and info.get("aof_last_write_status", "ok") != "ok":
        return Finding(name, "fail", "the append-only file can't be written", "look at the server's disk and log")
    if save and info.get("rdb_last_bgsave_status", "ok") != "ok":
        return Finding(name, "fail", "the last snapshot failed", "look at the server's disk and log")
    if aof:
        return Finding(name, "ok", "append-only file")
    if save is None:
        return _unseen(name, "+config|get", "no append-only file; whether there are snapshots can't be told")
    if save:
        return Finding(name, "ok", f"snapshots alone (save {save}): what came after the last one goes with a crash")
    if PurePath(known.config.get("dir", "")).name.startswith("taskq-"):
        return Finding(name, "ok", "nothing is written down: a server of `taskq dev`, gone when it ends")
    return Finding(name, "warn", "nothing is written down", "set appendonly yes: else a restart loses every job")


def _unseen(name: str, rule: str, found: str = "can't be told") -> Finding:
    return Finding(name, "warn", found, f"allow {rule} to have it checked", unseen=True)


def _of(kind: str, text: str) -> bool:
    """Whether a refusal is about keys or channels rather than the command."""
    return "access" in text and kind in text


def _listed(names: list[str]) -> str:
    shown = ", ".join(each.upper().replace("|", " ") for each in names[:6])
    return shown + (f" and {len(names) - 6} more commands" if len(names) > 6 else "")


def _flat(reply: Any) -> dict[str, str]:
    """A reply of names and values in turn."""
    if isinstance(reply, Refusal):
        return {}
    words = [each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in reply]
    return dict(zip(words[::2], words[1::2], strict=False))


def _lines(reply: Any) -> dict[str, str]:
    """INFO's lines of name:value."""
    if isinstance(reply, Refusal):
        return {}
    pairs = (row.partition(":") for row in reply.decode(errors="replace").splitlines() if ":" in row)
    return {name: value for name, _, value in pairs}
