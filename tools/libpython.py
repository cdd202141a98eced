# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Find `libpythonX.Y.so.1.0`, which Triton's Python stub links and many Python installations leave out."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from pathlib import Path

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SONAME = f"libpython{VERSION}.so.1.0"


def find_libpython() -> Path | None:
    """The library file of this Python's minor version; None when there is none."""
    folders = [sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LIBPL"), f"{sys.base_prefix}/lib"]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    if multiarch:
        folders += [f"/usr/lib/{multiarch}", f"/lib/{multiarch}"]
    folders += ["/usr/lib64", "/usr/lib", "/usr/local/lib"]
    for folder in folders:
        if folder and (Path(folder) / SONAME).is_file():
            return Path(folder) / SONAME
    return _known_to_loader()


def _known_to_loader() -> Path | None:
    """Where the dynamic loader finds the library, if it does."""
    try:
        ctypes.CDLL(SONAME, mode=ctypes.RTLD_LOCAL)
    except OSError:
        return None
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.partition("/")[2]
        if path.endswith(SONAME):
            return Path("/" + path)
    return None


def install_hint() -> str:
    """The command that brings the library, for the distribution we run on."""
    try:
        release = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        release = ""
    if any(name in release for name in ("debian", "ubuntu")):
        return f"sudo apt-get install libpython{VERSION}"
    if any(name in release for name in ("rhel", "fedora", "centos")):
        return f"sudo dnf install python{VERSION}-libs"
    return f"install the shared library {SONAME} of Python {VERSION} (Debian and Ubuntu: libpython{VERSION})"
