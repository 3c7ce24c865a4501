"""Rows 1–32: what the table allows is what the server does, also for the states that no client makes yet."""

from __future__ import annotations

import itertools

import pytest

from taskq import commands, scripts
from taskq.commands import Failure
from taskq.errors import InvalidTransition
from taskq.state import State, Transition
from tests.lua.room import T0

_LIB = """
-- @include lib/args.lua
-- @include lib/keys.lua
-- @include lib/clock.lua
-- @include lib/record.lua
-- @include lib/event.lua
-- @include lib/stats.lua
-- @include lib/retention.lua
-- @include lib/wake.lua
-- @include lib/lane.lua
-- @include lib/gate.lua
-- @include lib/state.lua
"""
ALLOWS = _LIB + "return state.allows(ARGV[1], ARGV[2]) and 1 or 0"
MOVE = (
    _LIB
    + """
keys.bind('prefix', 'meta', 'classes', 'scheduled', 'retryable', 'expiring', 'leases', 'pending', 'completed',
  'failed', 'cancelled', 'prune', 'events', 'stats', 'empty', 'limits', 'gates')
local job = record.fields(ARGV[1], record.CORE)
state.begin()
state.move(job, ARGV[2], tonumber(ARGV[3]), {}, ARGV[4] and tonumber(ARGV[4]))
state.flush(tonumber(ARGV[3]))
return 'ok'
"""
)
KEYS = scripts.load("retry").keys


def move(room, name, to, *option):
    """What the script of a later feature will do: the library's own move."""
    listed = room.q.listed(KEYS)
    return room.client.eval(scripts.expand(MOVE), len(listed), *listed, f"default:{name}", to, room.now, *option)


def wait_for_others(room, name):
    """Puts a job where an enqueue with `after` will put it: no script does so yet."""
    id = f"default:{name}"
    room.client.hset(room.q.job(id), mapping={"state": "pending", "task": "t", "created_at": room.now})
    room.client.zadd(room.q.fixed("pending"), {id: room.now})


@pytest.mark.parametrize("before, after", list(itertools.product(State, State)))
def test_scripts_and_python_have_one_table(raw, q, before, after):
    assert bool(raw.eval(scripts.expand(ALLOWS), 1, q.prefix, before, after)) is Transition(before, after).valid


def test_a_pending_job_is_nobodys_to_run(room):
    wait_for_others(room, "a")
    assert room.do(commands.counts).pending == 1
    assert room.claim() == []
    assert room.do(commands.promote) == 0
    assert room.job()["state"] == "pending"


def test_a_pending_job_becomes_available_or_scheduled_when_what_it_waits_for_has_ended(room):
    wait_for_others(room, "a")
    wait_for_others(room, "b")
    move(room, "a", "available")
    move(room, "b", "scheduled", T0 + 500)
    assert [job.id for job in room.claim()] == ["default:a"]
    room.now += 500
    assert [job.id for job in room.claim()] == ["default:b"]
    assert room.do(commands.counts).pending == 0


@pytest.mark.parametrize("how", ["cancel", "purge"])
def test_a_pending_job_can_be_cancelled(room, how):
    wait_for_others(room, "a")
    if how == "cancel":
        assert room.do(commands.cancel, ["default:a"]) == ["removed"]
    else:
        assert room.do(commands.purge).cancelled == 1
    assert room.job()["state"] == "cancelled"
    assert room.do(commands.counts)[:8] == (0, 0, 0, 0, 0, 0, 0, 1)


def test_a_move_that_the_table_forbids_changes_nothing(room):
    room.add("a")
    room.look()
    with pytest.raises(Exception, match="a available job cannot become completed"):
        move(room, "a", "completed")
    assert room.changed() == {}


def fail(room, epoch, verb="retry"):
    failure = Failure("default:a", epoch, verb, 1_000, '{"type":"E"}', "E")
    return room.do(commands.fail, worker="n.1", failures=[failure])


def test_a_retryable_job_is_available_once_its_backoff_is_over(room):
    assert fail(room, room.held()) == ["retryable"]
    assert (room.job()["state"], room.job()["scheduled_at"]) == ("retryable", str(T0 + 1_000))
    room.now += 999
    assert room.claim() == []
    room.now += 1
    assert room.do(commands.promote) == 1
    assert room.job()["state"] == "available"


def test_a_retryable_job_can_be_cancelled(room):
    fail(room, room.held())
    assert room.do(commands.cancel, ["default:a"]) == ["removed"]
    assert room.job()["state"] == "cancelled"


def test_a_retryable_job_can_not_be_failed_by_its_last_holder(room):
    """Row 24: nobody holds it, so nobody may end it."""
    epoch = room.held()
    fail(room, epoch)
    room.look()
    assert fail(room, epoch) == ["ok"], "the same call, sent again"
    assert fail(room, epoch, "fail") == ["lost"]
    assert fail(room, epoch + 1, "fail") == ["lost"]
    assert room.changed() == {}


def test_a_running_job_is_cancelled_only_by_asking(room):
    room.held()
    with pytest.raises(InvalidTransition):
        room.do(commands.cancel, ["default:a"], running=False)
    assert room.do(commands.cancel, ["default:a"]) == ["requested"]
    assert room.job()["state"] == "running"
