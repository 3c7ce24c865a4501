"""What may be said about a job besides its arguments: one vocabulary, checked where it is said.

The same names serve `TaskQ(defaults=Options(…))`, `@app.task(…)` and
`task.using(…)`. `layer` holds the options and lays them over one another,
`rules` the rule of each, `names` what they are called elsewhere.
"""

from taskq.options.by import By
from taskq.options.declaration import Declaration, checked_task_name, declare
from taskq.options.layer import KILL_AFTER_MS, OPTIONS, Options, TaskVocabulary, Vocabulary, checked_layer, merge
from taskq.options.limits import Concurrency, Limit, Lock, Rate
from taskq.options.names import LATER, unknown
from taskq.options.once import Debounce, Once, Throttle, Unique
from taskq.options.rules import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskq.options.travel import ORDER, heard, stored_fields, told

DEFAULT_QUEUE = "default"

__all__ = [
    "DEFAULT_QUEUE",
    "HIGHEST_PRIORITY",
    "KILL_AFTER_MS",
    "LATER",
    "LOWEST_PRIORITY",
    "OPTIONS",
    "ORDER",
    "By",
    "Concurrency",
    "Debounce",
    "Declaration",
    "Limit",
    "Lock",
    "Once",
    "Options",
    "Rate",
    "TaskVocabulary",
    "Throttle",
    "Unique",
    "Vocabulary",
    "checked_layer",
    "checked_task_name",
    "declare",
    "heard",
    "merge",
    "stored_fields",
    "told",
    "unknown",
]
