"""`taskq fsck`: is every job in exactly one state and in the structure of that state? `--repair` sets it right.

It may run while everything else does. The walk and what it looks for are in `taskq.fsck`.
"""

from __future__ import annotations

import time
from typing import TypeVar

import click

from taskq import commands, keys
from taskq import fsck as check
from taskq.app import TaskQ
from taskq.cli import output
from taskq.cli.options import Verb, json_option, queue_option, server_options
from taskq.cli.place import app
from taskq.cli.refusal import checked_values, refuse
from taskq.connection import Server, run
from taskq.fsck import Breach, Report, Step
from taskq.keys import QueueKeys
from taskq.settings import checked_name, parse_url

_SHOWN = 20  # breaches of a kind, told one by one
_LOOKS, _BETWEEN_S = 3, 0.5  # a worker that was woken has taken the marker, and claims in the next moment

T = TypeVar("T")


@click.command(
    "fsck",
    cls=Verb,
    examples=(
        "taskq fsck",
        "taskq fsck --repair",
        "taskq fsck --queue email --json",
    ),
)
@click.option("--repair", is_flag=True, help="Set right what is wrong.")
@queue_option("Only this queue [all].")
@json_option
@server_options
def fsck(*, repair: bool, queue: str | None, json_: bool) -> None:
    """Is every job in exactly one state, and where that state says? Exit code 1 if something is wrong, and stays so.

    It reads every key of the queues, in slices that keep nobody waiting, and may run at any time.
    """
    place = app()
    with checked_values():
        chosen = None if queue is None else checked_name(queue, name="queue")
    reports = _reports(place, chosen, repair=repair)
    if chosen is None:
        _register(place, reports, repair=repair)
    left = sum(report.left.total() for report in reports)
    if json_:
        found = sum(report.found.total() for report in reports)
        told = [report.to_dict() for report in reports]
        output.document({"namespace": place.settings.namespace, "found": found, "left": left, "queues": told})
    else:
        for report in reports:
            _show(report)
        if not reports:
            output.put("there is no queue")
    if left:
        advice = "they could not be repaired" if repair else "taskq fsck --repair sets them right"
        refuse(f"{left} {'breach is' if left == 1 else 'breaches are'} left: {advice}")


def _lead(server: Server, walk: Step[T]) -> T:
    """Sends what the walk asks, and gives it the answers."""
    answer = None
    while True:
        try:
            command = walk.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = run(server, command)


def _reports(place: TaskQ, queue: str | None, *, repair: bool) -> list[Report]:
    server, namespace, lease_ms = place.client.server, place.settings.namespace, place.settings.lease_ms
    c = keys.cluster(namespace)
    if queue is None and parse_url(place.settings.url).kind != "cluster":
        names = run(server, commands.queues(c))
        reports = _lead(server, check.walk_all(c, names, repair=repair, lease_ms=lease_ms))
    else:
        chosen = [queue] if queue else run(server, commands.queues(c))
        walks = [check.walk(keys.queue(namespace, name), repair=repair, lease_ms=lease_ms) for name in chosen]
        reports = [_lead(server, walk) for walk in walks]
    if queue and not (reports[0].jobs or reports[0].keys):
        run(server, commands.expect_queue(c, queue))  # a mistyped name must not look sound
    for report in reports:
        _look_at_markers(server, keys.queue(namespace, report.queue), report, repair=repair)
    return reports


def _look_at_markers(server: Server, q: QueueKeys, report: Report, *, repair: bool) -> None:
    """Work waits and nobody would be woken: true for a moment whenever somebody was, so it must stay so to count."""
    silent = _lead(server, check.markers(q))
    for _ in range(_LOOKS - 1):
        if not silent:
            return
        time.sleep(_BETWEEN_S)
        silent = _lead(server, check.markers(q))
    what = "has work, and nobody is woken for it"
    found = [Breach("no marker", f"{each.lane.klass}:{each.lane.priority}", what) for each in silent]
    if repair and silent:
        run(server, commands.wake(q, sorted({each.lane.klass for each in silent})))
    report.tell(found, [] if repair else found)


def _register(place: TaskQ, reports: list[Report], *, repair: bool) -> None:
    c = keys.cluster(place.settings.namespace)
    known = {*run(place.client.server, commands.queues(c))}
    for report in reports:
        if report.queue in known or not (report.jobs or report.keys):
            continue
        breach = Breach("unregistered", report.queue, "has keys, and stands in no list of queues")
        if repair:
            run(place.client.server, commands.register_queue(c, report.queue))
        report.tell([breach], [] if repair else [breach])


def _show(report: Report) -> None:
    found = report.found.total()
    output.put(
        f"{report.queue}: {report.jobs} jobs, {report.keys} other keys, {_counted(report) if found else 'sound'}"
    )
    for kind in sorted(report.found):
        of_kind = [(breach, repaired) for breach, repaired in report.told if breach.kind == kind]
        for breach, repaired in of_kind[:_SHOWN]:
            output.put(f"  {breach.of} {breach.text}{': repaired' if repaired else ''}")
        if report.found[kind] > _SHOWN:
            output.put(f"  ... and {report.found[kind] - _SHOWN} more ({kind})")
    _note(report.unreadable, "a claim fails such a job, and `job list` shows what can be read")
    _note([f"{name} is no key of taskq's" for name in report.foreign], "delete it if nobody needs it")
    _note([f"{name} was put aside: of the wrong kind" for name in report.aside], "it goes after 14 days")


def _counted(report: Report) -> str:
    left, found = report.left.total(), report.found.total()
    if not found:
        return "sound"
    return f"{found} {'breach' if found == 1 else 'breaches'}" + (f", {found - left} repaired" if found > left else "")


def _note(lines: list[str], advice: str) -> None:
    for line in lines[:_SHOWN]:
        output.put(f"  note: {line} ({advice})")
    if len(lines) > _SHOWN:
        output.put(f"  ... and more ({advice})")
