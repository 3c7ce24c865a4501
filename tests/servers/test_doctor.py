"""`taskq doctor`: each line ok on a server set up as the docs say, and not ok on one that isn't, with what to do."""

import json
from dataclasses import replace

import pytest
import redis
from click.testing import CliRunner

from taskq import commands
from taskq.cli.main import cli
from taskq.connection import fitness
from taskq.connection.ask import Refusal
from taskq.connection.fitness import Facts
from taskq.doctor import examine, judge
from taskq.settings import Settings
from tests.ports import cluster_port
from tests.servers.test_minimal_user import without
from tests.waiting import wait_until

NAMES = [
    *("reachable", "version", "mode", "persistence", "eviction", "memory"),
    *("clock", "scripts", "permissions", "round trip", "listpack"),
]


@pytest.fixture
def doctor(namespace):
    """`doctor(url)` gives exit code and findings by name; the document's form is checked on the way."""

    def doctor(url):
        result = CliRunner().invoke(cli, ["doctor", "--json", "--url", url, "--namespace", namespace])
        assert result.stderr == ""
        told = json.loads(result.stdout)
        assert set(told) == {"ok", "findings"}
        assert all(set(each) == {"name", "level", "found", "advice"} for each in told["findings"])
        assert all(bool(each["advice"]) == (each["level"] != "ok") for each in told["findings"])
        assert told["ok"] == (result.exit_code == 0)
        assert result.exit_code == any(each["level"] == "fail" for each in told["findings"])
        return result.exit_code, {each["name"]: each for each in told["findings"]}

    return doctor


def test_a_server_as_recommended_is_well(doctor, serve, tmp_path):
    code, found = doctor(serve(tmp_path, appendonly=True, maxmemory="1gb").url)
    assert list(found) == NAMES
    # How fast a busy machine is, isn't promised.
    assert {each["level"] for name, each in found.items() if name != "round trip"} == {"ok"}
    assert code == 0


def test_it_is_readable(serve, namespace, tmp_path):
    server = serve(tmp_path, hash_max_ziplist_value=64)
    result = CliRunner().invoke(cli, ["doctor", "--url", server.url, "--namespace", namespace])
    rows = [line.split(None, 1) for line in result.stdout.splitlines()]
    assert [row[0] for row in rows] == ["ok", "ok", "ok", "warn", *["ok"] * 5, rows[9][0], "warn"]
    assert "nothing is written down: set appendonly yes" in rows[3][1]
    assert rows[10][1].endswith("set hash-max-listpack-value 1024: a waiting job then takes about half the memory") or (
        "hash-max-ziplist-value" in rows[10][1]
    )


def test_warnings_leave_the_exit_code_0(doctor, serve, tmp_path):
    code, found = doctor(serve(tmp_path, maxmemory="100mb", maxmemory_policy="allkeys-lru").url)
    assert code == 0
    assert found["eviction"]["found"] == "maxmemory-policy is allkeys-lru"
    assert "noeviction" in found["eviction"]["advice"]
    assert found["persistence"]["level"] == "warn"


def test_snapshots_alone_are_told(doctor, serve, tmp_path):
    assert "snapshots alone" in doctor(serve(tmp_path, save="3600 1").url)[1]["persistence"]["found"]


def test_a_snapshot_that_failed_is_a_fail(doctor, serve, tmp_path):
    server = serve(tmp_path, save="3600 1")
    with redis.Redis(port=server.port) as client:
        (tmp_path / "dump.rdb").mkdir()  # where the file should go
        client.set("x", 1)
        client.bgsave()
        wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
    code, found = doctor(server.url)
    assert (code, found["persistence"]["found"]) == (1, "the last snapshot failed")


def test_memory(doctor, serve):
    server = serve(maxmemory="100mb")
    assert "% left" in doctor(server.url)[1]["memory"]["found"]
    with redis.Redis(port=server.port) as client:
        client.setrange("ballast", 20_000_000, b"x")  # beside which what doctor itself needs is nothing
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", int(used * 1.05))
        assert doctor(server.url)[1]["memory"]["level"] == "warn"
        client.config_set("maxmemory", used // 2)
        code, found = doctor(server.url)
    assert (code, found["memory"]["level"]) == (1, "fail")
    assert "raise maxmemory" in found["memory"]["advice"]


def test_permissions(doctor, user, namespace):
    code, found = doctor(user(without(namespace, "xtrim", "publish")).url)
    assert code == 1
    assert found["permissions"] == {
        "name": "permissions",
        "level": "fail",
        "found": f"forbids user user-{namespace} PUBLISH, XTRIM",
        "advice": f"ACL SETUSER user-{namespace} +publish +xtrim",
    }
    assert doctor(user().url)[1]["permissions"]["level"] == "ok"


def test_scripts_are_counted(doctor, server_url, raw, run, q):
    raw.script_flush()
    assert doctor(server_url)[1]["scripts"]["found"].startswith("0 of ")
    run(commands.counts(q))
    assert doctor(server_url)[1]["scripts"]["found"].startswith("1 of ")


def test_no_server_is_one_fail_with_what_to_try(doctor, monkeypatch):
    monkeypatch.setenv("TASKQ_DEADLINE", "300ms")
    code, found = doctor("redis://127.0.0.1:1")
    assert code == 1
    assert list(found) == ["reachable"]
    assert found["reachable"]["found"].startswith("no answer from the server at 127.0.0.1:1")
    assert found["reachable"]["advice"] == "is it running, and is the URL right?"


def test_a_replica_is_told(doctor, serve, monkeypatch):
    monkeypatch.setenv("TASKQ_DEADLINE", "500ms")
    first = serve()
    code, found = doctor(serve(replicaof=f"127.0.0.1 {first.port}").url)
    assert code == 1
    assert "read-only replica" in found["reachable"]["found"]


def test_it_leaves_nothing_behind(server_url, namespace, raw):
    examine(Settings(url=server_url, namespace=namespace))
    assert raw.keys() == []


# --- clusters


@pytest.fixture
def shard(serve):
    """One shard with every slot: its port."""
    server = serve(port=cluster_port(), cluster_enabled="yes")
    with redis.Redis(port=server.port) as client:
        client.execute_command("CLUSTER ADDSLOTS", *range(16384))
        wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
    return server.port


def test_a_cluster(doctor, shard):
    code, found = doctor(f"redis+cluster://127.0.0.1:{shard}")
    assert code == 0
    assert list(found) == [*NAMES, "cluster"]
    assert found["cluster"]["found"] == "state ok, 1 shards, 16384 of 16384 slots served"
    assert found["mode"]["found"] == "cluster"
    assert found["permissions"]["level"] == "ok"


def test_a_cluster_that_lacks_slots_fails(doctor, shard, monkeypatch):
    monkeypatch.setenv("TASKQ_DEADLINE", "500ms")
    with redis.Redis(port=shard) as client:
        client.execute_command("CLUSTER DELSLOTS", 1, 2, 3)
    assert doctor(f"redis+cluster://127.0.0.1:{shard}")[0] == 1


def test_a_cluster_under_a_plain_url_is_a_warning(doctor, shard):
    code, found = doctor(f"redis://127.0.0.1:{shard}")
    assert (code, found["mode"]["level"]) == (0, "warn")
    assert "redis+cluster://" in found["mode"]["advice"]


def test_no_cluster_under_a_clusters_url_fails(doctor, serve):
    code, found = doctor(f"redis+cluster://127.0.0.1:{serve().port}")
    assert (code, found["mode"]["level"], found["cluster"]["level"]) == (1, "fail", "fail")


# --- what the numbers mean


FACTS = Facts(
    hello={"server": "redis", "version": "7.0.15", "mode": "standalone"},
    info={"aof_enabled": "0", "maxmemory_policy": "noeviction", "used_memory": "100", "maxmemory": "0"},
    config={"save": "", "dir": "/var/lib/redis"},
)


@pytest.mark.parametrize(
    "version, level",
    [("5.0.14", "fail"), ("6.0.16", "fail"), ("6.2.0", "ok"), ("6.2", "ok"), ("10.0.0", "ok"), ("", "warn")],
)
def test_versions(version, level):
    assert fitness.version(replace(FACTS, hello={"version": version})).level == level


def test_a_server_without_scripts_is_no_server_for_us():
    found = fitness.version(replace(FACTS, script=Refusal("Could not find scripting engine 'lua'")))
    assert found.level == "fail"


@pytest.mark.parametrize(
    "info, config, level",
    [
        ({"aof_enabled": "1"}, {}, "ok"),
        ({"aof_enabled": "1", "aof_last_write_status": "err"}, {}, "fail"),
        ({"aof_enabled": "0"}, {"save": "900 1"}, "ok"),
        ({"aof_enabled": "0", "rdb_last_bgsave_status": "err"}, {"save": "900 1"}, "fail"),
        ({"aof_enabled": "0"}, {"save": ""}, "warn"),
        ({"aof_enabled": "0"}, {}, "warn"),
        ({"aof_enabled": "0"}, {"save": "", "dir": "/x/taskq-abc"}, "ok"),
        ({}, {}, "warn"),
    ],
)
def test_persistence(info, config, level):
    assert fitness.persistence(replace(FACTS, info=info, config=config)).level == level


@pytest.mark.parametrize("offset, level", [(0.0, "ok"), (0.9, "ok"), (-1.5, "warn"), (3600.0, "warn")])
def test_clocks(offset, level):
    at = 1_000_000.0 + offset
    reply = [str(int(at)).encode(), str(int(at % 1 * 1e6)).encode()]
    assert judge.clock(reply, 999_999.99, 1_000_000.01).level == level


def test_a_slow_answer_isnt_taken_for_a_wrong_clock():
    assert judge.clock([b"1000000", b"0"], 1_000_000.0, 1_000_004.0).level == "ok"


@pytest.mark.parametrize(
    "took, level", [([0.1] * 100, "ok"), ([6.0] * 100, "warn"), ([0.1] * 98 + [80.0] * 2, "warn"), ([0.2], "ok")]
)
def test_round_trips(took, level):
    assert judge.round_trip(took).level == level


def test_a_program_that_fills_the_script_cache_is_told():
    known = replace(FACTS, info={"number_of_cached_scripts": "5000"})
    assert judge.scripts(known, [1, 0]).level == "warn"
