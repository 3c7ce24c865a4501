"""The clients: equal faces; lists of ids and batches cut, put together again and told apart. No server is needed."""

from __future__ import annotations

import inspect
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.app import TaskQ
from taskq.calls import uuid7
from taskq.client import AsyncClient, Client, batch, operations, sweep
from taskq.commands import NewJob
from taskq.errors import InvalidTransition, JobNotFound, ServerFull, TaskQError, Unavailable
from taskq.handle import Job
from taskq.inspector import Inspector
from taskq.queue import Queue
from taskq.task import Task

# --- parity


def public(cls: type) -> dict[str, object]:
    own = [each for each in reversed(cls.__mro__) if each.__module__.startswith("taskq")]
    found = {name: value for each in own for name, value in vars(each).items()}
    return {name: value for name, value in found.items() if callable(value) and not name.startswith("__")}


def parameters(method: object) -> list[tuple[str, object, object]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]


def test_the_clients_are_twins():
    plain, awaited = public(Client), public(AsyncClient)
    assert plain.keys() == awaited.keys()
    for name, method in plain.items():
        assert parameters(method) == parameters(awaited[name]), name
        assert inspect.iscoroutinefunction(awaited[name]), name
        assert not inspect.iscoroutinefunction(method), name
    assert parameters(Client.__init__) == parameters(AsyncClient.__init__)


@pytest.mark.parametrize("cls", [TaskQ, Task, Job, Queue, Inspector], ids=lambda cls: cls.__name__)
def test_a_twins_take_what_their_twins_take(cls):
    methods = public(cls)
    awaited = [name for name, method in methods.items() if inspect.iscoroutinefunction(method)]
    assert awaited
    for name in awaited:
        plain = f"_{name[2:]}" if name.startswith("_a") else name[1:]
        assert name.removeprefix("_")[0] == "a"
        assert parameters(methods[plain]) == parameters(methods[name]), name


# --- lists of ids


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 400)), max_size=700))
def test_ids_of_many_queues_are_asked_by_queue_and_answered_in_their_order(pairs):
    ids = [f"{queue}:{number}" for queue, number in pairs]
    operation = operations.cancel_many("ns", ids, running=True, force=False, partial=True)
    replies = []
    for command in operation.commands:
        asked = command.args[len(command.script.args) :]
        assert len(asked) <= 250
        assert {operations.keys.queue_of(id) for id in asked} == {command.keys[0].split("{")[1].split("}")[0]}
        replies.append([f"word for {id}" for id in asked])
    assert operation.fold(replies) == [f"word for {id}" for id in ids]


def test_what_can_be_no_id_is_missing_or_refuses_the_whole_list():
    ids = ["q:1", "nonsense", "Q:1", ""]
    operation = operations.retry_many("ns", ids, partial=True)
    assert operation.fold([["available"]]) == ["available", "missing", "missing", "missing"]
    with pytest.raises(JobNotFound, match="'nonsense': a full id is <queue>:<id>"):
        operations.retry_many("ns", ids, partial=False)
    assert operations.records("ns", ["nonsense"]).fold([]) == [None]


@pytest.mark.parametrize("word", ["removed", "requested", "too_late"])
def test_one_cancel_gives_its_word(word):
    command = operations.cancel("ns", "q:1", running=True, force=False)
    assert command.read([b"ok", word.encode()]) == word


def test_one_cancel_tells_unknown_from_running():
    command = operations.cancel("ns", "q:1", running=False, force=False)
    with pytest.raises(JobNotFound):
        command.read([b"ok", b"missing"])
    with pytest.raises(InvalidTransition, match="q:1 is running") as caught:
        command.read([b"ok", b"running"])
    assert (caught.value.from_state, caught.value.to_state) == ("running", "cancelled")


def test_only_what_waits_is_purged_and_only_what_ended_is_cleared():
    with pytest.raises(ValueError, match="'running' can't be purged"):
        sweep.purge("ns", "q", ["available", "running"])
    with pytest.raises(ValueError, match="'available' can't be cleared"):
        sweep.clear("ns", "q", ["available"])
    with pytest.raises(ValueError, match="limit=0"):
        sweep.clear("ns", "q", ["failed"], limit=0)
    with pytest.raises(ValueError, match="queue='Q'"):
        sweep.purge("ns", "Q", ["available"])


def swept(jobs, there, answer):
    """Drives a sweep: the states and sizes of its steps, and what it says at the end."""
    command, steps, reply = next(jobs), [], there
    while True:
        try:
            command = jobs.send(reply)
        except StopIteration as end:
            return steps, end.value
        state, size = command.args[-1], command.args[command.script.args.index("limit")]
        steps.append((state, size))
        reply = answer(state, size)


def test_a_sweep_ends_though_others_add_faster_than_it_takes():
    there = {"available": 600, "scheduled": 3, "retryable": 0, "pending": 0}
    steps, count = swept(sweep.purge("ns", "q", ["available", "scheduled", "pending"]), there, lambda _, n: (n, n))
    assert steps == [("available", 250)] * 3 + [("scheduled", 250)]
    assert count == 1000


def test_a_sweep_of_more_lanes_than_are_counted_goes_on_until_nothing_is_left():
    left = iter([(250, 250), (250, 250), (17, 17)])
    steps, count = swept(sweep.purge("ns", "q", ["available"]), {"available": math.inf}, lambda *_: next(left))
    assert (len(steps), count) == (3, 517)


def test_a_sweep_with_a_limit_takes_no_more():
    there = {"failed": 300, "cancelled": 900}
    steps, count = swept(sweep.clear("ns", "q", ["failed", "cancelled"], limit=400), there, lambda _, n: (n, n))
    assert steps == [("failed", 250), ("failed", 150)]
    assert count == 400
    steps, count = swept(sweep.clear("ns", "q", ["failed", "cancelled"], limit=400), there, lambda s, n: (min(n, 9), 9))
    assert (steps, count) == ([("failed", 250), ("cancelled", 250)], 18)


# --- batches


def new_jobs(count: int, *, queue: str = "q", size: int = 10) -> list[NewJob]:
    return [NewJob(f"{queue}:{uuid7()}", "", "t", "", 0, "", "", {"payload": b"x" * size}) for _ in range(count)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 1000, 400_000, 2_000_000])), max_size=600))
def test_a_batch_is_cut_into_calls_that_a_server_takes_without_stalling(shapes):
    jobs = [new_jobs(1, queue=queue, size=0)[0]._replace(fields={"payload": _Sized(size)}) for queue, size in shapes]
    calls = batch.calls("ns", jobs)
    assert sorted(place for call in calls for place in call.places) == list(range(len(jobs)))
    for call in calls:
        assert {jobs[place].id.partition(":")[0] for place in call.places} == {call.q.name}
        assert call.places == sorted(call.places)
        assert 1 <= len(call.places) <= 250
        size = sum(len(jobs[place].fields["payload"]) for place in call.places)
        assert size <= batch.CALL_BYTES_MAX or len(call.places) == 1


class _Sized(bytes):
    """Bytes that say a length without having it."""

    def __new__(cls, size: int):
        made = super().__new__(cls)
        made.size = size
        return made

    def __len__(self) -> int:
        return self.size


def test_a_call_is_bounded_by_bytes_not_by_characters():
    jobs = [job._replace(fields={"meta": "€" * 2_000}) for job in new_jobs(200)]  # 1.2 MB as sent
    assert [len(call.places) > 150 for call in batch.calls("ns", jobs)] == [True, False]


def test_no_jobs_no_calls():
    assert batch.calls("ns", []) == []


def test_full_calls_come_first():
    assert [len(call.places) for call in batch.calls("ns", new_jobs(600))] == [250, 250, 100]


def words(call: batch.Call, word: str = "available") -> list[str]:
    return [word] * len(call.places)


def test_answers_are_put_where_their_jobs_stand():
    jobs = [job for pair in zip(new_jobs(3, queue="a"), new_jobs(3, queue="b"), strict=True) for job in pair]
    calls = batch.calls("ns", jobs)
    progress = batch.Progress(len(jobs), len(calls))
    assert progress.take(calls, [words(calls[0], "available"), words(calls[1], "scheduled")]) is None
    assert progress.answer() == ["available", "scheduled"] * 3


def test_the_first_refusal_is_told_and_the_others_answers_are_kept():
    calls = batch.calls("ns", new_jobs(600))
    progress = batch.Progress(600, len(calls))
    refusal = progress.take(calls, [words(calls[0]), ServerFull(), TaskQError()])
    assert isinstance(refusal, ServerFull)
    with pytest.raises(batch.Interrupted) as caught:
        progress.interrupt(refusal)
    assert caught.value.words == ["available"] * 250 + [None] * 350
    assert caught.value.error is refusal


def test_when_surely_nothing_was_added_the_error_stands_for_itself():
    with pytest.raises(ServerFull):
        batch.Progress(600, 3).interrupt(ServerFull())
    with pytest.raises(Unavailable):
        batch.Progress(1, 1).interrupt(Unavailable())


def test_when_nobody_answered_the_batch_is_kept_for_another_try():
    with pytest.raises(batch.Interrupted):
        batch.Progress(600, 3).interrupt(Unavailable())
