"""Durations, sizes and instants: what is read, what is refused, and what comes back."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.units import LONGEST_MS, duration_ms, duration_text, instant_ms, rfc3339, size_bytes


@pytest.mark.parametrize(
    "written, ms",
    [
        (0, 0),
        (30, 30_000),
        (1.5, 1500),
        (0.1, 100),
        (timedelta(hours=1, microseconds=1), 3_600_000),
        ("8s", 8000),
        ("250ms", 250),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        ("1.5h", 5_400_000),
        (" 1h 30m ", 5_400_000),
        ("1m250ms", 60_250),
        ("90", 90_000),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_durations(written: Any, ms: int) -> None:
    assert duration_ms(written) == ms
    assert type(duration_ms(written)) is int


@pytest.mark.parametrize("tiny", [0.0001, "0.1ms", timedelta(microseconds=1), 1e-300])
def test_a_duration_above_zero_is_never_zero(tiny: Any) -> None:
    # A timeout of 0 means "none": rounding must not turn a short one into that.
    assert duration_ms(tiny) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "s",
        "five",
        "5x",
        "5m1h",
        "1s1s",
        "1h-30m",
        "5 5",
        "1e3",
        "٥m",
        "5M",
        "9" * 10_000,
        None,
        True,
        b"5m",
        [5],
        5j,
    ],
)
def test_refuses_what_is_no_duration(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^timeout=.* is no duration: give seconds") as refusal:
        duration_ms(wrong, name="timeout")
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 10**400, 1e300, "99999999d", LONGEST_MS // 1000 + 1])
def test_refuses_what_is_out_of_range(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^delay=.* finite and at most 100 years"):
        duration_ms(wrong, name="delay", negative=True)


def test_the_longest_duration_is_taken() -> None:
    assert duration_ms(LONGEST_MS // 1000) == LONGEST_MS


@pytest.mark.parametrize("minus", [-1, -0.001, "-5m", timedelta(seconds=-1)])
def test_negative_only_where_asked(minus: Any) -> None:
    with pytest.raises(ValueError, match=r"^delay=.* is negative"):
        duration_ms(minus, name="delay")
    assert duration_ms(minus, negative=True) < 0


@given(st.integers(-LONGEST_MS, LONGEST_MS))
def test_a_written_duration_reads_back(ms: int) -> None:
    assert duration_ms(duration_text(ms), negative=True) == ms
    assert duration_ms(timedelta(milliseconds=ms), negative=True) == ms


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        ms = duration_ms(text)
    except ValueError:
        return
    assert 0 <= ms <= LONGEST_MS


def test_duration_text_is_short() -> None:
    written = [duration_text(ms) for ms in (0, 250, 8000, 5_400_000, 14 * 86_400_000)]
    assert written == ["0s", "250ms", "8s", "1h30m", "14d"]


@pytest.mark.parametrize(
    "written, count",
    [
        (1, 1),
        (1_048_576, 1_048_576),
        ("1MiB", 1_048_576),
        ("1mib", 1_048_576),
        ("512 KiB", 524_288),
        ("1.5KiB", 1536),
        ("10MB", 10_000_000),
        ("2GiB", 2**31),
        ("4096", 4096),
        ("7B", 7),
    ],
)
def test_sizes(written: Any, count: int) -> None:
    assert size_bytes(written) == count


@pytest.mark.parametrize("wrong", ["", "MiB", "1XB", "1M", "-1KiB", 0, -5, 1.5, True, None, "0.1B"])
def test_refuses_what_is_no_size(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^max_payload=.* is no size: give bytes"):
        size_bytes(wrong, name="max_payload")


def test_instants() -> None:
    berlin = timezone(timedelta(hours=1))
    assert instant_ms(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert instant_ms(datetime(1970, 1, 1, 1, 0, 1, tzinfo=berlin)) == 1000
    assert instant_ms("1970-01-01T00:00:02.5Z") == 2500
    assert instant_ms("1970-01-01T01:00:02+01:00") == 2000


def test_an_instant_never_comes_early() -> None:
    assert instant_ms(datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)) == 1


@pytest.mark.parametrize(
    "naive", [datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None), "2030-01-01T00:00:00", "2030-01-01"]
)
def test_refuses_naive_times(naive: Any) -> None:
    with pytest.raises(ValueError, match=r"^expires=.* has no time zone: give an aware datetime"):
        instant_ms(naive, name="expires")


@pytest.mark.parametrize("wrong", [5, 5.0, "soon", "", None, date(2030, 1, 1), "x" * 999])
def test_refuses_what_is_no_instant(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^at=.* is no instant") as refusal:
        instant_ms(wrong)
    assert len(str(refusal.value)) < 250


def test_refuses_times_before_1970() -> None:
    with pytest.raises(ValueError, match="before 1970"):
        instant_ms(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC).replace(year=1900))


@given(st.integers(0, 253_402_300_799_999))
def test_an_instant_reads_back(ms: int) -> None:
    text = rfc3339(ms)
    assert len(text) == 24
    assert text.endswith("Z")
    assert instant_ms(text) == ms


def test_rfc3339_has_milliseconds_always() -> None:
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"
    assert rfc3339(1_764_424_800_007) == "2025-11-29T14:00:00.007Z"


@pytest.mark.parametrize("wrong", [10**18, -(10**18), 10**400])
def test_rfc3339_refuses_what_no_clock_said(wrong: int) -> None:
    with pytest.raises(ValueError, match="is no instant"):
        rfc3339(wrong)
