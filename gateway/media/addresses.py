# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Which addresses are the public internet, and how a host that is a number reads. Pure; opens nothing.

The table follows the registries of special-purpose addresses of IANA rather than `ipaddress.is_global`, whose answer
changes between patch releases of Python.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_SPECIAL_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        # Public by number, but the host's own agent inside Azure.
        "168.63.129.16/32",
    )
)
# All global unicast. What carries an IPv4 address inside (mapped, compatible, NAT64) lies outside of it, but for 6to4.
_GLOBAL_V6 = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
# ISATAP interface identifiers hold an IPv4 address whatever the network is.
_ISATAP = {0x00005EFE, 0x02005EFE}

_NUMERIC_LABEL = re.compile(r"0x[0-9a-f]*|[0-9]+")
_NUMBER = re.compile(r"0x[0-9a-f]{0,16}|[0-9]{1,24}")


def is_public(address: Address) -> bool:
    """Whether `address` is on the public internet, so that fetching from it reaches nothing of the operator's."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    if address.scope_id or address not in _GLOBAL_V6 or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return False
    return not any(address in network for network in _SPECIAL_V6)


def literal_address(host: str) -> Address | None:
    """The address that `host` spells, or None for a name. `host` is lower case; an IPv6 address is in brackets.

    Every spelling the C library knows is read (0x7f000001, 2130706433, 0177.0.0.1, 127.1). A host that ends in a number
    and is no address raises ValueError, so that no resolver gets to guess.
    """
    if host.startswith("["):
        return IPv6Address(host.removeprefix("[").removesuffix("]"))
    labels = host.removesuffix(".").split(".")
    if not _NUMERIC_LABEL.fullmatch(labels[-1]):
        return None
    if len(labels) > 4:
        raise ValueError("an IPv4 address of more than four parts")
    *leading, last = (_number(label) for label in labels)
    if any(part > 255 for part in leading) or last >= 256 ** (4 - len(leading)):
        raise ValueError("a part of an IPv4 address is out of range")
    value = last
    for position, part in enumerate(leading):
        value += part << (8 * (3 - position))
    return IPv4Address(value)


def _number(label: str) -> int:
    if not _NUMBER.fullmatch(label):
        raise ValueError("a part of an IPv4 address is not a number")
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)
