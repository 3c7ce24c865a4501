"""What a job needs of a worker beside an executor: labels, amounts of resources, a target. Pure.

As text (`label.gpu=a100;takes.cpu=2;target=web-1`: sorted, each once) it travels with the job and makes its class, so
that jobs which need the same wait together. Amounts are counted in thousandths: half a core is 500.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from taskq.errors import shown
from taskq.units import size_bytes

MOST, LONGEST = 16, 128
"""The most labels, or resources, of a job; the most characters of a name or value."""

WHOLE = 1000
"""One of anything, as amounts are counted."""

MOST_AMOUNT = 8 * 10**12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")
_NUMBER = re.compile(r"[0-9]{1,13}(?:\.[0-9]{1,3})?")
_SAFE = "._-"  # as the name of a class may hold them
_LABEL, _TAKES, _TARGET = "label.", "takes.", "target="


class Needs(NamedTuple):
    """What jobs of a class need. `takes`: resource → thousandths. `target`: a node's id or host name; '' any."""

    labels: tuple[tuple[str, str], ...] = ()
    takes: tuple[tuple[str, int], ...] = ()
    target: str = ""


class Place(NamedTuple):
    """What a worker or a node has. `capacity`: resource → thousandths; None: it never said. `names`: targets it is."""

    labels: Mapping[str, str]
    capacity: Mapping[str, int] | None
    names: Collection[str]


NOTHING = Needs()


def checked_labels(value: object) -> dict[str, str]:
    """Labels a user gave: name → value, texts. ValueError says the rule."""
    if not isinstance(value, Mapping):
        raise ValueError(f'labels={shown(value)} is no mapping: give such as labels={{"gpu": "a100"}}')  # noqa: TRY004
    for name, each in value.items():
        _check_name(name, "labels")
        if not isinstance(each, str) or not 0 < len(each) <= LONGEST or not each.isprintable():
            raise ValueError(f"labels holds {name}={shown(each, 40)}: a value is text of 1 to {LONGEST} characters")
    return _few(dict(value), "labels")


def checked_resources(value: object) -> dict[str, int]:
    """Amounts a user gave: resource → a number, or a size as text; in thousandths. ValueError says the rule."""
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 (refusals of options are ValueErrors throughout)
            f'resources={shown(value)} is no mapping: give such as resources={{"gpu": 1, "memory": "4GiB"}}'
        )
    for name in value:
        _check_name(name, "resources")
    amounts = {name: amount(each, name=f"resources[{name!r}]") for name, each in value.items()}
    return _few({name: each for name, each in amounts.items() if each}, "resources")


def checked_target(value: object) -> str:
    """A target a user gave. ValueError says the rule."""
    if isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable() and " " not in value:
        return value
    raise ValueError(f"target={shown(value)} is none: give the id of a node, or a host's name")


def _check_name(name: object, option: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{option} holds {shown(name, 40)}: a name is 1 to 64 of A-Z, a-z, 0-9, '.', '_', '/' and '-'")


def _few(given: dict[str, object] | dict[str, str] | dict[str, int], option: str) -> dict:  # type: ignore[type-arg]
    if len(given) > MOST:
        raise ValueError(f"{option} holds {len(given)}: a job has at most {MOST}")
    return given


def amount(value: object, *, name: str) -> int:
    """A number with at most three decimals, or a size such as "4GiB", in thousandths. ValueError says the rule."""
    text = f"{value:f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    counted = -1
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        if _NUMBER.fullmatch(text):
            counted = round(float(text) * WHOLE)
        elif isinstance(value, str):
            with contextlib.suppress(ValueError):  # the rule below tells of numbers too
                counted = size_bytes(value, name=name) * WHOLE
    if not 0 <= counted <= MOST_AMOUNT * WHOLE:
        raise ValueError(
            f'{name}={shown(value)} is no amount: give a number such as 2 or 0.5, or a size such as "4GiB"'
        )
    return counted


def number(counted: int) -> int | float:
    """Thousandths as people say them."""
    return counted // WHOLE if counted % WHOLE == 0 else counted / WHOLE


def amount_text(counted: int) -> str:
    """Thousandths as a sentence has them: whole mebibytes as the size they most likely are, `4GiB`."""
    whole, odd = divmod(counted, WHOLE)
    if odd == 0 and whole and whole % 2**20 == 0:
        for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
            if whole % 2**power == 0:
                return f"{whole >> power}{unit}"
    return str(number(counted))


def text_of(labels: Mapping[str, str] | None, takes: Mapping[str, int] | None, target: str | None) -> str:
    """The requirement text; '' for nothing."""
    words = [f"{_LABEL}{quoted(name)}={quoted(each)}" for name, each in sorted((labels or {}).items())]
    words += [f"{_TAKES}{quoted(name)}={number(each)}" for name, each in sorted((takes or {}).items()) if each]
    if target:
        words.append(_TARGET + quoted(target))
    return ";".join(words)


def quoted(text: str) -> str:
    """A name or value as it stands in a requirement text."""
    return quote(text, safe=_SAFE).replace("~", "%7E")


@lru_cache(maxsize=4096)
def parsed(text: str) -> Needs | None:
    """The reverse of `text_of`; None for what can't be read: nobody may run what might need more."""
    labels, takes, target = [], [], ""
    for word in text.split(";") if text else ():
        kind, sign, rest = word[:6], *word.partition("=")[1:]
        name = unquote(word[6:].partition("=")[0])
        if kind == _LABEL and sign and name:
            labels.append((name, unquote(rest)))
        elif kind == _TAKES and _NUMBER.fullmatch(rest) and name:
            takes.append((name, round(float(rest) * WHOLE)))
        elif word.startswith(_TARGET) and rest:
            target = unquote(rest)
        else:
            return None
    return Needs(tuple(labels), tuple(takes), target)


def of_class(klass: str, needs: str = "") -> Needs | None:
    """What a job needs, by its record: of a class whose name is a digest the field `needs` tells."""
    told = klass.partition(";")[2]
    return parsed(told if "=" in told or not told else needs or "?")


def of_requirement(requirement: str) -> tuple[str, Needs | None]:
    """An entry of the queue's classes: the executor kind, and what else is needed."""
    kind, _, told = requirement.partition(";")
    return kind.partition("=")[2], parsed(told)


def fits(needs: Needs, place: Place) -> bool:
    """Whether a worker may run such jobs: every label equal, every amount within its capacity, the target its own."""
    capacity = place.capacity or {}
    return (
        matches(needs, place)
        and all(each <= capacity.get(name, 0) for name, each in needs.takes)
    )  # fmt: skip


def matches(needs: Needs, place: Place) -> bool:
    """As `fits`, whatever its amounts."""
    return all(place.labels.get(name) == each for name, each in needs.labels) and (
        not needs.target or needs.target in place.names
    )


def pools(kind: str, needs: Needs) -> dict[str, int]:
    """What one job takes of a worker's pools: a slot of its executor kind, and `+<resource>`."""
    return {kind: 1, **{f"+{name}": each for name, each in needs.takes}}


def room(takes: Mapping[str, int], free: Mapping[str, int]) -> int:
    """For how many jobs that take so much what is free suffices, as a whole vector."""
    return max(0, min(free.get(pool, 0) // each for pool, each in takes.items()))


def part_of(amount: int, place: int, parts: int) -> int:
    """The part of one place, from 0 on. Whole units stay whole; what is no whole number is divided as it is."""
    unit = WHOLE if amount % WHOLE == 0 else 1
    each, odd = divmod(amount // unit, parts)
    return (each + (place < odd)) * unit
