"""What an error of redis means: try again, or one of our own errors. The one place where they are told apart."""

from __future__ import annotations

from taskq.errors import ServerFull, ServerUnsupported, TaskQError, Unavailable

#: Replies of a server that can't serve just now but will: a failover, a restart, a moving slot, a long script.
_PASSING = ("LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "UNBLOCKED", "NOREPLICAS")
#: What a server says that was the primary and is a replica now: to a script, to WAIT, to a read without its primary.
_DEMOTED = ("read only replica", "replica instances", "Link with MASTER is down")
#: A script found half a keyspace: its slot is on its way to another shard.
_ON_THE_MOVE = "non local key"
_REFUSED = ("WRONGPASS", "NOAUTH", "invalid username-password", "invalid password", "Authentication required")


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
    if isinstance(error, OSError) and "certificate" in str(error).lower():
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


def translated(error: BaseException, where: str) -> TaskQError:
    """Our error for one of redis; the caller raises it `from` the cause."""
    import redis.exceptions as redis_errors

    text = str(error) or type(error).__name__
    logins = redis_errors.AuthenticationError | redis_errors.AuthorizationError
    if isinstance(error, logins) or text.startswith(_REFUSED):
        return Unavailable(f"the server at {where} refuses the login ({text}): check user name and password in the URL")
    if isinstance(error, redis_errors.NoPermissionError) or text.startswith("NOPERM"):
        return Unavailable(f"the server at {where} forbids what taskq needs ({text}): extend the user's ACL")
    if isinstance(error, redis_errors.OutOfMemoryError) or "OOM command not allowed" in text:
        return ServerFull(f"the server at {where} is at maxmemory: nothing was added; free memory or raise the limit")
    if "unknown command" in text.lower() or "unknown redis command" in text.lower():
        return ServerUnsupported(f"the server at {where} lacks a command that taskq needs ({text}): Redis 6.2 or newer")
    if isinstance(error, redis_errors.ResponseError) and not passing(error):
        return TaskQError(f"the server at {where} answered: {text}")
    if "certificate" in text.lower() or "SSL" in text:
        return Unavailable(f"no TLS connection to {where} ({text}): check the scheme (rediss://) and ssl_ca_certs")
    return Unavailable(f"no answer from the server at {where} ({text}): is it running, and is the URL right?")
