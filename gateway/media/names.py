# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Names that clients choose (voices, models, files, jobs), and files of such names that cannot leave their folder.

Knows nothing of what the files hold. Links are never followed, in no component of the path below the root.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritone.errors import InvalidRequest, NotFound

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def safe_name(value: object, *, field: str) -> str:
    """`value` if it is a name of 1 to 64 letters, digits, `.`, `_`, `-` without a leading dot."""
    # fullmatch: `$` would let a final newline pass.
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidRequest(
            f"`{field}` must be 1 to 64 letters, digits, '.', '_' or '-', and not start with '.'.", field=field
        )
    return value


def path_inside(root: Path, *names: str, field: str) -> Path:
    """The path of `names` below `root`, resolved and proven to be inside it. For showing and comparing; to open a file
    use `read_inside`, which leaves no time between the check and the use."""
    path = root.joinpath(*(safe_name(name, field=field) for name in names))
    resolved = path.resolve()
    # By components: a prefix of the text would let /voices-old pass for /voices.
    if not resolved.is_relative_to(root.resolve()) or resolved == root.resolve():
        raise InvalidRequest(f"`{field}` does not name a file of this server.", field=field)
    return resolved


def read_inside(root: Path, *names: str, max_bytes: int, field: str) -> bytes:
    """The content of a regular file below `root`."""
    with _folder_of(root, names, field=field, create=False) as folder:
        try:
            file = os.open(names[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            raise NotFound(f"`{field}` names nothing that exists.", field=field) from None
        except OSError:
            raise _not_ours(field) from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise _not_ours(field)
        with os.fdopen(file, "rb") as opened:
            content = opened.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise InvalidRequest(f"`{field}` names a file of more than {max_bytes} bytes.", field=field)
    return content


def write_inside(root: Path, *names: str, content: bytes, field: str) -> None:
    """Write a file below `root`, whole or not at all: readers see the old one until the new one is on the disk."""
    with _folder_of(root, names, field=field, create=True) as folder:
        # A leading dot, so no client can name it.
        temporary = f".{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
            os.rename(temporary, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        except BaseException:
            _remove(temporary, folder)
            raise


def remove_inside(root: Path, *names: str, field: str) -> bool:
    """Remove a file below `root`; False if there was none. A link is removed, not what it points at."""
    with _folder_of(root, names, field=field, create=False) as folder:
        return _remove(names[-1], folder)


@contextmanager
def _folder_of(root: Path, names: tuple[str, ...], *, field: str, create: bool) -> Iterator[int]:
    """A descriptor of the folder that holds the last of `names`, reached one component at a time."""
    for name in names:
        safe_name(name, field=field)
    folder = os.open(root, _FOLDER_FLAGS)
    try:
        for name in names[:-1]:
            if create:
                try:
                    os.mkdir(name, 0o700, dir_fd=folder)
                except FileExistsError:
                    pass
            try:
                inner = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
            except FileNotFoundError:
                raise NotFound(f"`{field}` names nothing that exists.", field=field) from None
            except OSError:
                raise _not_ours(field) from None
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _not_ours(field: str) -> InvalidRequest:
    return InvalidRequest(f"`{field}` does not name a file of this server.", field=field)


def _remove(name: str, folder: int) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True
