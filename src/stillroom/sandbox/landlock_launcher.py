"""Confine ourselves with Landlock and a system-call filter, then become the worker; a parent stays to end what is left.

Started as `python -I -S landlock_launcher.py JSON`, standard library only. The parent process is the reaper of all that
the worker starts, so that nothing gets away to the machine's own; it ends it all when the worker or Stillroom ends.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import signal
import stat
import sys
from typing import Any

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER = 1, 24, 22, 36
_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 13, 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
#: All but the making of links, sockets, pipes and devices.
_WRITE = _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
#: How many rights on files each version of the interface knows.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP = 0b11
_SCOPES = 0b11

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def abi() -> int:
    """The version of Landlock's interface; 0 or less where it is not there or switched off."""
    return int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def _must(result: int, what: str) -> int:
    if result < 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _drop_capabilities() -> None:
    """Root keeps its files, and nothing else of what makes it root."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = _CapabilityHeader(0x2008_0522, 0)
    _must(_libc.capset(ctypes.byref(header), (ctypes.c_uint32 * 6)()), "capset")


def _restrict(config: dict[str, Any]) -> None:
    version = abi()
    if version < 1:
        sys.exit("Landlock is not there")
    handled = (1 << _RIGHTS[min(version, 5)]) - 1
    ruleset = _Ruleset(handled, _TCP, _SCOPES)
    size = 8 if version < 4 else 16 if version < 6 else 24
    handle = _must(
        _libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), 0), "landlock_create_ruleset"
    )
    granted = [(path, _READ) for path in config["read"]] + [(path, _WRITE) for path in config["write"]]
    granted += [(path, _READ_FILE | _WRITE_FILE) for path in config["devices"]]
    for path, rights in granted:
        try:
            parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _OF_FILES
        rule = _Beneath(rights & handled, parent)
        _must(_libc.syscall(_ADD_RULE, handle, 1, ctypes.byref(rule), 0), f"landlock_add_rule {path}")
        os.close(parent)
    _must(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _must(_libc.syscall(_RESTRICT_SELF, handle, 0), "landlock_restrict_self")
    program = base64.b64decode(config["filter"])
    buffer = ctypes.create_string_buffer(program, len(program))
    seccomp = _Filter(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _must(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(seccomp), 0, 0), "seccomp")


def _become_the_worker(config: dict[str, Any], launcher: int) -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != launcher:
        sys.exit("the launcher has ended")
    os.setsid()
    if os.geteuid() == 0:
        _drop_capabilities()
    _restrict(config)
    os.execve(config["argv"][0], config["argv"], config["environment"])


def _end_our_children() -> None:
    """Until there are none: as their reaper we get the children of the dead ones too."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(os.getpgid(child), signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def main() -> None:
    config = json.loads(sys.argv[1])
    us = os.getpid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    worker = os.fork()
    if worker == 0:
        _become_the_worker(config, us)
    # The pipes are the worker's alone: their end must be seen when it ends.
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1):
        os.dup2(nothing, handle)

    def end(_number: int, _frame: object) -> None:
        _end_our_children()
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    status = 0
    while True:
        process, waited = os.waitpid(-1, 0)
        if process == worker:
            status = waited
            break
    _end_our_children()
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
