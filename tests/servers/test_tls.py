"""`rediss://`: with one's own authority, with a client's certificate, and every way in which it doesn't come about.

On a server built with TLS, if there is one here, and on TLS before one that isn't.
"""

import contextlib
import os
import shutil

import pytest

from taskq import TaskQ
from taskq.connection import connect, connect_async, fitness
from taskq.embedded import Embedded
from taskq.errors import Unavailable
from taskq.settings import Settings
from tests.fleet import Fleet
from tests.servers.front import Front

SHOP = """
from taskq import TaskQ
app = TaskQ()

@app.task
async def add(a, b):
    return a + b
"""


@pytest.fixture(params=["front", "native"])
def tls(request, certificates, embedded, server_url, tmp_path):
    """`tls(clients=True)` gives the port of a server that speaks TLS, and asks clients for a certificate if told so."""
    with contextlib.ExitStack() as stack:

        def front(*, clients=False):
            return stack.enter_context(Front(embedded.port, certificates, clients=clients)).port

        def native(*, clients=False):
            config = {
                "tls-port": (port := front()),  # a free one: its listener is closed below
                "tls-cert-file": certificates.certificate("server"),
                "tls-key-file": certificates.key("server"),
                "tls-ca-cert-file": certificates.ca,
                "tls-auth-clients": "yes" if clients else "no",
            }
            stack.pop_all().close()
            server = Embedded(tmp_path / "tls", config=config, appendonly=False, binary=shutil.which("redis-server"))
            try:
                stack.enter_context(server)
            except Unavailable:
                pytest.skip("no server with TLS here: apt install redis-server")
            return port

        if request.param == "native" and not shutil.which("redis-server"):
            pytest.skip("no server with TLS here: apt install redis-server")
        yield front if request.param == "front" else native


async def told(url, namespace, deadline_ms=3_000):
    """What sync and async callers are told; they agree but for the words of the library."""
    settings = Settings(url=url, namespace=namespace, deadline_ms=deadline_ms)
    with contextlib.closing(connect(settings)) as server, pytest.raises(Unavailable) as caught:
        server.ping()
    server = connect_async(settings)
    with pytest.raises(Unavailable) as twin:
        await server.ping()
    await server.aclose()
    for one in (caught, twin):
        assert "\n" not in str(one.value)
    advice, twins = (str(one.value).rpartition("): ")[2] for one in (caught, twin))
    # A server that wants a certificate says so after the handshake: its connection may break before that is read.
    assert advice == twins or ("ssl_certfile" in advice and "ssl_certfile" in twins)
    return str(caught.value)


def test_a_node_and_a_client_over_tls(tls, certificates, namespace, tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)
    url = f"rediss://localhost:{tls()}/0?ssl_ca_certs={certificates.ca}"
    environment = {"TASKQ_URL": url, "TASKQ_NAMESPACE": namespace}
    fleet = Fleet("shop", folder=tmp_path, environment=environment, logs=tmp_path)
    app = TaskQ(url, namespace=namespace)
    try:
        fleet.start()
        assert app.by_name("shop.add", queue="default").enqueue(1, 2).result(timeout=20) == 3
    finally:
        fleet.close()
        app.close()
    assert fitness.check(Settings(url=url, namespace=namespace)) is not None


async def test_a_clients_certificate(tls, certificates, namespace):
    port = tls(clients=True)
    login = f"ssl_certfile={certificates.certificate('client')}&ssl_keyfile={certificates.key('client')}"
    url = f"rediss://localhost:{port}?ssl_ca_certs={certificates.ca}"
    settings = Settings(url=f"{url}&{login}", namespace=namespace)
    with contextlib.closing(connect(settings)) as server:
        assert server.ping()
    server = connect_async(settings)
    assert await server.ping()
    await server.aclose()
    assert "ssl_certfile and ssl_keyfile" in (await told(url, namespace)).replace(", ", " and ")


def test_renewed_files_are_read_again(certificates, namespace, tmp_path):
    from taskq.address import parse_url
    from taskq.connection.tls import Tls

    file = tmp_path / "ca.pem"
    shutil.copy(certificates.ca, file)
    tls = Tls(parse_url(f"rediss://localhost?ssl_ca_certs={file}"))
    first = tls.context()
    assert tls.context() is first
    shutil.copy(certificates.stranger, file)
    os.utime(file, ns=(1, 1))
    assert tls.context() is not first


def test_a_key_with_a_password(tls, certificates, namespace):
    key = certificates.encrypted("client", "p@ss w")
    url = (
        f"rediss://localhost:{tls(clients=True)}?ssl_ca_certs={certificates.ca}"
        f"&ssl_certfile={certificates.certificate('client')}&ssl_keyfile={key}"
    )
    with contextlib.closing(connect(Settings(url=f"{url}&ssl_password=p%40ss%20w", namespace=namespace))) as server:
        assert server.ping()
    locked = connect(Settings(url=url, namespace=namespace))
    with contextlib.closing(locked), pytest.raises(Unavailable, match="ssl_password"):
        locked.ping()


async def test_an_authority_that_signed_another_is_refused_at_once(tls, certificates, namespace):
    url = f"rediss://localhost:{tls()}?ssl_ca_certs={certificates.stranger}"
    text = await told(url, namespace, deadline_ms=60_000)
    assert "signed by nobody we trust" in text
    assert text.endswith("name its authority's file by ssl_ca_certs")


async def test_without_an_authority_it_is_the_systems(tls, namespace):
    assert "ssl_ca_certs" in await told(f"rediss://localhost:{tls()}", namespace)


async def test_the_name_counts_unless_told_otherwise(tls, certificates, namespace):
    url = f"rediss://127.0.0.1:{tls()}?ssl_ca_certs={certificates.ca}"
    assert "for another name" in await told(url, namespace, deadline_ms=60_000)
    settings = Settings(url=f"{url}&ssl_check_hostname=false", namespace=namespace)
    with contextlib.closing(connect(settings)) as server:
        assert server.ping()


def test_no_check_at_all_if_asked_for(tls, namespace):
    settings = Settings(url=f"rediss://localhost:{tls()}?ssl_cert_reqs=none", namespace=namespace)
    with contextlib.closing(connect(settings)) as server:
        assert server.ping()


async def test_plain_to_tls(tls, namespace):
    assert "does it want TLS (rediss://)" in await told(f"redis://127.0.0.1:{tls()}", namespace, 1_000)


async def test_tls_to_plain(embedded, certificates, namespace):
    text = await told(f"rediss://localhost:{embedded.port}?ssl_ca_certs={certificates.ca}", namespace, 1_000)
    assert "if not, write redis://" in text


async def test_a_file_that_isnt_there(embedded, namespace):
    text = await told(f"rediss://localhost:{embedded.port}?ssl_ca_certs=/no/such/file.pem", namespace, 60_000)
    assert text.startswith("the TLS files can't be used")
    assert "/no/such/file.pem" in text
