"""System-call filters of the jails, as programs for the kernel.

A filter refuses what a shell command for notes has no use for: sockets, other processes, namespaces, mounts, keys, and
the parts of the kernel where its faults are found. Landlock guards neither the metadata of files nor signals on older
kernels, so its filter refuses those too. Numbers are of the kernel's own tables, which never change.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import Literal, NamedTuple

Architecture = Literal["x86_64", "aarch64"]


class _Call(NamedTuple):
    x86_64: int | None
    aarch64: int | None


def _both(number: int) -> _Call:
    """Calls from 424 on have one number everywhere."""
    return _Call(number, number)


# fmt: off
_ALWAYS: dict[str, _Call] = {
    # The network, and sockets in the file system.
    "socket": _Call(41, 198),
    # Other processes.
    "ptrace": _Call(101, 117), "process_vm_readv": _Call(310, 270), "process_vm_writev": _Call(311, 271),
    "kcmp": _Call(312, 272), "pidfd_getfd": _both(438), "process_madvise": _both(440), "process_mrelease": _both(448),
    "move_pages": _Call(279, 239), "migrate_pages": _Call(256, 238), "ioprio_set": _Call(251, 30),
    "sched_setparam": _Call(142, 118), "sched_setscheduler": _Call(144, 119), "sched_setaffinity": _Call(203, 122),
    "sched_setattr": _Call(314, 274),
    # Memory that outlives a process, or that no limit on files counts.
    "shmget": _Call(29, 194), "shmat": _Call(30, 196), "semget": _Call(64, 190), "msgget": _Call(68, 186),
    "mq_open": _Call(240, 180),
    # Links and devices: the memory folder has none.
    "symlink": _Call(88, None), "symlinkat": _Call(266, 36), "mknod": _Call(133, None), "mknodat": _Call(259, 33),
    # Namespaces, mounts, the machine.
    "unshare": _Call(272, 97), "setns": _Call(308, 268), "mount": _Call(165, 40), "umount2": _Call(166, 39),
    "pivot_root": _Call(155, 41), "chroot": _Call(161, 51), "open_tree": _both(428), "move_mount": _both(429),
    "fsopen": _both(430), "fsconfig": _both(431), "fsmount": _both(432), "fspick": _both(433),
    "mount_setattr": _both(442),
    "name_to_handle_at": _Call(303, 264), "open_by_handle_at": _Call(304, 265), "swapon": _Call(167, 224),
    "swapoff": _Call(168, 225), "reboot": _Call(169, 142), "kexec_load": _Call(246, 104),
    "kexec_file_load": _Call(320, 294),
    "init_module": _Call(175, 105), "finit_module": _Call(313, 273), "delete_module": _Call(176, 106),
    "acct": _Call(163, 89), "quotactl": _Call(179, 60), "quotactl_fd": _both(443), "syslog": _Call(103, 116),
    "sethostname": _Call(170, 161), "setdomainname": _Call(171, 162), "personality": _Call(135, 92),
    "iopl": _Call(172, None), "ioperm": _Call(173, None), "fanotify_init": _Call(300, 262),
    # Keys, and where the kernel's faults are found.
    "add_key": _Call(248, 217), "request_key": _Call(249, 218), "keyctl": _Call(250, 219), "bpf": _Call(321, 280),
    "perf_event_open": _Call(298, 241), "userfaultfd": _Call(323, 282),
}
#: Programs fall back to an older way when the kernel says that it has none of these.
_UNKNOWN: dict[str, _Call] = {
    "clone3": _both(435), "io_uring_setup": _both(425), "io_uring_enter": _both(426), "io_uring_register": _both(427),
    "memfd_create": _Call(319, 279), "memfd_secret": _both(447),
}
#: Metadata of files outside of the folder, which Landlock leaves to anyone with the same user id.
_METADATA: dict[str, _Call] = {
    "chmod": _Call(90, None), "fchmodat": _Call(268, 53), "fchmodat2": _both(452), "chown": _Call(92, None),
    "lchown": _Call(94, None), "fchownat": _Call(260, 54), "utime": _Call(132, None), "utimes": _Call(235, None),
    "futimesat": _Call(261, None), "truncate": _Call(76, 45), "setxattr": _Call(188, 5), "lsetxattr": _Call(189, 6),
    "removexattr": _Call(197, 14), "lremovexattr": _Call(198, 15), "setxattrat": _both(463),
    "removexattrat": _both(466), "file_setattr": _both(469),
}
_SIGNALS: dict[str, _Call] = {
    "kill": _Call(62, 129), "tkill": _Call(200, 130), "tgkill": _Call(234, 131), "rt_sigqueueinfo": _Call(129, 138),
    "rt_tgsigqueueinfo": _Call(297, 240), "pidfd_send_signal": _both(424),
}
_GROUPS: dict[str, _Call] = {"setsid": _Call(112, 157), "setpgid": _Call(109, 154)}
#: Allowed for oneself only: the arguments that must be 0 for that.
_OWN: dict[str, tuple[_Call, tuple[int, ...]]] = {
    "prlimit64": (_Call(302, 261), (0,)),
    "setpriority": (_Call(141, 140), (0, 1)),
}
#: A time stamp is set by descriptor, without a path.
_OWN_METADATA: dict[str, tuple[_Call, tuple[int, ...]]] = {"utimensat": (_Call(280, 88), (1,))}
# fmt: on
_CLONE = _Call(56, 220)
_NEW_NAMESPACES = 0x7E02_0000
_AUDIT: dict[Architecture, int] = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_X32 = 0x4000_0000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000


def architecture() -> Architecture | None:
    """This machine's, if there is a table for it."""
    machine = platform.machine()
    return "x86_64" if machine == "x86_64" else "aarch64" if machine in ("aarch64", "arm64") else None


def jail_filter(machine: Architecture, *, metadata: bool) -> bytes:
    """For everything in a jail; with `metadata` for a jail that shows the disk as it is."""
    refused = [*_ALWAYS.values(), *(_METADATA.values() if metadata else ())]
    own = [*_OWN.values(), *(_OWN_METADATA.values() if metadata else ())]
    return _program(machine, refused=refused, unknown=list(_UNKNOWN.values()), own=own, namespaces=True)


def shell_filter(machine: Architecture, *, signals: bool) -> bytes:
    """For a shell command that has no process namespace: it can't leave its process group, which is how it is ended."""
    refused = [*_GROUPS.values(), *(_SIGNALS.values() if signals else ())]
    return _program(machine, refused=refused, unknown=[], own=[], namespaces=False)


def _program(
    machine: Architecture,
    *,
    refused: list[_Call],
    unknown: list[_Call],
    own: list[tuple[_Call, tuple[int, ...]]],
    namespaces: bool,
) -> bytes:
    def number(call: _Call) -> int | None:
        return call.x86_64 if machine == "x86_64" else call.aarch64

    lines = [_line(_LOAD, 4), _line(_EQUAL, _AUDIT[machine], 1, 0), _line(_RETURN, _KILL), _line(_LOAD, 0)]
    if machine == "x86_64":
        lines += [_line(_AT_LEAST, _X32, 0, 1), _line(_RETURN, _ERRNO | errno.ENOSYS)]
    for calls, answer in ((refused, errno.EPERM), (unknown, errno.ENOSYS)):
        for call in calls:
            if (value := number(call)) is not None:
                lines += [_line(_EQUAL, value, 0, 1), _line(_RETURN, _ERRNO | answer)]
    for call, zeros in own:
        if (value := number(call)) is not None:
            body: list[bytes] = []
            # An argument is two words, the lower first on both machines.
            for offset in [16 + 8 * argument + half for argument in zeros for half in (0, 4)]:
                body += [_line(_LOAD, offset), _line(_EQUAL, 0, 1, 0), _line(_RETURN, _ERRNO | errno.EPERM)]
            body.append(_line(_RETURN, _ALLOW))
            lines += [_line(_EQUAL, value, 0, len(body)), *body]
    if namespaces and (value := number(_CLONE)) is not None:
        lines += [_line(_EQUAL, value, 0, 4), _line(_LOAD, 16), _line(_ANY_BIT, _NEW_NAMESPACES, 0, 1)]
        lines += [_line(_RETURN, _ERRNO | errno.EPERM), _line(_RETURN, _ALLOW)]
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
