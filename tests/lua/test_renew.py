"""renew: the lease is set anew, and the holder hears what it must know."""

from __future__ import annotations

import pytest

from taskq import commands
from taskq.commands import Held
from tests.lua.room import LEASE_MS, T0


def renew(room, epoch, name="a", worker="n.1", lease_ms=LEASE_MS):
    (word,) = room.do(commands.renew, lease_ms=lease_ms, held=[Held(f"default:{name}", epoch, worker)])
    return word


def test_it_moves_the_end_of_the_lease_and_nothing_else(room):
    epoch = room.held()
    room.look()
    room.now += 100
    assert renew(room, epoch) == "ok"
    assert room.changed() == {"leases default:a": room.now + LEASE_MS}


def test_it_is_never_a_maximum(room):
    """A lease that reaches too far, as after a clock that went back, comes home."""
    epoch = room.held()
    room.client.zadd(room.q.fixed("leases"), {"default:a": T0 + 10**9})
    renew(room, epoch, lease_ms=5000)
    assert room.keyspace.dump()["leases"] == {"default:a": T0 + 5000}


def test_a_lease_that_went_missing_is_restored(room):
    epoch = room.held()
    room.client.delete(room.q.fixed("leases"))
    assert renew(room, epoch) == "ok"
    assert room.keyspace.dump()["leases"] == {"default:a": T0 + LEASE_MS}


@pytest.mark.parametrize("worker, epoch", [("n.1", -1), ("n.1", 1), ("n.2", 0)])
def test_an_old_epoch_or_another_worker_renews_nothing(room, worker, epoch):
    held = room.held()
    room.look()
    room.now += 100
    assert renew(room, held + epoch, worker=worker) == "lost"
    assert room.changed() == {}


def test_what_ended_or_never_was_is_lost(room):
    epoch = room.held()
    room.do(commands.complete, worker="n.1", done=[commands.Done("default:a", epoch, b"")])
    room.look()
    assert renew(room, epoch) == "lost"
    assert renew(room, epoch, name="nobody") == "lost"
    assert room.changed() == {}


def test_it_carries_requests_to_cancel(room):
    epoch = room.held()
    room.do(commands.cancel, ["default:a"])
    assert renew(room, epoch) == "cancel"
    room.do(commands.cancel, ["default:a"], force=True)
    assert renew(room, epoch) == "force"
    room.do(commands.cancel, ["default:a"])
    assert renew(room, epoch) == "force", "a milder request takes nothing back"


def test_it_answers_in_order(room):
    rows = [Held(f"default:{name}", room.held(name), "n.1") for name in "abc"]
    rows[1] = rows[1]._replace(epoch=1)
    assert room.do(commands.renew, lease_ms=LEASE_MS, held=rows) == ["ok", "lost", "ok"]


@pytest.mark.parametrize("lease_ms", [0, -1, "nan", "x", 10**15])
def test_a_lease_of_no_or_endless_time_is_refused_not_granted(room, lease_ms):
    epoch = room.held()
    room.look()
    with pytest.raises(Exception, match="lease_ms cannot be"):
        renew(room, epoch, lease_ms=lease_ms)
    assert room.changed() == {}
