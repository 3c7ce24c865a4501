"""Claimed jobs for tests of the worker's parts, made without Redis."""

import inspect

from taskq import codec
from taskq.commands import Claimed
from taskq.errors import BadArguments
from taskq.node.worker.running import Running
from taskq.retry import Backoff


class FakeKnown:
    """As `taskq.node.worker.known.Known`, around any function."""

    def __init__(self, fn=None, executor="async", timeout_ms=0, kill_after_ms=0, backoff=None):
        self.place = -1
        self.fn = fn
        self.executor = executor
        self.timeout_ms = timeout_ms
        self.kill_after_ms = kill_after_ms
        self.backoff = backoff or Backoff.fixed(7, jitter=False)
        self.bare = False
        self.plain = executor == "async" and inspect.iscoroutinefunction(fn)

    def bind(self, args, kwargs):
        try:
            inspect.signature(self.fn).bind(*args, **kwargs)
        except TypeError as error:
            raise BadArguments(str(error)) from None


def claimed(id="default:1", *, epoch=1000, attempt=1, args=(), kwargs=None, **fields):
    """A claimed job; `fields` are the record's, as text or bytes."""
    record = {
        name.encode(): value if isinstance(value, bytes) else str(value).encode() for name, value in fields.items()
    }
    record.setdefault(b"task", b"t")
    payload = codec.encode(args, kwargs or {})
    if payload:
        record.setdefault(b"payload", payload)
    return Claimed(id, epoch, attempt, record)


def running(known=None, **fields):
    """A job as the desk holds it."""
    return Running(claimed(**fields), "default", known, 0.0)
