"""Why a job isn't running: the first gate that is shut, in words and in numbers. Pure.

The queue knows what stands in a job's way there (`lua/why.lua`); what workers there are stands in the registry. Both
are asked one after the other, so the answer is a moment old, as every look is.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taskq import limited, taken
from taskq.commands import Command, HeldJobs
from taskq.commands.why import Shut
from taskq.errors import JobNotFound
from taskq.keys import queue_of
from taskq.lacking import Lack, Node, able, counted, listed
from taskq.needs import NOTHING, Needs, of_class, of_requirement
from taskq.units import duration_text, rfc3339


@dataclass(frozen=True, slots=True)
class Why:
    """Why a job isn't running.

    Attributes:
        id: the job's.
        state: its state; None if there is no such job.
        gate: one word: `ended running due pending paused limit rate lock blocked worker turn damaged`.
        text: a sentence for people.
        numbers: what the sentence is made of; times as RFC 3339, durations in seconds.
    """

    id: str
    state: str | None
    gate: str
    text: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"id": self.id, "state": self.state, "gate": self.gate, "text": self.text, **self.numbers}


def takers(namespace: str, id: str, shut: Shut, nodes: Sequence[Node]) -> list[Command[HeldJobs]]:
    """What else to ask before explaining: what runs on the nodes that serve its queue."""
    queue = queue_of(id)
    serving = [node for node in nodes if queue in node["queues"]] if shut.word == "turn" else []
    return taken.reads(namespace, queue, serving) if serving else []


def explain(id: str, shut: Shut, nodes: Sequence[Node], pages: Sequence[HeldJobs] = ()) -> Why:
    """The answer for one job.

    Args:
        id: its full id.
        shut: what its queue says.
        nodes: the nodes that live, as the registry shows them.
        pages: the answers to `takers`.

    Raises:
        JobNotFound: there is no such job.
    """
    if shut.word == "missing":
        raise JobNotFound(f"there is no job {id}: it never existed, or its retention has passed")
    gate, text, numbers = _EXPLAINED[shut.word](shut, queue_of(id), nodes, pages)
    return Why(id, shut.facts.get("state"), gate, text, numbers)


_Told = tuple[str, str, dict[str, Any]]


def _ended(shut: Shut, *_: Any) -> _Told:
    at, reason = _instant(shut, "at"), shut.facts["reason"]
    because = f": {reason}" if reason else ""
    return "ended", f"it has ended: {shut.facts['state']} at {at}{because}", {"at": at, "reason": reason or None}


_ASKED = {
    "": "",
    "1": "; it was asked to stop: `taskq job cancel --force` ends what can't be interrupted",
    "force": "; it was asked to stop, and will be by force",
}


def _running(shut: Shut, *_: Any) -> _Told:
    worker, left_ms = shut.facts["worker"], _number(shut, "lease") - shut.now_ms
    numbers = {"worker": worker, "attempt": _number(shut, "attempt"), "lease_left": _seconds(left_ms)}
    if shut.facts["offered"]:
        return "running", f"it is offered to {worker}, who has {_span(left_ms)} left to start it", numbers
    late = "" if left_ms > 0 else "; its lease is over, and it will be reaped"
    asked = _ASKED.get(shut.facts.get("cancel", ""), _ASKED["1"])
    numbers["cancel_requested"] = bool(asked)
    return "running", f"it runs on {worker}, attempt {numbers['attempt']}{asked}{late}", numbers


def _due(shut: Shut, *_: Any) -> _Told:
    left_ms, at = _number(shut, "at") - shut.now_ms, _instant(shut, "at")
    unknown = shut.facts.get("unknown", "")
    numbers = {"at": at, "in": _seconds(left_ms)} | ({"reason": unknown} if unknown else {})
    if unknown and left_ms > 0:
        return "due", f"a worker handed it back: {unknown}; it is tried again in {_span(left_ms)}", numbers
    what = "its retry" if shut.facts["state"] == "retryable" else "it"
    if left_ms > 0:
        return "due", f"{what} is due at {at}, in {_span(left_ms)}", numbers
    return "due", f"{what} was due {_span(-left_ms)} ago: no node has made it available yet", numbers


def _pending(*_: Any) -> _Told:
    return "pending", "it waits for other jobs to end", {}


def _paused(shut: Shut, queue: str, *_: Any) -> _Told:
    at = _instant(shut, "at")
    return "paused", f"queue {queue} is paused since {at}: taskq queue resume {queue}", {"since": at}


def _whole(shut: Shut, queue: str, *_: Any) -> _Told:
    return _of_gate(shut, f"queue {queue}", f"the limit of queue {queue}")


def _gate(shut: Shut, queue: str, *_: Any) -> _Told:
    kind, name, key = limited.named(shut.facts["gate"])
    said = "=".join(each for each in (name, key) if each is not None)
    if kind == "task":
        hint = f"taskq task resume {shlex.quote(said)} --queue {queue}"
        return _of_gate(shut, f"task {said}", f"the limit of task {said}", resume=hint)
    if kind == "fairness key":
        hint = f"taskq queue resume {queue} --key {shlex.quote(said)}"
        return _of_gate(shut, f"key {said}", f"the limit of key {said}", resume=hint)
    if kind == "limit":
        every = key is not None and "=" not in shut.facts.get("by", "=")  # the block is of the limit, not of its key
        change = f"taskq queue limit {queue} {shlex.quote(name or '')}"
        of_key = f" --key {shlex.quote(key)}" if key is not None and not every else ""
        subject = f"limit {name}, for all its keys," if every else f"limit {said}"
        return _of_gate(shut, subject, f"limit {said}", change=change + of_key)
    return _of_gate(shut, f"{kind} {said}", f"{kind} {said}")


def _of_gate(shut: Shut, subject: str, limit: str, resume: str = "", change: str = "") -> _Told:
    kind, held, at = shut.facts["kind"], _number(shut, "held"), _number(shut, "at")
    numbers: dict[str, Any] = dict(zip(("kind", "name", "key"), limited.named(shut.facts["gate"]), strict=True))
    if kind == "paused":
        return "paused", f"{subject} is paused" + (f": {resume}" if resume else ""), numbers
    if kind in {"blocked", "rate"}:
        numbers["in"] = _seconds(at - shut.now_ms)
        wait = _span(at - shut.now_ms)
        if kind == "rate":
            return kind, f"{limit}: its next token comes in {wait}", numbers
        return kind, f"{subject} is blocked for {wait}" + (f": {change} --block 0" if change else ""), numbers
    holders, reserved = shut.facts.get("holders", "").split(), _number(shut, "reserved")
    others = held - reserved - len(holders)
    by = f"held by {', '.join(holders)}" + (f" and {others} more" if others > 0 else "")
    if kind == "saving":
        return "rate", f"{limit}: what is free of its rate is kept for a job that came first and costs more", numbers
    if kind == "lock":
        return "lock", f"it waits for {limit}, {by}", numbers | {"holders": holders}
    most = _number(shut, "most")
    numbers |= {"held": held, "most": most, "holders": holders} | ({"reserved": reserved} if reserved else {})
    words = [
        f"{limit} is at {held}/{most}",
        *([by] if holders else []),
        *([f"{reserved} reserved"] if reserved else []),
        *([f"so nothing runs: {change} --concurrency N"] if change and not most else []),
    ]
    return "limit", ", ".join(words), numbers


def _turn(shut: Shut, queue: str, nodes: Sequence[Node], pages: Sequence[HeldJobs]) -> _Told:
    """Nothing of its queue is in its way: is there anybody to run it, and when is its turn?"""
    kind, wanted = _needs(shut)
    lanes, jobs = _number(shut, "lanes_ahead"), _number(shut, "jobs_ahead")
    more = "+" if shut.facts["more"] == "1" else ""
    before = f"{counted(jobs, 'job', more)} before it in its lane, {counted(lanes, 'lane')} before that"
    first = f"it is next, once {listed(wanted)} is free on one worker" if wanted.takes else "it is next"
    place = before if jobs or lanes else first
    position = {"lanes_ahead": lanes, "jobs_ahead": jobs, "more": bool(more)}
    others = _number(shut, "executors")
    found = able(queue, shut.facts["task"], kind, wanted, nodes)
    if isinstance(found, Lack):
        if shut.facts.get("comes") == "1":
            return "turn", f"it waits for {wanted.target}, an executor that claims here: {place}", position
        if not others:
            return "worker", found.text + found.hint, found.numbers
        # One who starts a worker because there is none would run it beside them: what is true of them comes first.
        return "worker", f"{_theirs(shut, others)}; {found.text}", found.numbers | {"executors": others}
    slots, told = (sum(_stat(node, kind, word) for node in found) for word in ("slots", "busy"))
    busy = taken.running(kind, found, pages, told)
    numbers = {**position, "slots": slots, "busy": busy, "nodes": len(found)}
    if slots and busy >= slots:
        return "turn", f"all slots are busy, {busy}/{slots}; {place}", numbers
    if few := taken.short(wanted, found, taken.held(pages)):
        text, amounts = taken.told(few)
        return "turn", f"{text}; {place}", numbers | amounts
    return "turn", f"it waits for its turn: {place}", numbers


def _theirs(shut: Shut, count: int) -> str:
    """What is true of executors that aren't our workers: they claim here, and none has taken it."""
    names = shut.facts.get("who", "").split()
    if count > len(names):
        names.append(f"{count - len(names)} more" if names else str(count))
    if count == 1:
        return f"{names[0]}, an executor of another kind, claims here and has not taken it"
    who = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{who}, executors of another kind, claim here and have not taken it"


def _needs(shut: Shut) -> tuple[str, Needs]:
    """Its executor kind, and what else it needs; what can't be read is no need that could be told."""
    klass = shut.facts["class"]
    kind, wanted = of_requirement(shut.facts["needs"]) if shut.facts["needs"] else ("", of_class(klass))
    return kind or klass.partition(";")[0], wanted or NOTHING


def _stat(node: Node, kind: str, word: str) -> int:
    """Of the executor kind, where the node tells them apart."""
    stats = node["stats"]
    found = stats.get("executors", {}).get(kind, stats).get(word, 0)
    return found if isinstance(found, int) else 0


def _damaged(*_: Any) -> _Told:
    return "damaged", "its record is damaged: taskq fsck --repair", {}


_EXPLAINED: dict[str, Callable[[Shut, str, Any, Any], _Told]] = {
    "damaged": _damaged,
    "ended": _ended,
    "running": _running,
    "due": _due,
    "pending": _pending,
    "paused": _paused,
    "whole": _whole,
    "gate": _gate,
    "turn": _turn,
}


def _number(shut: Shut, name: str) -> int:
    text = shut.facts.get(name, "")
    return int(float(text)) if text else 0


def _instant(shut: Shut, name: str) -> str:
    return rfc3339(_number(shut, name))


def _seconds(ms: int) -> float:
    return max(0, ms) / 1000


def _span(ms: int) -> str:
    return duration_text(max(0, ms)) if ms < 10_000 else duration_text(ms // 1000 * 1000)
