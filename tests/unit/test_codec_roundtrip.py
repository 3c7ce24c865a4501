"""Every value that can be stored comes back equal, of the same type, and byte for byte as it was."""

import json
import math
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskq import codec

BERLIN = ZoneInfo("Europe/Berlin")
WINTER = timezone(timedelta(hours=1))

VALUES = {
    "nothing": None,
    "true": True,
    "zero": 0,
    "15 digits and more": 130775545883395173,
    "2**53 + 1": 2**53 + 1,
    "2**63": 2**63,
    "2**64 - 1": 2**64 - 1,
    "2**64": 2**64,
    "-2**63 - 1": -(2**63) - 1,
    "a long integer": -(7**2900),
    "0.1": 0.1,
    "1e308": 1e308,
    "the smallest float": 5e-324,
    "inf": math.inf,
    "-inf": -math.inf,
    "text": "naïve 🎉",
    "NUL": "a\0b",
    "a lone surrogate": "file-\udcff.txt",
    "bytes": bytes(range(256)),
    "empty list": [],
    "empty dict": {},
    "empty tuple": (),
    "list of tuples": [(1, 2), [1, 2], ((),)],
    "keys of all kinds": {1: "a", (2, "b"): "c", None: 3, 1.5: 4, b"k": 5, "t": 6, frozenset({1}): 7},
    "set": {1, "a", (2, 3)},
    "frozenset": frozenset({1, b"x"}),
    "complex": complex(-0.0, 2.5),
    "uuid": uuid.UUID("018f0000-0000-7000-8000-000000000001"),
    "decimal": Decimal("1.10"),
    "a great decimal": Decimal("-1E+999999"),
    "date": date(2024, 2, 29),
    "time": time(23, 59, 59, 999999),
    "aware time": time(1, 2, tzinfo=UTC),
    "zoned time": time(1, 2, tzinfo=BERLIN, fold=1),
    "naive": datetime.combine(date.min, time.min),
    "utc": datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    "offset": datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    "offset of seconds": datetime(1890, 1, 1, tzinfo=timezone(timedelta(seconds=3208, microseconds=1))),
    "timedelta": timedelta(days=-3, seconds=5, microseconds=7),
    "the longest timedelta": timedelta.max,
    "the shortest timedelta": timedelta.min,
}


def again(value, types=None):
    """The value after a journey as a result; as an argument it must be the same."""
    back = codec.decode_value(codec.encode_value(value, types), types)
    args, kwargs = codec.decode(codec.encode([value], {"k": value}, types), types)
    assert repr(args) == repr((back,))
    assert repr(kwargs) == repr({"k": back})
    return back


def same(a, b):
    """Equal, and of equal types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, set | frozenset):
        return a == b and {type(x) for x in a} == {type(x) for x in b}
    return repr(a) == repr(b)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_values_come_back_as_they_were(value):
    back = again(value)
    assert same(back, value)
    assert codec.encode_value(back) == codec.encode_value(value) or isinstance(value, set)


def test_nan_and_negative_zero_keep_their_bits():
    assert math.isnan(again(math.nan))
    assert math.copysign(1, again(-0.0)) == -1
    assert again(Decimal("NaN")).is_nan()
    assert again(Decimal("sNaN")).is_snan()
    assert str(again(Decimal("-0"))) == "-0"


@pytest.mark.parametrize("fold", [0, 1])
def test_the_hour_that_happens_twice_keeps_its_side(fold):
    for zone in (BERLIN, None, WINTER):
        moment = datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=zone)
        back = again(moment)
        assert (back, back.fold, back.utcoffset()) == (moment, fold, moment.utcoffset())
        assert back.tzinfo == zone


def test_a_zone_outlives_its_rules():
    """Where the rules of a zone have changed since, the instant is kept, not the clock's face."""
    body = b"2024-07-01T12:00:00+05:00;Europe/Berlin;0"  # written where Berlin was 5 hours ahead
    back = codec.decode_value(b"\xc7" + bytes([len(body), 5]) + body)
    assert back == datetime(2024, 7, 1, 7, tzinfo=UTC)
    assert back.tzinfo == BERLIN


def test_other_kinds_of_zones_keep_their_instant():
    from datetime import tzinfo

    class Odd(tzinfo):
        def utcoffset(self, moment):
            return timedelta(hours=3)

    moment = datetime(2024, 1, 1, tzinfo=Odd())
    assert again(moment) == moment


def test_no_arguments_and_none_cost_no_bytes():
    assert codec.encode((), {}) == b""
    assert codec.decode(b"") == ((), {})
    assert codec.encode_value(None) == b""
    assert codec.decode_value(b"") is None
    assert codec.decode(codec.encode((None,), {})) == ((None,), {})


def test_writable_bytes_arrive_as_bytes():
    assert again(bytearray(b"x")) == b"x"
    assert again(memoryview(b"x")) == b"x"


def test_a_drivers_uuid_arrives_as_a_uuid():
    class DriverUUID(uuid.UUID):
        pass

    value = DriverUUID(int=7)
    assert type(again(value)) is uuid.UUID


def test_plain_values_are_plain_msgpack():
    """So that other programs can read and write what isn't Python's own."""
    import msgpack

    assert msgpack.unpackb(codec.encode((1, "a"), {"k": [1.5, None]})) == [[1, "a"], {"k": [1.5, None]}]
    assert codec.decode_value(msgpack.packb(msgpack.Timestamp(1700000000, 5000))) == datetime(
        2023, 11, 14, 22, 13, 20, 5, UTC
    )


zones = st.none() | st.sampled_from([UTC, BERLIN, WINTER, timezone(timedelta(seconds=-1))])
keys = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.dates() | st.uuids()
scalars = (
    keys
    | st.integers(min_value=-(2**200), max_value=2**200)
    | st.floats()
    | st.text(st.characters(), max_size=10)
    | st.datetimes(timezones=zones)
    | st.times(timezones=zones)
    | st.timedeltas()
    | st.decimals()
    | st.complex_numbers()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys | st.tuples(keys, keys), inner, max_size=3)
        | st.sets(keys, max_size=3)
        | st.frozensets(keys, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(values, st.dictionaries(st.text(max_size=5), scalars, max_size=2))
def test_any_value_comes_back_and_shows_as_json(value, named):
    assert same(codec.decode_value(codec.encode_value(value)), value)
    assert same(codec.decode(codec.encode([value], named)), ((value,), named))
    json.loads(json.dumps(codec.to_json(value), allow_nan=False))
