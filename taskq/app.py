"""`TaskQ`: what users hold. The registry of tasks, the settings, and the way to jobs and queues.

The constructor does no I/O, and `configure` may change everything until first
use. One object serves threads, several event loops and forked children.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload

from taskq import builtin
from taskq.asked import checked_text, spelled
from taskq.calls import Shape
from taskq.client import AsyncClient, Client
from taskq.codec import Types
from taskq.handle import Job
from taskq.hearsay import Hearsay
from taskq.importing import load_attribute, load_modules, origin, task_name, where, why_unimportable
from taskq.inspector import Inspector
from taskq.locks import NamedLock
from taskq.many import Interrupted, checked_calls, enqueue_failed
from taskq.nodes import Nodes
from taskq.options import Options, TaskVocabulary, checked_layer, checked_task_name, declare
from taskq.queue import Queue
from taskq.schedules import Declares, Entry, Run, Schedules
from taskq.settings import Retention, Settings, resolve
from taskq.task import Call, Task, handle_of
from taskq.units import Duration, Size

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


class TaskDecorator(Protocol):
    """What `app.task(...)` and `app.stub(...)` give: the decorator that makes a function a task."""

    def __call__(self, fn: Callable[P, C], /) -> Task[P, C]:
        """Make it one."""


class TaskQ(Declares):
    """An application's tasks, and the way to its Redis.

    What is one value may stand in the environment instead (`TASKQ_URL` ...); an argument beats that, a flag both.

    Args:
        url: which Redis: `redis:// rediss:// unix:// redis+cluster:// rediss+cluster:// redis+sentinel://`;
            default `redis://localhost:6379/0`.
        namespace: the first part of every key; default "taskq".
        include: modules that workers import, such as "shop.mail" or "shop.*.tasks".
        defaults: options of every task that doesn't say otherwise.
        retention: how long ended jobs are kept, and how many.
        lease: how long a silent worker keeps its jobs; default 8 s.
        deadline: the longest a call to the server takes before it raises Unavailable; default 5 s.
        max_payload: the largest arguments or result; default 1 MiB.
        unknown_grace: how long a job waits for a worker that knows its task; default 1 h.
        wait_replicas: how many replicas must have an enqueue before it returns (else NotReplicated); default 0.

    Raises:
        ValueError: a value that breaks its rule.
    """

    @spelled
    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        include: Iterable[str] | None = None,
        defaults: Options | None = None,
        retention: Retention | None = None,
        lease: Duration | None = None,
        deadline: Duration | None = None,
        max_payload: Size | None = None,
        unknown_grace: Duration | None = None,
        wait_replicas: int | None = None,
    ) -> None:
        self.types = Types()
        self.tasks: dict[str, Task[..., Any]] = {}
        self.middleware: list[Any] = []
        self.scheduled: dict[str, Entry] = {}
        self.observers: list[Callable[[Run], Any]] = []
        self.schedules = Schedules(self)
        self.hearsay = Hearsay()
        self.defaults = Options()
        self._arguments: dict[str, Any] = {}
        self._flags: dict[str, Any] = {}
        self._frozen = False
        self._faces: _Faces | None = None
        self._made: dict[str, _Faces] = {}
        self.configure(
            url=url,
            namespace=namespace,
            include=include,
            defaults=defaults,
            retention=retention,
            lease=lease,
            deadline=deadline,
            max_payload=max_payload,
            unknown_grace=unknown_grace,
            wait_replicas=wait_replicas,
        )
        self.task(name=builtin.SIMULATE)(builtin.simulate)

    def __repr__(self) -> str:
        return f"<TaskQ {self.settings.namespace!r}, {len(self.tasks)} tasks>"

    # --- configuration

    @spelled
    def configure(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        include: Iterable[str] | None = None,
        defaults: Options | None = None,
        retention: Retention | None = None,
        lease: Duration | None = None,
        deadline: Duration | None = None,
        max_payload: Size | None = None,
        unknown_grace: Duration | None = None,
        wait_replicas: int | None = None,
    ) -> None:
        """Change what the constructor was given; what isn't given here stays. Arguments as there.

        Raises:
            RuntimeError: the app has been used already.
            ValueError: a value that breaks its rule; nothing is changed.
        """
        given = {
            "url": url,
            "namespace": namespace,
            "include": tuple(include) if isinstance(include, Iterable) and not isinstance(include, str) else include,
            "retention": retention,
            "lease": lease,
            "deadline": deadline,
            "max_payload": max_payload,
            "unknown_grace": unknown_grace,
            "wait_replicas": wait_replicas,
        }
        defaults = self.defaults if defaults is None else checked_layer(defaults, "defaults")
        self._resolve({**self._arguments, **{name: value for name, value in given.items() if value is not None}})
        self.defaults = defaults

    def override(self, **flags: object) -> None:
        """Settings from a command line, which beat arguments and environment; None is "not given".

        Raises:
            RuntimeError, ValueError: as `configure`.
        """
        self._resolve(self._arguments, {**self._flags, **flags})

    def _resolve(self, arguments: dict[str, Any], flags: dict[str, Any] | None = None) -> None:
        if self._frozen:
            raise RuntimeError("the app is in use and its settings stay as they are: configure it before its first use")
        flags = self._flags if flags is None else flags
        self.settings: Settings = resolve(**arguments, flags=flags)
        self._arguments, self._flags = arguments, flags

    def freeze(self) -> None:
        """First use: from now on the settings stay as they are."""
        self._frozen = True

    def load(self) -> None:
        """Import every module of `include`, as workers do. ImportError names a pattern that matches none."""
        load_modules(self.settings.include)

    # --- tasks

    @overload
    def task(self, fn: Callable[P, C], /) -> Task[P, C]: ...
    @overload
    def task(self, fn: None = None, /, **options: Unpack[TaskVocabulary]) -> TaskDecorator: ...
    def task(self, fn: Any = None, /, **options: Unpack[TaskVocabulary]) -> Any:
        """Make a function a task: `@app.task`, or `@app.task(queue="email", max_attempts=5)`.

        Args:
            fn: the function; `async def` runs on a worker's loop, `def` in a thread of it.
            options: those of `Options`, and `name` (default: its module and qualified name) and `executor`.

        Raises:
            TypeError: not a function, or an option nobody knows.
            NotImplementedError: an option of a later version.
            ValueError: a value that breaks its rule, or a name that another function has.
        """
        declaration = declare(options)

        def decorate(fn: Callable[..., Any]) -> Task[..., Any]:
            _check_function(fn)
            name = declaration.name or task_name(fn)
            is_async = inspect.iscoroutinefunction(fn)
            if is_async and declaration.executor == "thread":
                raise ValueError(f'task {name} is an async def, which runs on the loop: leave executor="thread" out')
            made: Task[..., Any] = Task(
                self,
                name,
                fn,
                executor=declaration.executor or ("async" if is_async else "thread"),
                declared=declaration.options,
                shape=Shape(fn),
                refusal=why_unimportable(fn, named=declaration.name is not None),
            )
            made.check_keys()
            self._register(made)
            return made

        return decorate if fn is None else decorate(fn)

    def _register(self, task: Task[..., Any]) -> None:
        other = self.tasks.get(task.name)
        # The same file and qualname is the same function, loaded again: a reload, a notebook's cell.
        if other is not None and origin(other.fn) != origin(task.fn):
            raise ValueError(
                f"two functions would be task {task.name!r}: {where(other.fn)} and {where(task.fn)};"
                " give one of them another name="
            )
        self.tasks[task.name] = task

    @overload
    def stub(self, fn: Callable[P, C], /) -> Task[P, C]: ...
    @overload
    def stub(self, fn: None = None, /, **options: Unpack[TaskVocabulary]) -> TaskDecorator: ...
    def stub(self, fn: Any = None, /, **options: Unpack[TaskVocabulary]) -> Any:
        """A typed producer for a task whose code is elsewhere: the function gives the parameters and is never run.

        Let its body be `raise NotImplementedError`: type checkers refuse `...` where a result is promised.
        Takes what `task` takes. Its backoff and timeouts travel with the jobs, and workers don't know it by this.
        """
        declaration = declare(options)

        def decorate(fn: Callable[..., Any]) -> Task[..., Any]:
            _check_function(fn)
            name = declaration.name or task_name(fn)
            made: Task[..., Any] = Task(self, name, fn, declared=declaration.options, shape=Shape(fn))
            made.check_keys()
            return made

        return decorate if fn is None else decorate(fn)

    def by_name(self, name: str, *, queue: str | None = None) -> Task[..., Any]:
        """A task by its name alone, without its code: `app.by_name("mail.send", queue="email").enqueue("a@b.c")`.

        At its first job the nodes are asked what they know of it: its options (max_attempts, priority ...) hold for
        jobs made by name too.

        Args:
            name: as the workers know it.
            queue: where to enqueue; without it, the queue from which the nodes serve it. If none of them knows it, its
                jobs go to the default queue, and a warning is logged.

        Raises:
            ValueError: this can be no task's or queue's name.
        """
        checked_task_name(name)
        return Task(self, name, None, declared=Options(queue=queue), by_name=True)

    # --- jobs and queues

    def job(self, id: str) -> Job[Any]:
        """A job by its full id. No I/O: whether there is one shows when it is read. TypeError if it is no text."""
        return Job(self, checked_text(id, name="id", of="job"))

    def queue(self, name: str) -> Queue:
        """A queue by its name. No I/O. ValueError if it can be no queue's name."""
        return Queue(self, name)

    @property
    def nodes(self) -> Nodes:
        """The nodes that serve this namespace: `app.nodes.list()`, `app.nodes.drain(id)`. No I/O yet."""
        return Nodes(self)

    @spelled
    def lock(self, name: str, *, ttl: Duration = "30s", wait: Duration | None = None) -> NamedLock:
        """A lock that one holder at a time has, over all processes: `with app.lock("report", wait="5s") as lock:`, or
        `async with`. No I/O yet. See `NamedLock`.

        Args:
            name: 1 to 200 printable characters; the same name is the same lock in all programs of the namespace.
            ttl: how long it outlives its holder, 0.1 s to 24 h; while it is held, it is renewed.
            wait: how long to wait for it; 0: not at all, None: as long as it takes.

        Raises ValueError for a name, ttl or wait that breaks its rule.
        """
        return NamedLock(self, name, ttl=ttl, wait=wait)

    def enqueue_many(
        self, calls: Iterable[Call[R]], *, exists: Literal["existing", "raise"] = "existing"
    ) -> list[Job[R]]:
        """Enqueue many calls, in pipelined calls of at most 250 jobs; the jobs, in the order given.

        Args:
            calls: from `task.call(...)`, or `.rest` of an EnqueueFailed.
            exists: what an own id that exists already means: "existing" gives that job with `created=False`,
                "raise" raises JobAlreadyExists.

        Raises:
            JobAlreadyExists: with `exists="raise"`; nothing of its call of 250 was added.
            EnqueueFailed: some calls to the server succeeded and a later one failed; sending `.rest` again is safe
                within 10 s, or while the records exist.
            Unavailable, ServerFull: the server took nothing.
        """
        asked = checked_calls(calls, exists)
        jobs = [call.sealed() for call in asked]
        try:
            words = self.client.add_many(jobs, exists=exists)
        except Interrupted as stopped:
            raise enqueue_failed(self, asked, jobs, stopped) from stopped.error
        return [handle_of(self, job, word) for job, word in zip(jobs, words, strict=True)]

    async def aenqueue_many(
        self, calls: Iterable[Call[R]], *, exists: Literal["existing", "raise"] = "existing"
    ) -> list[Job[R]]:
        """As `enqueue_many`, awaited."""
        asked = checked_calls(calls, exists)
        jobs = [await call.asealed() for call in asked]
        try:
            words = await self.aclient.add_many(jobs, exists=exists)
        except Interrupted as stopped:
            raise enqueue_failed(self, asked, jobs, stopped) from stopped.error
        return [handle_of(self, job, word) for job, word in zip(jobs, words, strict=True)]

    # --- the server

    @property
    def client(self) -> Client:
        """The operations on jobs and queues by their names."""
        return (self._faces or self._open()).client

    @property
    def aclient(self) -> AsyncClient:
        """As `client`, awaited."""
        return (self._faces or self._open()).aclient

    @property
    def inspector(self) -> Inspector:
        """Lists and counts."""
        return (self._faces or self._open()).inspector

    def _open(self) -> _Faces:
        self.freeze()
        # Of several threads the first wins. A lock could be held while another thread forks: its child would hang.
        self._faces = self._made.setdefault("first", _Faces(self.settings))
        return self._faces

    def ping(self) -> bool:
        """Whether the server answers; Unavailable if it doesn't within the deadline."""
        return self.client.ping()

    async def aping(self) -> bool:
        """As `ping`, awaited."""
        return await self.aclient.ping()

    def close(self) -> None:
        """Close the connections that threads use; a later call opens new ones."""
        if self._faces is not None:
            self._faces.client.close()

    async def aclose(self) -> None:
        """Close this loop's connections, and those that threads use."""
        self.close()
        if self._faces is not None:
            await self._faces.aclient.close()


class _Faces:
    """What speaks to the server, made at first use; no I/O yet."""

    def __init__(self, settings: Settings) -> None:
        self.client = Client(settings=settings)
        self.aclient = AsyncClient(settings=settings)
        self.inspector = Inspector(self.client.server, self.aclient.server)


def _check_function(fn: object) -> None:
    if isinstance(fn, Task):
        raise TypeError(f"{fn.name} is a task already")
    if isinstance(fn, classmethod) or not inspect.isroutine(fn) or not hasattr(fn, "__qualname__"):
        raise TypeError(f"{fn!r:.80} is no function: a task is a def or an async def")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError(f"{where(fn)} yields: a task returns its result")


def load_app(path: str, flags: Mapping[str, str] | None = None) -> TaskQ:
    """The app that `module[:attribute]` names, `app` unless the attribute is given; the current folder is importable.

    Args:
        path: APP, as on the command line.
        flags: settings given on the command line; they beat all others.

    Raises:
        ImportError: there is none, with what to write instead. What the module itself raises passes as it is.
    """
    found = load_attribute(path, "app", TaskQ)
    if flags:
        found.override(**flags)
    return found
