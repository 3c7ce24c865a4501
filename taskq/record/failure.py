"""An exception as the record keeps it: JSON of bounded size, made of text that any reader can show.

What user code raises is hostile input: its `__str__` may raise, its message may be a gigabyte or hold half a surrogate
pair, its chain of causes may be deep. Whatever comes, the job's outcome must still be sent; so nothing here raises.
"""

from __future__ import annotations

import json
import traceback
from types import TracebackType

MESSAGE_BYTES = 4 * 1024
TRACEBACK_BYTES = 16 * 1024
_FRAMES = 200  # an endless recursion has a thousand; the last ones say where, the text is cut anyway
_OURS = "taskq.node."  # the frames above the user's own say nothing about the error


def kind_of(error: BaseException) -> str:
    """The error's class by its bare name; the traceback has the full one."""
    return type(error).__name__


def message_of(error: BaseException) -> str:
    """What the error says, bounded; it says so itself if it can't be asked."""
    try:
        text = str(error)
    except BaseException as other:  # noqa: BLE001 (user code: even SystemExit must not end the worker here)
        return f"<{kind_of(error)} whose __str__ raised {kind_of(other)}>"
    return clean(text, MESSAGE_BYTES)


def line_of(error: BaseException) -> str:
    """`ValueError: no such user`, in one line: for logs and for a job's reason."""
    message = " ".join(message_of(error).split())
    return f"{kind_of(error)}: {message[:500]}" if message else kind_of(error)


def to_json(error: BaseException, *, at_ms: int, worker: str) -> bytes:
    """The record's entry for a failed attempt: `type message traceback at worker`, as JSON text in UTF-8.

    Args:
        error: what ended the attempt.
        at_ms: when, by the server's clock.
        worker: id of the worker that ran it.
    """
    kind = clean(kind_of(error), 256)
    return entry(kind, message_of(error), _traceback_of(error), at_ms=at_ms, worker=worker)


def entry(kind: str, message: str, trace: str | None, *, at_ms: int, worker: str) -> bytes:
    """The same of an error that is no exception here: `kind` stands for its class; all texts are clean."""
    told = {"type": kind, "message": message, "traceback": trace, "at": at_ms, "worker": worker}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def clean(text: str, limit_bytes: int) -> str:
    """Text that is valid UTF-8 without NUL, of at most `limit_bytes`: a longer one keeps its head and its tail."""
    if len(text) > limit_bytes:  # before encoding: a gigabyte isn't copied to keep four kilobytes of it
        text = text[:limit_bytes] + text[-limit_bytes:]
        cut = True
    else:
        cut = False
    raw = text.encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")
    if not cut and len(raw) <= limit_bytes:
        return raw.decode()
    mark = b"\n... (cut) ...\n"
    half = (limit_bytes - len(mark)) // 2
    return (raw[:half] + mark + raw[-half:]).decode("utf-8", "ignore")


def _traceback_of(error: BaseException) -> str:
    try:
        told = traceback.TracebackException(type(error), error, users_part(error.__traceback__), limit=-_FRAMES)
        return clean("".join(told.format()), TRACEBACK_BYTES)
    except BaseException as other:  # noqa: BLE001 (formatting calls user code and reads files: anything may come)
        return f"<no traceback: formatting it raised {kind_of(other)}>"


def users_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that isn't ours; the whole of it if there is no other."""
    step = trace
    while step is not None and str(step.tb_frame.f_globals.get("__name__", "")).startswith(_OURS):
        step = step.tb_next
    return step or trace
