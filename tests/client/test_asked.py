"""An id or name that is no text, a page of no number: one refusal that names the rule, before anything is sent."""

from __future__ import annotations

import inspect
import re

import pytest

from taskq import AsyncClient, BadArguments, Client, Concurrency, Debounce, Lock, Rate, Retention, TaskQ, Unique

NO_TEXT = (None, 5, b"x", ["x"], object())

NAMED = {
    "app.job": (lambda app: app.job, "id", "job"),
    "task.job": (lambda app: app.by_name("t").job, "id", "job"),
    **{f"client.{verb}": (lambda app, verb=verb: getattr(app.client, verb), "id", "job") for verb in (
        "job", "wait", "cancel", "retry")},
    **{f"nodes.{verb}": (lambda app, verb=verb: getattr(app.nodes, verb), "id", "node") for verb in (
        "get", "aget", "drain", "adrain", "resume", "aresume", "stop", "astop")},
    **{f"schedules.{verb}": (lambda app, verb=verb: getattr(app.schedules, verb), "name", "schedule") for verb in (
        "get", "aget", "pause", "apause", "resume", "aresume", "remove", "aremove", "run", "arun")},
    "inspector.task": (lambda app: app.inspector.task, "name", "task"),
    "inspector.atask": (lambda app: app.inspector.atask, "name", "task"),
    "nodes.scale": (lambda app: lambda node: app.nodes.scale(node, workers=2), "id", "node"),
    "task_info": (lambda app: app.client.task_info, "task", "task"),
    "atask_info": (lambda app: app.aclient.task_info, "task", "task"),
    "release_lock": (lambda app: lambda name: app.client.release_lock(name, fence=1), "name", "lock"),
}  # fmt: skip

PAGES = {
    "jobs": lambda app: (app.inspector.jobs, app.inspector.ajobs),
    "tasks": lambda app: (app.inspector.tasks, app.inspector.atasks),
    "locks": lambda app: (app.inspector.locks, app.inspector.alocks),
    "nodes": lambda app: (app.nodes.list, app.nodes.alist),
    "schedules": lambda app: (app.schedules.list, app.schedules.alist),
}


@pytest.fixture
def away():
    """An app without a server: what is refused needs none."""
    return TaskQ("redis://127.0.0.1:1/0", namespace="t", deadline=0.1)


async def ended(answer):
    return await answer if inspect.isawaitable(answer) else answer


@pytest.mark.parametrize("what", NAMED)
async def test_what_is_no_text_is_refused(away, what):
    of, name, noun = NAMED[what]
    for wrong in NO_TEXT:
        with pytest.raises(TypeError, match=rf"^{name}=.+ is no {noun}'s {name}: give text$"):
            await ended(of(away)(wrong))


@pytest.mark.parametrize("of", PAGES)
async def test_a_page_that_cannot_be_is_refused(away, of):
    for page in PAGES[of](away):
        for wrong in ("x", None, 1.0, True):
            with pytest.raises(TypeError, match=r"^limit=.+ is no number: give a whole one$"):
                await ended(page(limit=wrong))
            with pytest.raises(TypeError, match=r"^offset=.+ is no number: give a whole one$"):
                await ended(page(offset=wrong))
        for wrong in (0, 1001, -1, 10**5000):
            with pytest.raises(ValueError, match=f"^limit=.+ is out of range: a page holds 1 to 1000 {of}$"):
                await ended(page(limit=wrong))
        with pytest.raises(ValueError, match=f"^offset=-1 is negative: it is how many {of} to skip$"):
            await ended(page(offset=-1))


def test_a_lock_looked_for_by_no_text(away):
    with pytest.raises(TypeError, match=r"^name=5 is no lock's name: give text$"):
        away.inspector.locks(name=5)


def test_a_fence_that_is_no_number(away):
    for wrong in ("5", None, 5.0, True, [5]):
        with pytest.raises(TypeError, match=r"^fence=.+ is no number: give a whole one$"):
            away.client.release_lock("l", fence=wrong)


@pytest.mark.parametrize("state", [5, "faild", ["failed"]])
def test_a_state_there_is_none_of(away, state):
    with pytest.raises(ValueError, match=r"^there is no state .+: pending, scheduled, "):
        away.inspector.jobs(state=state)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda app: app.lock("x", tll="5s"), "lock() has no argument 'tll' (did you mean 'ttl'?)"),
        (
            lambda app: app.queue("q").limit("crm", concurency=2),
            "limit() has no argument 'concurency' (did you mean 'con",
        ),
        (
            lambda app: app.queue("q").block("crm", "5s", keys="a"),
            "block() has no argument 'keys' (did you mean 'key'?)",
        ),
        (lambda app: app.queue("q").reserve("a", max_concurency=1), "reserve() has no argument 'max_concurency' (did"),
        (lambda app: app.nodes.scale("n", worker=2), "scale() has no argument 'worker' (did you mean 'workers'?)"),
        (lambda app: app.client.claim("q", worker="w", ofer_ttl=2), "claim() has no argument 'ofer_ttl' (did you mean"),
    ],
)
def test_a_mistyped_argument_names_the_nearest(away, call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call(away)


async def test_so_do_the_twins(away):
    with pytest.raises(TypeError, match=r"alimit\(\) has no argument 'rat' \(did you mean 'rate'\?\)"):
        await away.queue("q").alimit("crm", rat="1/s")
    with pytest.raises(TypeError, match=r"claim\(\) has no argument 'lmit' \(did you mean 'limit'\?\)"):
        await away.aclient.claim("q", worker="w", lmit=1)
    assert inspect.iscoroutinefunction(away.queue("q").alimit)


def test_the_time_of_an_offer_is_of_offers(away):
    with pytest.raises(ValueError, match=r"offer_ttl='10s' is of offers, .*: give start=False too"):
        away.client.claim("q", worker="w", offer_ttl="10s")


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: TaskQ(namespce="x"), "TaskQ() has no argument 'namespce' (did you mean 'namespace'?)"),
        (lambda: TaskQ().configure(leese="9s"), "configure() has no argument 'leese' (did you mean 'lease'?)"),
        (lambda: Retention(complete="1h"), "Retention() has no argument 'complete' (did you mean 'completed'?)"),
        (lambda: Unique(on_conflct="raise"), "Unique() has no argument 'on_conflct' (did you mean 'on_conflict'?)"),
        (lambda: Debounce("5s", maxwait="1m"), "Debounce() has no argument 'maxwait' (did you mean 'max_wait'?)"),
        (lambda: Concurrency(2, nam="crm"), "Concurrency() has no argument 'nam' (did you mean 'name'?)"),
        (lambda: Rate("1/s", bursts=2), "Rate() has no argument 'bursts' (did you mean 'burst'?)"),
        (lambda: Lock("a", wat="1h"), "Lock() has no argument 'wat' (did you mean 'wait'?)"),
    ],
)
def test_so_does_what_is_made_of_them(call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call()


def test_what_is_no_layer_of_options_is_refused_and_changes_nothing(away):
    for wrong in ({}, "x", 5):
        with pytest.raises(ValueError, match=r"^defaults=.+ are no Options: give such as Options\(max_attempts=5\)$"):
            away.configure(namespace="other", defaults=wrong)
    assert away.settings.namespace == "t"
    with pytest.raises(ValueError, match=r"^include=5 is no list: give such as \['shop.mail'\]$"):
        TaskQ(include=5)
    assert TaskQ(include=iter(["shop.mail"])).settings.include == ("shop.mail",)


def test_a_list_of_modules_is_taken_as_it_is_when_it_is_given(away):
    modules = ["shop.mail"]
    away.configure(include=modules)
    modules.append("shop.late")
    away.configure(namespace="n")
    assert away.settings.include == ("shop.mail",)


async def test_what_are_no_calls_is_refused_with_what_are(away):
    task = away.task(name="t")(lambda: 1)
    for wrong in (task.call(), None, 5, task):
        with pytest.raises(TypeError, match=r"^enqueue_many takes a list of calls, such as \[send"):
            away.enqueue_many(wrong)
        with pytest.raises(TypeError, match=r"^enqueue_many takes a list of calls"):
            await away.aenqueue_many(wrong)


async def test_a_flag_that_is_none(away):
    for wrong in ({"running": "no"}, {"force": 1}):
        with pytest.raises(TypeError, match=r"^(running='no'|force=1) is none: give True or False$"):
            away.job("q:1").cancel(**wrong)
        with pytest.raises(TypeError, match=r"is none: give True or False$"):
            await away.job("q:1").acancel(**wrong)
    for many in (away.client.cancel_many, away.client.retry_many):
        with pytest.raises(TypeError, match=r"^partial='no' is none: give True or False$"):
            many(["q:1"], partial="no")
    for many in (away.aclient.cancel_many, away.aclient.retry_many):
        with pytest.raises(TypeError, match=r"^partial=1 is none: give True or False$"):
            await many(["q:1"], partial=1)


def test_one_state_stands_for_a_list_of_one(app):
    task = app.task(name="t")(lambda: 1)
    first, second = task.enqueue(), task.using(delay="1h").enqueue()
    assert app.queue("default").purge(states="scheduled") == 1
    assert (first.refresh().state, second.refresh().state) == ("available", "cancelled")
    assert app.queue("default").clear(states="cancelled") == 1
    with pytest.raises(ValueError, match=r"^states='running' can't be purged: "):
        app.queue("default").purge(states="running")


@pytest.mark.parametrize("wrong", [None, 5])
async def test_what_are_no_states(away, wrong):
    queue = away.queue("q")
    for verb, twin in ((queue.purge, queue.apurge), (queue.clear, queue.aclear)):
        with pytest.raises(TypeError, match=rf"^states={wrong} is no list of states: give such as \['\w+'\]$"):
            verb(states=wrong)
        with pytest.raises(TypeError, match=r"is no list of states"):
            await twin(states=wrong)


def test_what_are_no_weights_and_what_is_no_observer(away):
    with pytest.raises(ValueError, match=r"^weights=5 are none: give such as weights\(acme=3\)$"):
        away.queue("q").weights(5)
    with pytest.raises(TypeError, match=r"^on_schedule takes a function of a Run, not 5$"):
        away.on_schedule(5)


async def test_so_says_the_client_of_weights(away):
    for wrong in (5, "acme", [("acme", 3)]):
        with pytest.raises(ValueError, match=r"^weights=.+ are none: give such as weights\(acme=3\)$"):
            away.client.weigh("q", wrong)
        with pytest.raises(ValueError, match=r"^weights=.+ are none: "):
            await away.aclient.weigh("q", wrong)


async def test_one_id_is_no_list_of_ids(away):
    for wrong in ("default:7", 5, None):
        for many in (away.client.cancel_many, away.client.retry_many):
            with pytest.raises(TypeError, match=r"^ids=.+ is no list of ids: give such as \['default:7'\]$"):
                many(wrong)
        for many in (away.aclient.cancel_many, away.aclient.retry_many):
            with pytest.raises(TypeError, match=r"is no list of ids"):
                await many(wrong)
    for face in (Client, AsyncClient):
        with pytest.raises(
            TypeError, match=re.escape(f"{face.__name__}() has no argument 'namespce' (did you mean 'na")
        ):
            face(namespce="x")


def test_an_option_given_to_a_call_is_told_where_it_belongs(away):
    task = away.task(name="t")(lambda a: 1)
    with pytest.raises(BadArguments, match=r"'delay'; an option is said before the call: \.using\(delay=…\)$"):
        task.enqueue(1, delay="5s")
    with pytest.raises(BadArguments, match=r"'dealy'$"):
        task.enqueue(1, dealy="5s")
    with pytest.raises(TypeError, match="is no function: a task is a def or an async def"):
        away.task(classmethod(lambda cls: 1))
