"""The names of options: those we know, those a later version will, and other libraries' words for the same.

A name nobody knows is answered with the nearest known one, and one that a later
version will know is refused as "not yet": nothing is ever ignored.
"""

from __future__ import annotations

from collections.abc import Iterable

from taskq.errors import did_you_mean, shown

LATER = (*("after", "on_parent_failed"),)
KINDS = ("async", "thread")
TASK_OWN = ("name", "executor")
TASK_LATER = (
    *("aliases", "retry_on", "discard_on", "retry_until", "before_run", "after_run", "before_retry"),
    *("on_failure", "middleware", "memory_limit", "capture"),
)
# Other libraries' words for the same thing, which no likeness of letters would find.
_ELSEWHERE = {
    **dict.fromkeys(("retries", "max_retries", "tries"), "max_attempts"),
    **dict.fromkeys(("countdown", "defer_by", "delay_s"), "delay"),
    **dict.fromkeys(("eta", "run_at", "scheduled_at", "defer_until"), "at"),
    **dict.fromkeys(("ttl", "expire", "expires_at"), "expires"),
    **dict.fromkeys(("time_limit", "job_timeout", "soft_time_limit"), "timeout"),
    **dict.fromkeys(("job_id", "task_id", "_job_id"), "id"),
    **dict.fromkeys(("metadata", "headers"), "meta"),
    "result_ttl": "keep_result",
}


def unknown(name: str, known: Iterable[str], later: Iterable[str]) -> Exception:
    """The error for a name that isn't among the known: what it may mean, or that it isn't here yet."""
    if name in later:
        return NotImplementedError(f"{name}= isn't here yet: this version of taskq would ignore it, so it refuses it")
    if name in TASK_LATER:
        return TypeError(f"{name}= belongs to the task, not to a job, and isn't here yet")
    if name in TASK_OWN:
        return TypeError(f"{name}= belongs to the task: give it to @app.task({name}=…)")
    elsewhere = _ELSEWHERE.get(name)
    hint = f" (did you mean {elsewhere!r}?)" if elsewhere else did_you_mean(name, (*known, *later))
    return TypeError(f"there is no option {shown(name)}{hint}")
