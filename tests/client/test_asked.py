"""An id or name that is no text, a page of no number: one refusal that names the rule, before anything is sent."""

from __future__ import annotations

import inspect
import re

import pytest

from taskq import TaskQ

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
