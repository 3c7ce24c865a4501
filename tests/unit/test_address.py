"""URLs: what each form means, what is refused with which words, and that no password shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskq.settings import Address, mask_url, parse_url


@pytest.mark.parametrize(
    "url, address",
    [
        ("redis://localhost:6379/0", Address("single", (("localhost", 6379),))),
        ("redis://", Address("single", (("localhost", 6379),))),
        ("redis://db.example/3", Address("single", (("db.example", 6379),), db=3)),
        ("redis://db?db=4", Address("single", (("db", 6379),), db=4)),
        ("redis://[::1]:7000/1", Address("single", (("::1", 7000),), db=1)),
        ("redis://:s3cret@db", Address("single", (("db", 6379),), password="s3cret")),
        ("redis://al%40x:p%2Fw%3A@db:1", Address("single", (("db", 1),), username="al@x", password="p/w:")),
        ("redis://db?username=al&password=pw", Address("single", (("db", 6379),), username="al", password="pw")),
        ("rediss://db", Address("single", (("db", 6379),), tls=True)),
        (
            "rediss://db?ssl_ca_certs=/ca.pem&ssl_cert_reqs=CERT_NONE&ssl_check_hostname=false",
            Address(
                "single",
                (("db", 6379),),
                tls=True,
                options={"ssl_ca_certs": "/ca.pem", "ssl_cert_reqs": "none", "ssl_check_hostname": False},
            ),
        ),
        ("unix:///run/redis.sock", Address("single", (), path="/run/redis.sock")),
        ("unix://:pw@/run/re%20dis.sock?db=2", Address("single", (), path="/run/re dis.sock", db=2, password="pw")),
        ("redis+cluster://a:1,b:2", Address("cluster", (("a", 1), ("b", 2)))),
        ("rediss+cluster://u:p@a", Address("cluster", (("a", 6379),), tls=True, username="u", password="p")),
        (
            "redis+sentinel://:pw@s1:26379,s2/mymaster/5",
            Address("sentinel", (("s1", 26379), ("s2", 26379)), master="mymaster", db=5, password="pw"),
        ),
        (
            "redis+sentinel://s1/m?sentinel_password=x",
            Address("sentinel", (("s1", 26379),), master="m", options={"sentinel_password": "x"}),
        ),
    ],
)
def test_forms(url: str, address: Address) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    "url, words",
    [
        ("", "starts with one of redis://"),
        ("localhost:6379", "starts with one of redis://"),
        ("http://localhost", "starts with one of redis://"),
        ("redis:localhost", "starts with one of redis://"),
        ("redis://[::1/0", "IPv6 address stands in brackets"),
        ("redis://a,b", "only a cluster or sentinels have several"),
        ("redis://a:0", "a host is name:port"),
        ("redis://a:99999", "a host is name:port"),
        ("redis://a/0/1", "only the number of the database"),
        ("redis://a/prod", "the database is a number"),
        ("redis://a/-1", "the database is a number"),
        ("redis+cluster://a/1", "in a cluster only 0"),
        ("redis+sentinel://a", "names the master"),
        ("unix://run/redis.sock", "path is absolute"),
        ("unix://", "path is absolute"),
        ("redis://a?db=1&timeout=5", "unknown parameter 'timeout'"),
        ("rediss://a?ssl_cacerts=/x", "(did you mean 'ssl_ca_certs'?)"),
        ("redis://a?ssl_ca_certs=/x", "need a scheme with TLS, such as rediss://"),
        ("rediss://a?ssl_cert_reqs=maybe", "one of none, optional, required"),
        ("rediss://a?ssl_check_hostname=2", "true or false"),
        ("redis://a?sentinel_password=x", "unknown parameter 'sentinel_password'"),
    ],
)
def test_refusals_say_the_rule(url: str, words: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 (the words are checked below)
        parse_url(url)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hunter2@db:x",
        "redis://:hun/ter2@db",
        "redis://:hun#ter2@db",
        "redis://:hun?ter2@db",
        "redis://hunter2@db/x",
        "redis://me:hunter2",
        "redis://db?passwort=1&password=hunter2",
        "redis+sentinel://s1/m/x?sentinel_password=hunter2",
        "hunter://:hunter2@db",
    ],
)
def test_a_refusal_never_shows_the_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"can't be used") as refusal:
        parse_url(url)
    assert "ter2" not in str(refusal.value)
    assert "***" in str(refusal.value)


def test_masking_leaves_the_rest() -> None:
    assert mask_url("redis://al:pw@db:6379/0") == "redis://al:***@db:6379/0"
    assert mask_url("redis://db:6379/0") == "redis://db:6379/0"
    assert mask_url("redis://[::1]:6379/0") == "redis://[::1]:6379/0"
    assert mask_url("redis+cluster://a:1,b:2") == "redis+cluster://a:1,b:2"
    assert mask_url("redis://db/0?password=pw&db=1") == "redis://db/0?password=***&db=1"


@given(st.text(st.characters(codec="ascii", exclude_characters="*"), min_size=1, max_size=12))
def test_no_password_survives_masking(password: str) -> None:
    secret = f"<{password}>"
    assert secret not in mask_url(f"redis://user:{secret}@db:6379/0")


def test_a_repr_hides_the_password() -> None:
    address = parse_url("redis+sentinel://:hunter2@s1/m?sentinel_password=hunter3")
    assert "hunter" not in repr(address)


@pytest.mark.parametrize(
    "url, where",
    [
        ("redis://u:p@db:7000/1", "db:7000"),
        ("redis://[::1]:7000", "[::1]:7000"),
        ("unix:///run/redis.sock", "/run/redis.sock"),
        ("redis+cluster://a:1,b:2", "a:1,b:2"),
        ("redis+sentinel://s1,s2/mymaster", "mymaster at s1:26379,s2:26379"),
    ],
)
def test_where_is_for_messages(url: str, where: str) -> None:
    assert parse_url(url).where == where


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_url("redis://" + text)
    except ValueError as refusal:
        words = str(refusal)
        if "can't be used" not in words:
            raise
