"""Every command that taskq sends, each with a harmless call by which a server says whether it knows and allows it.

The calls are queued in a transaction that is never executed: a server checks name, permission, keys and channels when
it queues, so all of it is known and nothing was done. A test compares the list with the scripts and with this room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from taskq.address import parse_url
from taskq.scripts import Script
from taskq.settings import Settings

#: In a call: a key and a channel of the namespace.
KEY, CHANNEL = "<key>", "<channel>"

#: What jobs need, by the name that an ACL gives it. Without any one of these something breaks.
NEEDED: dict[str, tuple[str, ...]] = {
    "bzpopmin": ("BZPOPMIN", KEY, "1"),
    "client|id": ("CLIENT", "ID"),
    "client|setname": ("CLIENT", "SETNAME", "taskq:check"),
    "client|unblock": ("CLIENT", "UNBLOCK", "0"),
    "del": ("DEL", KEY),
    "eval": ("EVAL", "return 1", "1", KEY),
    "evalsha": ("EVALSHA", "0" * 40, "1", KEY),
    "exists": ("EXISTS", KEY),
    "get": ("GET", KEY),
    "hdel": ("HDEL", KEY, "field"),
    "hexists": ("HEXISTS", KEY, "field"),
    "hget": ("HGET", KEY, "field"),
    "hgetall": ("HGETALL", KEY),
    "hincrby": ("HINCRBY", KEY, "field", "0"),
    "hkeys": ("HKEYS", KEY),
    "hlen": ("HLEN", KEY),
    "hmget": ("HMGET", KEY, "field"),
    "hrandfield": ("HRANDFIELD", KEY, "1"),
    "hscan": ("HSCAN", KEY, "0"),
    "hset": ("HSET", KEY, "field", "value"),
    "hsetnx": ("HSETNX", KEY, "field", "value"),
    "hvals": ("HVALS", KEY),
    "lpush": ("LPUSH", KEY, "element"),
    "lrange": ("LRANGE", KEY, "0", "0"),
    "lset": ("LSET", KEY, "0", "element"),
    "ltrim": ("LTRIM", KEY, "0", "0"),
    "pexpire": ("PEXPIRE", KEY, "1"),
    "ping": ("PING",),
    "publish": ("PUBLISH", CHANNEL, "message"),
    "rename": ("RENAME", KEY, KEY),
    "sadd": ("SADD", KEY, "member"),
    "set": ("SET", KEY, "value"),
    "smembers": ("SMEMBERS", KEY),
    "srem": ("SREM", KEY, "member"),
    "subscribe": ("SUBSCRIBE", CHANNEL),
    "time": ("TIME",),
    "type": ("TYPE", KEY),
    "unlink": ("UNLINK", KEY),
    "unsubscribe": ("UNSUBSCRIBE", CHANNEL),
    "xadd": ("XADD", KEY, "*", "field", "value"),
    "xdel": ("XDEL", KEY, "0-1"),
    "xlen": ("XLEN", KEY),
    "xrange": ("XRANGE", KEY, "-", "+", "COUNT", "1"),
    "xrevrange": ("XREVRANGE", KEY, "+", "-", "COUNT", "1"),
    "xtrim": ("XTRIM", KEY, "MINID", "0"),
    "zadd": ("ZADD", KEY, "0", "member"),
    "zcard": ("ZCARD", KEY),
    "zcount": ("ZCOUNT", KEY, "0", "0"),
    "zmscore": ("ZMSCORE", KEY, "member"),
    "zrange": ("ZRANGE", KEY, "0", "0"),
    "zrangebyscore": ("ZRANGEBYSCORE", KEY, "0", "0"),
    "zrank": ("ZRANK", KEY, "member"),
    "zrem": ("ZREM", KEY, "member"),
    "zremrangebyrank": ("ZREMRANGEBYRANK", KEY, "0", "0"),
    "zrevrange": ("ZREVRANGE", KEY, "0", "0"),
    "zrevrangebyscore": ("ZREVRANGEBYSCORE", KEY, "0", "0"),
    "zscan": ("ZSCAN", KEY, "0"),
    "zscore": ("ZSCORE", KEY, "member"),
}

#: What is needed besides if the URL names another database than 0, if `wait_replicas` is set, in a cluster.
DATABASE: dict[str, tuple[str, ...]] = {"select": ("SELECT", "0")}
REPLICAS: dict[str, tuple[str, ...]] = {"wait": ("WAIT", "0", "1")}
CLUSTER: dict[str, tuple[str, ...]] = {"asking": ("ASKING",), "cluster|slots": ("CLUSTER", "SLOTS")}

#: What `taskq fsck` needs besides; a node doesn't.
FSCK: dict[str, tuple[str, ...]] = {
    "pttl": ("PTTL", KEY),
    "scan": ("SCAN", "0", "COUNT", "1"),
}

#: What the check at a node's start and `taskq doctor` look with. Without one of them they say what they can't tell.
LOOKING = ("multi", "info", "config|get", "script|exists", "cluster|info")


def probes(settings: Settings, *, fsck: bool = False) -> dict[str, tuple[str, ...]]:
    """The calls on a key and a channel of the namespace, by the command's name."""
    address = parse_url(settings.url)
    wanted = (
        NEEDED
        | (FSCK if fsck else {})
        | (DATABASE if address.db else {})
        | (CLUSTER if address.kind == "cluster" else {})
    )
    wanted |= REPLICAS if settings.wait_replicas else {}
    prefix = f"{settings.namespace}:{{_}}:"
    places = {KEY: f"{prefix}check", CHANNEL: f"{prefix}done:check"}
    return {name: tuple(places.get(word, word) for word in call) for name, call in wanted.items()}


def called_by(script: Script) -> frozenset[str]:
    """Every command that a script may call, by the name that an ACL gives it."""
    return frozenset(
        word.lower() for word in re.findall(r"\b(?:redis|server)\.(?:p?call|sure)\('([A-Z]+)'", script.source)
    )


def rules(namespace: str, commands: Iterable[str] = (*NEEDED, *LOOKING)) -> str:
    """What stands after the password in `ACL SETUSER`: nothing but these commands, on this namespace alone."""
    return f"resetchannels ~{namespace}:* &{namespace}:* -@all {' '.join(f'+{each}' for each in commands)}"
