"""Every operation as a value, one file a noun. `taskq.connection` runs them; nothing here does I/O."""

from taskq.commands.claim import Claim, Claimed, claim
from taskq.commands.command import Arg, Command
from taskq.commands.enqueue import BATCH_MAX, NewJob, enqueue
from taskq.commands.hold import Done, Failure, Held, Release, Snoozed, complete, fail, release, renew, snooze
from taskq.commands.look import Counts, Fields, Page, backlog, counts, fetch, peek, wait
from taskq.commands.manage import WAITING, Purged, cancel, clear, pause, purge, resume, retry
from taskq.commands.recover import Buried, Reaped, bury, expire, promote, prune, reap, wake
from taskq.commands.registry import (
    KnownTask,
    beat,
    declare,
    depart,
    expect_queue,
    nodes,
    queues,
    register_queue,
    task_info,
)

__all__ = [
    "BATCH_MAX",
    "WAITING",
    "Arg",
    "Buried",
    "Claim",
    "Claimed",
    "Command",
    "Counts",
    "Done",
    "Failure",
    "Fields",
    "Held",
    "KnownTask",
    "NewJob",
    "Page",
    "Purged",
    "Reaped",
    "Release",
    "Snoozed",
    "backlog",
    "beat",
    "bury",
    "cancel",
    "claim",
    "clear",
    "complete",
    "counts",
    "declare",
    "depart",
    "enqueue",
    "expect_queue",
    "expire",
    "fail",
    "fetch",
    "nodes",
    "pause",
    "peek",
    "promote",
    "prune",
    "purge",
    "queues",
    "reap",
    "register_queue",
    "release",
    "renew",
    "resume",
    "retry",
    "snooze",
    "task_info",
    "wait",
    "wake",
]
