"""What the node answers to whoever watches it."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from taskq.node.health import REACHED_S, RENEWED_S, STILL_S, STOPPED_S, Health, PortRefused, answering


class Node:
    """The node's own state and its clock, for a test to set."""

    now_s, state, jobs = 100.0, "", False
    stopped: tuple[str, ...] = ()

    def __init__(self):
        self.health = Health(
            state=lambda: self.state,
            busy=lambda: self.jobs,
            stopped=lambda: self.stopped,
            clock=lambda: self.now_s,
        )

    def pass_s(self, seconds, *turning, well=True):
        """Time passes while these loops turn."""
        for _ in range(int(seconds)):
            self.now_s += 1
            for loop in turning:
                self.health.turned(loop, well=well)


@pytest.fixture
def node():
    node = Node()
    node.pass_s(1, "keeper", "reaper", "warden")
    return node


def test_a_node_whose_loops_turn_is_well_and_ready(node):
    node.jobs = True
    node.pass_s(100, "keeper", "reaper", "warden")
    assert (node.health.sick(), node.health.unready()) == ([], [])


def test_a_loop_that_stands_still_is_told(node):
    node.pass_s(STILL_S, "keeper", "reaper")
    assert node.health.sick() == []
    node.pass_s(1, "keeper", "reaper")
    assert node.health.sick() == ["loop warden stands still"]


def test_while_redis_is_away_a_restart_would_not_help(node):
    node.jobs = True
    node.pass_s(200, "keeper", "reaper", "warden", well=False)
    assert node.health.sick() == []
    assert node.health.unready() == ["Redis is not reached"]


def test_renewals_that_fail_while_redis_answers_are_told(node):
    node.jobs = True
    for _ in range(int(RENEWED_S) + 2):
        node.pass_s(1, "keeper", well=False)
        node.health.turned("reaper", well=True)
        node.health.turned("warden", well=True)
    assert node.health.sick() == ["nothing is renewed"]
    node.jobs = False
    assert node.health.sick() == [], "there is nothing to renew"


def test_a_worker_that_stays_stopped_is_told(node):
    node.stopped = ("n.1",)
    assert node.health.sick() == []
    node.pass_s(STOPPED_S, "keeper", "reaper", "warden")
    assert node.health.sick() == []
    node.pass_s(1, "keeper", "reaper", "warden")
    assert node.health.sick() == ["worker n.1 is stopped"]
    node.stopped = ()
    assert node.health.sick() == []
    node.stopped = ("n.1",)
    assert node.health.sick() == []


def test_a_node_that_drains_is_well_and_not_ready(node):
    node.state = "it drains"
    assert (node.health.sick(), node.health.unready()) == ([], ["it drains"])


def test_before_redis_was_reached_it_is_not_ready():
    node = Node()
    node.pass_s(1, "warden")
    assert (node.health.sick(), node.health.unready()) == ([], ["Redis is not reached"])
    node.pass_s(1, "reaper")
    assert node.health.unready() == []
    node.now_s += REACHED_S + 1
    assert node.health.unready() == ["Redis is not reached"]


@pytest.fixture
async def port(node):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with answering(node.health, port):
        yield port


async def ask(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


async def test_over_http(node, port):
    code, body = await ask(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nUser-Agent: kube-probe/1\r\n\r\n")
    assert (code, json.loads(body)) == (200, {"ok": True})
    node.state = "it ends"
    code, body = await ask(port, b"GET /readyz?verbose HTTP/1.0\r\n\r\n")
    assert (code, json.loads(body)) == (503, {"ok": False, "why": ["it ends"]})
    assert await ask(port, b"HEAD /readyz HTTP/1.1\r\n\r\n") == (503, b"")


@pytest.mark.parametrize(
    "request_, code",
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"POST /healthz HTTP/1.1\r\n\r\n", 405),
        (b"\r\n\r\n", 405),
        (b"\xff\xfe\r\n\r\n", 405),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 0),
    ],
)
async def test_what_is_no_question_of_ours_is_refused(port, request_, code):
    assert (await ask(port, request_))[0] == code
    assert (await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n"))[0] == 200


async def test_a_port_that_is_taken_is_one_line(node, port):
    with pytest.raises(PortRefused, match=f"port {port} can't be listened on: "):
        async with answering(node.health, port):
            pass
