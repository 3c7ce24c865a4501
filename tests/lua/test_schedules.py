"""The scripts of schedules, each for itself: declared once, fired once, steered by hand, bounded, never spinning."""

from __future__ import annotations

import pytest

from taskq import commands, keys
from taskq.commands import Declared, Done, Incoming, Relayed
from taskq.errors import ServerFull
from taskq.schedules.template import Template, unpack
from tests.lua.room import T0, new
from tests.lua.test_full import full

RULE, OTHER = '{"every_ms":1000}', '{"every_ms":2000}'
TEMPLATE = Template("t", "async", 0, "", "", {"payload": b""}).pack()
MINUTE, DAY = 60_000, 86_400_000


def said(name="s", rule=RULE, overlap="allow", queue="default", template=TEMPLATE):
    return Declared(name, rule, overlap, queue, "t", template)


class Desk:
    """Calls the scripts at the room's time, as node `n`, which leads."""

    def __init__(self, room, namespace):
        self.room, self.c = room, keys.cluster(namespace)
        self.term = self.lead("n")

    def do(self, operation, *args, **options):
        return self.room.run(operation(self.c, *args, now=self.room.now, **options))

    def lead(self, node):
        return self.do(commands.pulse, node=node, leads=True, ttl_ms=6_000).term

    def declare(self, *declared, at=None):
        return self.do(commands.declare_schedules, declared or [said()], declared_at=at)

    def due(self, **options):
        self.term = self.lead("n")
        return self.do(commands.due_schedules, node="n", term=options.pop("term", self.term), **options)

    def fire(self, each, *times, **changed):
        now = self.room.now
        options = {"node": "n", "term": self.term, "name": each.name, "revision": each.revision, "after": now}
        options |= {"next": now + 1000, "look": now + 1000, "times": times} | changed
        return self.do(commands.fire, **options)

    def get(self, name="s", runs=100):
        found = self.do(commands.schedules, name=name, runs=runs).schedules
        return found[0] if found else None

    def waiting(self, queue="default"):
        return self.do(commands.outbox, queue)

    def receive(self, *messages, term=None):
        return self.room.do(commands.receive, messages, term=term)

    def relayed(self, *told, **options):
        return self.do(commands.relayed, "default", told, **options)


@pytest.fixture
def desk(room, namespace):
    return Desk(room, namespace)


def message(nominal, name="s", kind="due", overlap="allow", fired_at=None, **fields):
    id = f"{kind[0]}-{name}-{nominal}"
    return Incoming(name, kind, nominal, nominal if fired_at is None else fired_at, overlap, new(id, **fields))


# --- declaring


def test_a_new_one_is_looked_at_at_once_and_begins_now(desk, room):
    assert desk.declare() == (T0, ["new"])
    (each,) = desk.due().schedules
    assert each == ("s", RULE, "default", T0, 0, T0)
    assert desk.get().fields["origin"] == b"code"


def test_twenty_workers_that_declare_the_same_declare_one(desk, room):
    for n in range(20):
        desk.declare(said(), said("s2"), at=None)
        room.now += n
    assert desk.do(commands.schedules).total == 2
    assert desk.get().fields["created_at"] == str(T0).encode()


def test_the_same_again_disturbs_nothing(desk, room):
    at, _ = desk.declare()
    (each,) = desk.due().schedules
    assert desk.fire(each, T0) == "ok"
    room.now += 500
    assert desk.declare(at=at)[1] == ["same"]
    assert desk.due().schedules == ()
    assert desk.get().fields["next"] == str(T0 + 1000).encode()


def test_another_rule_replaces_and_begins_now(desk, room):
    desk.declare()
    desk.fire(desk.due().schedules[0], T0)
    room.now += 100_500
    assert desk.declare(said(rule=OTHER))[1] == ["changed"]
    (each,) = desk.due().schedules
    assert (each.rule, each.after_ms, each.runs) == (OTHER, room.now, 0)


def test_another_template_goes_on_with_the_same_times(desk, room):
    desk.declare()
    desk.fire(desk.due().schedules[0])
    room.now += 100
    other = Template("t", "thread", 3, "", "", {}).pack()
    assert desk.declare(said(template=other))[1] == ["changed"]
    assert desk.due().schedules == ()
    room.now += 900
    desk.fire(desk.due().schedules[0], room.now)
    assert unpack(desk.waiting()[0].fields["template"]).executor == "thread"


def test_two_versions_beside_each_other_take_no_turns(desk, room):
    old, _ = desk.declare(said(rule=RULE))
    room.now += 10
    new_, _ = desk.declare(said(rule=OTHER))
    for _ in range(3):
        room.now += 60_000
        assert desk.declare(said(rule=RULE), at=old)[1] == ["older"]
        assert desk.declare(said(rule=OTHER), at=new_)[1] == ["same"]
    assert desk.get().fields["rule"] == OTHER.encode()


def test_what_only_old_code_still_declares_is_theirs_again(desk, room):
    old, _ = desk.declare(said(rule=RULE))
    room.now += 10
    desk.declare(said(rule=OTHER))
    room.now += 200_000
    assert desk.declare(said(rule=RULE), at=old)[1] == ["changed"]


def test_by_hand_beats_code_until_it_is_removed(desk, room):
    at, _ = desk.declare()
    assert desk.do(commands.put_schedule, said(rule=OTHER)) == "changed"
    assert desk.do(commands.put_schedule, said(rule=OTHER)) == "same"
    room.now += 1
    assert desk.declare(at=None)[1] == ["api"]
    room.now += 10 * DAY
    assert desk.due().schedules[0].rule == OTHER
    assert desk.do(commands.remove_schedule, "s") == "removed"
    assert desk.declare(at=at)[1] == ["new"]


def test_one_that_nobody_declares_stops_and_goes_after_a_day_of_leading(desk, room):
    desk.declare()
    room.now += 150_001
    assert desk.due().schedules == ()
    room.now += 10 * DAY  # nobody led: that isn't counted
    assert desk.due().schedules == ()
    assert desk.get() is not None
    for _ in range(DAY // MINUTE):
        room.now += MINUTE
        assert desk.due().schedules == ()
    assert desk.get() is None
    assert desk.do(commands.schedules).total == 0


def test_one_that_is_declared_again_fires_again(desk, room):
    at, _ = desk.declare()
    room.now += 200_000
    assert desk.due().schedules == ()
    assert desk.declare(at=at)[1] == ["same"]
    (each,) = desk.due().schedules
    assert each.after_ms == T0  # so that `missed` speaks


def test_what_names_nothing_is_refused(desk, room):
    with pytest.raises(Exception, match="a name, a rule and a queue"):
        desk.declare(said(), said(rule=""))
    assert desk.get() is None


# --- firing


def test_a_firing_writes_run_message_and_next_time_in_one(desk, room):
    desk.declare(said(overlap="skip"))
    (each,) = desk.due().schedules
    assert desk.fire(each, T0 - 1000, T0) == "ok"
    messages = [each.fields for each in desk.waiting()]
    assert [each[b] for each in messages for b in ("nominal", "term")] == [
        str(n).encode() for n in (T0 - 1000, desk.term, T0, desk.term)
    ]
    assert messages[0]["overlap"] == b"skip"
    runs = desk.get().runs
    assert [(run.nominal_ms, run.kind, run.word, run.term) for run in runs] == [
        (T0, "due", "sent", desk.term),
        (T0 - 1000, "due", "sent", desk.term),
    ]
    assert desk.get().fields["runs"] == b"2"
    assert room.client.sismember(desk.c.fixed("queues"), "default")
    assert desk.due().queues == ("default",)


def test_the_same_call_again_is_answered_as_the_first(desk):
    desk.declare()
    (each,) = desk.due().schedules
    assert desk.fire(each, T0) == "ok"
    assert desk.fire(each, T0) == "ok"
    assert len(desk.waiting()) == 1
    assert len(desk.get().runs) == 1


@pytest.mark.parametrize("change", ["fired", "paused", "resumed", "rule", "template", "removed", "made anew"])
def test_what_was_read_before_a_change_fires_nothing(desk, room, change):
    desk.declare()
    if change == "resumed":
        desk.do(commands.pause_schedule, "s")
        desk.do(commands.resume_schedule, "s")
        (each,) = desk.due().schedules
        desk.do(commands.pause_schedule, "s")
        desk.do(commands.resume_schedule, "s")
    else:
        (each,) = desk.due().schedules
    room.now += 1
    if change == "fired":
        desk.fire(each, T0, after=T0 - 1)
    elif change == "paused":
        desk.do(commands.pause_schedule, "s")
    elif change == "rule":
        desk.declare(said(rule=OTHER))
    elif change == "template":
        desk.declare(said(template=Template("t", "thread", 0, "", "", {}).pack()))
    elif change in {"removed", "made anew"}:
        desk.do(commands.put_schedule, said(rule=OTHER))
        desk.do(commands.remove_schedule, "s")
        if change == "made anew":
            desk.declare()
    before = len(desk.waiting())
    assert desk.fire(each, T0) == "changed"
    assert len(desk.waiting()) == before


def test_who_leads_no_more_fires_nothing(desk, room):
    desk.declare()
    (each,) = desk.due().schedules
    old = desk.term
    room.now += 7_000
    later = desk.do(commands.pulse, node="m", leads=True, ttl_ms=6_000).term
    assert desk.fire(each, T0, term=old) == "lost"
    assert desk.fire(each, T0, term=later) == "lost"
    assert desk.do(commands.due_schedules, node="n", term=old).word == "lost"
    assert desk.waiting() == []


def test_one_that_is_over_is_looked_at_no_more_for_a_while(desk, room):
    desk.declare()
    (each,) = desk.due().schedules
    desk.fire(each, T0, next=None, look=T0 + MINUTE)
    room.now += MINUTE
    desk.declare()
    assert desk.due().schedules == ()
    assert desk.get().fields["over"] == b"1"
    assert room.client.zscore(desk.c.fixed("schedules"), "s") == room.now + MINUTE


def test_runs_are_bounded(desk, room):
    desk.declare()
    for n in range(3):
        room.now += 1000
        desk.fire(desk.due().schedules[0], *range(n * 60, n * 60 + 60))
    runs = desk.get().runs
    assert [run.nominal_ms for run in runs] == list(range(179, 79, -1))


def test_a_queue_that_cannot_be_reached_takes_no_more_than_a_thousand(desk, room):
    desk.declare()
    for n in range(4):
        desk.fire(desk.due().schedules[0], *range(n * 250, n * 250 + 250))
        room.now += 1000
    assert desk.due().schedules == ()
    assert desk.do(commands.run_schedule, "s", token="a")[0] == "stuck"
    desk.relayed(*(Relayed(each.entry, b"s", b"due", each.fields["nominal"], "fired", "j") for each in desk.waiting()))
    room.now += 1000
    assert len(desk.due().schedules) == 1


def test_the_leader_hears_when_the_next_time_comes(desk, room):
    assert desk.due().look_ms == 1000
    desk.declare()
    desk.fire(desk.due().schedules[0], look=room.now + 300)
    assert desk.due().look_ms == 300
    room.now += 200
    assert desk.due().look_ms == 100


def test_a_full_server_refuses_to_fire_and_the_time_stays_due(desk, room, run):
    desk.declare()
    (each,) = desk.due().schedules
    options = {"node": "n", "term": desk.term, "name": "s", "revision": each.revision, "after": T0, "next": T0 + 1}
    with full(room.client):
        with pytest.raises(ServerFull):
            run(commands.fire(desk.c, **options, look=T0 + 1, times=[T0], now=T0))
        with pytest.raises(ServerFull):
            run(commands.run_schedule(desk.c, "s", token="a", now=T0))
        with pytest.raises(ServerFull):
            run(commands.receive(room.q, [message(T0)], now=T0))
        assert desk.due().schedules == (each,)
        assert desk.fire(each, after=T0 - 1) == "ok"  # what fires nothing is settled
    assert desk.get().runs == ()
    assert desk.waiting() == []


# --- by hand


def test_by_hand_it_fires_now_beside_its_times_and_the_same_call_once(desk, room):
    desk.declare()
    assert desk.do(commands.run_schedule, "s", token="a") == ("ok", T0 + 1, "default")  # a time of no rule
    assert desk.do(commands.run_schedule, "s", token="a") == ("ok", T0 + 1, "default")
    assert desk.do(commands.run_schedule, "s", token="b") == ("ok", T0 + 2, "default")
    assert [run.kind for run in desk.get().runs] == ["manual"] * 2
    assert len(desk.due().schedules) == 1
    assert desk.do(commands.run_schedule, "nobody", token="a")[0] == "missing"


def test_by_hand_after_the_clock_was_set_back(desk, room):
    desk.declare()
    first = desk.do(commands.run_schedule, "s", token="a")[1]
    room.now -= 3_600_000
    second = desk.do(commands.run_schedule, "s", token="b")[1]
    assert second > first
    by_hand = [message(each, kind="manual", fired_at=room.now) for each in (first, second)]
    assert [word for word, _ in desk.receive(*by_hand)] == ["fired", "fired"]


def test_a_pause_holds_and_what_it_left_out_is_not_made_up_for(desk, room):
    desk.declare()
    assert desk.do(commands.pause_schedule, "s") == "paused"
    assert desk.do(commands.pause_schedule, "s") == "already"
    room.now += 100_000
    desk.declare()
    assert desk.due().schedules == ()
    assert desk.do(commands.resume_schedule, "s") == "resumed"
    assert desk.do(commands.resume_schedule, "s") == "already"
    assert desk.due().schedules[0].after_ms == room.now
    assert {desk.do(op, "nobody") for op in (commands.pause_schedule, commands.resume_schedule)} == {"missing"}


def test_what_code_declares_is_not_removed(desk, room):
    desk.declare()
    assert desk.do(commands.remove_schedule, "s") == "declared"
    room.now += 150_001
    assert desk.do(commands.remove_schedule, "s") == "removed"
    assert desk.do(commands.remove_schedule, "s") == "missing"


# --- arriving


def test_each_nominal_time_becomes_one_job_whoever_relays_it_how_often(desk, room):
    assert desk.receive(message(T0), term=5) == [("fired", f"default:d-s-{T0}")]
    assert desk.receive(message(T0), term=6) == [("fired", f"default:d-s-{T0}")]
    assert desk.receive(message(T0), message(T0 + 1)) == [
        ("fired", f"default:d-s-{T0}"),
        ("fired", f"default:d-s-{T0 + 1}"),
    ]
    assert [job.id for job in room.claim()] == [f"default:d-s-{T0}", f"default:d-s-{T0 + 1}"]


def test_also_after_its_job_has_gone(desk, room):
    desk.receive(message(T0, keep=0))
    (job,) = room.claim()
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"")])
    assert room.job(f"d-s-{T0}") is None
    assert desk.receive(message(T0)) == [("existing", "")]
    assert desk.receive(message(T0 - 1000)) == [("existing", "")]
    assert room.claim() == []


def test_an_earlier_leaders_call_that_comes_late_does_nothing(desk, room):
    desk.receive(message(T0), term=T0 - 5)
    room.look()
    assert desk.receive(message(T0 + 1), term=T0 - 6) is None
    assert room.changed() == {}


def test_a_term_of_a_clock_that_was_set_back_stops_nobody(desk, room):
    desk.receive(message(T0), term=T0 + 3_600_000)
    assert desk.receive(message(T0 + 1), term=T0)[0][0] == "fired"


def test_a_message_that_nobody_can_judge_any_more_is_refused(desk, room):
    room.now += 7 * DAY
    ((word, why),) = desk.receive(message(T0))
    assert (word, why) == ("refused", "it was on its way for longer than six days")


def test_a_late_nominal_time_is_no_late_message(desk, room):
    assert desk.receive(message(T0 - 40 * DAY, fired_at=T0))[0][0] == "fired"
    assert desk.receive(message(T0 - 40 * DAY, fired_at=T0))[0][0] == "fired"
    assert len(room.claim()) == 1


def test_skip_leaves_out_what_would_overlap(desk, room):
    first = message(T0, overlap="skip")
    second = message(T0 + 1000, overlap="skip")
    assert [word for word, _ in desk.receive(first, second)] == ["fired", "skipped"]
    (job,) = room.claim()
    third = message(T0 + 2000, overlap="skip")
    assert desk.receive(third) == [("skipped", f"job {job.id} has not ended")]
    assert desk.receive(third) == [("skipped", "the last run had not ended")]
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"")])
    assert desk.receive(third)[0][0] == "skipped"  # its time was settled
    assert desk.receive(message(T0 + 3000, overlap="skip"))[0][0] == "fired"


def test_queue_one_lets_one_wait(desk, room):
    first, second, third = (message(T0 + 1000 * n, overlap="queue-one") for n in range(3))
    assert [word for word, _ in desk.receive(first, second, third)] == ["fired", "queued", "skipped"]
    assert desk.receive(second)[0][0] == "queued"
    (job,) = room.claim()
    assert desk.receive(second)[0][0] == "queued"
    room.do(commands.complete, worker="n.1", done=[Done(job.id, job.epoch, b"")])
    assert desk.receive(second) == [("fired", second.job.id)]
    assert desk.receive(second) == [("fired", second.job.id)]
    assert desk.receive(third)[0][0] != "fired"
    assert [job.id for job in room.claim()] == [second.job.id]
    assert desk.receive(message(T0 + 3000, overlap="queue-one"))[0][0] == "queued"


def test_by_hand_and_due_do_not_stand_in_each_others_way(desk, room):
    by_hand = message(T0 + 5001, kind="manual")
    assert [word for word, _ in desk.receive(by_hand, message(T0))] == ["fired", "fired"]


def test_what_is_remembered_goes_after_a_week(desk, room):
    for n in range(30):
        desk.receive(message(T0, name=f"s{n}"))
    room.claim()
    room.now += 8 * DAY
    for n in range(60):
        desk.receive(message(T0 + n, name="s", fired_at=room.now))
    assert room.client.hlen(room.q.fixed("fired")) < 10
    assert room.client.pttl(room.q.fixed("fired")) > 6 * DAY
    room.claim()


# --- told


def test_what_became_of_it_stands_in_its_run_and_the_message_goes(desk, room):
    desk.declare()
    desk.fire(desk.due().schedules[0], T0)
    (waiting,) = desk.waiting()
    told = Relayed(waiting.entry, b"s", b"due", str(T0).encode(), "fired", "default:x")
    for _ in range(2):  # the same again is answered as the first was
        (run,) = desk.relayed(told)
        assert (run.word, run.rest, run.term) == ("fired", "default:x", desk.term)
    (late,) = desk.relayed(told._replace(word="existing", rest=""))
    assert late.word == "fired"
    assert desk.waiting() == []
    assert desk.due().queues == ()
    assert not room.client.exists(desk.c.outbox("default"))


def test_one_that_waits_stays_and_is_relayed_again(desk, room):
    desk.declare()
    desk.fire(desk.due().schedules[0], T0)
    (waiting,) = desk.waiting()
    desk.relayed(Relayed(waiting.entry, b"s", b"due", str(T0).encode(), "queued", "x"), again_ms=1000)
    assert desk.waiting() == [waiting]
    assert desk.due().queues == ()
    room.now += 1000
    assert desk.due().queues == ("default",)


def test_a_queue_that_could_not_be_reached_waits_for_its_time(desk, room):
    desk.declare()
    desk.fire(desk.due().schedules[0], T0)
    desk.relayed(again_ms=5000)
    room.now += 4999
    assert desk.due().queues == ()
    room.now += 1
    assert desk.due().queues == ("default",)


def test_an_entry_whose_id_is_another_messages_by_now_is_left_alone(desk, room):
    desk.declare()
    desk.fire(desk.due().schedules[0], T0)
    (waiting,) = desk.waiting()
    desk.relayed(Relayed(waiting.entry, b"s", b"due", b"1", "fired", "x"))
    assert desk.waiting() == [waiting]
