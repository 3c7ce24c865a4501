"""Locks under random histories: the real scripts against a model that knows who came first and what time it is."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from taskq import commands, keys
from tests.lua.room import T0

PEOPLE = st.sampled_from("abcde")
PRESENT_MS = 5_000


class Locks(RuleBasedStateMachine):
    """Some people ask for one lock, wait, hold, give up, die; each acquisition has a token of its own."""

    client: Any

    def __init__(self):
        super().__init__()
        self.c = keys.cluster(f"t{uuid.uuid4().hex[:8]}")
        self.now = T0
        self.tokens, self.places = {}, {}
        self.count = 0
        self.holder, self.ends_at, self.fence = None, 0, 0
        self.line, self.seen = [], {}

    def run(self, command):
        return command.read(self.client.eval(command.script.source, len(command.keys), *command.keys, *command.args))

    def token(self, who):
        if who not in self.tokens:
            self.count += 1
            self.tokens[who] = f"{who}{self.count}"
        return self.tokens[who]

    def owner(self):
        return self.holder if self.now < self.ends_at else None

    def behind_living(self):
        """The dead are struck out from the front only."""
        living = [at for at, each in enumerate(self.line) if self.seen[each] > self.now]
        return self.line[living[0] :] if living else []

    @rule(who=PEOPLE, ttl_ms=st.sampled_from([1_000, 4_000, 20_000]), waits=st.booleans())
    def ask(self, who, ttl_ms, waits):
        token = self.token(who)
        stood = token in self.places
        answer = self.run(
            commands.lock_acquire(
                self.c, name="l", token=token, ttl_ms=ttl_ms, waits=waits or stood,
                place=self.places.get(token, ""), now=self.now,
            )
        )  # fmt: skip
        if self.owner() == token:
            assert (answer.word, answer.fence) == ("held", self.fence)
            self.ends_at = max(self.ends_at, self.now + ttl_ms)
            return
        if stood:
            self.seen[token] = self.now + PRESENT_MS
            if token not in self.line:
                self.line = sorted([*self.line, token], key=lambda each: int(self.places[each]))
        self.line = self.behind_living()
        if self.owner() is None and self.line[:1] in ([], [token]):
            assert answer.word == "held"
            assert answer.fence > self.fence
            assert answer.fence >= self.now
            self.holder, self.ends_at, self.fence = token, self.now + ttl_ms, answer.fence
            self.line = [each for each in self.line if each != token]
            self.places.pop(token, None)
        elif waits or stood:
            self.stands(token, answer)
        else:
            assert answer.word == "taken"

    def stands(self, token, answer):
        assert answer.word == "waits"
        assert 1 <= answer.look_ms <= 3_000
        self.seen[token] = self.now + PRESENT_MS
        if token not in self.line:
            assert all(int(answer.place) > int(self.places[each]) for each in self.line)
            self.line.append(token)
        self.places[token] = answer.place

    @rule(who=PEOPLE, ttl_ms=st.sampled_from([500, 10_000]))
    def extend(self, who, ttl_ms):
        token = self.token(who)
        word = self.run(commands.lock_extend(self.c, name="l", token=token, ttl_ms=ttl_ms, now=self.now))
        assert word == ("ok" if self.owner() == token else "lost")
        if word == "ok":
            self.ends_at = max(self.ends_at, self.now + ttl_ms)

    @rule(who=PEOPLE, again=st.booleans())
    def release(self, who, again):
        token = self.tokens.pop(who, None) or self.token(who)
        self.tokens.pop(who, None)
        word = self.run(commands.lock_release(self.c, name="l", token=token, now=self.now))
        holds = self.owner() == token
        assert word == ("released" if holds else "left" if token in self.line else "lost")
        self.line = [each for each in self.line if each != token]
        self.places.pop(token, None)
        if holds:
            self.holder = None
        if self.owner() is None:
            self.line = self.behind_living()
        if holds and again:
            assert self.run(commands.lock_release(self.c, name="l", token=token, now=self.now)) == "released"

    @rule()
    def take_away(self):
        word = self.run(commands.lock_release(self.c, name="l", fence=self.fence, now=self.now))
        assert word == ("released" if self.owner() else "lost")
        if self.owner():
            self.holder = None
        if self.owner() is None:
            self.line = self.behind_living()

    @rule(ms=st.sampled_from([1, 900, 3_000, 5_000, 25_000]))
    def time_passes(self, ms):
        self.now += ms

    @invariant()
    def what_stands_is_what_should(self):
        found = self.run(commands.locks(self.c, now=self.now))
        assert [each.fields["token"] for each in found.locks] == ([self.owner()] if self.owner() else [])
        line = [each.decode() for each in self.client.zrange(self.c.line("l"), 0, -1)]
        assert line == self.line
        assert {each.decode() for each in self.client.hkeys(self.c.present("l"))} == set(self.line)
        assert all(self.client.pttl(key) > 0 for key in self.client.scan_iter(self.c.prefix + "*"))


@pytest.mark.timeout(300)
def test_random_histories_of_a_lock(raw):
    class Here(Locks):
        client = raw

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
