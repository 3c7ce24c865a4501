"""A user with the permissions that the docs list, and no others, carries a node and its clients; each one is needed.

Also: a client is told before a script that would be stopped half way, since a half that was written stays.
"""

import asyncio
import contextlib
import itertools

import pytest

from taskq import TaskQ, commands, scripts
from taskq.connection import connect, connect_async, run
from taskq.connection.needs import FSCK, LOOKING, NEEDED, called_by, rules
from taskq.errors import TaskQError, Unavailable
from taskq.settings import Settings
from tests.fleet import Fleet
from tests.lua.room import Room, new
from tests.lua.tour import lively, stops
from tests.servers.test_needs import OURS
from tests.waiting import await_until

SHOP = """
from taskq import Backoff, TaskQ
app = TaskQ()

@app.task(max_attempts=2, backoff=Backoff.fixed(0.1))
def flaky(path):
    with open(path, "a") as file:
        file.write("x")
    if len(open(path).read()) < 2:
        raise RuntimeError("the first time")
    return "done"

@app.task
async def add(a, b):
    return a + b
"""


def without(namespace, *commands_):
    return rules(namespace, [each for each in (*NEEDED, *LOOKING, *FSCK) if each not in commands_])


@pytest.fixture
def shop(user, tmp_path, namespace):
    """A node that logs in as the minimal user, and an app that does."""
    (tmp_path / "shop.py").write_text(SHOP)
    url = user().url
    fleet = Fleet("shop", folder=tmp_path, environment={"TASKQ_URL": url, "TASKQ_NAMESPACE": namespace}, logs=tmp_path)
    app = TaskQ(url, namespace=namespace)
    yield fleet, app
    fleet.close()
    app.close()


async def test_a_node_and_a_client_live_as_the_minimal_user(shop, tmp_path):
    fleet, app = shop
    node = fleet.start()
    flaky, add = (app.by_name(f"shop.{name}", queue="default") for name in ("flaky", "add"))
    assert await asyncio.to_thread(lambda: add.enqueue(1, 2).result(timeout=20)) == 3
    tries = await flaky.aenqueue(str(tmp_path / "tries"))
    assert await tries.aresult(timeout=20) == "done"
    later = add.using(delay=0.3).enqueue(3, 4)
    assert await later.aresult(timeout=20) == 7
    assert add.using(delay="1h").enqueue(1, 1).cancel() == "removed"
    await app.aclose()
    node.terminate()
    assert node.wait() == 0
    assert "forbid" not in node.text()
    assert "Traceback" not in node.text()
    assert app.inspector.counts("default").running == 0


class Tour(Room):
    """Goes on where a script is refused, and remembers what was said."""

    def __init__(self, server, q, room):
        super().__init__(room.client, q)
        self.server = server
        self.refusals = []

    def run(self, command):
        try:
            return run(self.server, command)
        except TaskQError as error:
            self.refusals.append(str(error))
            raise


def more(room):
    """What the tour misses: a waiting job is cancelled, a result goes before its record, a record isn't one."""
    q, now = room.q, room.now
    yield commands.enqueue(q, [new("x")], now=now)
    yield commands.cancel(q, ["default:x"], now=now)
    yield commands.enqueue(q, [new("y", keep_result=1)], now=now)
    claim = commands.claim(q, worker="n.y", request=1, lease_ms=8_000, limit=99, free={"async": 99}, now=now)
    jobs = []
    yield claim.then(lambda claim: jobs.extend(claim.jobs))
    yield commands.complete(q, worker="n.y", done=[commands.Done(job.id, job.epoch, b"r") for job in jobs], now=now)
    yield commands.prune(q, now=now + 20_000)
    room.client.set(q.job("default:z"), "no record")
    room.client.zadd(q.fixed("scheduled"), {"default:z": 1})
    yield commands.promote(q, now=now)


def refusals(settings, q, raw):
    """What a user is told on a tour through all scripts."""
    admin = Room(raw, q)
    epochs = lively(admin)
    # As a worker: that is not asked for its permissions first.
    tour = Tour(connect(settings, role="worker"), q, admin)
    with contextlib.closing(tour.server):
        for command in itertools.chain(stops(tour, epochs), more(tour)):
            with contextlib.suppress(TaskQError, LookupError, TypeError, ValueError):  # replies of half a script
                tour.run(command)
    raw.flushall()
    return tour.refusals


def test_the_whole_tour_is_allowed(user, q, raw):
    assert refusals(user(without(q.namespace)), q, raw) == []


@pytest.mark.parametrize("command", sorted({*NEEDED, *FSCK} - OURS - {"eval"}))
def test_without_one_of_them_a_script_fails(user, namespace, q, raw, command):
    told = refusals(user(without(namespace, command)), q, raw)
    assert any("forbids what taskq needs" in text for text in told), told


def test_without_eval_a_script_that_the_server_forgot_fails(user, namespace, q, raw):
    settings = user(without(namespace, "eval"))
    raw.script_flush()
    with contextlib.closing(connect(settings, role="worker")) as server, pytest.raises(Unavailable, match="forbids"):
        run(server, commands.counts(q))


@pytest.mark.parametrize("command", ["ping", "client|setname"])
def test_without_these_no_connection_is_good(user, namespace, command):
    settings = user(without(namespace, command))
    with contextlib.closing(connect(settings)) as server, pytest.raises(Unavailable, match="forbids"):
        server.ping()


@pytest.fixture
async def line(user, namespace):
    """`line("ping")` gives a server as a user without that command sees it."""
    made = []

    def line(command):
        made.append(connect_async(user(without(namespace, command)), role="worker"))
        return made[-1]

    yield line
    for server in made:
        await server.aclose()


@pytest.mark.parametrize("command", ["bzpopmin", "client|id"])
async def test_without_these_nobody_waits_for_jobs(line, q, command):
    with pytest.raises(Unavailable, match="forbids"):
        await line(command).block([q.wake("async")], 0.1)


async def test_without_client_unblock_a_wait_goes_on_to_its_end(line, q):
    server = line("client|unblock")
    waiting = asyncio.create_task(server.block([q.wake("async")], 1.0))
    await await_until(lambda: any(wait.connection and wait.id for wait in server._lines().waits.values()))
    with pytest.raises(Unavailable, match="forbids"):
        await server.unblock()
    assert await waiting is None


async def test_without_subscribe_the_end_of_a_job_isnt_heard(line, q, raw):
    async with line("subscribe").listen(q.done("default:a")) as channel:
        await channel.wait(0.05)
        assert raw.publish(q.done("default:a"), "") == 0


async def test_without_unsubscribe_leaving_one_channel_ends_the_others(line, q):
    server = line("unsubscribe")
    async with server.listen(q.done("default:a")) as channel:
        async with server.listen(q.done("default:b")):
            pass
        assert await channel.wait(5), "it is told to look for itself, though nothing was published"


@pytest.mark.parametrize("command", LOOKING)
def test_without_these_the_check_says_what_it_couldnt_see(user, namespace, command):
    from taskq.connection.fitness import check
    from taskq.doctor import examine

    settings = user(without(namespace, command))
    assert {each.name for each in check(settings)} <= {"persistence"}
    unseen = [each for each in examine(settings) if each.unseen]
    assert all(f"+{command}" in each.advice for each in unseen)
    assert bool(unseen) == (command != "cluster|info")


# --- clients


@pytest.fixture
def app(user, namespace):
    made = []

    def app(given):
        made.append(TaskQ(user(given).url, namespace=namespace))
        return made[-1]

    yield app
    for each in made:
        each.close()


def test_a_client_is_told_before_anything_is_half_done(app, namespace, raw, embedded):
    shop = app(without(namespace, "zadd"))
    task = shop.by_name("a.b", queue="default")
    with pytest.raises(Unavailable, match=r"forbids user user-\w+ ZADD, which `enqueue` needs: ACL SETUSER"):
        task.enqueue()
    assert raw.keys(f"{namespace}:{{default}}:*") == []
    raw.execute_command("ACL", "SETUSER", f"user-{namespace}", "+zadd")
    assert task.enqueue().id  # without a new start


async def test_an_async_client_too(app, namespace, raw):
    shop = app(without(namespace, "zadd"))
    with pytest.raises(Unavailable, match="which `enqueue` needs"):
        await shop.by_name("a.b", queue="default").aenqueue()
    assert raw.keys(f"{namespace}:{{default}}:*") == []
    await shop.aclose()


def test_a_user_that_may_only_enqueue_can(app, namespace):
    only = set().union(*(called_by(scripts.load(name)) for name in ("enqueue", "register_queue", "task_info")))
    shop = app(rules(namespace, [*sorted(only), "eval", "evalsha", "client|setname", "multi"]))
    assert shop.by_name("a.b", queue="default").enqueue().id
    with pytest.raises(Unavailable, match="SMEMBERS, which `queues` needs"):
        shop.inspector.queues()


def test_it_is_asked_once(app, namespace, raw):
    shop = app(rules(namespace))
    for _ in range(3):
        shop.by_name("a.b", queue="default").enqueue()
    assert raw.info("commandstats")["cmdstat_multi"]["calls"] >= 1
    raw.config_resetstat()
    shop.by_name("a.b", queue="default").enqueue()
    assert "cmdstat_multi" not in raw.info("commandstats")


def test_who_names_no_user_isnt_asked(settings: Settings, raw):
    raw.config_resetstat()
    with contextlib.closing(TaskQ(settings.url, namespace=settings.namespace)) as shop:
        shop.by_name("a.b", queue="default").enqueue()
    assert "cmdstat_multi" not in raw.info("commandstats")
