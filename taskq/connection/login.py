"""Whether a client's login may run a script to its end: one that is forbidden a command half way has written already.

Asked once, and only if the URL names a user: others have no permissions to lack. A login that may do less than
everything, say only enqueue, is fine as long as each script it runs may call all that it calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taskq.address import parse_url
from taskq.connection import fitness
from taskq.connection.ask import Refusal, asked
from taskq.connection.needs import called_by
from taskq.errors import Unavailable
from taskq.scripts import Script
from taskq.settings import Settings


class Login:
    """What is known of one login's permissions. A refusal isn't remembered: an operator may mend it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._well: set[str] = set()
        self._all = False

    def doubtful(self, scripts: Iterable[Script]) -> set[str]:
        """Those of the scripts that nobody asked about yet."""
        return set() if self._all else {each.name for each in scripts} - self._well

    def check(self, scripts: Sequence[Script], deadline_s: float | None = None) -> None:
        """Asks the server, unless all of these are known to be well.

        Raises:
            Unavailable: one of these scripts would be stopped half way; or there is no answer.
        """
        if not self.doubtful(scripts):
            return
        settings = self._settings
        replies = asked(settings, lambda line: fitness.probed(line, settings, fsck=True), deadline_s=deadline_s) or {}
        forbidden = {
            name: reply.text for name, reply in replies.items() if isinstance(reply, Refusal) and reply.forbids
        }
        self._all = not forbidden
        for script in scripts:
            missing = {name: forbidden[name] for name in called_by(script) & forbidden.keys()}
            if missing:
                found, advice = fitness.forbids(missing, settings)
                where = parse_url(settings.url).where
                raise Unavailable(f"the server at {where} {found}, which `{script.name}` needs: {advice}")
            self._well.add(script.name)


def login_of(settings: Settings, role: str) -> Login | None:
    """What to ask about; None where it can be spared: a worker's node has asked for it."""
    user = parse_url(settings.url).username
    return Login(settings) if role == "client" and user not in {None, "default"} else None
