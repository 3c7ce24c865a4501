"""What a call that met several errors tells of: the last one that says something."""

import pytest
import redis.exceptions as redis_errors

from taskq.address import parse_url
from taskq.connection.failed import Failed
from taskq.connection.patience import Patience
from taskq.errors import NotReplicated, TaskQError

HUNG_UP = redis_errors.ConnectionError("Connection closed by server.")
REFUSED = redis_errors.ConnectionError("Error 111 connecting to h:1. Connection refused.")
LOADING = redis_errors.BusyLoadingError("Redis is loading the dataset in memory")
FEW = NotReplicated("0 of 1 replicas")
SILENCE = redis_errors.TimeoutError("Timeout reading from socket")
OURS = TimeoutError("the call's time is over")


def told(*met: BaseException) -> BaseException:
    """What a call tells that met these, one after another, and then had no time left."""
    failed = Failed(Patience(60), parse_url("redis://h:1"))
    for error in met[:-1]:
        failed.pause_s(error)
    failed._patience = Patience(-1)
    with pytest.raises(TaskQError) as caught:
        failed.pause_s(met[-1])
    return caught.value if caught.value.__cause__ is None else caught.value.__cause__


@pytest.mark.parametrize("silence", [SILENCE, OURS])
@pytest.mark.parametrize("said", [HUNG_UP, REFUSED, LOADING, FEW], ids=lambda error: type(error).__name__)
def test_a_timeout_at_the_end_hides_nothing(said, silence):
    assert told(said, silence) is said
    assert told(silence, said, silence, silence) is said
    assert told(silence, silence) is silence


def test_of_two_that_say_something_the_later_counts():
    assert told(REFUSED, LOADING) is LOADING
    assert told(LOADING, SILENCE, HUNG_UP) is HUNG_UP
