"""What a lock may be called, how long it may last and be waited for. Each refusal names the rule."""

from __future__ import annotations

from taskq.commands.locks import TTL_MAX_MS, TTL_MIN_MS
from taskq.errors import shown
from taskq.units import Duration, duration_ms, duration_text

NAME_MAX = 200


def checked_lock_name(name: object) -> str:
    """A lock's name as it may stand in a key: 1 to 200 printable characters, no space at either end."""
    if isinstance(name, str) and 0 < len(name) <= NAME_MAX and name.isprintable() and name == name.strip():
        return name
    rule = f"use 1 to {NAME_MAX} printable characters, no space at either end, such as 'report:2030-01'"
    raise ValueError(f"name={shown(name)} is no lock's name: {rule}")


def checked_ttl(ttl: Duration) -> int:
    """How long a lock outlives its holder, in ms. There is none without an end."""
    ttl_ms = duration_ms(ttl, name="ttl")
    if not TTL_MIN_MS <= ttl_ms <= TTL_MAX_MS:
        least, most = duration_text(TTL_MIN_MS), duration_text(TTL_MAX_MS)
        raise ValueError(f"ttl={shown(ttl)} is out of range: a lock lasts {least} to {most}, and is renewed while held")
    return ttl_ms


def checked_wait(wait: Duration | None) -> int | None:
    """How long to wait for a lock, in ms: 0 for not at all, None for as long as it takes."""
    return None if wait is None else duration_ms(wait, name="wait")
