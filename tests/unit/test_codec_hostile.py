"""Bytes and values meant to do harm: the one outcome is our own error, and nothing is run or imported."""

import builtins
import importlib.util
import struct
import sys
import threading
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskq import codec
from taskq.codec.wire import Code
from taskq.errors import InvalidPayload, PayloadTooLarge, Unencodable

BUILT: list[str] = []


@dataclass
class Traced:
    x: int

    def __post_init__(self):
        BUILT.append("Traced")


class Colour(Enum):
    RED = 1


def ext(code, body):
    return struct.pack(">BIb", 0xC9, len(body), code) + body


def named(code, name, state):
    return ext(code, msgpack.packb([name, state]))


def nested_lists(depth):
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


def nested_tuples(depth):
    value: tuple = ()
    for _ in range(depth - 1):
        value = (value,)
    return value


def nested_dicts(depth):
    value: dict = {}
    for _ in range(depth - 1):
        value = {"k": value}
    return value


def nested_mixture(depth):
    value: object = []
    for level in range(depth - 1):
        value = [[value], (value,), {"k": value}, {1: 2, (3,): value}][level % 4]
    return value


SHAPES = [nested_lists, nested_tuples, nested_dicts, nested_mixture]

# --- depth ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_what_may_be_stored_can_be_read_and_shown(shape):
    value = shape(codec.MAX_DEPTH)
    assert codec.decode_value(codec.encode_value(value)) == value
    assert codec.decode(codec.encode((value,), {"k": value})) == ((value,), {"k": value})
    codec.to_json(value)
    codec.call_to_json(codec.encode((value,), {"k": value}))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("depth", [codec.MAX_DEPTH + 1, 900, 1100, 10_000, 100_000])
def test_deeper_is_refused_at_once(shape, depth):
    value = shape(depth)
    for args, kwargs, place in (((value,), {}, r"args\[0\]"), ((), {"k": value}, r'kwargs\["k"\]')):
        with pytest.raises(Unencodable, match=rf"^{place}: it is nested deeper than 100 levels, or contains itself"):
            codec.encode(args, kwargs)
    with pytest.raises(Unencodable, match=r"^value: it is nested deeper"):
        codec.encode_value(value)


def test_a_cycle_is_refused():
    ring: list = []
    ring.append((ring, {"k": ring}))
    with pytest.raises(Unencodable, match=r"^args\[0\]: .*contains itself"):
        codec.encode((ring,), {})


def test_many_containers_side_by_side_are_not_deep():
    rows = [{"a": [1], "b": (2,)} for _ in range(500)]
    assert codec.decode_value(codec.encode_value(rows)) == rows


def deep_bytes(depth):
    array = b"\x91" * depth
    mapping = b"\x81\xa1k" * depth
    yield from (array + b"\x90", mapping + b"\x80", b"\x92\x91" + array + b"\x90\x80")
    yield b"\xdd\x00\x00\x00\x01" * depth + b"\xc0"
    body = b"\x90"  # a tuple in a tuple in a tuple, whatever the length of it
    for _ in range(min(depth, 2000)):
        body = b"\x91\xc9" + struct.pack(">Ib", len(body), Code.TUPLE) + body
    yield ext(Code.TUPLE, body)
    for code in (Code.OBJECT, Code.DATACLASS, Code.ENUM, 99):
        yield named(code, "x", 1)[:-1] + array + b"\x90"


@pytest.mark.parametrize("depth", [101, 1000, 1100, 100_000])
def test_deep_bytes_made_by_hand_are_invalid(depth):
    for data in deep_bytes(depth):
        for read in (codec.decode, codec.decode_value, codec.value_to_json, codec.call_to_json):
            with pytest.raises(InvalidPayload):
                read(data)


def test_the_shallowest_stack_suffices():
    """Bytes are read in threads too, whose stacks are small on some systems."""
    outcomes = []

    def work():
        for data in deep_bytes(1000):
            try:
                codec.decode(data)
            except InvalidPayload:
                outcomes.append("invalid")

    threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(0)
    thread.join()
    assert set(outcomes) == {"invalid"}


# --- size -----------------------------------------------------------------------


def test_the_limit_counts_stored_bytes():
    size = len(codec.encode(("x" * 1000,), {}))
    assert codec.encode(("x" * 1000,), {}, max_bytes=size)
    with pytest.raises(PayloadTooLarge, match=f"the arguments take {size} bytes, over the limit of {size - 1}"):
        codec.encode(("x" * 1000,), {}, max_bytes=size - 1)
    with pytest.raises(PayloadTooLarge, match=r"the result takes 2000 bytes.*pass a reference"):
        codec.encode_value("x" * 2000, name="result", max_bytes=1999)
    with pytest.raises(PayloadTooLarge, match="the result takes"):
        codec.encode_value(["é" * 1000], name="result", max_bytes=1999)


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x02",
        (b"\xdd" + (1 << 16).to_bytes(4, "big")) * 90 + b"\0" * (1 << 16),
    ],
)
def test_claimed_sizes_take_no_memory(data):
    with pytest.raises(InvalidPayload):
        codec.decode_value(data)


# --- damage ---------------------------------------------------------------------

GOOD = codec.encode(
    (1, "a", (2, {3}), 1 << 70, Colour.RED, Traced(1)), {"k": [None, 1.5, b"x"], "when": frozenset({(1, 2)})}
)


@pytest.mark.parametrize("length", range(1, len(GOOD)))
def test_truncated_bytes_are_invalid(length):
    with pytest.raises(InvalidPayload):
        codec.decode(GOOD[:length])


@given(st.data())
@settings(deadline=None)
def test_changed_bytes_are_valid_or_invalid_never_worse(data):
    bad = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    survive(bytes(bad))


code_bodies = st.builds(
    ext,
    st.integers(-1, 17),
    st.binary(max_size=20)
    | st.text(max_size=20).map(str.encode)
    | st.tuples(
        st.sampled_from(["", ":", "a:b", "enum:Enum", "builtins:eval", __name__ + ":Traced"]), st.integers(0, 9)
    )
    .map(list)
    .map(msgpack.packb),
)


@given(st.binary(max_size=60) | code_bodies | st.binary(max_size=4).flatmap(lambda a: code_bodies.map(a.__add__)))
@example(msgpack.packb([[], [], []]))
@example(msgpack.packb([[], {1: 2}]))
@example(msgpack.packb([{}, []]))
@example(b"\x81\x90\x01")  # a list as a key
@example(ext(Code.SET, b"\x91\x90"))  # a list in a set
@example(ext(Code.SET, b"\x81\x01\x02"))
@example(ext(Code.DECIMAL, b"1e"))
@example(ext(Code.UUID, b"x"))
@example(ext(Code.INT, b"\xff" * 5000))
@example(ext(Code.TIMEDELTA, b"9" * 5000))
@example(ext(Code.TIMEDELTA, b"9" * 24))
@example(ext(Code.DATETIME, b"2024-02-30"))
@example(ext(Code.DATETIME, b"0001-01-01T00:00:00+23:00;Europe/Berlin;0"))
@example(ext(Code.COMPLEX, b""))
@example(ext(-1, b"\xff" * 8))
@settings(deadline=None, max_examples=300)
def test_any_bytes_are_valid_or_invalid_never_worse(data):
    survive(data)


def survive(data):
    for read in (codec.decode, codec.decode_value, codec.value_to_json, codec.call_to_json):
        try:
            read(data)
        except InvalidPayload as error:
            said = str(error)
        else:
            continue
        assert 0 < len(said) < 1000


# --- bytes are data -------------------------------------------------------------


@pytest.mark.parametrize(
    "zone", ["../../etc/passwd", "/etc/passwd", "Europe/../Berlin", "a" * 5000, "Mars/Olympus", ".", "\0"]
)
def test_a_zone_is_no_path(zone, monkeypatch):
    if zone != "Mars/Olympus":
        monkeypatch.setattr(builtins, "open", lambda *a, **k: pytest.fail("opened a file"))
    body = f"2024-01-01T00:00:00+01:00;{zone};0".encode()
    with pytest.raises(InvalidPayload, match=r"names no time zone|isn't known here: install the package tzdata"):
        codec.decode_value(ext(Code.DATETIME, body))


@pytest.mark.parametrize("code", [Code.ENUM, Code.DATACLASS, Code.MODEL])
@pytest.mark.parametrize(
    "name",
    [
        "builtins:eval",
        "builtins:dict",
        "os:system",
        "subprocess:Popen",
        "enum:Enum",
        "this:anything",
        "colorsys:x",
        f"{__name__}:ext",
        f"{__name__}:BUILT",
        f"{__name__}:msgpack.Packer",
        f"{__name__}:Traced.__class__",
        f"{__name__}:Colour.RED",
        f"{__name__}:",
        ":",
        "",
        7,
        None,
        [],
        "x" * 5000,
    ],
)
def test_names_lead_only_to_loaded_classes_of_their_kind(code, name):
    loaded = set(sys.modules)
    with pytest.raises(InvalidPayload):
        codec.decode_value(named(code, name, {"x": "echo"}))
    assert "this" not in sys.modules
    assert set(sys.modules) - loaded <= {"pydantic"}


def test_a_class_not_loaded_is_named():
    with pytest.raises(InvalidPayload, match=r"class shop\.models\.Order isn't loaded.*import its module"):
        codec.decode_value(named(Code.DATACLASS, "shop.models:Order", {}))


def test_a_kind_is_not_another():
    for code, name in ((Code.ENUM, "Traced"), (Code.DATACLASS, "Colour")):
        with pytest.raises(InvalidPayload):
            codec.decode_value(named(code, f"{__name__}:{name}", {"x": 1}))
    with pytest.raises(InvalidPayload, match="Colour can't be rebuilt: ValueError: 7 is not a valid"):
        codec.decode_value(named(Code.ENUM, f"{__name__}:Colour", 7))
    with pytest.raises(InvalidPayload, match="Traced can't be rebuilt: TypeError"):
        codec.decode_value(named(Code.DATACLASS, f"{__name__}:Traced", {}))


def test_looking_up_runs_no_code_of_modules(monkeypatch):
    lively = ModuleType("lively")
    lively.__getattr__ = lambda name: pytest.fail("asked the module")
    monkeypatch.setitem(sys.modules, "lively", lively)
    spec = importlib.util.find_spec("this")
    assert spec
    assert spec.loader
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "this", lazy)
    spec.loader.exec_module(lazy)  # prints a poem at the first look inside
    for name in ("lively:Order", "this:Order"):
        with pytest.raises(InvalidPayload, match="isn't loaded"):
            codec.decode_value(named(Code.DATACLASS, name, {}))
    assert "s" not in object.__getattribute__(lazy, "__dict__")


def test_showing_builds_nothing():
    stored = codec.encode_value([Traced(1)])
    BUILT.clear()
    codec.value_to_json(stored)
    assert BUILT == []


def test_an_unknown_extension_is_told_as_a_newer_one():
    for read in (codec.decode_value, codec.value_to_json):
        for body in (named(99, "x", 1), msgpack.packb(msgpack.ExtType(99, b"no msgpack at all \xc1"))):
            with pytest.raises(InvalidPayload, match="extension 99, which this version of taskq doesn't know"):
                read(body)


# --- many threads ---------------------------------------------------------------


@dataclass
class Nest:
    inner: object = field(default_factory=list)


def test_threads_share_the_packers():
    failures = []

    def work(number):
        value = [number, (number, {"k": Nest((number, "\udcff" * (number % 2)))})] * 3
        try:
            for _ in range(300):
                assert codec.decode_value(codec.encode_value(value)) == value
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
