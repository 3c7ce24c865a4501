"""taskq: a Redis-native distributed task service. What users import stands here by name.

Names are loaded when they are first asked for, so that `import taskq` costs a
few milliseconds, and redis is imported only when something is sent.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, not on demand: the module of the same name would take the function's place when somebody imports it.
from taskq.current import CurrentJob as CurrentJob
from taskq.current import current as current

if TYPE_CHECKING:
    from taskq.app import TaskQ as TaskQ
    from taskq.client import AsyncClient as AsyncClient
    from taskq.client import ClaimedJob as ClaimedJob
    from taskq.client import Client as Client
    from taskq.client import Reservation as Reservation
    from taskq.errors import AdmissionConflict as AdmissionConflict
    from taskq.errors import AdmissionNotFound as AdmissionNotFound
    from taskq.errors import AttemptsExhausted as AttemptsExhausted
    from taskq.errors import BadArguments as BadArguments
    from taskq.errors import BadRecord as BadRecord
    from taskq.errors import ClaimNotFound as ClaimNotFound
    from taskq.errors import DuplicateJob as DuplicateJob
    from taskq.errors import EnqueueFailed as EnqueueFailed
    from taskq.errors import InvalidPayload as InvalidPayload
    from taskq.errors import InvalidTransition as InvalidTransition
    from taskq.errors import JobAlreadyExists as JobAlreadyExists
    from taskq.errors import JobCancelled as JobCancelled
    from taskq.errors import JobCrashed as JobCrashed
    from taskq.errors import JobFailed as JobFailed
    from taskq.errors import JobNotFound as JobNotFound
    from taskq.errors import JobTimeout as JobTimeout
    from taskq.errors import LeadershipLost as LeadershipLost
    from taskq.errors import LeaseLost as LeaseLost
    from taskq.errors import LockLost as LockLost
    from taskq.errors import LockTimeout as LockTimeout
    from taskq.errors import NodeNotFound as NodeNotFound
    from taskq.errors import NotInJob as NotInJob
    from taskq.errors import NotReplicated as NotReplicated
    from taskq.errors import PayloadTooLarge as PayloadTooLarge
    from taskq.errors import QueueNotFound as QueueNotFound
    from taskq.errors import ResultExpired as ResultExpired
    from taskq.errors import ResultTimeout as ResultTimeout
    from taskq.errors import ScheduleNotFound as ScheduleNotFound
    from taskq.errors import ServerFull as ServerFull
    from taskq.errors import ServerUnsupported as ServerUnsupported
    from taskq.errors import TaskQError as TaskQError
    from taskq.errors import TooManyClasses as TooManyClasses
    from taskq.errors import Unavailable as Unavailable
    from taskq.errors import Unencodable as Unencodable
    from taskq.errors import UnknownTask as UnknownTask
    from taskq.errors import Unschedulable as Unschedulable
    from taskq.errors import WorkerStopped as WorkerStopped
    from taskq.handle import Job as Job
    from taskq.inspector import Inspector as Inspector
    from taskq.locks import NamedLock as NamedLock
    from taskq.options import Concurrency as Concurrency
    from taskq.options import Debounce as Debounce
    from taskq.options import Lock as Lock
    from taskq.options import Options as Options
    from taskq.options import Rate as Rate
    from taskq.options import Throttle as Throttle
    from taskq.options import Unique as Unique
    from taskq.queue import Queue as Queue
    from taskq.record.lease import Lease as Lease
    from taskq.retry import Backoff as Backoff
    from taskq.retry import Discard as Discard
    from taskq.retry import Retry as Retry
    from taskq.retry import Snooze as Snooze
    from taskq.schedules import Run as Run
    from taskq.schedules import Schedule as Schedule
    from taskq.settings import Retention as Retention
    from taskq.state import State as State
    from taskq.task import Call as Call
    from taskq.task import Task as Task
    from taskq.why import Why as Why

__version__ = "0.1.0"

__all__ = [
    "AdmissionConflict",
    "AdmissionNotFound",
    "AsyncClient",
    "AttemptsExhausted",
    "Backoff",
    "BadArguments",
    "BadRecord",
    "Call",
    "ClaimNotFound",
    "ClaimedJob",
    "Client",
    "Concurrency",
    "CurrentJob",
    "Debounce",
    "Discard",
    "DuplicateJob",
    "EnqueueFailed",
    "Inspector",
    "InvalidPayload",
    "InvalidTransition",
    "Job",
    "JobAlreadyExists",
    "JobCancelled",
    "JobCrashed",
    "JobFailed",
    "JobNotFound",
    "JobTimeout",
    "LeadershipLost",
    "Lease",
    "LeaseLost",
    "Lock",
    "LockLost",
    "LockTimeout",
    "NamedLock",
    "NodeNotFound",
    "NotInJob",
    "NotReplicated",
    "Options",
    "PayloadTooLarge",
    "Queue",
    "QueueNotFound",
    "Rate",
    "Reservation",
    "ResultExpired",
    "ResultTimeout",
    "Retention",
    "Retry",
    "Run",
    "Schedule",
    "ScheduleNotFound",
    "ServerFull",
    "ServerUnsupported",
    "Snooze",
    "State",
    "Task",
    "TaskQ",
    "TaskQError",
    "Throttle",
    "TooManyClasses",
    "Unavailable",
    "Unencodable",
    "Unique",
    "UnknownTask",
    "Unschedulable",
    "Why",
    "WorkerStopped",
    "current",
]

# Where each name lives; what isn't listed is an error.
_HOMES = {
    "AsyncClient": "client",
    "Backoff": "retry",
    "Call": "task",
    "ClaimedJob": "client",
    "Client": "client",
    "Concurrency": "options",
    "Debounce": "options",
    "Discard": "retry",
    "Inspector": "inspector",
    "Job": "handle",
    "Lease": "record.lease",
    "Lock": "options",
    "NamedLock": "locks",
    "Options": "options",
    "Queue": "queue",
    "Rate": "options",
    "Reservation": "client",
    "Retention": "settings",
    "Retry": "retry",
    "Run": "schedules",
    "Schedule": "schedules",
    "Snooze": "retry",
    "State": "state",
    "Task": "task",
    "TaskQ": "app",
    "Throttle": "options",
    "Unique": "options",
    "Why": "why",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'taskq' has no attribute {name!r}")
    value = getattr(import_module(f"taskq.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value  # the next look finds it without asking
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
