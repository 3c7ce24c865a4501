"""Whatever is given where a name, a number, a time or a text should be: refused in one short line that names it."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.address import mask_url, parse_url
from taskq.errors import shown
from taskq.options import Options, checked_task_name, declare
from taskq.settings import checked_name, resolve
from taskq.units import duration_ms, instant_ms, size_bytes

OPTIONS = (
    "queue", "priority", "delay", "at", "expires", "max_attempts", "backoff", "timeout", "hard_timeout", "tags", "meta",
    "id", "keep", "keep_result", "on_lease_lost",
)  # fmt: skip
SETTINGS = ("url", "namespace", "lease", "deadline", "max_payload", "unknown_grace", "wait_replicas", "app", "include",
            "retention")  # fmt: skip
LONG = 100_000
HUGE = 10**5000
LAST = datetime.max.replace(tzinfo=UTC)


class Rude:
    def __repr__(self):
        raise RuntimeError("no")

    def __str__(self):
        raise RuntimeError("no")


class Coloured:
    def __repr__(self):
        return "\x1b[31mred\ud800" * 100


HOSTILE = {
    "empty": "", "NUL": "a\0b", "half a pair": "\ud800", "escape": "\x1b[31mx\x07", "newline": "a\nb",
    "long": "x" * LONG, "digits": "9" * LONG, "other digits": "५１", "spaces": " 5 ", "huge": HUGE, "-huge": -HUGE,
    "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "large": 1e308, "true": True,
    "bytes": b"\xff" * LONG, "list": ["x"] * LONG, "list of long": ["a" * LONG], "list of huge": [HUGE],
    "nested": [[[[[[[[]]]]]]]], "tags": [f"t{n}" for n in range(1000)], "meta": {"k": "v" * LONG},
    "numbers": {1: 2}, "huge in meta": {"k": HUGE}, "half a pair in meta": {"\ud800": "x"},
    "decimal": Decimal("1e999999"), "longest": timedelta.max, "shortest": timedelta.min,
    "naive": LAST.replace(tzinfo=None), "last": LAST, "first": datetime.min.replace(tzinfo=UTC),
    "range": range(10**9), "rude": Rude(), "coloured": Coloured(), "object": object(), "function": len,
    "class": Rude,
}  # fmt: skip


def refused(name, call):
    """If it is refused, then so."""
    try:
        call()
    except (ValueError, NotImplementedError) as error:
        told = str(error)
        assert len(told) < 500
        assert told.isprintable(), told
        assert name in told
        assert "Exceeds the limit" not in told


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option(name, value):
    refused(name, lambda: Options(**{name: value}))


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting(name, value):
    refused(name, lambda: resolve(environ={}, **{name: value}))
    if isinstance(value, str):
        refused(f"TASKQ_{name.upper()}", lambda: resolve(environ={f"TASKQ_{name.upper()}": value}))


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_rest(value):
    refused("duration", lambda: duration_ms(value))
    refused("size", lambda: size_bytes(value))
    refused("at", lambda: instant_ms(value))
    refused("name", lambda: checked_name(value, name="name"))
    refused("name", lambda: checked_task_name(value))
    refused("executor", lambda: declare({"executor": value}))


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("most", [20, 80])
def test_any_value_is_shown_in_a_short_line(value, most):
    text = shown(value, most)
    assert len(text) <= most
    assert text.isprintable()


def test_what_is_short_is_shown_as_it_is():
    assert shown("it's") == '"it\'s"'
    assert shown({"a": [1, None]}) == "{'a': [1, None]}"
    assert shown(10**100) == str(10**100)[:37] + "..." + str(10**100)[-37:] or len(shown(10**100)) <= 80
    assert shown(HUGE) == "an integer of 16610 bits"
    assert shown(Rude()).startswith("<Rude instance")


# --- URLs


@given(st.text())
def test_any_text_is_a_url_or_refused(text):
    for url in (text, f"redis://{text}", f"redis://h/{text}", f"redis://h/?{text}", f"unix://{text}",
                f"redis+sentinel://{text}/m", f"rediss+cluster://u:p@{text}"):  # fmt: skip
        refused("URL", lambda url=url: parse_url(url))


@given(st.text(min_size=8), st.sampled_from(["redis://u:{}@h", "redis://:{}@h:1/0", "rediss+cluster://a:{}@h,i"]))
def test_no_message_shows_a_password(password, form):
    url = form.format(password)
    assert password not in mask_url(url).removesuffix(form.partition("{}")[2])
    with contextlib.suppress(ValueError):
        assert password not in repr(parse_url(url))


@pytest.mark.parametrize(
    "url",
    ["redis://" + "a" * 64, "redis://a..b", "redis://" + "é" * 70, "unix:///a%00b", "redis://a%zz:b:c", "redis://\0"],
)
def test_hosts_and_paths_that_no_system_takes(url):
    with pytest.raises(ValueError, match="can't be used"):
        parse_url(url)


@pytest.mark.parametrize("host", ["a", "a-b_c.d.", "xn--rdis-bpa.local", "rédis.local", "127.0.0.1", "a" * 63 + ".b"])
def test_hosts_that_may_be(host):
    assert parse_url(f"redis://{host}:7").hosts == ((host, 7),)


# --- units


@given(st.text() | st.integers() | st.floats() | st.timedeltas() | st.decimals())
def test_any_duration_is_read_or_refused(value):
    refused("duration", lambda: duration_ms(value))
    refused("size", lambda: size_bytes(value))


@given(st.text(alphabet="0123456789.wdhms +-e_"))
def test_nearly_durations(text):
    refused("duration", lambda: duration_ms(text))


@given(st.text() | st.datetimes() | st.datetimes(timezones=st.timezones()))
def test_any_instant_is_read_or_refused(value):
    refused("at", lambda: instant_ms(value))
