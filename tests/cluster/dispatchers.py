"""A program of several processes that reserve slots in queues of every shard at once, and bind what they were given.

Each key is asked for by all of them. Who is told `duplicate` leaves it to the one that has it; who finds no capacity
asks again. Writes as JSON what each was told, and the jobs that it made: `[queue, key, job]`.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import time

from taskq import TaskQ

PROCESSES, SLOTS, KEYS = 6, 3, 8
WORK_S = 0.2


def play(number: int, url: str, namespace: str, queues: list[str], said: multiprocessing.SimpleQueue[str]) -> None:
    """One process."""
    app = TaskQ(url, namespace=namespace, deadline="1m")
    task = app.by_name("shop.turn")
    todo = [(queue, str(key)) for queue in queues for key in range(KEYS)]
    random.Random(number).shuffle(todo)
    jobs, words = [], set()
    while todo:
        queue, key = todo.pop(0)
        answer = app.queue(queue).reserve(key, max_concurrency=SLOTS)
        words.add(answer.reason or "reserved")
        if answer.token:
            call = task.using(queue=queue).call(key, WORK_S)
            job = app.queue(queue).bind(answer.token, call)
            again = app.queue(queue).bind(answer.token, call)
            jobs.append([queue, key, job.id, bool(job.created), again.id])
        elif answer.reason == "no_capacity":
            todo.append((queue, key))
            time.sleep(0.02)
    said.put(json.dumps({"words": sorted(words), "jobs": jobs}))
    app.close()


def main(url: str, namespace: str, *queues: str) -> None:
    """Starts them, and writes what they said."""
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    processes = [context.Process(target=play, args=(n, url, namespace, list(queues), said)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    told = [json.loads(said.get()) for _ in processes]
    for process in processes:
        process.join()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
