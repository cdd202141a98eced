# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Strict reading of URLs, and the operator's list of domains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritone.gateway.media.urls import MediaUrl, is_listed, join_url, parse_url


def test_parts_of_a_url() -> None:
    url = parse_url("HTTPS://Media.Example.com:8443/a%20b.png?x=1&y=//#part")
    assert url == MediaUrl("https", "media.example.com", 8443, "/a%20b.png?x=1&y=//", None)
    assert url.host_header == "media.example.com:8443"
    assert parse_url("https://example.com").target == "/"
    assert parse_url("https://example.com?q").target == "/?q"
    assert parse_url("http://0x7f.1/").host == "127.0.0.1"
    assert parse_url("http://[::ffff:7f00:1]:81/").host_header == "[::ffff:7f00:1]:81"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://",
        "https:///path",
        "//example.com/",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://example.com@127.0.0.1/",
        "https://127.0.0.1#@example.com\\",
        "https://example.com\\@127.0.0.1/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:99999999/",
        "https://example.com:8o/",
        "https://exam ple.com/",
        "https://example.com/\r\nHost: internal",
        "https://example.com/\t",
        "https://ex\u00e4mple.com/",
        "https://\uff11\uff12\uff17.0.0.1/",
        "https://%31%32%37.0.0.1/",
        "https://[::1%25eth0]/",
        "https://[::1/",
        "https://example..com/",
        "https://.example.com/",
        "https://example.com..../",
        "ftp://example.com/",
        "file://example.com/",
        "https:example.com",
        "https://" + "a" * 300 + "/",
        "https://example.com/" + "a" * 5000,
    ],
)
def test_urls_that_parsers_disagree_on_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_url(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, f"https://{text}", f"https://example.com/{text}"):
        try:
            url = parse_url(candidate)
        except ValueError:
            continue
        assert url.scheme in ("http", "https")
        assert url.target.startswith("/") and not set(url.target) & set(" \r\n\t")
        assert not set(url.host) & set("@/\\?# \r\n")
        assert parse_url(f"{url.scheme}://{url.host_header}{url.target}") == url


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "https://example.com/b"),
        ("c?d", "https://example.com/a/c?d"),
        ("//other.example/", "https://other.example/"),
    ],
)
def test_relative_redirects(location: str, target: str) -> None:
    assert join_url(parse_url("https://example.com/a/b"), location) == parse_url(target)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "data:image/png;base64,AAAA", "", "gopher://x/", "/a b"])
def test_redirects_that_lead_to_no_url(location: str) -> None:
    with pytest.raises(ValueError):
        join_url(parse_url("https://example.com/a"), location)


@pytest.mark.parametrize(
    ("url", "domains", "listed"),
    [
        ("https://example.com/", ("example.com",), True),
        ("https://EXAMPLE.com./", ("Example.COM",), True),
        ("https://example.com:8443/", ("example.com",), False),
        ("https://example.com:8443/", ("example.com:8443",), True),
        ("https://example.com/", ("example.com:8443",), False),
        ("https://a.example.com/", ("example.com",), False),
        ("https://a.example.com/", ("*.example.com",), True),
        ("https://example.com/", ("*.example.com",), False),
        ("https://evilexample.com/", ("*.example.com", "example.com"), False),
        ("https://example.com.evil.net/", ("*.example.com", "example.com"), False),
        ("https://anything.net/", ("*",), True),
        ("https://anything.net:81/", ("*",), False),
        ("https://example.com/", (), False),
    ],
)
def test_the_list_of_domains(url: str, domains: tuple[str, ...], listed: bool) -> None:
    assert is_listed(parse_url(url), domains) is listed
