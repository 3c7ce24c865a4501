"""The leak check itself: what it lets pass, and what it catches."""

from __future__ import annotations

import pytest

from tests.leaks import leaked


@pytest.fixture
def keyspace(raw):
    yield raw
    raw.flushall()  # before the check that every test passes through


def test_permanent_keys_and_those_with_a_ttl_are_no_leaks(keyspace, namespace):
    keyspace.hset(f"{namespace}:{{email}}:job:email:1", "state", "available")
    keyspace.hset(f"{namespace}:{{email}}:meta", "seen", "1")
    keyspace.set(f"{namespace}:{{email}}:claimed:w", "x", px=60_000)
    keyspace.sadd(f"{namespace}:{{_}}:queues", "email")
    assert leaked(keyspace, namespace) == []


@pytest.mark.parametrize(
    "name", ["{email}:claimed:w", "{email}:stats:27000000", "{_}:node:n", "{_}:meta", "{email}:odd"]
)
def test_what_has_no_ttl_and_no_reason_is_a_leak(keyspace, namespace, name):
    keyspace.set(f"{namespace}:{name}", "x")
    (line,) = leaked(keyspace, namespace)
    assert line == f"{namespace}:{name}: has no TTL and is not in tests/leaks.py"


def test_a_key_outside_the_tests_namespace_is_told(keyspace, namespace):
    keyspace.hset("taskq:{email}:meta", "seen", "1")
    (line,) = leaked(keyspace, namespace)
    assert "isn't this test's" in line


def test_a_key_that_is_no_key_of_ours_is_told(keyspace, namespace):
    keyspace.set("plain", "x")
    assert leaked(keyspace, namespace) == ["plain: is not <namespace>:{<queue>}:<name>"]
