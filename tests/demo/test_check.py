"""The demo's verdict: what counts as lost, what as wrong, and what a kill did."""

from __future__ import annotations

import json

import pytest

from taskq import codec
from taskq.demo.check import Kill, compare, kill_of, plain_pass
from taskq.demo.reading import read_file
from taskq.demo.tree import File, files
from taskq.record import JobRecord


def record(state, *, result=None, errors=(), attempt=1, epoch=None):
    fields = {b"task": b"demo.read", b"state": state.encode(), b"attempt": b"%d" % attempt}
    if epoch is not None:
        fields[b"epoch"] = b"%d" % epoch
    if result is not None:
        fields[b"result"] = codec.encode_value(result)
    for at, (kind, worker) in enumerate(errors, 1):
        fields[b"error:%d" % at] = json.dumps({"type": kind, "message": "", "at": 1, "worker": worker}).encode()
    return JobRecord.from_fields("files:1", fields)


@pytest.fixture
def two(tmp_path):
    """A text and something else, and what a plain pass says of them."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    found = files(tmp_path)
    expected = list(plain_pass(found))
    assert expected == [read_file(found[0].path), "UnicodeDecodeError"]
    return found, expected


GOOD_FAILURE = record("failed", errors=[("UnicodeDecodeError", "w.1")] * 3, attempt=3)


def test_the_same_is_good(two):
    found, expected = two
    verdict = compare(found, expected, [record("completed", result=expected[0]), GOOD_FAILURE])
    assert verdict.good
    assert (verdict.jobs.read, verdict.jobs.failed, verdict.jobs.lines, verdict.examples) == (1, 1, 2, [])


@pytest.mark.parametrize("missing", [None, record("available"), record("running"), record("retryable")])
def test_a_job_without_an_end_is_lost(two, missing):
    found, expected = two
    verdict = compare(found, expected, [missing, GOOD_FAILURE])
    assert (verdict.lost, verdict.wrong, verdict.good) == (1, 0, False)
    assert found[0].path in verdict.examples[0]


@pytest.mark.parametrize(
    "first",
    [
        record("completed", result={"sha256": "", "size": 8, "lines": 9, "longest": 3, "compressed": 1}),
        record("failed", errors=[("JobCrashed", "w.1")] * 3, attempt=3),
        record("cancelled"),
    ],
)
def test_another_outcome_is_wrong(two, first):
    found, expected = two
    verdict = compare(found, expected, [first, GOOD_FAILURE])
    assert (verdict.lost, verdict.wrong, verdict.good) == (0, 1, False)


def test_a_failure_whose_last_attempt_the_kill_cut_short_is_the_failure_it_would_have_been(two):
    found, expected = two
    cut = record("failed", errors=[("UnicodeDecodeError", "w.1")] * 2 + [("JobCrashed", "w.1")], attempt=3)
    assert compare(found, expected, [record("completed", result=expected[0]), cut]).good


def test_a_file_that_was_changed_meanwhile_is_left_out(two):
    found, expected = two
    stale = [File(found[0].path, (1, 1)), found[1]]
    verdict = compare(stale, expected, [None, GOOD_FAILURE])
    assert (verdict.lost, verdict.changed, verdict.good) == (0, 1, True)


def test_a_kill_is_measured_until_the_last_of_its_jobs_ran_again():
    crash = ("JobCrashed", "w.2")
    records = [
        record("completed", errors=[crash], attempt=2, epoch=1_000_250),
        record("completed", errors=[crash], attempt=2, epoch=1_000_400),
        # Ran again, failed, and was retried: its epoch is that of the retry.
        record("failed", errors=[crash, ("UnicodeDecodeError", "w.1")], attempt=3, epoch=1_009_999),
        record("completed", errors=[("JobCrashed", "w.9")], attempt=2, epoch=1_009_999),
        record("completed", epoch=1_000_999),
        None,
    ]
    assert kill_of(records, "w.2", 1_000_000) == Kill(3, 0.4)
    assert kill_of(records, "w.3", 1_000_000) == Kill(0, None)
