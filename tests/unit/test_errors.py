"""The errors: the whole list, what else they are, and what they say without words."""

import pickle
import subprocess
import sys

import pytest

from taskq import errors
from taskq.errors import TaskQError, did_you_mean

LISTED = """
JobNotFound JobAlreadyExists DuplicateJob InvalidTransition LeaseLost ClaimNotFound LeadershipLost LockLost LockTimeout
QueueNotFound NodeNotFound WorkerStopped InvalidPayload Unencodable PayloadTooLarge BadArguments
BadRecord UnknownTask Unschedulable AdmissionNotFound AdmissionConflict JobTimeout JobCrashed
AttemptsExhausted JobFailed JobCancelled ResultTimeout ResultExpired EnqueueFailed Unavailable
ServerFull ServerUnsupported NotInJob NotReplicated ScheduleNotFound TooManyClasses
"""

ALSO = {
    "JobNotFound": LookupError,
    "InvalidPayload": ValueError,
    "Unencodable": TypeError,
    "PayloadTooLarge": ValueError,
    "ResultTimeout": TimeoutError,
    "LockTimeout": TimeoutError,
    "Unavailable": ConnectionError,
    "NotReplicated": errors.Unavailable,
    "TooManyClasses": ValueError,
    "JobTimeout": errors.JobFailed,
    "JobCrashed": errors.JobFailed,
    "AttemptsExhausted": errors.JobFailed,
}


def every_error() -> list[type[TaskQError]]:
    return [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, TaskQError)]


def test_the_list_is_complete() -> None:
    assert {kind.__name__ for kind in every_error()} == {*LISTED.split(), "TaskQError"}


@pytest.mark.parametrize("kind", every_error())
def test_says_its_docstring_by_default(kind: type[TaskQError]) -> None:
    assert kind.__doc__ is not None
    first = kind.__doc__.splitlines()[0]
    assert str(kind()) == first
    assert first.endswith(".")
    assert str(kind("words of the caller")) == "words of the caller"


@pytest.mark.parametrize("name, parent", ALSO.items())
def test_is_also_what_python_calls_it(name: str, parent: type[Exception]) -> None:
    assert issubclass(getattr(errors, name), parent)


@pytest.mark.parametrize("kind", every_error())
def test_survives_a_pickle(kind: type[TaskQError]) -> None:
    # Users' process pools and pytest-xdist send errors between processes.
    error = kind("as it was")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert type(again) is kind
    assert str(again) == "as it was"
    assert vars(again) == vars(error)


def test_a_subclass_without_words_has_its_parents() -> None:
    class Mine(errors.LeaseLost):
        pass

    assert str(Mine()) == str(errors.LeaseLost())


def test_without_docstrings_the_name_must_do() -> None:
    code = "from taskq.errors import JobNotFound; print(JobNotFound())"
    said = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "JobNotFound"


def test_a_failed_job_tells_what_happened() -> None:
    attempts = [{"attempt": 1, "type": "OSError", "message": "disk full"}]
    error = errors.JobCrashed(job_id="email:1", reason="worker died: w.1", errors=attempts)
    assert (error.job_id, error.reason, error.errors) == (
        "email:1",
        "worker died: w.1",
        tuple(attempts),
    )
    bare = errors.JobFailed()
    assert (bare.job_id, bare.reason, bare.errors) == (None, None, ())


def test_the_other_details() -> None:
    gone = errors.JobCancelled(job_id="email:1", reason="purged")
    assert (gone.job_id, gone.reason) == ("email:1", "purged")
    move = errors.InvalidTransition("no", from_state="completed", to_state="running")
    assert (move.from_state, move.to_state) == ("completed", "running")
    half = errors.EnqueueFailed(jobs=["a"], rest=["b", "c"])
    assert (half.jobs, half.rest) == (["a"], ["b", "c"])


def test_did_you_mean() -> None:
    known = ["queue", "priority", "max_attempts"]
    assert did_you_mean("queu", known) == " (did you mean 'queue'?)"
    assert did_you_mean("maxattempts", known) == " (did you mean 'max_attempts'?)"
    assert did_you_mean("Priority", known) == " (did you mean 'priority'?)"
    assert did_you_mean("zzz", known) == ""
