"""The list of commands is complete, has nothing in it that isn't needed, and each probe is one that servers refuse."""

import pytest

from taskq import scripts
from taskq.connection import fitness
from taskq.connection.ask import asked
from taskq.connection.needs import FSCK, LOOKING, NEEDED, called_by, probes, rules
from taskq.errors import Unavailable
from taskq.settings import Settings

#: What the room `connection` sends by itself, besides scripts.
OURS = {"bzpopmin", "client|id", "client|setname", "client|unblock", "ping", "subscribe", "unsubscribe"}


def test_the_list_is_what_the_scripts_call_and_what_the_connection_sends():
    calls = {name: called_by(scripts.load(name)) for name in scripts.names()}
    assert set(NEEDED) | set(FSCK) == set().union(*calls.values()) | OURS | {"eval", "evalsha"}
    fscks = [name for name, called in calls.items() if called & FSCK.keys()]
    assert all(name in {"members", "scan"} or name.startswith(("mend_", "survey_")) for name in fscks)


def test_nothing_is_needed_twice_over():
    assert not set(LOOKING) & set(NEEDED)
    assert not set(FSCK) & set(NEEDED)
    assert all(call[0].lower() == name.partition("|")[0] for name, call in (NEEDED | FSCK).items())


def test_probes_do_nothing(settings, raw):
    replies = asked(settings, lambda line: fitness.probed(line, settings, fsck=True))
    assert set(replies.values()) == {b"QUEUED"}
    assert raw.keys() == []


def test_the_rules_allow_everything_and_the_check_agrees(user):
    settings = user()
    assert {each.name for each in fitness.check(settings)} <= {"persistence"}
    finding = fitness.permissions(asked(settings, lambda line: fitness.probed(line, settings)), settings)
    assert finding.level == "ok"


@pytest.mark.parametrize("command", NEEDED)
def test_a_node_without_one_of_them_is_refused_by_name(user, namespace, command):
    settings = user(rules(namespace, [each for each in (*NEEDED, *LOOKING) if each != command]))
    with pytest.raises(Unavailable) as caught:
        fitness.check(settings)
    assert str(caught.value).endswith(f"ACL SETUSER user-{namespace} +{command}")
    assert command.upper().replace("|", " ") in str(caught.value)


@pytest.mark.parametrize(
    "change, told",
    [
        (("~{}:*", "~other:*"), "forbids user user-{0} the keys {0}:*: ACL SETUSER user-{0} ~{0}:*"),
        (("&{}:*", "&other:*"), "forbids user user-{0} the channels {0}:*: ACL SETUSER user-{0} &{0}:*"),
    ],
)
def test_a_wrong_pattern_is_told(user, namespace, change, told):
    old, new = (each.format(namespace) for each in change)
    with pytest.raises(Unavailable) as caught:
        fitness.check(user(rules(namespace).replace(old, new)))
    assert told.format(namespace) in str(caught.value)


def test_special_settings_need_more(user, namespace):
    asks = set(probes(Settings(url="redis://h/2", wait_replicas=1))) - set(NEEDED)
    assert asks == {"select", "wait"}
    assert set(probes(Settings(url="redis+cluster://h"))) - set(NEEDED) == {"asking", "cluster|slots"}
    with pytest.raises(Unavailable, match=r"\+wait$"):
        fitness.check(user(wait_replicas=1))
