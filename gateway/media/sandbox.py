# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
"""Takes rights away from a decoder process: user, network, privileges; for each job memory, CPU, files, system calls.

Linux only, through the C library. Each step says whether the machine allowed it; what must hold is the caller's rule.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_NOBODY = 65534

_AUDIT_ARCH_X86_64 = 0xC000003E
_RETURN_ALLOW = 0x7FFF0000
_RETURN_EPERM = 0x00050001
_RETURN_KILL = 0x80000000
# What reading from one open socket, computing and writing to it needs. By number, x86-64.
_SYSTEM_CALLS = {
    "read": 0,
    "write": 1,
    "close": 3,
    "fstat": 5,
    "poll": 7,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "getpid": 39,
    "sendto": 44,
    "recvfrom": 45,
    "sendmsg": 46,
    "recvmsg": 47,
    "exit": 60,
    "gettimeofday": 96,
    "getrusage": 98,
    "sysinfo": 99,
    "gettid": 186,
    "futex": 202,
    "sched_getaffinity": 204,
    "clock_gettime": 228,
    "clock_getres": 229,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "getrandom": 318,
    "rseq": 334,
}

_libc = ctypes.CDLL(None, use_errno=True)


class Isolation(NamedTuple):
    """What a worker reached. `own_user`: it is not the gateway's user (only a gateway run by root can change that)."""

    own_user: bool
    own_network: bool
    no_new_privileges: bool
    system_call_filter: bool

    def names(self) -> list[str]:
        return [name for name, holds in self._asdict().items() if holds]


class JobLimits(NamedTuple):
    """Hard limits of one job."""

    max_memory_bytes: int
    cpu_s: int


def isolate_worker() -> Isolation:
    """Lock a worker in, for good. Called once, after everything is imported."""
    is_root = os.geteuid() == 0
    # Root first tries without a user namespace, in which it could not become nobody.
    own_network = _unshare(_CLONE_NEWNET) or (not is_root and _unshare(_CLONE_NEWUSER | _CLONE_NEWNET))
    own_user = False
    if is_root:
        try:
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
            own_user = True
        except OSError:
            own_user = False
    no_new_privileges = _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # Nobody of the same user may look into its memory.
    _prctl(_PR_SET_DUMPABLE, 0)
    die_with_parent()
    return Isolation(own_user, own_network, no_new_privileges, has_system_call_filter())


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends. Forgotten at fork and at a change of user."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_job(limits: JobLimits) -> None:
    """Hard limits on this process, which does one job and exits."""
    address_space = _address_space_bytes() + limits.max_memory_bytes
    for kind, value in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        # No file, socket, pipe or memory file can be opened, no process or thread started.
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def filter_system_calls() -> bool:
    """Let every system call outside the list fail with EPERM from now on."""
    if not has_system_call_filter():
        return False
    calls = sorted(_SYSTEM_CALLS.values())
    program = [
        _instruction(0x20, 0, 0, 4),  # load the architecture
        _instruction(0x15, 1, 0, _AUDIT_ARCH_X86_64),
        _instruction(0x06, 0, 0, _RETURN_KILL),
        _instruction(0x20, 0, 0, 0),  # load the number of the call
        *(_instruction(0x15, len(calls) - position, 0, call) for position, call in enumerate(calls)),
        _instruction(0x06, 0, 0, _RETURN_EPERM),
        _instruction(0x06, 0, 0, _RETURN_ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(program))
    # struct sock_fprog: a length and a pointer, aligned.
    filter_program = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    return _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(filter_program))


def has_system_call_filter() -> bool:
    """Whether this kernel filters system calls and the list is for this machine."""
    return platform.machine() == "x86_64" and os.path.exists("/proc/sys/kernel/seccomp/actions_avail")


def _instruction(code: int, jump_true: int, jump_false: int, operand: int) -> bytes:
    return struct.pack("HBBI", code, jump_true, jump_false, operand)


def _prctl(option: int, argument: int, pointer: int = 0) -> bool:
    zero = ctypes.c_ulong(0)
    return int(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(argument), ctypes.c_ulong(pointer), zero, zero)) == 0


def _unshare(flags: int) -> bool:
    return int(_libc.unshare(ctypes.c_int(flags))) == 0


def _address_space_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
