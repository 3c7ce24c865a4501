"""A user's mistake is one line on stderr that says what to do, and exit code 2 or 1; never a traceback."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from taskq.cli.main import cli

NAMED = [
    ("job", "show"), ("node", "show"), ("node", "drain"), ("schedule", "show"), ("schedule", "run"),
    ("schedule", "pause"), ("schedule", "resume"),
]  # fmt: skip
WRONG = [
    (("jbo",), "did you mean 'job'"),
    (("job", "lst"), "did you mean 'list'"),
    (("job", "show"), "ID"),
    (("job", "list", "--state", "runing"), "did you mean 'running'"),
    (("job", "list", "--limit", "0"), "1<=x<=1000"),
    (("job", "list", "--queue", "UPPER"), "--queue 'UPPER' is no name"),
    (("queue", "pause", "UPPER"), "QUEUE 'UPPER' is no name"),
    (("job", "clear", "--state", "running", "--yes"), "can't be cleared"),
    (("job", "clear", "--older-than", "soon", "--yes"), "--older-than 'soon' is no duration: give seconds, or such as"),
    (("queue", "purge"), "--all"),
    (("queue", "purge", "email", "--all", "--yes"), "--all"),
    (("queue", "purge", "email", "--state", "completed", "--yes"), "can't be purged"),
    (("enqueue", "a.b", "x=1", "x=2"), "keyword x is given twice"),
    (("enqueue", "a.b", "1", "--payload", "{}"), "not both"),
    (("enqueue", "a.b", "--payload", "[1]"), '{"args"'),
    (("enqueue", "a.b", "--payload", '{"args": 1}'), "a list"),
    (("enqueue", "a.b", "--payload", "{"), "no JSON"),
    (("enqueue", "a.b", "--delay", "soon"), "--delay 'soon' is no duration: give seconds, or such as \"250ms\""),
    (("enqueue", "a.b", "--delay", "1", "--at", "2090-01-01T00:00:00Z"), "give --delay or --at, not both"),
    (("enqueue", "a.b", "--max-attempts", "0"), "--max-attempts 0 is out of range"),
    (("enqueue", "a.b", "--tag", ""), "--tag holds ''"),
    (("enqueue", "a.b", "-5"), "If -5 begins a value, put -- before it: "),
    (("job", "reprioritise", "q:1", "-5"), "If -5 begins a value, put -- before it: "),
    (("enqueue", "a.b", "--at", "2030-01-31T09:00:00"), "time zone"),
    (("enqueue", "a.b", "--at", "noon"), "--at"),
    (("enqueue", "a.b", "--expires", "noon"), "expires"),
    (("enqueue", "a.b", "--priority", "9999"), "511"),
    (("enqueue", "a.b", "--meta", "novalue"), "key=value"),
    (("enqueue", "a.b", "--id", "a:b"), "is no id"),
    (("enqueue", "a b"), "TASK 'a b' is no task's name"),
    (("enqueue", "a.b", "--wait-timeout", "3"), "--wait"),
    (("dispatch", "--fail-rate", "101"), "0<=x<=100"),
    (("dispatch", "--count", "0"), "count"),
    (("worker",), "give APP, as module or module:attribute, or set TASKQ_APP"),
    (("dev", "--", "python"), "give APP, as module or module:attribute, or set TASKQ_APP"),
    (("worker", "shop/app.py"), "module[:attribute]"),
    (("worker", "shop", "-w", "many"), "give such as -w 2 or -w 2..8"),
    (("worker", "shop", "-w", "2.."), "give such as -w 2 or -w 2..8"),
    (("worker", "shop", "-w", "0..2"), "-w 0 is out of range: from 1 to 1000"),
    (("worker", "shop", "-w", "0"), "-w 0 is out of range: from 1 to 1000"),
    (("worker", "shop", "-c", "-1"), "--concurrency -1 is out of range: from 0 to 10000"),
    (("worker", "shop", "-c", "0", "--threads", "0"), "--concurrency and --threads are both 0"),
    (("worker", "shop", "--grace", "8d"), "--grace 8d is out of range: from 0s to 7d"),
    (("worker", "shop", "-w", "4..2"), "-w 4..2 goes backwards"),
    (("worker", "shop", "-q", "email=9..20", "-w", "1..2", "-c", "4", "--threads", "0"), "more than all 8"),
    (("worker", "shop", "-q", ","), "-q"),
    (("worker", "shop", "-q", "email=2..4", "-q", "default=3"), "one or the other"),
    (("enqueue", "a.b", "-q", "a", "-q", "b"), "--queue is given 2 times, and takes one: a, b"),
    (("dispatch", "-q", "a", "--queue", "b"), "--queue is given 2 times, and takes one: a, b"),
    (("job", "list", "-q", "a", "-q", "b"), "--queue is given 2 times, and takes one: a, b"),
    (("job", "list", "--state", "failed", "--state", "cancelled"), "--state is given 2 times"),
    (("worker", "shop", "-q", "email=0"), "a weight is a number above 0"),
    (("worker", "shop", "-q", "email="), "a weight is a number above 0"),
    (("worker", "shop", "-q", "email=2.."), "a range of slots is such as email=2..20"),
    (("worker", "shop", "-q", "email=0..4"), "from 1 on"),
    (("worker", "shop", "-q", "email=4..2"), "not backwards"),
    (("worker", "shop", "-q", "email=2..4,default=3"), "one or the other"),
    (("worker", "shop", "-q", "email=9..20,default", "-c", "9", "--threads", "0"), "more than all 9"),
    (("worker", "shop", "--max-jobs", "-1"), "--max-jobs -1 is out of range"),
    (("worker", "shop", "--max-memory", "much"), "--max-memory 'much' is no size"),
    (("worker", "shop", "--grace", "-1"), "--grace"),
    (("worker", "shop", "--wedged", "soon"), "--wedged"),
    (("worker", "shop", "--wedged", "1ms"), "--wedged 1ms is out of range: from 1s to 7d"),
    (("worker", "shop", "--label", "gpu"), "key=value"),
    (("worker", "shop", "--capacity", "mem=much"), "--capacity mem='much' is no amount"),
    (("worker", "shop", "--health-port", "0"), "1<=x<=65535"),
    (("demo", "--url", "redis://x"), "server of its own"),
    (("server", "--url", "redis://x"), "--port"),
    (("dev", "shop", "--url", "redis://x", "--port", "1"), "embedded server's"),
    (("demo", "/no/such/folder"), "/no/such/folder"),
    (("dev", "shop", "--", "no-such-program"), "no-such-program"),
    (("--url", "http://x", "stats"), "url"),
    (("--url", "redis://localhost:99999/0", "stats"), "a port from 1 to 65535"),
    (("--url", "redis://localhost:6379x/0", "stats"), "hidden, for it may be a password"),
    (("stats", "--namespace", "UPPER"), "--namespace 'UPPER' is no name"),
]

LATER = [
    ("job", "logs", "q:1"),
    ("stats", "--watch"),
    ("worker", "shop", "--processes", "2"),
]


def refused(*words: str) -> str:
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("words, told", WRONG, ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_wrong_usage_is_one_line_and_exit_code_2(words, told):
    assert told in refused(*words)


@pytest.mark.parametrize("words", LATER, ids=" ".join)
def test_what_comes_later_is_refused_and_never_ignored(words):
    assert "isn't here yet" in refused(*words)


@pytest.mark.parametrize("words", NAMED, ids=" ".join)
def test_a_name_that_is_no_text_is_one_line_and_exit_code_2(words, server_url):
    assert "'default:\\udcff' isn't UTF-8" in refused("--url", server_url, *words, "default:\udcff")


def test_a_wrong_variable_is_told_by_its_name(monkeypatch):
    monkeypatch.setenv("TASKQ_URL", "nonsense")
    assert "TASKQ_URL" in refused("stats")


def test_a_flag_beats_a_wrong_variable(monkeypatch, server_url, namespace):
    monkeypatch.setenv("TASKQ_URL", "nonsense")
    result = CliRunner().invoke(cli, ["stats", "--url", server_url, "--namespace", namespace])
    assert result.exit_code == 0


def test_the_flag_nearer_to_the_verb_counts(server_url, namespace):
    result = CliRunner().invoke(cli, ["--url", "redis://nowhere:1/0", "stats", "--url", server_url])
    assert result.exit_code == 0


def test_a_server_that_isnt_there_is_one_line_and_exit_code_1(monkeypatch):
    monkeypatch.setenv("TASKQ_DEADLINE", "300ms")
    result = CliRunner().invoke(cli, ["stats", "--url", "redis://127.0.0.1:1/0"])
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert "127.0.0.1:1" in line


def test_passwords_are_in_no_message(monkeypatch):
    monkeypatch.setenv("TASKQ_DEADLINE", "300ms")
    result = CliRunner().invoke(cli, ["stats", "--url", "redis://user:geheim@127.0.0.1:1/0"])
    assert "geheim" not in result.output


def test_words_without_a_verb_show_the_help():
    result = CliRunner().invoke(cli, [])
    assert result.exit_code == 2
    assert "Commands:" in result.output
