"""Any words at all on the command line: done, refused or wrong usage, in a few lines, and never a traceback."""

from __future__ import annotations

import contextlib
import json

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from taskq.cli.argument import read_args, read_pair, read_payload
from taskq.cli.main import cli
from tests.cli.test_help import PATHS

#: What starts servers or workers, and stays.
STAYING = {"worker", "dev", "demo", "server"}
NOUNS = [(), *(path for path in PATHS if path[0] not in STAYING)]


def flags():
    """Every option of every command."""
    for path in PATHS:
        command = cli
        for name in path:
            command = command.get_command(click.Context(command), name)
        for each in command.params:
            yield from each.opts


FLAGS = sorted({"--help", "--", "-", "--unknown", *(flag for flag in flags() if flag.startswith("-"))})
HOSTILE = [
    *("\x1b[31m", "\0", "\udcff", "\u202e", "a\nb", "x" * 5000, "9" * 5000, "[" * 3000, "é", "{", "NaN", "1e400"),
    *("default:1", "k=v", "=", "k=", "1h", "2030-01-01T00:00:00Z", "-1"),
]
WORDS = st.sampled_from(FLAGS) | st.sampled_from(HOSTILE) | st.text(max_size=20)


@pytest.fixture(scope="module")
def place(server_url):
    return ("--url", server_url, "--namespace", "tfuzz")


@given(noun=st.sampled_from(NOUNS), words=st.lists(WORDS, max_size=5))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(noun=("job", "show"), words=["\udcff"])
@example(noun=("enqueue",), words=["-\x1f"])
@example(noun=("enqueue",), words=["t", "--queue", "q", "\udcff"])
@example(noun=("enqueue",), words=["t", "--queue", "q", "[" * 3000])
@example(noun=("enqueue",), words=["t", "--queue", "q", "9" * 5000])
@example(noun=("enqueue",), words=["t", "--queue", "q", "--payload", "[" * 100_000])
@example(noun=("enqueue",), words=["t", "--queue", "q", "--priority", "9" * 5000])
@example(noun=("job", "list"), words=["--limit", "9" * 5000])
@example(noun=("job", "list"), words=["--offset", "9" * 30])
@example(noun=("job", "clear"), words=["--older-than", "9" * 5000])
@example(noun=("dispatch",), words=["--count", "0", "--fail-rate", "x"])
@example(noun=("config",), words=["--url", "redis://\0"])
@example(noun=("config",), words=["--url", "redis://" + "a" * 70])
def test_any_words(place, noun, words):
    result = CliRunner().invoke(cli, [*place, *noun, *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    assert result.exit_code in {0, 1, 2}
    assert all(line.isprintable() for line in (result.stdout + result.stderr).split("\n"))
    assert len(result.stderr.splitlines()) <= 3
    assert len(result.stderr) < 2500


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left(server_url):
    yield
    import redis

    with redis.Redis.from_url(server_url) as client:
        client.flushall()


@contextlib.contextmanager
def refused(words):
    """If it is refused, then so."""
    try:
        yield
    except ValueError as error:
        told = str(error)
        if words not in told or len(told) > 400:
            raise


@given(st.lists(st.text() | st.sampled_from(HOSTILE)))
def test_any_arguments(words):
    with refused("is given twice"):
        args, kwargs = read_args(words)
        assert len(args) + len(kwargs) == len(words)
        assert all(key.isidentifier() for key in kwargs)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(JSON)
def test_what_is_json_comes_through(value):
    assert read_args([json.dumps(value)]) == ([value], {}) or isinstance(value, str)
    payload = {"args": [value], "kwargs": {"k": value}}
    assert read_payload(json.dumps(payload)) == ([value], {"k": value})


@given(st.text())
def test_any_payload_is_read_or_refused(text):
    with refused("--payload"):
        read_payload(text)
    with refused("--meta"):
        read_pair(text, "--meta")
