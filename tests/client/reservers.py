"""A program of 64 processes that reserve slots of one queue at the same time, and say what they were given.

They begin each round together. What they hold is counted in memory that they share: more after a slot was granted, less
before it is given back; so a count over the limit is a slot too many.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from typing import Any

from taskq import TaskQ

PROCESSES, SLOTS, KEYS, TURNS = 64, 5, 9, 12
CONTEXT = multiprocessing.get_context("fork")


class Shared:
    """What the processes see of one another."""

    def __init__(self) -> None:
        self.barrier = CONTEXT.Barrier(PROCESSES, timeout=120)
        self.said: Any = CONTEXT.SimpleQueue()
        self.held = CONTEXT.Array("i", KEYS)
        self.most, self.most_of_key = CONTEXT.Value("i", 0), CONTEXT.Value("i", 0)

    def take(self, key: int, by: int) -> None:
        """One more of a key is held, or one less."""
        with self.held.get_lock():
            self.held[key] += by
            self.most.value = max(self.most.value, sum(self.held[:]))
            self.most_of_key.value = max(self.most_of_key.value, *self.held[:])


def play(number: int, url: str, namespace: str, shared: Shared) -> None:
    """One process."""
    app = TaskQ(url, namespace=namespace, deadline="1m")
    queue = app.queue("q")

    def first(kind: str, key: object) -> None:
        shared.barrier.wait()
        answer = queue.reserve(key, max_concurrency=SLOTS)
        shared.said.put((kind, "reserved" if answer else answer.reason))
        shared.barrier.wait()
        if answer.token:
            queue.release_reservation(answer.token)

    first("own keys", f"own-{number}")
    first("one key", "one")
    shared.barrier.wait()
    chance = random.Random(number)
    given = 0
    for _ in range(TURNS):
        key = chance.randrange(KEYS)
        answer = queue.reserve(key, max_concurrency=SLOTS)
        if not answer.token:
            continue
        given += 1
        shared.take(key, 1)
        if chance.random() < 0.5:
            job = queue.bind(answer.token, app.by_name("t", queue="q").call(number))
            assert job.created
            shared.take(key, -1)
            job.cancel()
        else:
            shared.take(key, -1)
            queue.release_reservation(answer.token)
    shared.said.put(("churn", given))
    app.close()


def main(url: str, namespace: str) -> None:
    """Starts them, and writes what they said as JSON."""
    shared = Shared()
    processes = [CONTEXT.Process(target=play, args=(number, url, namespace, shared)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    said = [shared.said.get() for _ in range(3 * PROCESSES)]
    for process in processes:
        process.join()
    codes = {process.exitcode for process in processes}
    held = {"most": shared.most.value, "most_of_key": shared.most_of_key.value}
    sys.stdout.write(json.dumps({"said": said, "codes": sorted(codes), **held}))


if __name__ == "__main__":
    main(*sys.argv[1:])
