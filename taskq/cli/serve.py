"""What `worker` and `dev` share: the options of a node, and their values as `NodeOptions`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from taskq.cli.argument import read_pair
from taskq.cli.options import Flags, log_options, server_options, together
from taskq.cli.refusal import WrongUsage, checked_values, not_yet, refuse
from taskq.errors import shown

if TYPE_CHECKING:  # the node is loaded when it runs, not for --help
    from taskq.node.options import NodeOptions

F = TypeVar("F", bound=Callable[..., Any])


def node_options(grace: str) -> Callable[[F], F]:
    """The options that say how a node serves an app. `grace` is the default of `--grace`, in seconds or as text."""
    options = (
        click.option(
            "-q",
            "--queue",
            "--queues",
            "queues",
            multiple=True,
            callback=together,
            metavar="A,B",
            help="Queues, best first [all of APP's]; A=3,B=1: by weight; A=2..20: slots to scale within.",
        ),
        click.option(
            "-w",
            "--workers",
            metavar="N",
            default="1",
            show_default=True,
            help="Worker processes; 2..8: as many of these as are needed.",
        ),
        click.option(
            "-c", "--concurrency", type=int, default=100, show_default=True, help="Coroutines at a time, a worker."
        ),
        click.option("--threads", type=int, default=16, show_default=True, help="Threads at a time, a worker."),
        click.option(
            "--grace", default=grace, show_default=True, metavar="TIME", help="What running jobs get after a signal."
        ),
        click.option(
            "--wedged",
            default="10m",
            show_default=True,
            metavar="TIME",
            help="A worker whose loop stands still so long, and no job holds it, is replaced.",
        ),
        click.option(
            "--max-jobs", type=int, default=0, metavar="N", help="Replace a worker that has run N jobs [never]."
        ),
        click.option("--max-memory", metavar="SIZE", help="Replace a worker above SIZE, such as 512MiB [never]."),
        click.option("--processes", hidden=True, callback=_later("--processes"), expose_value=False),
        click.option(
            "--label",
            "labels",
            multiple=True,
            metavar="K=V",
            help="What jobs may ask for by labels=: gpu=a100.",
        ),
        click.option(
            "--capacity",
            multiple=True,
            metavar="K=N,…",
            help="What jobs may take by resources=, of the whole node: cpu=8,memory=32GiB,gpu=2. It is split among the"
            " -w workers, and one job takes at most what one of them has.",
        ),
        click.option("--metadata", multiple=True, metavar="K=V", help="Anything else to be shown of it."),
        click.option(
            "--health-port",
            type=click.IntRange(1, 65_535),
            metavar="PORT",
            help="Answer /healthz and /readyz there over HTTP.",
        ),
        server_options,
        log_options,
    )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


app_argument = click.argument("app", envvar="TASKQ_APP", required=False, metavar="[APP]")


def chosen_app(app: str | None) -> str:
    """APP, which may stand in the environment instead."""
    if app is None:
        raise WrongUsage("which app? give APP, as module or module:attribute, or set TASKQ_APP")
    return app


def _later(option: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(_context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            not_yet(option)

    return callback


class Asked(NamedTuple):
    """What `-q` says: names in order, weights, and ranges of slots."""

    names: tuple[str, ...]
    weights: dict[str, float]
    ranges: dict[str, tuple[int, int]]


def queues_asked(text: str | None) -> Asked:
    """`-q email,default`: best first; `email=3,default=1`: by weight; `email=2..20`: slots to scale within. The first
    word on a queue counts.
    """
    from taskq.settings import checked_name

    asked = Asked((), {}, {})
    for part in (text or "").split(","):
        name, sign, amount = (word.strip() for word in part.partition("="))
        if not name and not sign:
            continue
        with checked_values():
            checked_name(name, name="--queue")
        if name in asked.names:
            continue
        asked = asked._replace(names=(*asked.names, name))
        if ".." in amount:
            asked.ranges[name] = _range(part.strip(), amount)
        elif sign:
            asked.weights[name] = _weight(part.strip(), amount)
    if text is not None and not asked.names:
        raise WrongUsage("-q names no queue: give such as -q email,default")
    if asked.weights and asked.ranges:
        raise WrongUsage("-q gives weights and ranges of slots: one or the other")
    return asked


def _range(part: str, amount: str) -> tuple[int, int]:
    if not (found := re.fullmatch(r"([0-9]{1,6})\.\.([0-9]{1,6})", amount)):
        raise WrongUsage(f"-q {shown(part)}: a range of slots is such as email=2..20")
    return int(found[1]), int(found[2])


def _weight(part: str, amount: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", amount) or not float(amount):
        raise WrongUsage(f"-q {shown(part)}: a weight is a number above 0, such as email=3")
    return float(amount)


def node_options_of(flags: Flags, given: dict[str, Any], *, burst: bool = False) -> NodeOptions:
    """The options of `node_options`, checked."""
    from taskq.node.options import NodeOptions
    from taskq.units import duration_ms

    asked = queues_asked(given["queues"])
    workers = worker_count(given["workers"])
    with checked_values(workers="-w"):
        return NodeOptions(
            queues=asked.names,
            weights=asked.weights,
            ranges=asked.ranges,
            workers=workers if isinstance(workers, int) else workers[0],
            worker_range=workers if isinstance(workers, tuple) else None,
            concurrency=given["concurrency"],
            threads=given["threads"],
            grace_ms=duration_ms(given["grace"], name="--grace"),
            wedged_ms=duration_ms(given["wedged"], name="--wedged"),
            max_jobs=given["max_jobs"],
            max_memory=memory_limit(given["max_memory"]),
            burst=burst,
            labels=labels(given["labels"]),
            capacity=capacities(given["capacity"]),
            metadata=word_pairs(given["metadata"], "--metadata"),
            health_port=given["health_port"] or 0,
            flags=dict(flags.settings),
            log=dict(flags.log),
        )


def word_pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """`k=v` as often as it was given; the last one of a name counts."""
    with checked_values():
        return dict(read_pair(word, option) for word in words)


def labels(words: Sequence[str]) -> dict[str, str]:
    """`gpu=a100` as often as it was given."""
    from taskq.needs import checked_labels

    with checked_values():
        return checked_labels(word_pairs(words, "--label"))


def capacities(words: Sequence[str]) -> dict[str, int | float]:
    """`memory=8GiB,gpu=2` as numbers, sizes as bytes."""
    from taskq.needs import amount, number

    with checked_values():
        pairs = word_pairs([each for word in words for each in word.split(",") if each.strip()], "--capacity")
        return {name: number(amount(value.strip(), name=f"--capacity {name}")) for name, value in pairs.items()}


def memory_limit(text: str | None) -> int:
    """`--max-memory 512MiB` in bytes; 0 = no limit. Refused where the system doesn't tell what a process takes."""
    from taskq.node.children.memory import can_weigh
    from taskq.units import size_bytes

    if text is None:
        return 0
    if not can_weigh():
        refuse("--max-memory: neither /proc nor ps is here to tell what a worker takes")
    return size_bytes(text, name="--max-memory")


def worker_count(text: str, *, option: str = "-w") -> int | tuple[int, int]:
    """`-w 2`, or from how many to how many, as in `-w 2..8`."""
    if found := re.fullmatch(r"([0-9]{1,6})(?:\.\.([0-9]{1,6}))?", text):
        return (int(found[1]), int(found[2])) if found[2] else int(found[1])
    raise WrongUsage(f"{option} {shown(text)} is no number of workers: give such as {option} 2 or {option} 2..8")
