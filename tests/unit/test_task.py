"""Declaring tasks: names, options, who may be enqueued, and what a task tells the worker. No server is needed."""

from __future__ import annotations

import copy
import functools
import inspect

import pytest

from taskq import Backoff, Options, TaskQ
from taskq.errors import BadArguments, PayloadTooLarge, Unencodable, UnknownTask
from taskq.retry import DEFAULT_BACKOFF

app = TaskQ()


@app.task
async def send(to: str, *, subject: str = "hi") -> int:
    """Sends mail."""
    return len(to + subject)


@app.task(queue="email", max_attempts=5, backoff=Backoff.fixed(3), timeout=30, name="mail.add")
def add(x: int, y: int = 1) -> int:
    return x + y


# --- names


def test_a_task_is_named_after_its_module_and_qualname():
    assert send.name == f"{__name__}.send"
    assert app.tasks[send.name] is send


def test_a_given_name_is_taken_as_it_is():
    assert add.name == "mail.add"
    assert app.tasks["mail.add"] is add


def test_a_task_looks_like_its_function():
    assert (send.__name__, send.__doc__) == ("send", "Sends mail.")
    assert list(inspect.signature(send).parameters) == ["to", "subject"]
    assert repr(add) == "<Task mail.add>"


def test_registering_the_same_function_again_replaces_it():
    mine = TaskQ()

    def declare():
        @mine.task(name="x")
        def fn(): ...

        return fn

    first, second = declare(), declare()
    assert first is not second
    assert mine.tasks["x"] is second


def test_another_function_under_a_taken_name_is_an_error_that_names_both():
    mine = TaskQ()
    mine.task(name="x")(send.fn)
    with pytest.raises(ValueError, match=r"would be task 'x': \S+\.send \(test_task\.py:\d+\) and \S+\.add \("):
        mine.task(name="x")(add.fn)
    assert mine.tasks["x"].fn is send.fn


def test_every_app_knows_the_built_in_task():
    assert TaskQ().tasks["taskq.simulate"].executor == "async"


# --- what may be a task


@pytest.mark.parametrize(
    "fn,says",
    [
        (functools.partial(print, 1), "is no function"),
        (7, "is no function"),
        (send, "is a task already"),
        (lambda: (yield), "yields"),
    ],
)
def test_only_functions_are_tasks(fn, says):
    with pytest.raises(TypeError, match=says):
        app.task(name="x")(fn)


def test_async_functions_run_on_the_loop_others_in_threads():
    assert (send.executor, add.executor) == ("async", "thread")


def test_an_async_function_in_a_thread_is_refused():
    with pytest.raises(ValueError, match="which runs on the loop"):
        app.task(executor="thread")(send.fn)


def test_a_plain_function_may_run_on_the_loop_if_asked_to():
    assert TaskQ().task(executor="async")(add.fn).executor == "async"


@pytest.mark.parametrize("option", ["retry_on", "memory_limit"])
def test_what_comes_later_is_refused_as_not_yet(option):
    with pytest.raises(NotImplementedError, match=f"{option}= isn't here yet"):
        app.task(**{option: 1})


def test_what_nobody_knows_is_answered_with_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'priority'"):
        app.task(priorty=1)
    with pytest.raises(TypeError, match="did you mean 'delay'"):
        send.using(dealy=1)


@pytest.mark.parametrize(
    "word,instead",
    [
        ("delay", "use enqueue"),
        ("apply_async", "use using"),
        ("send", "use enqueue"),
        ("s", "use call"),
        ("enqeue", "did you mean 'enqueue'"),
        ("optons", "did you mean 'options'"),
    ],
)
def test_other_libraries_words_are_answered_with_ours(word, instead):
    for task in (send, send.using(priority=1), app.by_name("x")):
        with pytest.raises(AttributeError, match=f"a task has no '{word}'.*{instead}"):
            getattr(task, word)
    assert not hasattr(send, word)


def test_a_task_can_be_copied_and_pickled_as_before():
    assert copy.copy(send).name == send.name


# --- a plain call


def test_a_plain_call_runs_here():
    assert add(1, y=2) == 3


async def test_a_plain_call_of_an_async_task_is_its_coroutine():
    assert await send("a@b.c") == 7


def test_a_name_alone_can_not_be_called():
    with pytest.raises(NotImplementedError, match=r"the code of task mail\.send isn't here"):
        app.by_name("mail.send")()


def test_a_stub_runs_its_own_body():
    @app.stub(name="mail.send")
    def send_mail(to: str) -> int:
        raise NotImplementedError("elsewhere")

    with pytest.raises(NotImplementedError, match="elsewhere"):
        send_mail("a@b.c")


def test_stubs_and_names_are_no_tasks_of_a_worker():
    mine = TaskQ()
    mine.stub(name="mail.send")(send.fn)
    mine.by_name("mail.send")
    assert set(mine.tasks) == {"taskq.simulate"}


# --- options


def test_a_task_tells_the_worker_what_counts_for_its_jobs():
    assert (add.queue, add.backoff, add.timeout_ms, add.hard_timeout_ms) == ("email", Backoff.fixed(3), 30_000, 40_000)
    assert (send.queue, send.backoff, send.timeout_ms, send.hard_timeout_ms) == ("default", DEFAULT_BACKOFF, None, None)


def test_the_apps_defaults_lie_under_the_tasks_options():
    mine = TaskQ(defaults=Options(queue="low", timeout=5, max_attempts=9))
    task = mine.task(max_attempts=2)(add.fn)
    assert (task.queue, task.timeout_ms, task.options.max_attempts) == ("low", 5000, 2)


def test_using_gives_another_task_and_leaves_this_one_alone():
    other = add.using(priority=5).using(tags=["x"])
    assert (other.options.priority, other.options.tags, other.queue) == (5, ("x",), "email")
    assert (add.options.priority, add.options.tags) == (None, None)
    assert (other.name, other(1), app.tasks["mail.add"]) == ("mail.add", 2, add)


def test_using_refuses_what_can_not_travel_where_it_is_said():
    with pytest.raises(ValueError, match="callable backoff can't be stored"):
        add.using(backoff=lambda attempt, error: 1)
    with pytest.raises(ValueError, match="lies before"):
        add.using(hard_timeout=5)


# --- arguments


def test_arguments_are_bound_when_the_call_is_made():
    with pytest.raises(BadArguments, match=r"mail\.add\(x: 'int', y: 'int' = 1\) -> 'int' doesn't take"):
        add.call()
    with pytest.raises(BadArguments):
        add.enqueue(1, 2, 3)
    with pytest.raises(BadArguments):
        add.bind([], {"z": 1})
    add.bind([1], {"y": 2})


def test_what_can_not_be_stored_is_named_by_its_place():
    with pytest.raises(Unencodable, match=r'args\[0\]\["when"\]'):
        send.call({"when": object()})


def test_a_call_keeps_what_it_was_made_of():
    words = ["a"]
    call = app.by_name("x").call(words, n=1)
    words.append("b")
    assert call.payload == app.by_name("x").call(["a"], n=1).payload
    assert (call.args, call.kwargs) == ((words,), {"n": 1})


def test_too_much_is_refused_with_size_and_limit():
    mine = TaskQ(max_payload="1KiB")
    with pytest.raises(PayloadTooLarge, match=r"take 20\d\d bytes, over the limit of 1024"):
        mine.by_name("x").call("x" * 2000)


# --- who may be enqueued


def test_functions_that_no_worker_could_import_are_refused_at_enqueue():
    mine = TaskQ()

    @mine.task
    def nested(): ...

    with pytest.raises(UnknownTask, match=r"nested can't be enqueued: it is defined inside another function"):
        nested.enqueue()
    with pytest.raises(UnknownTask, match="a lambda has no name"):
        mine.task(lambda: 0).enqueue()


def test_what_was_typed_in_is_refused_even_with_a_name():
    namespace = {"__name__": "__main__", "app": TaskQ()}
    exec(compile("@app.task(name='x')\ndef f(): ...", "<stdin>", "exec"), namespace)  # noqa: S102
    with pytest.raises(UnknownTask, match="REPL or notebook"):
        namespace["f"].enqueue()


async def test_the_async_twin_refuses_the_same():
    mine = TaskQ()
    with pytest.raises(UnknownTask, match="a lambda has no name"):
        await mine.task(lambda: 0).aenqueue()
    with pytest.raises(UnknownTask, match="a lambda has no name"):
        await mine.aenqueue_many([mine.task(lambda: 0).call()])


# --- the built-in task


@pytest.mark.parametrize("fail_rate,fails", [(0, False), (100, True)])
async def test_the_built_in_task_fails_as_often_as_it_is_told(fail_rate, fails):
    simulate = app.tasks["taskq.simulate"]
    for _ in range(20):
        try:
            await simulate(fail_rate, 0.1)
            failed = False
        except RuntimeError as error:
            failed = "was meant to fail" in str(error)
        assert failed is fails
