"""Coverage-guided fuzzing of what reads foreign bytes, by hand: `python -m tests.fuzz -max_total_time=600`.

Needs `pip install atheris` beside taskq, which has wheels for few versions of Python: so it is no part of the tests.
The words go to libFuzzer. Each reader may refuse in its own words; any other error ends the run, and the input stays in
a file `crash-*`. What was found stands as an example in the hypothesis tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["taskq"]):
    from taskq import codec
    from taskq.address import mask_url, parse_url
    from taskq.calendar import next_after, read_rule
    from taskq.cli.argument import read_args, read_payload
    from taskq.errors import BadRecord, TaskQError
    from taskq.record import JobRecord, damaged
    from taskq.record.fields import NAMES
    from taskq.retry import Backoff
    from taskq.units import duration_ms, size_bytes

#: All that are read, those that may be large, and one that nobody knows.
FIELDS = (*NAMES, b"payload", b"result", b"progress", b"error:1", b"other")


def _values(data: bytes) -> None:
    codec.value_to_json(data)
    codec.call_to_json(data)
    try:
        codec.decode_value(data)
    except BadRecord:
        return
    codec.decode_value(codec.encode_value(codec.decode_value(data)))


def _calls(data: bytes) -> None:
    codec.decode(data)


def _records(data: bytes) -> None:
    given = atheris.FuzzedDataProvider(data)
    fields = {
        FIELDS[given.ConsumeIntInRange(0, len(FIELDS) - 1)]: given.ConsumeBytes(given.ConsumeIntInRange(0, 40))
        for _ in range(given.ConsumeIntInRange(1, len(FIELDS)))
    }
    try:
        record = JobRecord.from_fields("default:x", {b"state": b"completed", b"task": b"t"} | fields)
        record.to_dict()
        record.arguments()
    except BadRecord as error:
        damaged("default:x", fields, error)


def _texts(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    words: Callable[[str], object] = lambda given: read_args(given.split(" "))  # noqa: E731
    for read in (parse_url, mask_url, read_payload, Backoff.from_spec, duration_ms, size_bytes, words):
        try:
            read(text)
        except (ValueError, TaskQError):
            continue


def _rules(data: bytes) -> None:
    rule = read_rule(data)
    at = next_after(rule, 1_800_000_000_000)
    if at is not None and at <= 1_800_000_000_000:
        raise AssertionError(f"{rule} doesn't advance")


READERS = (_values, _calls, _records, _texts, _rules)


def one(data: bytes) -> None:
    """One input: its first byte chooses the reader."""
    if not data:
        return
    try:
        READERS[data[0] % len(READERS)](data[1:])
    except (ValueError, TaskQError):
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
