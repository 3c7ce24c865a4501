"""Logging: what a library may touch, what our processes print, and the job on every line."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from taskq import log
from taskq.log import JobFilter, carry, get_logger, setup

JOB = {"job_id": "email:1", "task": "mail.send", "attempt": 2, "queue": "email"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    root = logging.getLogger()
    level = root.level
    structlog.reset_defaults()
    yield
    carry(lambda: None)
    structlog.reset_defaults()
    root.handlers = [each for each in root.handlers if type(each).__module__.startswith("_pytest")]
    root.setLevel(level)


def untouched() -> logging.Logger:
    """The root logger as in a process in which nobody has configured anything: without pytest's handlers."""
    root = logging.getLogger()
    root.handlers = []
    return root


def ours(level: str = "info", format: Any = None, *, stream: io.StringIO) -> None:
    untouched()
    setup(level, format, stream=stream)


def failing(words: str) -> None:
    raise OSError(words)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


# --- our own processes --------------------------------------------------------


def test_json_where_no_terminal_reads() -> None:
    stream = io.StringIO()
    ours(stream=stream)
    get_logger("taskq.node").info("worker started", worker="w.1")
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "worker started", "level": "info", "logger": "taskq.node", "worker": "w.1"}


def test_text_on_a_terminal() -> None:
    stream = Terminal()
    ours(stream=stream)
    get_logger("taskq.node").warning("Redis is away", away_s=3)
    assert "Redis is away" in stream.getvalue()
    with pytest.raises(json.JSONDecodeError):
        lines(stream)


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_the_format_may_be_told(kind: type[io.StringIO]) -> None:
    stream = kind()
    ours(format="json", stream=stream)
    get_logger("taskq").info("one")
    setup(format="text", stream=stream)
    get_logger("taskq").info("two")
    first, second = stream.getvalue().splitlines()
    assert json.loads(first)["event"] == "one"
    assert "two" in second
    assert not second.startswith("{")


def test_a_second_setup_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    ours(stream=first)
    setup(stream=second)
    get_logger("taskq").info("once")
    assert first.getvalue() == ""
    assert [line["event"] for line in lines(second)] == ["once"]


@pytest.mark.parametrize("level, said", [("debug", 5), ("INFO", 4), ("warning", 3), ("error", 2), ("critical", 0)])
def test_levels(level: str, said: int) -> None:
    stream = io.StringIO()
    ours(level, stream=stream)
    logger = get_logger("taskq")
    for speak in (logger.debug, logger.info, logger.warning, logger.error, logger.exception):
        speak("x")
    assert len(lines(stream)) == said


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"level": "warn"}, r"no log level 'warn' \(did you mean 'warning'\?\): give debug, info"),
        ({"format": "jsonl"}, r"no log format 'jsonl' \(did you mean 'json'\?\): give text or json"),
    ],
)
def test_refusals(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        setup(**wrong)


def test_logs_go_to_stderr() -> None:
    code = "from taskq.log import *; setup(); get_logger('taskq').info('here')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert json.loads(done.stderr)["event"] == "here"


def test_an_exception_brings_its_traceback() -> None:
    stream = io.StringIO()
    ours(stream=stream)
    try:
        failing("disk full")
    except OSError:
        get_logger("taskq").exception("a step failed", loop="reaper")
    (line,) = lines(stream)
    assert (line["level"], line["loop"]) == ("error", "reaper")
    assert "OSError: disk full" in line["exception"]


def test_a_value_json_does_not_know_breaks_no_line() -> None:
    stream = io.StringIO()
    ours(stream=stream)
    get_logger("taskq").info("x", what={1, 2}, raw=b"\xff")
    assert lines(stream)[0]["raw"] == repr(b"\xff")


@pytest.mark.parametrize("format", ["text", "json"])
def test_stored_names_steer_no_terminal(format: Any) -> None:
    stream = Terminal()
    ours(format=format, stream=stream)
    evil = "\x1b]0;owned\x07\x9b31m\rgone\u202e\u2028\ud800"
    try:
        failing(evil)
    except OSError:
        get_logger("taskq").exception(f"event {evil}", task=evil)
    logging.getLogger("shop").info("user's %s", evil)
    printed = stream.getvalue()
    assert "\x1b]" not in printed
    assert not set("\x07\x9b\r\u202e\u2028\ud800") & set(printed)
    assert "owned" in printed


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_stored_reason_begins_no_line(format: Any) -> None:
    stream = io.StringIO()
    ours(format=format, stream=stream)
    get_logger("taskq").error("job failed", reason="x\n2030-01-01T00:00:00Z [error] all is lost")
    assert len(stream.getvalue().splitlines()) == 1


# --- inside a job -------------------------------------------------------------


def test_every_line_inside_a_job_says_which() -> None:
    stream = io.StringIO()
    ours(stream=stream)
    get_logger("taskq").info("outside")
    carry(lambda: JOB)
    get_logger("taskq").info("ours")
    logging.getLogger("shop").warning("the user's %s", "line")
    structlog.get_logger("shop").info("the user's structlog", colour="red")
    outside, own, theirs, structured = lines(stream)
    assert not JOB.keys() & outside.keys()
    for line in (own, theirs, structured):
        assert {name: line[name] for name in JOB} == JOB
    assert theirs["event"] == "the user's line"
    assert structured["colour"] == "red"


def test_a_line_about_another_job_says_that_one() -> None:
    stream = io.StringIO()
    ours(stream=stream)
    carry(lambda: JOB)
    get_logger("taskq").info("lease lost", job_id="email:2")
    logging.getLogger("shop").info("x", extra={"task": "mine"})
    first, second = lines(stream)
    assert (first["job_id"], first["queue"]) == ("email:2", "email")
    assert (second["task"], second["job_id"]) == ("mine", "email:1")


# --- what belongs to the user -------------------------------------------------


def test_a_configured_root_logger_is_left_alone() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    formatter = logging.Formatter("%(levelname)s %(name)s %(message)s [%(job_id)s %(task)s %(attempt)s %(queue)s]")
    handler.setFormatter(formatter)
    root = untouched()
    root.addHandler(handler)
    root.setLevel("WARNING")

    setup("debug", "json", stream=io.StringIO())
    setup("debug", "json", stream=io.StringIO())

    assert root.handlers == [handler]
    assert (handler.formatter, root.level) == (formatter, logging.WARNING)
    assert len(handler.filters) == 1
    get_logger("taskq.node").info("below the user's level")
    get_logger("taskq.node").warning("lease expired", state="failed")
    carry(lambda: JOB)
    logging.getLogger("shop").error("boom", extra={"task": "mine"})
    assert stream.getvalue().splitlines() == [
        "WARNING taskq.node lease expired state='failed' [None None None None]",
        "ERROR shop boom [email:1 mine 2 email]",
    ]


def test_a_configured_structlog_is_left_alone() -> None:
    said: list[dict[str, Any]] = []

    def keep(_logger: object, _method: str, event: Any) -> Any:
        said.append(dict(event))
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    ours(stream=io.StringIO())
    get_logger("taskq").info("hello", n=1)
    assert said == [{"event": "hello", "n": 1}]


def test_a_library_configures_nothing() -> None:
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    untouched()
    logger, handler = logging.getLogger("taskq.client"), Keep()
    logger.addHandler(handler)
    try:
        carry(lambda: JOB)
        get_logger("taskq.client").warning("100 % slow", took_s=1.5)
        get_logger("taskq.client").debug("not at this level")
    finally:
        logger.removeHandler(handler)
    (record,) = records
    assert record.getMessage().startswith("100 % slow took_s=1.5 job_id='email:1'")
    assert {name: getattr(record, name) for name in JOB} == JOB
    assert not structlog.is_configured()
    assert logging.getLogger().handlers == []


def test_the_filter_serves_handlers_of_ones_own() -> None:
    record = logging.LogRecord("shop", logging.INFO, "f.py", 1, "x", None, None)
    carry(lambda: JOB)
    assert JobFilter().filter(record)
    assert {name: getattr(record, name) for name in JOB} == JOB


def test_tests_can_capture() -> None:
    with structlog.testing.capture_logs() as captured:
        get_logger("taskq").info("hello", n=1)
    assert captured == [{"event": "hello", "n": 1, "log_level": "info"}]


def test_importing_it_is_cheap() -> None:
    code = f"import sys, {log.__name__}; print('structlog' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- a line decides nothing ---------------------------------------------------


class Failing(logging.Handler):
    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self.error = error

    def emit(self, record: logging.LogRecord) -> None:
        raise self.error("the log's server is away")


@pytest.mark.parametrize("error", [ConnectionError, SystemExit])
@pytest.mark.parametrize("configured", [False, True])
def test_a_handler_that_raises_is_not_heard(error: type[BaseException], configured: bool) -> None:
    root = untouched()
    if configured:
        setup("info", "json", stream=io.StringIO())
    root.addHandler(Failing(error))
    get_logger("taskq.x").warning("something", n=1)
    try:
        failing("no")
    except OSError:
        get_logger("taskq.x").exception("something")


def test_a_stream_that_was_closed_fails_nobody_who_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    ours(stream=stream)
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    get_logger("taskq.x").warning("ours")
    logging.getLogger("users.own").warning("theirs")
