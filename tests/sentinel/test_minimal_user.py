"""The users that docs/servers.md describes, of the servers and of the sentinels, are enough, through a failover too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import redis

from taskq.connection.needs import rules
from tests.cluster.rig import rig

TEXT = (Path(__file__).parents[2] / "docs" / "servers.md").read_text()
pytestmark = pytest.mark.timeout(180)


def test_the_documented_users(site, namespace, ledger, tmp_path):
    (told,) = re.findall(r"On sentinels\s+`(.+?)`", TEXT)
    for client in site.clients:
        client.execute_command("ACL", "SETUSER", "least", "on", ">pw", *rules(namespace).split())
    for port in site.sentinels:
        with redis.Redis(port=port) as sentinel:
            sentinel.execute_command("ACL", "SETUSER", "asks", "on", ">p2", "resetchannels", "-@all", *told.split())
            sentinel.execute_command("ACL", "SETUSER", "default", "off")
    site_url = site.url.replace("://", "://least:pw@")
    url = f"{site_url}?sentinel_username=asks&sentinel_password=p2"
    with rig(url, namespace, ledger, tmp_path, lambda _: site.clients[site.writable()]) as shop:
        shop.fleet.start("-w", "2")
        jobs = shop.enqueue_many([shop.shop.nap.call(0.1), shop.shop.brittle.call()])
        shop.until(jobs)
        site.clients[0].execute_command("WAIT", 1, 5000)
        site.servers[0].kill()
        site.until_switched()
        shop.until([shop.enqueue(shop.shop.quick, queue="default")], timeout=30)
        shop.conserve(["default"])
