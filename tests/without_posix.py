"""Runs a module, the first argument, without what Windows lacks of what Linux has.

It shows that nothing asks for these names. It does not show that Windows itself does what is asked of it.
"""

from __future__ import annotations

import errno
import os
import runpy
import signal
import sys
import types
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

_MODULES = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "termios", "tty")
FLAGS = ("CLOEXEC", "DIRECTORY", "NOCTTY", "NOFOLLOW", "NONBLOCK", "PATH", "SYNC", "TMPFILE")
OF_OS = (
    *(
        "chown",
        "fchmod",
        "fchown",
        "fork",
        "forkpty",
        "getegid",
        "geteuid",
        "getgid",
        "getgroups",
        "getpgid",
        "getpgrp",
    ),
    *("getuid", "killpg", "lchown", "mkfifo", "nice", "pread", "pwrite", "register_at_fork", "sched_getaffinity"),
    *("setpgid", "setsid", "statvfs", "sync", "sysconf", "uname"),
)
OF_SIGNAL = (
    *("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGUSR1", "SIGUSR2"),
    *("ITIMER_REAL", "alarm", "pthread_sigmask", "setitimer"),
)
_RELATIVE = ("chmod", "link", "mkdir", "open", "readlink", "rename", "replace", "rmdir", "stat", "unlink")


def take_away() -> None:
    """From now on this process has what Windows has."""
    import fcntl

    flock, exclusive, at_once = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_NB
    import shutil
    import sysconfig

    sysconfig.get_config_vars()
    statvfs = os.statvfs
    shutil.disk_usage = lambda folder: _Usage(statvfs(folder))  # type: ignore[assignment]
    for name in OF_OS:
        delattr(os, name)
    for name in FLAGS:
        delattr(os, f"O_{name}")
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    for known in (os.supports_dir_fd, os.supports_fd):
        known.clear()
    for name in _RELATIVE:
        setattr(os, name, _by_path_alone(getattr(os, name)))
    import asyncio  # noqa: F401 - these ask what there is when they are imported, and are their Linux selves
    import tempfile  # noqa: F401

    for module in (signal, sys.modules["_signal"]):
        for name in OF_SIGNAL:
            if hasattr(module, name):
                delattr(module, name)
    for name in _MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    sys.modules["msvcrt"] = msvcrt = types.ModuleType("msvcrt")
    msvcrt.LK_LOCK, msvcrt.LK_NBLCK = exclusive, exclusive | at_once  # type: ignore[attr-defined]
    msvcrt.locking = lambda file, mode, _: flock(file, mode)  # type: ignore[attr-defined]
    sys.platform = "neither"


class _Usage:
    def __init__(self, disk: os.statvfs_result) -> None:
        self.free = disk.f_bavail * disk.f_frsize


def _by_path_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        if any(options.get(name) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError(f"{function.__name__}: dir_fd unavailable on this platform")
        if function.__name__ == "open" and Path(arguments[0]).is_dir():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), arguments[0])
        return function(*arguments, **options)

    return called


if __name__ == "__main__":
    take_away()
    sys.path.pop(0)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
