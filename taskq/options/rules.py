"""The rule of each option: the value a user gave, checked and in our units, or a ValueError that says the rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from taskq.asked import checked_flag
from taskq.errors import shown
from taskq.units import duration_ms, instant_ms

LOWEST_PRIORITY, HIGHEST_PRIORITY = -512, 511
MOST_ATTEMPTS = 1_000_000
MOST_TAGS, LONGEST_TAG = 32, 128
MOST_META_BYTES = 8192


def priority(value: object) -> int:
    """-512 to 511."""
    return _integer(value, "priority", LOWEST_PRIORITY, HIGHEST_PRIORITY)


def max_attempts(value: object) -> int:
    """From 1."""
    return _integer(value, "max_attempts", 1, MOST_ATTEMPTS)


def _integer(value: object, name: str, least: int, most: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(f"{name}={shown(value)} is out of range: give an integer from {least} to {most}")


def lasting(name: str) -> Callable[[Any], int]:
    """The rule of a duration: in ms."""
    return lambda value: duration_ms(value, name=name)


def expires(value: Any) -> str:
    """As the scripts read it: "+<ms from now>" or "<ms since 1970>"."""
    if isinstance(value, datetime):
        return str(instant_ms(value, name="expires"))
    ms = duration_ms(value, name="expires")
    if ms == 0:
        raise ValueError("expires=0 leaves no time to start: give a duration above zero or an aware datetime")
    return f"+{ms}"


def tags(value: Iterable[object]) -> tuple[str, ...]:
    """Each once, in their order."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ValueError(f'tags={shown(value)} is no list: give such as tags=["x"]')  # noqa: TRY004 (as meta)
    tags: dict[str, None] = {}
    for tag in value:
        if not isinstance(tag, str) or not 0 < len(tag) <= LONGEST_TAG or not _is_text(tag):
            raise ValueError(f"tags holds {shown(tag)}: a tag is text of 1 to {LONGEST_TAG} characters")
        tags[tag] = None
        if len(tags) > MOST_TAGS:
            raise ValueError(f"tags holds more than {MOST_TAGS} tags: that is what a job has at most")
    return tuple(tags)


def meta(value: object) -> Mapping[str, str]:
    """Text to text, of a bounded size."""
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 (refusals of options are ValueErrors throughout)
            f'meta={shown(value)} is no mapping: give such as meta={{"request_id": "7"}}'
        )
    for key, each in value.items():
        if not (isinstance(key, str) and isinstance(each, str) and _is_text(key + each)):
            pair = f"{shown(key, 40)}: {shown(each, 40)}"
            raise ValueError(f"meta holds {pair}: both must be text; write str(…), or use arguments")
    size = sum(len(key.encode()) + len(each.encode()) for key, each in value.items())
    if size > MOST_META_BYTES:
        raise ValueError(f"meta holds {size} bytes: a job has at most {MOST_META_BYTES}; use arguments for more")
    return dict(value)


def own_id(value: object) -> str:
    """An own id, without the queue."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        return value
    hint = " (without the queue, which is put before it)" if isinstance(value, str) and ":" in value else ""
    raise ValueError(f"id={shown(value)} is no id: use 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'{hint}")


def on_lease_lost(value: object) -> str:
    """Of the two words one."""
    if value in ("retry", "fail"):
        return str(value)
    raise ValueError(f'on_lease_lost={shown(value)} is none: give "retry" (the default) or "fail"')


def on_target_lost(value: object) -> str:
    """Of the two words one."""
    if value in ("any", "fail"):
        return str(value)
    raise ValueError(f'on_target_lost={shown(value)} is none: give "any" (the default) or "fail"')


def strict(value: object) -> bool:
    """Yes or no."""
    return checked_flag(value, "strict", ValueError)  # refusals of options are ValueErrors throughout


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no UTF-8 reader could ever show again
        return False
    return True
