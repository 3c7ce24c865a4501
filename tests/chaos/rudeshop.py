"""An app whose jobs return, raise and are given what nobody should: worker and readers must survive it."""

from taskq import Discard, TaskQ

app = TaskQ()

RUDE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\x00\ud800\r\n2030-01-01T00:00:00Z [error] a line of its own"


class RudeError(Exception):
    """Has no text of its own, and says so by raising."""

    def __str__(self) -> str:
        raise ValueError(RUDE)


@app.task(max_attempts=1)
async def shout(size: int) -> None:
    raise RuntimeError(RUDE * size)


@app.task(max_attempts=1)
def mumble() -> None:
    raise RudeError


@app.task
async def refuse() -> None:
    raise Discard(RUDE)


@app.task
async def echo(value: object) -> object:
    return value


@app.task
async def nest(levels: int) -> object:
    nested: list[object] = []
    for _ in range(levels):
        nested = [nested]
    return nested


@app.task
def bulk(size: int) -> bytes:
    return b"x" * size
