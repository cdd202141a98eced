# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Reads http(s) URLs strictly and says whether the operator's list of domains covers one. Pure; opens nothing.

Parsers of URLs disagree on backslashes, spaces, user names and letters beyond ASCII, and disagreements are what attacks
are made of: such URLs are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import NamedTuple
from urllib.parse import urljoin

from tritone.gateway.media.addresses import Address, literal_address

MAX_URL_CHARS = 4096
DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::([0-9]{1,5}))?")
# What may stand in a URL by RFC 3986; no space, control character, quote, angle bracket or backslash.
_CHARACTERS = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")


class MediaUrl(NamedTuple):
    """A URL in parts. `address` is set when the host is an address, in whatever spelling."""

    scheme: str
    host: str
    port: int
    target: str
    address: Address | None

    @property
    def host_header(self) -> str:
        return self.host if self.port == DEFAULT_PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def tls_name(self) -> str:
        return str(self.address) if self.address is not None else self.host.removesuffix(".")


def parse_url(text: str) -> MediaUrl:
    """The parts of an absolute http(s) URL; ValueError for anything else."""
    if len(text) > MAX_URL_CHARS or not _CHARACTERS.fullmatch(text):
        raise ValueError("not a URL of allowed characters")
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError("not an http URL")
    scheme, authority, target = match[1].lower(), match[2].lower(), match[3]
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise ValueError("not a plain host with a port")
    host = parts[1]
    port = int(parts[2]) if parts[2] else DEFAULT_PORTS[scheme]
    if not 1 <= port <= 65535 or len(host) > 253:
        raise ValueError("host or port out of range")
    address = literal_address(host)
    if address is not None:
        host = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    return MediaUrl(scheme, host, port, target if target.startswith("/") else f"/{target}", address)


def join_url(base: MediaUrl, location: str) -> MediaUrl:
    """Where a redirect leads; ValueError when it leads to no http URL."""
    if len(location) > MAX_URL_CHARS or not _CHARACTERS.fullmatch(location):
        raise ValueError("not a URL of allowed characters")
    return parse_url(urljoin(f"{base.scheme}://{base.host_header}{base.target}", location))


def is_listed(url: MediaUrl, domains: Sequence[str]) -> bool:
    """Whether one of `domains` (see `FetchSettings`) covers host and port of `url`."""
    host = url.host.removesuffix(".")
    for entry in domains:
        domain, port = _split_entry(entry.lower())
        if url.port != (port or DEFAULT_PORTS[url.scheme]):
            continue
        if domain == "*" or domain == host or (domain.startswith("*.") and host.endswith(domain[1:])):
            return True
    return False


def _split_entry(entry: str) -> tuple[str, int]:
    domain, colon, port = entry.rpartition(":")
    if colon and port.isdigit():
        return domain, int(port)
    return entry, 0
