"""When recurring work is due: rules, and the times they mean.

Pure: no clock is read, no Redis, no tasks. `cron` and `every` make a `Rule` and check
all of it; `next_after`, `due` and `next_times` compute; `rule_text` and `read_rule`
store it. Every instant and duration here is an int of ms, instants since 1970 in UTC.
"""

from taskq.calendar.declare import WHEN, When, cron, every
from taskq.calendar.due import ON_TIME_MS, Due, due
from taskq.calendar.rule import Missed, Overlap, Rule
from taskq.calendar.text import read_rule, rule_text
from taskq.calendar.times import fires_at, next_after, next_times

__all__ = [
    "ON_TIME_MS",
    "WHEN",
    "Due",
    "Missed",
    "Overlap",
    "Rule",
    "When",
    "cron",
    "due",
    "every",
    "fires_at",
    "next_after",
    "next_times",
    "read_rule",
    "rule_text",
]
