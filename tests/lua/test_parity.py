"""What is told twice is told the same: keys in Lua and Python, the table of moves in Lua and Python."""

from __future__ import annotations

import json

import pytest

from taskq import keys, scripts
from taskq.fsck import judge
from taskq.state import State

PREAMBLE = scripts.expand("-- @include lib/args.lua\n-- @include lib/keys.lua\n")
BUILT = {
    "job": ("email:0190f3a2",),
    "levels": ("async",),
    "groups": ("thread", -512),
    "lanes": ("async", 511, "-"),
    "tags": ("async", -7),
    "body": ("async:0",),
    "front": ("thread:-1",),
    "wake": ("async",),
    "claimed": ("host-1-abcdef.2",),
    "minute": (30_000_000,),
    "done": ("email:own.id_1-x",),
    **dict.fromkeys(("slots", "rate", "parks"), ("crm=acme%20corp",)),
    "parked": ("!account=17", "async"),
    "unique": ("shop.send:a%20b/c",),
    "reserved": ("nightly%20report",),
    "reservation": ("email:f00d",),
    "merged": ("email:own.id_1-x",),
}
OF_THE_CLUSTER = {
    "node": ("host-1-abcdef",),
    "task": ("shop.mail.send",),
    **dict.fromkeys(("lock", "line", "present"), ("report:{2030} ü",)),
    "turn": ("f00d",),
    **dict.fromkeys(("schedule", "runs"), ("shop.report#2",)),
    "outbox": ("email",),
}


def in_lua(raw, prefix, name, arguments):
    source = f"{PREAMBLE}\nkeys.bind('prefix')\nreturn keys.{name}(unpack(ARGV))"
    return raw.eval(source, 1, prefix, *arguments).decode()


@pytest.mark.parametrize("name", BUILT)
def test_a_key_of_a_queue_is_named_alike(raw, q, name):
    assert in_lua(raw, q.prefix, name, BUILT[name]) == getattr(q, name)(*BUILT[name])


@pytest.mark.parametrize("name", OF_THE_CLUSTER)
def test_a_key_of_the_registry_is_named_alike(raw, namespace, name):
    c = keys.cluster(namespace)
    assert in_lua(raw, c.prefix, name, OF_THE_CLUSTER[name]) == getattr(c, name)(*OF_THE_CLUSTER[name])


def test_every_key_that_lua_builds_is_compared(raw, q):
    source = (
        f"{PREAMBLE}\nlocal names = {{}}\nfor name, value in pairs(keys) do\n"
        "  if type(value) == 'function' and name ~= 'bind' then\n    names[#names + 1] = name\n  end\nend\nreturn names"
    )
    assert {name.decode() for name in raw.eval(source, 1, q.prefix)} == BUILT.keys() | OF_THE_CLUSTER.keys()


def test_no_built_key_has_the_name_of_a_fixed_one():
    """Both live in one table."""
    fixed = {name for script in scripts.names() for name in scripts.load(script).keys}
    assert not fixed & (BUILT.keys() | OF_THE_CLUSTER.keys() | {"bind"})


FIXED_OF_THE_CLUSTER = {"nodes", "queues", "leader", "control", "locks", "fence", "schedules", "outboxes"}


def test_fsck_knows_every_key_of_a_queue(q):
    """Whoever adds a key says here or in `taskq/fsck/judge.py` whose it is, or fsck would call it foreign."""
    fixed = {name for script in scripts.names() for name in scripts.load(script).keys} - {"prefix"}
    assert {name for name in fixed if judge.wanted_key(name) is None} == FIXED_OF_THE_CLUSTER
    built = {name: getattr(q, name)(*BUILT[name]).removeprefix(q.prefix) for name in BUILT}
    unknown = {name for name, key in built.items() if judge.wanted_key(key) is None}
    assert unknown == {"job", "done"}, "records are told of apart, and a channel is no key"


def test_the_moves_that_lua_allows_are_those_of_the_table(raw, q):
    names = ("args", "keys", "clock", "record", "event", "stats", "retention", "wake", "lane", "gate", "state")
    included = scripts.expand("".join(f"-- @include lib/{name}.lua\n" for name in names))
    source = f"{included}\nkeys.bind('prefix')\nreturn state.allows(ARGV[1], ARGV[2]) and 1 or 0"
    from taskq.state import TRANSITIONS

    states = [str(state) for state in State]
    for before in [*states, "new", "gone", ""]:
        for after in [*states, "new", "gone", ""]:
            allowed = before in states and after in {str(state) for state in TRANSITIONS[State(before)]}
            assert raw.eval(source, 1, q.prefix, before, after) == allowed, (before, after)


@pytest.mark.parametrize("state", State)
def test_lua_knows_which_states_are_ends(raw, q, state):
    names = ("args", "keys", "clock", "record", "event", "stats", "retention", "wake", "lane", "gate", "state")
    included = scripts.expand("".join(f"-- @include lib/{name}.lua\n" for name in names))
    source = f"{included}\nkeys.bind('prefix')\nreturn state.ends(ARGV[1]) and 1 or 0"
    assert raw.eval(source, 1, q.prefix, state) == (state in {"completed", "failed", "cancelled"})


@pytest.mark.parametrize("ms", [0, 1, 1_800_000_000_123, 2**53 - 1, 4_953_600_000_000])
def test_times_are_written_without_rounding(raw, q, ms):
    included = scripts.expand("-- @include lib/args.lua\n-- @include lib/clock.lua\n")
    assert raw.eval(f"{included}\nreturn clock.text(tonumber(ARGV[1]))", 1, q.prefix, ms) == str(ms).encode()


def test_the_clock_is_the_servers(raw, q):
    included = scripts.expand("-- @include lib/args.lua\n-- @include lib/clock.lua\n")
    before, now, after = raw.time(), raw.eval(f"{included}\nreturn clock.now('')", 1, q.prefix), raw.time()
    assert before[0] * 1000 + before[1] // 1000 <= now <= after[0] * 1000 + after[1] // 1000 + 1


def test_an_error_written_by_a_script_is_json_whatever_the_worker_is_called(raw, q):
    included = scripts.expand("-- @include lib/args.lua\n-- @include lib/keys.lua\n-- @include lib/record.lua\n")
    source = f"{included}\nreturn record.error('JobCrashed', ARGV[1], 1800000000123, ARGV[2])"
    name = 'wörker "1"\n</script>\x00'
    told = json.loads(raw.eval(source, 1, q.prefix, "died: " + name, name))
    assert told == {"type": "JobCrashed", "message": "died: " + name, "at": 1_800_000_000_123, "worker": name}
