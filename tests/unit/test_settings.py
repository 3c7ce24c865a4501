"""Settings: precedence, sources, every rule, and the plain form the hello message carries."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.settings import Retention, Settings, checked_name, resolve


def test_defaults() -> None:
    settings = resolve(environ={})
    assert settings == Settings(
        url="redis://localhost:6379/0",
        namespace="taskq",
        include=(),
        lease_ms=8000,
        deadline_ms=5000,
        max_payload=1_048_576,
        unknown_grace_ms=3_600_000,
        wait_replicas=0,
        app=None,
        retention=Retention(),
    )
    assert {source for _, _, source in settings.explain()} == {"default"}


def test_default_retention() -> None:
    day = 86_400_000
    assert Retention().to_dict() == {
        "completed_ms": day,
        "failed_ms": 14 * day,
        "cancelled_ms": 14 * day,
        "max_completed": 10_000,
        "max_failed": 100_000,
    }


@pytest.mark.parametrize(
    "name, field, written, read",
    [
        ("url", "url", "redis://db:1/2", "redis://db:1/2"),
        ("namespace", "namespace", "shop", "shop"),
        ("lease", "lease_ms", "20s", 20_000),
        ("deadline", "deadline_ms", "250ms", 250),
        ("max_payload", "max_payload", "2KiB", 2048),
        ("unknown_grace", "unknown_grace_ms", "0", 0),
        ("wait_replicas", "wait_replicas", "2", 2),
        ("app", "app", "shop.app:make", "shop.app:make"),
    ],
)
def test_every_scalar_has_all_four_sources(name: str, field: str, written: str, read: object) -> None:
    variable = f"TASKQ_{name.upper()}"
    argument: dict[str, Any] = {name: written}
    flag = name.replace("_", "-")

    from_environment = resolve(environ={variable: written})
    assert getattr(from_environment, field) == read
    assert from_environment.sources[field] == f"environment {variable}"

    # A stronger source wins even over a value that would be refused.
    from_argument = resolve(**argument, environ={variable: "!"})
    assert getattr(from_argument, field) == read
    assert from_argument.sources[field] == "argument"

    from_flag = resolve(**{name: "!"}, environ={variable: "!"}, flags={name: written})  # type: ignore[arg-type]
    assert getattr(from_flag, field) == read
    assert from_flag.sources[field] == f"flag --{flag}"

    with pytest.raises(ValueError, match=variable):
        resolve(environ={variable: "!"})
    with pytest.raises(ValueError, match=f"--{flag}"):
        resolve(environ={}, flags={name: "!"})


def test_an_empty_variable_is_unset() -> None:
    assert resolve(environ={"TASKQ_URL": "", "TASKQ_LEASE": ""}) == resolve(environ={})


def test_flags_on_top_of_settings() -> None:
    settings = resolve(namespace="shop", environ={}).with_flags({"url": "redis://other", "namespace": None})
    assert (settings.url, settings.namespace) == ("redis://other", "shop")
    assert settings.sources["url"] == "flag --url"
    assert settings.sources["namespace"] == "argument"
    with pytest.raises(ValueError, match=r"no setting 'namespce' \(did you mean 'namespace'\?\)"):
        settings.with_flags({"namespce": "x"})


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"url": "http://x"}, "can't be used: it starts with one of"),
        ({"url": 5}, "url is no URL"),
        ({"namespace": "Shop"}, "namespace='Shop' is no name"),
        ({"lease": "3s"}, "lease='3s' is out of range: give at least 4s and at most 1h"),
        ({"lease": "2h"}, "lease='2h' is out of range"),
        ({"lease": "x"}, "lease='x' is no duration"),
        ({"deadline": 0}, "deadline=0 is out of range: give at least 1ms"),
        ({"max_payload": "1GiB"}, "max_payload='1GiB' is out of range"),
        ({"max_payload": 0}, "max_payload=0 is no size"),
        ({"unknown_grace": -1}, "unknown_grace=-1 is negative"),
        ({"wait_replicas": -1}, "wait_replicas=-1 is no count"),
        ({"wait_replicas": True}, "wait_replicas=True is no count"),
        ({"include": ["shop mail"]}, "include holds 'shop mail', which is no module"),
        ({"include": [5]}, "include holds 5, which is no module"),
        ({"retention": "24h"}, "retention='24h' is no Retention"),
        ({"app": "shop app"}, "app='shop app' names no application"),
    ],
)
def test_refusals_name_the_argument_and_the_rule(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 (the words are checked below)
        resolve(**wrong, environ={})
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "wrong", [{"completed": "x"}, {"failed": -1}, {"cancelled": True}, {"max_completed": -1}, {"max_failed": 1.5}]
)
def test_retention_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"Retention\.{next(iter(wrong))}="):
        Retention(**wrong)


def test_one_module_may_stand_alone() -> None:
    assert resolve(include="shop.mail", environ={}).include == ("shop.mail",)
    assert resolve(include=["shop.*.tasks", "*"], environ={}).include == ("shop.*.tasks", "*")


def test_the_password_is_shown_nowhere() -> None:
    settings = resolve(url="redis://:hunter2@db/0", environ={})
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings.explain())
    assert ("url", "redis://:***@db/0", "argument") in settings.explain()


def test_explain_reads_as_people_write() -> None:
    shown = {name: value for name, value, _ in resolve(include=["a", "b"], environ={}).explain()}
    assert shown == {
        "url": "redis://localhost:6379/0",
        "namespace": "taskq",
        "include": "a, b",
        "retention": "completed 1d, failed 14d, cancelled 14d, max_completed 10000, max_failed 100000",
        "lease": "8s",
        "deadline": "5s",
        "max_payload": "1048576",
        "unknown_grace": "1h",
        "wait_replicas": "0",
        "app": "",
    }


def test_the_hello_message_carries_settings() -> None:
    settings = resolve(
        url="redis://:pw@db", include=["a.b"], retention=Retention(completed="1m", max_failed=7), environ={}
    )
    said = json.loads(json.dumps(settings.to_dict()))
    assert Settings.from_dict(said) == settings
    # A worker of another version may say more or less.
    assert Settings.from_dict({"namespace": "shop", "colour": "red"}) == Settings(namespace="shop")
    assert Retention.from_dict({"max_failed": 7, "colour": 1}).max_failed == 7


def test_settings_are_frozen_and_travel() -> None:
    settings = resolve(namespace="shop", environ={})
    with pytest.raises(AttributeError):
        settings.namespace = "other"  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(settings))  # noqa: S301 (our own bytes)
    assert again == settings


@pytest.mark.parametrize("good", ["a", "0", "email", "a.b_c-d", "x" * 64])
def test_names(good: str) -> None:
    assert checked_name(good, name="queue") == good


@pytest.mark.parametrize("bad", ["", "A", "-a", ".a", "_", "a b", "a{b", "a:b", "a\n", "é", "x" * 65, None, 5])
def test_refuses_what_may_not_stand_in_a_key(bad: object) -> None:
    with pytest.raises(ValueError, match=r"^queue=.* is no name"):
        checked_name(bad, name="queue")


@given(st.text(max_size=70))
def test_a_name_never_breaks_a_key(text: str) -> None:
    try:
        checked_name(text, name="queue")
    except ValueError:
        return
    assert text.isascii()
    assert not set(text) & set("{}: \n*?[]")
