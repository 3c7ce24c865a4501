"""Python imports this when it starts, if this folder is on its path: the process then lives hours away.

`TASKQ_TEST_CLOCK_S` is added to what `time` and `datetime` say, and what stands in the file `TASKQ_TEST_CLOCK_FILE`
once there is one: so a clock is set while its process runs. The monotonic clock is left alone, as by a real one that is
set wrongly.
"""

import datetime as dt
import os
import time
from pathlib import Path

AWAY_S = float(os.environ["TASKQ_TEST_CLOCK_S"])
FILE = Path(os.environ.get("TASKQ_TEST_CLOCK_FILE", os.devnull))


def _away_s():
    try:
        return AWAY_S + float(FILE.read_text() or 0)
    except FileNotFoundError:
        return AWAY_S


_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _away_s()
time.time_ns = lambda: _time_ns() + int(_away_s() * 1e9)

_Right = dt.datetime


class _Like(type):
    """Whatever is a datetime is one of these too."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, _Right)


class _Wrong(_Right, metaclass=_Like):
    @classmethod
    def now(cls, tz=None):
        return _Right.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return _Right.fromtimestamp(time.time(), dt.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls):
        return cls.now()


dt.datetime = _Wrong
