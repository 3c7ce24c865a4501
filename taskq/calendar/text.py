"""A rule as text, to be stored with its schedule and compared.

Short JSON with sorted keys; what has its default isn't written, so a default's rule looks
the same in every version. Equal rules have equal texts, a changed rule has another.
"""

from __future__ import annotations

import json
from typing import Any, get_args

from taskq.calendar.rule import Missed, Overlap, Rule
from taskq.errors import shown

_DEFAULT = Rule(every_ms=1000)
_FIELDS = ("cron", "every_ms", "tz", "start_ms", "end_ms", "max_runs", "jitter_ms", "missed", "overlap")
_LONGEST = 4096


def rule_text(rule: Rule) -> str:
    """The text of a rule: `{"cron":"0 9 * * 1-5","tz":"Europe/Berlin"}`."""
    said = {name: getattr(rule, name) for name in _FIELDS}
    kept = {name: value for name, value in said.items() if value != getattr(_DEFAULT, name) or name == "every_ms"}
    if not rule.every_ms:
        del kept["every_ms"]
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def read_rule(text: str | bytes) -> Rule:
    """The rule of a text, from this version or a later one.

    A later version's fields are passed over, and its values of `missed` and `overlap` count as the default:
    times go on being right, which matters most while two versions run side by side.

    Raises:
        ValueError: no rule's text, or a rule that can't be (a zone that this machine doesn't know).
    """
    try:
        said: Any = json.loads(text) if len(text) <= _LONGEST else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise ValueError(f"{shown(text)} is no rule's text")  # noqa: TRY004 (one kind of refusal)
    known = {name: said[name] for name in _FIELDS if name in said}
    for name, values in (("missed", Missed), ("overlap", Overlap)):
        if name in known and known[name] not in get_args(values):
            del known[name]
    if not isinstance(known.get("cron", ""), str) or bool(known.get("cron")) == bool(known.get("every_ms")):
        raise ValueError(f"{shown(text)} is no rule's text: it has neither cron nor every_ms")
    return Rule(**known)
