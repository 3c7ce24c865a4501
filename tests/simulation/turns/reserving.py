"""Reservations: made, bound, given back, swept; each answer is what the living reservations and jobs imply."""

from __future__ import annotations

from taskq import commands
from taskq.commands.admission import fingerprint
from taskq.errors import AdmissionConflict, AdmissionNotFound, DuplicateJob
from tests.lua.keyspace import Dump
from tests.simulation.turns.lanes import OVER, Record, reservation_of
from tests.simulation.turns.making import Making
from tests.simulation.turns.world import World

SLOTS = 4


def bound(found: Dump) -> dict[str, Record]:
    """Key → the job that was made for it, while it holds its slot."""
    jobs: dict[str, Record] = {}
    for name, record in found.items():
        if name.startswith("job:") and isinstance(record, dict) and (key := reservation_of(record)):
            assert key not in jobs, "one key, one job"
            jobs[key] = {**record, "id": name.removeprefix("job:")}
    return jobs


def occupied(world: World, found: Dump) -> int:
    """How many slots of the queue are taken."""
    waiting = [job for job in bound(found).values() if job["state"] != "running"]
    return len(found.get("leases", ())) + len(waiting) + len(world.unbound())


class Reserving(Making):
    """What a dispatcher does."""

    def token(self) -> str:
        return self.draw.choice([*list(self.tokens)[-8:], "default:nobody"])

    def reserve(self) -> None:
        key, token = f"k{self.draw.randrange(7)}", f"default:r{self.name().partition(':')[2]}"
        ttl_ms = self.draw.choice((50, 3000, 60_000))
        said = self.do("reserve", token=token, key=key, most=SLOTS, ttl_ms=ttl_ms).word
        if self.before is not None:
            held = {each["key"] for each in self.unbound().values()} | bound(self.before).keys()
            full = occupied(self, self.before) >= SLOTS
            assert said == ("duplicate" if key in held else "no_capacity" if full else "reserved")
        if said == "reserved":
            self.tokens[token] = {"key": key, "till": self.now + ttl_ms}

    def bind(self) -> None:
        token = self.token()
        known = self.tokens.get(token)
        job = self.job()
        can = token in self.unbound()
        expected = self.owners.expected([job], self.now)
        try:
            made = self.do("bind", token=token, job=job)
        except AdmissionNotFound:
            assert not can
            assert not known or "job" not in known
        except AdmissionConflict:
            assert known
            assert "job" in known
        except DuplicateJob:
            assert can
            assert expected is None
        else:
            assert known
            if "job" in known:
                assert fingerprint(known["said"]) == fingerprint(job)
                assert made.id == known["job"]
                return
            assert can
            assert expected is not None
            word = f"{made.word} {made.id}" if made.word in {"existing", "replaced"} else made.word
            self.owners.answered([job], [word], expected, self.now)
            known |= {"job": made.id, "said": job, "word": made.word}

    def bind_again(self) -> None:
        """The same content is the same call, for ever."""
        token = self.token()
        known = self.tokens.get(token, {})
        if "said" in known and "released" not in known:
            assert self.do("bind", token=token, job=known["said"]).id == known["job"]

    def give_back(self) -> None:
        token = self.token()
        known = self.tokens.get(token, {})
        can = token in self.unbound()
        record = self.record(known["job"]) if "job" in known else None
        lives = record is not None and record["state"] not in OVER and known["word"] != "existing"
        try:
            self.do("release_reservation", token=token, call=self.name())
        except AdmissionNotFound:
            assert "released" in known or not (can or "job" in known)
        except AdmissionConflict:
            assert lives
        else:
            assert not lives
            assert can or "job" in known
            known["released"] = True

    def finalize(self) -> None:
        key = f"k{self.draw.randrange(7)}"
        unbound = [each for each in self.unbound().values() if each["key"] == key]
        freed = self.do("finalize", key=key)
        assert freed or not unbound, "nothing of it lives yet"
        if self.before is not None:
            assert not (freed and key in bound(self.before))
        for each in unbound:
            each["released"] = True

    def cleanup(self) -> None:
        for which in commands.RESERVATIONS:
            dropped, _ = self.do("sweep_reservations", which)
            assert which == "unbound" or not dropped, "no bound one is without evidence"
