"""What an error of redis means: try again, or one of our own errors. The one place where they are told apart."""

from __future__ import annotations

from taskq.address import Address
from taskq.connection.explain import about_server, about_way
from taskq.errors import TaskQError

#: Replies of a server that can't serve just now but will: a failover, a restart, a moving slot, a long script.
_PASSING = (
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "UNBLOCKED",
    "NOREPLICAS",
    "MISCONF",
)
#: What a server says that was the primary and is a replica now (to a script, to WAIT, to a read without its primary),
#: or whose replicas all follow another.
_DEMOTED = ("read only replica", "replica instances", "Link with MASTER is down", "Not enough good replicas")
#: A script found half a keyspace: its slot is on its way to another shard.
_ON_THE_MOVE = "non local key"
#: A TLS that can't come about by trying again.
_NO_TLS = ("the tls files can't be used", "certificate verify failed", "certificate required", "wrong version number")


def failures() -> tuple[type[BaseException], ...]:
    """What a call can raise because of the server or the way to it."""
    import redis.exceptions as redis_errors

    return (redis_errors.RedisError, OSError, TimeoutError)


def passing(error: BaseException) -> bool:
    """Whether the same command may well succeed if it is sent again."""
    import redis.exceptions as redis_errors

    if isinstance(error, redis_errors.AuthenticationError | redis_errors.AuthorizationError):
        return False
    if isinstance(error, redis_errors.ResponseError):
        # AskError: also MovedError.
        kinds = redis_errors.ClusterDownError | redis_errors.TryAgainError | redis_errors.AskError
        text = str(error)
        return isinstance(error, kinds) or moved_primary(error) or _ON_THE_MOVE in text or text.startswith(_PASSING)
    if any(words in str(error).lower().replace("_", " ") for words in _NO_TLS):
        return False
    return isinstance(error, redis_errors.ConnectionError | redis_errors.TimeoutError | OSError | TimeoutError)


def lost_script(error: BaseException) -> bool:
    """Whether the server doesn't know the script (any more)."""
    import redis.exceptions as redis_errors

    return isinstance(error, redis_errors.NoScriptError) or str(error).startswith("NOSCRIPT")


def moved_primary(error: BaseException) -> bool:
    """Whether we speak to a server that is no longer the one to write to, so that it must be looked up again."""
    text = str(error)
    return text.startswith(("READONLY", "MASTERDOWN")) or any(words in text for words in _DEMOTED)


def unreachable(error: BaseException) -> bool:
    """Whether the error says of its server that it could not be reached, or didn't answer in time."""
    import redis.exceptions as redis_errors

    if isinstance(error, redis_errors.AuthenticationError | redis_errors.AuthorizationError | TaskQError):
        return False
    return isinstance(error, redis_errors.ConnectionError | redis_errors.TimeoutError | OSError | TimeoutError)


def will_serve(error: TaskQError, *, answered: bool) -> bool:
    """Whether to wait for the server that this error of ours is about: it answered that it can't serve just now, or it
    did so before (`answered`) and can't be reached any more. A replica that the URL names will never serve.
    """
    import redis.exceptions as redis_errors

    cause = error.__cause__
    if cause is None or not passing(cause):
        return False
    if isinstance(cause, redis_errors.ResponseError | redis_errors.BusyLoadingError):
        return not isinstance(cause, redis_errors.ReadOnlyError)
    return answered


def telling(error: BaseException, before: BaseException | None) -> BaseException:
    """Of two errors of one call the one to tell: the later, unless that is silence. The last attempt ends with the
    call's time, and would hide what the ones before it met: an answer, a connection refused or hung up.
    """
    return before if before is not None and _silent(error) and not _silent(before) else error


def _silent(error: BaseException) -> bool:
    import redis.exceptions as redis_errors

    return isinstance(error, redis_errors.TimeoutError | TimeoutError)


def translated(error: BaseException, address: Address) -> TaskQError:
    """Our error for one of redis; the caller raises it `from` the cause."""
    import redis.exceptions as redis_errors

    if isinstance(error, TaskQError):
        return error
    moved = "MOVED " if isinstance(error, redis_errors.MovedError) else ""  # the library took the word off
    text = moved + " ".join(str(error).split()) or type(error).__name__
    said = about_server(text, address)
    if said is not None:
        return said
    if isinstance(error, redis_errors.ResponseError) and not passing(error):
        return TaskQError(f"the server at {address.where} answered: {text}")
    return about_way(text, address)
