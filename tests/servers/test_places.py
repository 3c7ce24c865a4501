"""Where a server can be and how one logs in: a Unix socket, a database, a user, a password of odd characters."""

import contextlib
from urllib.parse import quote

import pytest
import redis

from taskq import TaskQ
from taskq.connection import connect, connect_async
from taskq.embedded import Embedded
from taskq.errors import Unavailable
from taskq.settings import Settings
from tests.fleet import Fleet

SHOP = """
from taskq import TaskQ
app = TaskQ()

@app.task
async def add(a, b):
    return a + b
"""
ODD = "p@ss:w/o?r#d %&+=[]\"'\\ é\N{SNOWMAN}"


@pytest.fixture
def works(namespace, tmp_path):
    """`works(url)`: a node and a client there run a job."""

    def works(url):
        (tmp_path / "shop.py").write_text(SHOP)
        environment = {"TASKQ_URL": url, "TASKQ_NAMESPACE": namespace}
        fleet = Fleet("shop", folder=tmp_path, environment=environment, logs=tmp_path)
        app = TaskQ(url, namespace=namespace)
        try:
            node = fleet.start()
            assert app.by_name("shop.add", queue="default").enqueue(1, 2).result(timeout=20) == 3
            return node.text()
        finally:
            fleet.close()
            app.close()

    return works


async def pings(url):
    """Whether both faces get through."""
    settings = Settings(url=url)
    with contextlib.closing(connect(settings)) as server:
        assert server.ping()
    server = connect_async(settings)
    assert await server.ping()
    await server.aclose()
    return True


def test_a_unix_socket(works, server_binary):
    with Embedded(binary=server_binary) as server:
        assert server.url.startswith("unix:///")
        works(server.url)
        with redis.Redis.from_url(server.url) as client:
            assert all("/taskq.sock" in each["addr"] for each in client.client_list())


async def test_a_unix_socket_in_a_path_with_spaces_and_a_login(tmp_path, serve):
    server = serve(unixsocket=str(tmp_path / "my server.sock"), requirepass=ODD)
    assert server.running
    path = quote(str(tmp_path / "my server.sock"))
    assert await pings(f"unix://{path}?db=3&password={quote(ODD, safe='')}")
    assert await pings(f"unix://:{quote(ODD, safe='')}@{path}")


def test_another_database(works, embedded, server_url, namespace):
    works(f"redis://127.0.0.1:{embedded.port}/7")
    with redis.Redis(port=embedded.port, db=7) as there, redis.Redis(port=embedded.port) as here:
        assert list(there.scan_iter(f"{namespace}:*"))
        assert not list(here.scan_iter(f"{namespace}:*"))
        there.flushdb()


@pytest.mark.parametrize("how", ["redis://:{}@127.0.0.1:{}", "redis://127.0.0.1:{1}?password={0}"])
async def test_a_password_of_odd_characters(how, serve):
    server = serve(requirepass=ODD)
    assert await pings(how.format(quote(ODD, safe=""), server.port))


def test_a_node_with_an_odd_password_never_shows_it(works, serve):
    password = quote(ODD, safe="")
    text = works(f"redis://:{password}@127.0.0.1:{serve(requirepass=ODD).port}")
    assert ODD not in text
    assert password not in text


async def test_a_user_by_name(serve):
    server = serve()
    with redis.Redis(port=server.port) as admin:
        admin.execute_command("ACL", "SETUSER", "m@x", "on", f">{ODD}", "allkeys", "allchannels", "+@all")
    password = quote(ODD, safe="")
    assert await pings(f"redis://m%40x:{password}@127.0.0.1:{server.port}")
    assert await pings(f"redis://127.0.0.1:{server.port}?username=m%40x&password={password}")
    wrong = connect(Settings(url=f"redis://m%40x:no@127.0.0.1:{server.port}"))
    with contextlib.closing(wrong), pytest.raises(Unavailable, match="refuses the login") as caught:
        wrong.ping()
    assert ODD not in str(caught.value)


async def test_ipv6(serve):
    server = serve(bind="::1 127.0.0.1")
    assert await pings(f"redis://[::1]:{server.port}")
