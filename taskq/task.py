"""`Task`: a registered function, or the name of one elsewhere, and everything it can be asked to do.

A plain call runs the function here. `enqueue` sends a job; `using` gives the
same task with other options; `call` binds the arguments for later.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, ParamSpec, TypeVar, Unpack, overload

from taskq import codec
from taskq.asked import checked_text
from taskq.calls import Plan, Shape
from taskq.commands import NewJob
from taskq.connection import run, run_async
from taskq.errors import Unavailable, UnknownTask, did_you_mean
from taskq.handle import Job
from taskq.hearsay import doubt
from taskq.home import Home
from taskq.keyed import Keyed
from taskq.options import DEFAULT_QUEUE, Options, Vocabulary, merge, stored_fields
from taskq.retry import DEFAULT_BACKOFF, Backoff
from taskq.state import State

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
C_co = TypeVar("C_co", covariant=True)

_NOTHING = Options()


class Call(Generic[R_co]):
    """A task with its arguments bound and encoded: one element of `app.enqueue_many`."""

    __slots__ = ("args", "kwargs", "payload", "sent", "task")

    def __init__(self, task: Task[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], payload: bytes) -> None:
        self.task = task
        self.args = args
        self.kwargs = kwargs
        self.payload = payload
        self.sent: NewJob | None = None  # in `EnqueueFailed.rest`: the job under the id that it was sent with

    def __repr__(self) -> str:
        return f"<Call of {self.task.name}>"

    def sealed(self) -> NewJob:
        """Its job, for a client to send; one that was sent before keeps its id, so that it isn't added twice."""
        return self._of_plan(self.task.ready())

    async def asealed(self) -> NewJob:
        """Its job, awaited: who is there may have to be asked."""
        return self._of_plan(await self.task.aready())

    def _of_plan(self, plan: Plan) -> NewJob:
        return self.sent or plan.new_job(self.payload, self.args, self.kwargs)


class Task(Generic[P, C_co]):
    """A task. Made by `@app.task`, `@app.stub` and `app.by_name`.

    Its type says what a plain call takes and gives; for `async def` that is a coroutine, while the types of jobs
    and results are those of its value.

    Attributes:
        name: what jobs know it by.
        fn: the function; None if the code is elsewhere.
        executor: "async" or "thread": where a worker runs it; '' if the code is elsewhere.
    """

    def __init__(
        self,
        home: Home,
        name: str,
        fn: Callable[P, C_co] | None,
        *,
        executor: Literal["async", "thread", ""] = "",
        declared: Options,
        shape: Shape | None = None,
        refusal: str | None = None,
        by_name: bool = False,
    ) -> None:
        if fn is not None:
            functools.update_wrapper(self, fn)
        self.name = name
        self.fn: Any = fn
        self.executor = executor
        self._home = home
        self._declared = declared
        self._using = _NOTHING
        self._shape = shape
        self._refusal = refusal
        self._plan: Plan | None = None
        self._ready: Plan | None = None  # if its jobs can be sent without asking who is there
        self._by_name = by_name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C_co:
        """Run the function here and now; no job is made."""
        if self.fn is None:
            raise NotImplementedError(f"the code of task {self.name} isn't here, so it can't be called: enqueue it")
        result: C_co = self.fn(*args, **kwargs)
        return result

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    if not TYPE_CHECKING:  # else every misspelt attribute would pass a type checker

        def __getattr__(self, name: str) -> NoReturn:
            """What isn't there is answered with what does it here, for hands that know other libraries."""
            hint = ""
            if not name.startswith("_"):
                hint = f" (use {_ELSEWHERE[name]})" if name in _ELSEWHERE else did_you_mean(name, _PUBLIC)
            raise AttributeError(f"a task has no {name!r}{hint}", name=name, obj=self)

    # --- what was said about it

    @property
    def options(self) -> Options:
        """The app's defaults, the task's own options and those of `using`, laid over one another.

        Of a task known by name alone, the task's own are those that its nodes have told: none before its first job.
        """
        told = self._home.hearsay.options(self.name) if self._by_name else _NOTHING
        return merge(self._home.defaults, told, self._declared, self._using)

    @property
    def refusal(self) -> str | None:
        """Why no worker could find its function, so that it can't be enqueued; None if there is no such reason."""
        return self._refusal

    @property
    def queue(self) -> str:
        """The queue its jobs go to."""
        return self.options.queue or DEFAULT_QUEUE

    @property
    def backoff(self) -> Backoff:
        """The wait between attempts."""
        return self.options.backoff or DEFAULT_BACKOFF

    @property
    def timeout_ms(self) -> int | None:
        """How long an attempt may take; None for as long as it likes."""
        return self.options.timeout_ms or None

    @property
    def hard_timeout_ms(self) -> int | None:
        """When an attempt that doesn't heed its timeout is stopped by force; None for never."""
        return self.options.kill_after_ms or None

    def using(self, **options: Unpack[Vocabulary]) -> Task[P, C_co]:
        """The same task with other options for the jobs made through it. See `Options`.

        Raises:
            ValueError: a value that breaks its rule, or a callable backoff, which can't travel with a job.
            TypeError, NotImplementedError: an option that isn't known, or not yet.
        """
        other: Task[P, C_co] = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        said = Options(**options)
        other._using = said if self._using is _NOTHING else merge(self._using, said)
        other._plan = other._ready = None
        merged = other.options
        stored_fields(merged, other._using)  # what can't be stored is refused here, where it is said
        if said.is_keyed and not self._by_name:
            other._keyed(merged)
        return other

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Check that the arguments fit the function, without calling it. BadArguments says what doesn't fit."""
        if self._shape is not None:
            self._shape.check(args, kwargs, task=self.name)

    # --- jobs

    @overload
    def enqueue(self: Task[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    @overload
    def enqueue(self: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[Any]:
        """Make a job of this call and send it. On an event loop await `aenqueue`: this would block it for the trip.

        Raises:
            BadArguments: they don't fit the function.
            Unencodable, PayloadTooLarge: they can't be stored.
            UnknownTask: no worker could find the function.
            Unschedulable: no node could ever run it; see `resources` and `strict`.
            Unavailable, ServerFull: the server didn't take it.
        """
        plan = self._ready or self.ready()
        job = plan.new_job(self._payload(args, kwargs), args, kwargs)
        return handle_of(self._home, job, self._home.client.add(plan.q, job))

    @overload
    async def aenqueue(self: Task[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    @overload
    async def aenqueue(self: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[Any]:
        """As `enqueue`, awaited."""
        plan = self._ready or await self.aready()
        job = plan.new_job(self._payload(args, kwargs), args, kwargs)
        return handle_of(self._home, job, await self._home.aclient.add(plan.q, job))

    @overload
    def call(self: Task[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    @overload
    def call(self: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[Any]:
        """Bind and encode a call, to be enqueued with others later. Raises as `enqueue`, but for the server."""
        return Call(self, args, kwargs, self._payload(args, kwargs))

    @overload
    def job(self: Task[P, Coroutine[Any, Any, R]], id: str) -> Job[R]: ...
    @overload
    def job(self: Task[P, R], id: str) -> Job[R]: ...
    def job(self, id: str) -> Job[Any]:
        """A job of this task by its full id, with its result's type. No I/O."""
        return Job(self._home, checked_text(id, name="id", of="job"), self.name)

    # --- what runs of it

    def pause(self, queue: str | None = None) -> bool:
        """Stop starting its jobs, on every node, from the next claim on; whether that changed anything.

        Running jobs go on, new ones may be added; it survives restarts.

        Args:
            queue: only in this queue; by default in that of its jobs and in those from which nodes serve it: jobs that
                were sent elsewhere by `using(queue=…)` go on.

        Raises:
            QueueNotFound: nothing was ever enqueued there, and no worker serves it.
            UnknownTask: it is known by name alone, and neither its queue nor a node has heard of it.
        """
        client, here = self._home.client, not self._by_name
        return any([client.pause(each, task=self.name, any_task=here) for each in self._queues(queue)])  # noqa: C419 (all of them)

    async def apause(self, queue: str | None = None) -> bool:
        """As `pause`, awaited."""
        client, here = self._home.aclient, not self._by_name
        return any([await client.pause(each, task=self.name, any_task=here) for each in await self._aqueues(queue)])

    def resume(self, queue: str | None = None) -> bool:
        """Start them again; whether that changed anything. Arguments and errors as for `pause`."""
        return any([self._home.client.resume(each, task=self.name) for each in self._queues(queue)])  # noqa: C419 (all of them)

    async def aresume(self, queue: str | None = None) -> bool:
        """As `resume`, awaited."""
        return any([await self._home.aclient.resume(each, task=self.name) for each in await self._aqueues(queue)])

    def _queues(self, queue: str | None) -> list[str]:
        return self._of_info(None if queue else self._home.client.task_info(self.name), queue)

    async def _aqueues(self, queue: str | None) -> list[str]:
        return self._of_info(None if queue else await self._home.aclient.task_info(self.name), queue)

    def _of_info(self, info: Mapping[str, str] | None, queue: str | None) -> list[str]:
        if queue is not None:
            return [queue]
        told = [(info or {}).get(field) for field in ("queue", "also")]
        said = self._using.queue or self._declared.queue or (None if self._by_name and any(told) else self.queue)
        return list(dict.fromkeys(each for each in (said, *told) if each))

    def _payload(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        if self._shape is not None:
            self._shape.check(args, kwargs, task=self.name)
        home = self._home
        return codec.encode(args, kwargs, home.types, max_bytes=home.settings.max_payload)

    # --- the plan of its jobs

    def plan(self) -> Plan:
        """What its jobs have in common, made at the first; if only the name is known, the nodes are asked for it."""
        if self._plan is None and self._asks():
            info = self._home.client.task_info(self.name)
            if self._home.hearsay.take(self.name, info) and self._asks_where:
                doubt(self.name, self.queue, self._home.inspector.nodes())
        return self._plan or self._make_plan()

    async def aplan(self) -> Plan:
        """As `plan`, awaited."""
        if self._plan is None and self._asks():
            info = await self._home.aclient.task_info(self.name)
            if self._home.hearsay.take(self.name, info) and self._asks_where:
                doubt(self.name, self.queue, await self._home.inspector.anodes())
        return self._plan or self._make_plan()

    def ready(self) -> Plan:
        """The plan, where a job by it can be sent; what needs a certain worker is only sent if one could ever run it.

        Raises:
            Unschedulable: none could.
            Unavailable: with `strict`, where nobody says who is there.
        """
        plan = self._plan or self.plan()
        if (command := self._home.hearsay.unsaid(plan)) is not None:
            run(self._home.client.server, command)
            self._home.hearsay.is_said(plan)
        if not plan.is_choosy:
            self._ready = None if plan.limits else self._plan
            return plan
        lately = self._home.hearsay.lately
        if lately.asks(plan):
            try:
                lately.take(self._home.inspector.nodes())
            except Unavailable:
                lately.unanswered()
                if plan.strict:
                    raise
        lately.check(plan)
        return plan

    async def aready(self) -> Plan:
        """As `ready`, awaited."""
        plan = self._plan or await self.aplan()
        if (command := self._home.hearsay.unsaid(plan)) is not None:
            await run_async(self._home.aclient.server, command)
            self._home.hearsay.is_said(plan)
        if not plan.is_choosy:
            self._ready = None if plan.limits else self._plan
            return plan
        lately = self._home.hearsay.lately
        if lately.asks(plan):
            try:
                lately.take(await self._home.inspector.anodes())
            except Unavailable:
                lately.unanswered()
                if plan.strict:
                    raise
        lately.check(plan)
        return plan

    @property
    def _asks_where(self) -> bool:
        return self._by_name and (self._using.queue or self._declared.queue) is None

    def _asks(self) -> bool:
        return self._by_name and self._home.hearsay.is_due(self.name, urgent=self._asks_where)

    def _make_plan(self) -> Plan:
        if self._refusal is not None:
            raise UnknownTask(f"task {self.name} can't be enqueued: {self._refusal}")
        home = self._home
        home.freeze()
        said = self._using if self.executor else merge(self._declared, self._using)
        options = self.options
        keyed = self._keyed(options) if options.is_keyed else None
        plan = Plan(home.settings.namespace, self.name, self.executor, options, said, keyed=keyed)
        if not self._by_name or home.hearsay.knows(self.name):
            self._plan = plan  # else nobody serves it yet: ask again
        return plan

    def check_keys(self) -> None:
        """Whether what it was declared with names parameters that it has. ValueError if it doesn't."""
        if self._declared.is_keyed:
            self._keyed(self._declared)

    def _keyed(self, options: Options) -> Keyed:
        home, signature = self._home, self._shape.signature if self._shape is not None else None
        order = home.hearsay.order(self.name) if self._by_name else ()

        def encode(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
            return codec.encode(args, kwargs, home.types)

        return Keyed(options, self.name, signature, order, encode=encode)


# Other libraries' words for the same thing.
_ELSEWHERE = {
    **dict.fromkeys(("delay", "apply", "send", "submit", "kiq", "kick", "perform_async"), "enqueue"),
    **dict.fromkeys(("adelay", "defer_async", "asend"), "aenqueue"),
    **dict.fromkeys(("apply_async", "send_with_options", "configure", "options_for", "kicker"), "using(…).enqueue"),
    **dict.fromkeys(("perform_in", "perform_at", "enqueue_in", "enqueue_at", "schedule"), "using(delay=…).enqueue"),
    **dict.fromkeys(("s", "si", "signature", "message"), "call"),
    **dict.fromkeys(("AsyncResult",), "job"),
}


_PUBLIC = [*(name for name in vars(Task) if not name.startswith("_")), "name", "fn", "executor"]


def handle_of(home: Home, job: NewJob, word: str) -> Job[Any]:
    """The handle of a job that was sent, by the server's word for it."""
    state = _STATES.get(word)
    if state is None:
        owner = word.partition(" ")[2]  # of the unique key, which all tasks may share; else the job with its own id
        task = None if owner and job.once[0] == ":" else job.task
        return Job(home, owner or job.id, task, created=False)
    return Job(home, job.id, job.task, state=state, created=True)


_STATES = {str(state): state for state in State}  # quicker than asking the enum, which every enqueue would
