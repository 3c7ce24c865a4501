"""The words between node and worker survive the way, in whole and in pieces."""

import asyncio
import socket

import pytest

from taskq.node import channel
from taskq.node.channel import Channel, Drain, Drained, Failed, Hello, Ready, Recycle, Start, Stop, Verdict

EVERY = [
    Start(
        app="shop:app",
        worker="n.1",
        node="n",
        queues=["a"],
        burst=True,
        flags={"url": "redis://h"},
        log={"level": "INFO"},
    ),
    Verdict("lost", "q:1", 2**53 + 1),
    Verdict("cancel", "q:1", 1),
    Verdict("force", "q:1", 1),
    Drain(25_000),
    Stop(),
    Hello(
        {"namespace": "taskq"}, ["email", "default"], {"mail.send": {"queue": "email", "executor": "async"}}, "0.1.0"
    ),
    Ready(),
    Drained(),
    Failed("no module named 'shop'\n  while importing shop"),
    Recycle("3 threads written off"),
]


@pytest.mark.parametrize("message", EVERY, ids=lambda message: message.op)
def test_a_message_is_one_line_and_comes_back_equal(message):
    line = channel.encode(message)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert channel.decode(line) == message


def test_what_another_version_says_is_ignored():
    assert channel.decode(b'{"op":"sing"}') is None
    assert channel.decode(b'{"op":"lost","id":"q:1"}') is None
    assert channel.decode(b"{}") is None
    assert channel.decode(b"[1]") is None
    assert channel.decode(b"Traceback (most recent call last):") is None
    assert channel.decode(b'{"op":"drain","grace_ms":5,"colour":"red"}') == Drain(5)


async def test_both_directions_and_the_end():
    left, right = socket.socketpair()
    node, worker = await Channel.open(left), await Channel.open(right)
    node.send(Stop())
    node.send(Verdict("lost", "q:1", 3))
    worker.send(Ready())
    assert await worker.receive() == Stop()
    assert await worker.receive() == Verdict("lost", "q:1", 3)
    assert await node.receive() == Ready()
    worker.close()
    assert await node.receive() is None
    node.send(Stop())
    node.close()


async def test_a_hello_larger_than_the_sockets_buffer():
    left, right = socket.socketpair()
    node, worker = await Channel.open(left), await Channel.open(right)
    hello = Hello({}, ["q"], {f"task{n}": {"queue": "q", "executor": "async"} for n in range(20_000)})
    worker.send(hello)
    arrived, _ = await asyncio.gather(node.receive(), worker.flush())
    assert arrived == hello
    node.close()
    worker.close()


async def test_half_a_line_of_a_dead_worker_is_the_end():
    left, right = socket.socketpair()
    node = await Channel.open(left)
    right.sendall(b'{"op":"rea')
    right.close()
    assert await node.receive() is None
    node.close()


def test_without_a_loop():
    left, right = socket.socketpair()
    with left, right:
        channel.say(left, EVERY[0])
        channel.say(left, Stop())
        assert channel.hear(right) == EVERY[0]
        assert channel.hear(right) == Stop()
        left.close()
        assert channel.hear(right) is None
