"""TLS on the way to a cluster and to a sentinel and its primary: `rediss+cluster://`, `rediss+sentinel://`."""

import contextlib
import shutil
import signal
import subprocess

import pytest
import redis

from taskq import TaskQ
from taskq.embedded import Embedded
from taskq.errors import Unavailable
from taskq.tied import tied
from tests.ports import cluster_port
from tests.waiting import wait_until


@pytest.fixture
def tls_server(certificates, tmp_path):
    """`tls_server(**config)` starts a server that speaks TLS on its `tls_port`, which it gives with the server."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no server with TLS here: apt install redis-server")
    with contextlib.ExitStack() as stack:

        def tls_server(**config):
            port = cluster_port()
            given = {**settings(certificates, port), **{name.replace("_", "-"): word for name, word in config.items()}}
            server = Embedded(tmp_path / "data", cluster_port(), given, binary=program, appendonly=False)
            try:
                return stack.enter_context(server), port
            except Unavailable:
                pytest.skip("no server with TLS here: apt install redis-server")

        yield tls_server


def settings(certificates, port):
    """What a server needs to speak TLS."""
    return {
        "tls-port": port,
        "tls-cert-file": certificates.certificate("server"),
        "tls-key-file": certificates.key("server"),
        "tls-ca-cert-file": certificates.ca,
        "tls-auth-clients": "no",
    }


def works(url, namespace):
    """Whether a caller gets through, and may write."""
    with contextlib.closing(TaskQ(url, namespace=namespace)) as app:
        return app.by_name("a.b", queue="default").enqueue().created and app.inspector.queues() != []


def test_a_cluster(tls_server, certificates, namespace):
    """Its nodes are told by address, which the certificate here doesn't name."""
    server, port = tls_server(cluster_enabled="yes", tls_cluster="yes")
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("CLUSTER ADDSLOTS", *range(16384))
        wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
    trust = f"ssl_ca_certs={certificates.ca}&ssl_check_hostname=false"
    assert works(f"rediss+cluster://localhost:{port}?{trust}", namespace)
    stranger = f"ssl_ca_certs={certificates.stranger}&ssl_check_hostname=false"
    with pytest.raises(Unavailable, match="signed by nobody we trust"):
        works(f"rediss+cluster://localhost:{port}?{stranger}", namespace)


def test_a_sentinel_and_its_primary(tls_server, certificates, namespace, tmp_path):
    server, primary = tls_server()
    port, file = cluster_port(), tmp_path / "sentinel.conf"
    lines = [*(f"{name} {word}" for name, word in settings(certificates, port).items()), "port 0", "bind 127.0.0.1"]
    lines += [f"dir {tmp_path}", "tls-replication yes", f"sentinel monitor main 127.0.0.1 {primary} 1"]
    file.write_text("\n".join(lines) + "\n")
    words = tied([server.binary, str(file), "--sentinel"], signal.SIGKILL)
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as sentinel:
        try:
            trust = f"ssl_ca_certs={certificates.ca}&ssl_check_hostname=false"
            assert works(f"rediss+sentinel://localhost:{port}/main/0?{trust}", namespace)
            stranger = f"ssl_ca_certs={certificates.stranger}&ssl_check_hostname=false"
            with pytest.raises(Unavailable, match="signed by nobody we trust"):
                works(f"rediss+sentinel://localhost:{port}/main/0?{stranger}", namespace)
        finally:
            sentinel.terminate()
