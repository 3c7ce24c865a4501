"""The election: one leader a term, terms that only grow, and no record that stands in its way."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from taskq import commands, keys
from tests.lua.room import T0

TTL_MS = 6_000


class Election:
    """Asks at the room's time."""

    def __init__(self, room, namespace):
        self.room, self.c = room, keys.cluster(namespace)

    def pulse(self, node, *, leads=True, ttl_ms=TTL_MS, after=""):
        options = {"leads": leads, "ttl_ms": ttl_ms, "after": after}
        return self.room.run(commands.pulse(self.c, node=node, now=self.room.now, **options))

    def resign(self, node, term):
        return self.room.run(commands.resign(self.c, node=node, term=term, now=self.room.now))

    def leader(self):
        return self.room.run(commands.leader(self.c, now=self.room.now))

    def order(self, verb, to):
        self.room.run(commands.order(self.c, verb, to, by="me", more="{}", now=self.room.now))


@pytest.fixture
def election(room, namespace):
    return Election(room, namespace)


def test_the_first_that_asks_leads_and_the_others_are_told_of_it(election):
    assert election.pulse("a")[:4] == ("a", T0, TTL_MS, T0)
    assert election.pulse("b")[:4] == ("a", T0, TTL_MS, T0)
    assert election.leader() == ("a", T0, T0, T0 + TTL_MS)


def test_who_would_not_lead_only_hears(election):
    assert election.pulse("a", leads=False)[:3] == ("", 0, 0)
    assert election.leader() == ("", 0, 0, 0)


def test_a_leader_leads_on_in_its_term(election, room):
    election.pulse("a")
    room.now += 2_000
    assert election.pulse("a")[:3] == ("a", T0, TTL_MS)
    room.now += TTL_MS - 1
    assert election.pulse("b").leader == "a"
    assert election.leader().node == "a", "and it still stands there"


def test_the_next_one_leads_when_the_time_is_over_and_not_before(election, room):
    election.pulse("a")
    room.now += TTL_MS - 1
    assert election.pulse("b").leader == "a"
    room.now += 1
    assert election.pulse("b")[:2] == ("b", T0 + TTL_MS)
    assert election.pulse("a")[:2] == ("b", T0 + TTL_MS)


def test_who_resigns_is_followed_at_once_in_a_greater_term(election):
    term = election.pulse("a").term
    assert election.resign("a", term)
    assert election.leader().node == ""
    assert election.pulse("b")[:2] == ("b", term + 1)
    assert not election.resign("a", term)
    assert election.leader().node == "b"


@pytest.mark.parametrize("node, more", [("b", 0), ("a", 1), ("a", -1)])
def test_only_the_leader_resigns_and_only_in_its_term(election, node, more):
    term = election.pulse("a").term
    assert not election.resign(node, term + more)
    assert election.leader().node == "a"


def test_terms_grow_though_the_clock_was_set_back(election, room):
    terms = [election.pulse("a").term]
    for _ in range(3):
        room.now -= 3_600_000
        terms.append(election.pulse("b").term)
    assert terms == sorted(terms)
    assert terms[-1] > terms[0]


def test_terms_grow_though_the_record_is_lost(election, room, raw):
    """By hand, or in a failover. Who led hears at once that it doesn't."""
    term = election.pulse("a").term
    raw.delete(election.c.fixed("leader"))
    room.now += 1
    assert not election.resign("a", term)
    assert election.pulse("b").term > term
    assert election.pulse("a").leader == "b"


def test_a_clock_that_went_back_stops_no_election(election, room):
    election.pulse("a")
    room.now -= 86_400_000
    assert election.pulse("b").leader == "b"


@pytest.mark.parametrize("junk", ["", "junk", "nan", "inf", "-5", "9" * 16, "9" * 40, "1e30"])
@pytest.mark.parametrize("field", ["node", "term", "until", "since"])
def test_no_record_stands_in_the_way(election, room, raw, field, junk):
    election.pulse("a")
    raw.hset(election.c.fixed("leader"), field, junk)
    room.now += TTL_MS
    found = election.pulse("b")
    assert found.leader == "b"
    assert found.term > 0
    election.leader()


@pytest.mark.parametrize("ttl_ms", [0, -1, 60_001, "nan"])
def test_no_term_without_an_end(election, ttl_ms):
    with pytest.raises(ResponseError, match="ttl_ms cannot be"):
        election.pulse("a", ttl_ms=ttl_ms)
    assert election.leader().node == ""


def test_orders_are_told_once_in_order(election):
    begun = election.pulse("a")
    assert begun.orders == ()
    for verb, to in (("drain", "a"), ("resume", "*")):
        election.order(verb, to)
    heard = election.pulse("a", after=begun.after)
    assert [(each.verb, each.to, each.by, each.more) for each in heard.orders] == [
        ("drain", "a", "me", "{}"),
        ("resume", "*", "me", "{}"),
    ]
    assert election.pulse("a", after=heard.after).orders == ()


def test_who_begins_is_told_what_was_said_within_a_minute(election, room):
    election.order("drain", "a")
    room.now += 40_000
    election.order("resume", "a")
    room.now += 30_000
    heard = election.pulse("a")
    assert [each.verb for each in heard.orders] == ["resume"]
    assert election.pulse("a", after=heard.after).orders == ()


def test_what_others_wrote_there_is_no_order(election, raw):
    begun = election.pulse("a")
    raw.xadd(election.c.fixed("control"), {"x": "y"})
    raw.xadd(election.c.fixed("control"), {"at": "soon", "verb": "drain"})
    raw.xadd(election.c.fixed("control"), {"at": "1", "to": "a"})
    election.order("stop", "a")
    assert [each.verb for each in election.pulse("a", after=begun.after).orders] == ["stop"]


@pytest.mark.parametrize("verb, to", [("explode", "a"), ("drain", "")])
def test_an_order_that_cannot_be_is_refused(election, verb, to):
    with pytest.raises(ResponseError, match="cannot be"):
        election.order(verb, to)
