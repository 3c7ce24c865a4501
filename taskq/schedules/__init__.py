"""Recurring work: what code declares of it, `app.schedules`, and how a firing travels to its queue.

What a rule means is in `taskq.calendar`; the leader's loop that fires is in `taskq.node`.
"""

from taskq.schedules.declaring import Declares, Entry, ScheduleDecorator
from taskq.schedules.face import Schedules
from taskq.schedules.run import Run
from taskq.schedules.schedule import Schedule

__all__ = ["Declares", "Entry", "Run", "Schedule", "ScheduleDecorator", "Schedules"]
