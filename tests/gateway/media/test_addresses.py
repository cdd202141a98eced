# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""The address policy: what is public, and every spelling of what is not (reliability T01)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from doubles.hostile_media import INTERNAL_HOSTS
from hypothesis import given
from hypothesis import strategies as st

from tritone.gateway.media.addresses import is_public, literal_address

PRIVATE_V4 = st.sampled_from(["10.0.0.0", "127.0.0.0", "169.254.0.0", "172.16.0.0", "192.168.0.0"])
ALL_V4 = st.integers(0, 2**32 - 1).map(IPv4Address)


@pytest.mark.parametrize("host", INTERNAL_HOSTS)
def test_internal_hosts_are_not_public(host: str) -> None:
    try:
        address = literal_address(host)
    except ValueError:
        return
    assert address is not None
    assert not is_public(address)


@pytest.mark.parametrize("text", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00::1"])
def test_public_addresses_are_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize("host", ["example.com", "a", "1.example", "0x7f000001.com", "127.0.0.1.nip.io", "1e3"])
def test_names_are_no_addresses(host: str) -> None:
    assert literal_address(host) is None


@pytest.mark.parametrize(
    "host", ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "08.1.1.1", "a.1", "0xg.1", "1..2"]
)
def test_a_host_that_ends_in_a_number_and_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(ValueError):
        literal_address(host)


@given(ALL_V4)
def test_every_spelling_reads_as_the_same_address(address: IPv4Address) -> None:
    value = int(address)
    parts = address.packed
    spellings = (
        str(address),
        f"{address}.",
        str(value),
        hex(value),
        f"0{value:o}",
        ".".join(hex(part) for part in parts),
        ".".join(f"0{part:o}" for part in parts),
        f"{parts[0]}.{value & 0xFFFFFF}",
        f"{parts[0]}.{parts[1]}.{value & 0xFFFF}",
        f"0x{parts[0]:x}.0{parts[1]:o}.{parts[2]}.{parts[3]}",
    )
    assert {literal_address(spelling) for spelling in spellings} == {address}


@given(ALL_V4)
def test_no_address_that_embeds_an_ipv4_address_is_public(inner: IPv4Address) -> None:
    value = int(inner)
    carriers = (
        IPv6Address((0xFFFF << 32) | value),  # mapped
        IPv6Address(value),  # compatible
        IPv6Address((0x0064FF9B << 96) | value),  # NAT64
        IPv6Address((0x0064FF9B0001 << 80) | value),  # local NAT64
        IPv6Address((0x2002 << 112) | (value << 80)),  # 6to4
        IPv6Address((0x20010000 << 96) | (value ^ 0xFFFFFFFF)),  # Teredo
        IPv6Address((0x2A000000 << 96) | (0x00005EFE << 32) | value),  # ISATAP
    )
    assert not any(is_public(carrier) for carrier in carriers)


@given(st.one_of(ALL_V4, st.integers(0, 2**128 - 1).map(IPv6Address)))
def test_nothing_python_calls_special_is_public(address: IPv4Address | IPv6Address) -> None:
    special = (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
    # This Python's own table lacks some ranges; it must have none that ours lacks.
    assert not (special and is_public(address))


def test_a_scope_is_not_public() -> None:
    assert not is_public(IPv6Address("2606:4700:4700::1111%eth0"))
