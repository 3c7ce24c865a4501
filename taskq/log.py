"""Logging: where taskq's lines go, and the job's fields on every line written inside one.

As a library taskq speaks through stdlib loggers named `taskq.…` and configures
nothing. Our own processes call `setup`, which leaves alone whatever the user has
configured already. Logs go to stderr. structlog is imported at the first line.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TextIO

from taskq.errors import did_you_mean, shown

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

LEVELS = ("debug", "info", "warning", "error", "critical")
FORMATS = ("text", "json")
JOB_FIELDS = ("job_id", "task", "attempt", "queue")

JobSource = Callable[[], Mapping[str, object] | None]
"""Says `job_id task attempt queue` of the job that runs here, or None."""

_job_source: JobSource = lambda: None  # noqa: E731 (replaced by carry)
# Control characters of either set, those that turn the direction of writing, half pairs: a stored name must not steer a
# terminal, nor a stored reason begin a line that looks like one of ours. Texts of several lines are the events and
# tracebacks.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_STEERING_OR_LINE = re.compile(f"{_STEERING.pattern}|\n")
_LINES = {"event", "exception", "stack"}


class Logger:
    """A named logger; fields are keywords: `log.info("lease lost", job_id=id)`.

    Resolved at each line, so that a logger made at import follows what is configured later.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, event: str, **fields: object) -> None:
        """For whoever looks for a fault of taskq's own."""
        self._say("debug", event, fields)

    def info(self, event: str, **fields: object) -> None:
        """What an operator may want to know."""
        self._say("info", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """What goes on by itself, but should not stay so."""
        self._say("warning", event, fields)

    def error(self, event: str, **fields: object) -> None:
        """What somebody has to mend."""
        self._say("error", event, fields)

    def exception(self, event: str, **fields: object) -> None:
        """As `error`, with the traceback of the exception being handled."""
        self._say("exception", event, fields)

    def _say(self, method: str, event: str, fields: dict[str, object]) -> None:
        # A line decides nothing: a handler of the user's may raise, stderr may be closed, the disk full.
        with contextlib.suppress(Exception, SystemExit):
            self._pass_on(method, event, fields)

    def _pass_on(self, method: str, event: str, fields: dict[str, object]) -> None:
        import structlog

        if structlog.is_configured():  # by `setup`, by the user, or by a test that captures
            logger = structlog.get_logger(self._name)
        else:
            logger = structlog.wrap_logger(
                logging.getLogger(self._name),
                wrapper_class=structlog.stdlib.BoundLogger,
                processors=[structlog.stdlib.filter_by_level, _add_job, _as_record],
            )
        getattr(logger, method)(event, **fields)


def get_logger(name: str) -> Logger:
    """The logger of a module: `get_logger(__name__)`."""
    return Logger(name)


def carry(source: JobSource) -> None:
    """From now on lines written inside a job carry what `source` says of it; asked at each line, not at each job."""
    global _job_source  # noqa: PLW0603 (one process runs jobs of one kind, and says so once)
    _job_source = source


def setup(level: str = "info", format: Literal["text", "json"] | None = None, *, stream: TextIO | None = None) -> None:
    """Make this process, one of our own, log. May be called again; the last call counts.

    Call it after the user's code has been imported: a root logger that has handlers by then is left as it
    is, and so is a configured structlog. Then our lines go there, with the job's fields as attributes.

    Args:
        level: debug, info, warning, error or critical, in any case.
        format: "text" or "json"; by default text on a terminal, else JSON.
        stream: stderr unless given.

    Raises:
        ValueError: an unknown level or format.
    """
    if level.lower() not in LEVELS:
        raise ValueError(f"there is no log level {shown(level)}{did_you_mean(level, LEVELS)}: give {', '.join(LEVELS)}")
    if format not in (None, *FORMATS):
        raise ValueError(
            f"there is no log format {shown(format)}{did_you_mean(str(format), FORMATS)}: give text or json"
        )
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(handler)
    if root.handlers:
        for each in root.handlers:
            if not any(isinstance(known, JobFilter) for known in each.filters):
                each.addFilter(JobFilter())
        return
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(_formatter(format, handler.stream))
    root.addHandler(handler)
    root.setLevel(level.upper())
    _configure_structlog()


class JobFilter(logging.Filter):
    """Puts `job_id task attempt queue` on every record, None outside a job; for handlers of your own.

    On a handler, not in a record factory: there a user's `extra={"task": …}` would be refused.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what isn't there; let every record pass."""
        job = _job_source() or {}
        for name in JOB_FIELDS:
            if name not in record.__dict__:
                setattr(record, name, job.get(name))
        return True


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, so that a second `setup` knows it from the user's."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Say so on stderr, if there is one: logging itself fails where it was closed, and with it whoever logs."""
        with contextlib.suppress(Exception):
            super().handleError(record)


def _configure_structlog() -> None:
    import structlog

    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_enrich(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _enrich() -> list[Processor]:
    import structlog

    return [
        structlog.contextvars.merge_contextvars,
        _add_job,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
    ]


def _formatter(format: str | None, stream: TextIO) -> logging.Formatter:
    import structlog

    terminal = stream.isatty()
    if (format or ("text" if terminal else "json")) == "json":
        render: Processor = structlog.processors.JSONRenderer(default=repr)
    else:
        render = structlog.dev.ConsoleRenderer(
            colors=terminal and not os.environ.get("NO_COLOR"), exception_formatter=structlog.dev.plain_traceback
        )
    finish = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_enrich(),
        processors=[finish, structlog.processors.format_exc_info, _defuse, render],
    )


def _add_job(_logger: object, _method: str, event_dict: EventDict) -> EventDict:
    for name, value in (_job_source() or {}).items():
        event_dict.setdefault(name, value)
    return event_dict


def _defuse(_logger: object, _method: str, event_dict: EventDict) -> EventDict:
    for name, value in event_dict.items():
        if isinstance(value, str):
            steering = _STEERING if name in _LINES else _STEERING_OR_LINE
            event_dict[name] = steering.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    return event_dict


def _as_record(_logger: object, _method: str, event_dict: EventDict) -> tuple[tuple[str], dict[str, Any]]:
    """The line for a stdlib logger that somebody else has configured: fields in the text, and as attributes."""
    event = str(event_dict.pop("event", ""))
    passed = {name: event_dict.pop(name) for name in ("exc_info", "stack_info") if name in event_dict}
    text = " ".join([event, *(f"{name}={value!r}" for name, value in event_dict.items())])
    attributes = {name: event_dict[name] for name in JOB_FIELDS if name in event_dict}
    return (text,), {**passed, "extra": attributes}
