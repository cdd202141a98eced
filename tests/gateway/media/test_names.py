# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Names that clients choose, and files that cannot leave their folder (reliability T14)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from doubles.hostile_media import HOSTILE_NAMES
from hypothesis import given
from hypothesis import strategies as st

from tritone.errors import InvalidRequest, NotFound
from tritone.gateway.media.names import path_inside, read_inside, remove_inside, safe_name, write_inside


@pytest.mark.parametrize("name", ["a", "voice-1", "A_b.c", "_x", "-", "a..b", "x" * 64, "con.wav"])
def test_good_names(name: str) -> None:
    assert safe_name(name, field="voice") == name


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: repr(name)[:20])
def test_hostile_names(name: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        safe_name(name, field="voice")
    assert refused.value.field == "voice"
    assert len(refused.value.message) < 200


@given(st.text(max_size=80))
def test_a_name_that_passes_stays_where_it_is_put(name: str) -> None:
    try:
        safe_name(name, field="voice")
    except InvalidRequest:
        return
    assert os.path.basename(name) == name and name not in (".", "..") and name.isascii() and name.isprintable()
    assert Path("/root").joinpath(name).parts == ("/", "root", name)


def test_a_file_is_written_read_and_removed(tmp_path: Path) -> None:
    write_inside(tmp_path, "voices", "ada", "audio.wav", content=b"one", field="voice")
    write_inside(tmp_path, "voices", "ada", "audio.wav", content=b"two", field="voice")
    assert read_inside(tmp_path, "voices", "ada", "audio.wav", max_bytes=3, field="voice") == b"two"
    assert [path.name for path in (tmp_path / "voices" / "ada").iterdir()] == ["audio.wav"]
    assert path_inside(tmp_path, "voices", "ada", field="voice") == tmp_path / "voices" / "ada"
    with pytest.raises(InvalidRequest, match="more than 2 bytes"):
        read_inside(tmp_path, "voices", "ada", "audio.wav", max_bytes=2, field="voice")
    assert remove_inside(tmp_path, "voices", "ada", "audio.wav", field="voice")
    assert not remove_inside(tmp_path, "voices", "ada", "audio.wav", field="voice")
    with pytest.raises(NotFound):
        read_inside(tmp_path, "voices", "ada", "audio.wav", max_bytes=3, field="voice")
    with pytest.raises(NotFound):
        read_inside(tmp_path, "nobody", "audio.wav", max_bytes=3, field="voice")


def test_links_are_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "voices", tmp_path / "voices-old"
    root.mkdir()
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "up").symlink_to("..")
    for names in (("file",), ("folder", "secret"), ("up", "voices-old"), ("folder",)):
        with pytest.raises(InvalidRequest):
            read_inside(root, *names, max_bytes=100, field="voice")
    # A sibling whose name starts like the root's is outside.
    for names in (("file",), ("folder", "secret"), ("up", "voices-old")):
        with pytest.raises(InvalidRequest):
            path_inside(root, *names, field="voice")
    with pytest.raises(InvalidRequest):
        write_inside(root, "folder", "new", content=b"x", field="voice")
    # A link in the place of a file is replaced or removed, what it points at stays.
    write_inside(root, "file", content=b"new", field="voice")
    assert (outside / "secret").read_bytes() == b"secret"
    assert remove_inside(root, "folder", field="voice")
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InvalidRequest):
            read_inside(tmp_path, name, max_bytes=10, field="voice")


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    contents = {bytes([letter]) * 200_000 for letter in b"abc"}
    write_inside(tmp_path, "file", content=min(contents), field="voice")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for content in contents:
                write_inside(tmp_path, "file", content=content, field="voice")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert read_inside(tmp_path, "file", max_bytes=1 << 20, field="voice") in contents
    finally:
        stop.set()
        writer.join()


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_inside(tmp_path, "folder", content=b"x", field="voice")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
