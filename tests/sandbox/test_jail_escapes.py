"""Ways out of the jail, really tried by shell commands, at every level with a shell that the machine has."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stillroom.sandbox import Jail, JailLimits, LevelReport, Worker
from stillroom.sandbox.bwrap import bwrap_jail
from stillroom.sandbox.jail import find_interpreter
from stillroom.sandbox.watch import descendants
from stillroom.sandbox.worker_process import start_worker

pytestmark = pytest.mark.slow  # bombs and floods take their time

InJail = Callable[..., None]
#: No other process on this machine sleeps as long.
SLEEP = f"sleep {100_000 + os.getpid()}"


async def sh(worker: Worker, command: str, **arguments: object) -> str:
    return (await worker.call("shell", {"command": command, **arguments})).text


def python(code: str) -> str:
    assert "'" not in code
    return f"{find_interpreter().program} -I -S -c '{code}'"


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[tuple[int, int, Path, list[bytes]]]:
    """A TCP port, a UDP port and a socket in the file system that really take what is sent to them."""
    heard: list[bytes] = []
    path = tmp_path / "listener"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        unix.bind(str(path))
        unix.listen()

        def accept(listener: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    heard.append(b"connection")
                    connection.close()

        def receive() -> None:
            with contextlib.suppress(OSError):
                while data := udp.recv(100):
                    heard.append(data)

        threads = [threading.Thread(target=accept, args=(listener,)) for listener in (tcp, unix)]
        threads.append(threading.Thread(target=receive))
        for thread in threads:
            thread.start()
        yield tcp.getsockname()[1], udp.getsockname()[1], path, heard
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", udp.getsockname())
        for listener in (tcp, unix):
            listener.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(timeout=5)


def test_a_command_works_in_the_folder(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        result = await worker.call(
            "shell", {"command": "grep -c . MEMORY.md | tee count; mkdir -p a/b; sort -r MEMORY.md"}
        )
        assert result.ok and result.changed and not result.truncated
        assert result.text == "3\ntwo\nthree\none\n\n[exit code 0]"
        assert "[exit code 3]" in await sh(worker, "exit 3")
        assert not (await worker.call("shell", {"command": "cat MEMORY.md"})).changed
        assert await sh(worker, "cat <<END | sed -n 1p\n$(seq 1 40000)\nEND") == "1\n\n[exit code 0]"
        assert "no tool" not in await sh(
            worker, "sed -i s/one/ONE/ MEMORY.md && mv count a/b/ && rm -r a && head -1 MEMORY.md"
        )

    in_jail(shell_jail, folder, scene)
    assert (folder / "MEMORY.md").read_text(encoding="utf-8") == "ONE\ntwo\nthree\n"


def test_nothing_else_of_the_disk_can_be_read(
    shell_jail: Jail, folder: Path, in_jail: InJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = folder.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("outside", encoding="utf-8")
    outside = [str(folder.parent / "secret.txt"), str(home / ".ssh/id"), "../secret.txt",
               f"/proc/self/root{home}/.ssh/id", f"/proc/1/root{home}/.ssh/id",
               f"/proc/{os.getpid()}/root{home}/.ssh/id", f"/proc/{os.getpid()}/environ",
               "/etc/shadow", "/etc/passwd", "/etc/hostname", "/root/.bashrc", "/sys/kernel/uevent_seqnum",
               __file__]  # fmt: skip

    async def scene(worker: Worker) -> None:
        for path in outside:
            told = await sh(worker, f"cat {path}")
            assert "[exit code 1]" in told, (path, told)
        assert "outside" not in await sh(worker, "cat /proc/1/environ /proc/*/environ /proc/*/cmdline")
        assert "[exit code 1]" in await sh(worker, f"find {folder.parent} -name secret.txt | grep secret")

    in_jail(shell_jail, folder, scene)


def test_nothing_else_of_the_disk_can_be_written(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    before = (folder.parent / "secret.txt").stat()
    targets = ["../new", str(folder.parent / "new"), "/usr/new", "/new", "/etc/new", "/dev/shm/new", "/dev/new",
               "/var/tmp/new", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
               str(folder.parent / "secret.txt")]  # fmt: skip

    async def scene(worker: Worker) -> None:
        for target in targets:
            # Opened for writing, never written to: where the jail fails, `/proc/sys` is the whole machine's.
            told = await sh(worker, f": >> {target}")
            assert "[exit code 0]" not in told, (target, told)
        secret = folder.parent / "secret.txt"
        for command in (f"chmod 777 {secret}", f"touch -d 2001-01-01 {secret}", f"truncate -s 0 {secret}",
                        f"rm -f {secret}", f"ln {secret} hard", f"mv {secret} here",
                        f"chown 1:1 {secret}"):  # fmt: skip
            told = await sh(worker, f"{command}; test ! -e {secret}")
            assert "[exit code" in told

    in_jail(shell_jail, folder, scene)
    assert (folder.parent / "secret.txt").stat() == before
    assert sorted(entry.name for entry in folder.iterdir()) == ["MEMORY.md"]


def test_no_links_or_devices_are_made(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        for command in ("ln -s /etc/passwd link", "ln -s .. up", "mkfifo pipe", "mknod null c 1 3"):
            assert "[exit code 1]" in await sh(worker, command)

    in_jail(shell_jail, folder, scene)
    assert sorted(entry.name for entry in folder.iterdir()) == ["MEMORY.md"]


def test_git_directories_are_pointed_out(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        told = await sh(worker, "mkdir -p sub/.git && echo '[core]' > sub/.git/config")
        assert told.endswith("[not allowed in the memory folder, remove them: 'sub/.git']")
        assert "not allowed" not in await sh(worker, "rm -r sub")

    in_jail(shell_jail, folder, scene)


def test_no_network(
    shell_jail: Jail, folder: Path, in_jail: InJail, listeners: tuple[int, int, Path, list[bytes]]
) -> None:
    tcp, udp, unix, heard = listeners

    async def scene(worker: Worker) -> None:
        for code in (
            f'import socket; socket.create_connection(("127.0.0.1", {tcp}), 2)',
            f'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"out", ("127.0.0.1", {udp}))',
            f'import socket; socket.socket(socket.AF_UNIX).connect("{unix}")',
            'import socket; socket.socket(socket.AF_UNIX).bind("inside")',
            "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
            "import socket; socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)",
        ):
            told = await sh(worker, python(code))
            assert "[exit code 1]" in told, (code, told)
        assert "[exit code 0]" not in await sh(worker, f"echo out > /dev/tcp/127.0.0.1/{tcp}")
        assert "[exit code 0]" not in await sh(worker, f"echo out > /dev/udp/127.0.0.1/{udp}")

    in_jail(shell_jail, folder, scene)
    assert heard == []


def test_the_environment_is_empty(
    shell_jail: Jail, folder: Path, in_jail: InJail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush-hush")

    async def scene(worker: Worker) -> None:
        names = {line.partition("=")[0] for line in (await sh(worker, "env")).splitlines() if "=" in line}
        assert names == {"PATH", "HOME", "TMPDIR", "LC_ALL", "PWD", "SHLVL", "_"}
        assert "hush" not in await sh(worker, "cat /proc/*/environ 2>/dev/null; true")

    in_jail(shell_jail, folder, scene)


def test_the_environment_is_empty_whatever_the_jail_s_own_program_was_given(
    folder: Path, limits: JailLimits, reports: dict[str, LevelReport]
) -> None:
    if not reports["bwrap"].available:
        pytest.skip("no bwrap here")
    launch = replace(bwrap_jail().launch(folder, limits=limits), environment={"PATH": "/usr/bin", "SECRET_KEY": "hush"})

    async def scene() -> None:
        async with await start_worker(launch, folder, limits=limits) as worker:
            assert "SECRET_KEY" not in await sh(worker, "env")

    asyncio.run(scene())


def test_no_new_privileges_and_no_capabilities(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    code = (
        "import ctypes; l = ctypes.CDLL(None); caps = (ctypes.c_uint32 * 6)();"
        "head = (ctypes.c_uint32 * 2)(0x20080522, 0); l.capget(head, caps); print(l.prctl(39, 0, 0, 0, 0), list(caps),"
        "l.ptrace(16, 1, 0, 0), l.unshare(0x10000000))"
    )

    async def scene(worker: Worker) -> None:
        assert await sh(worker, python(code)) == "1 [0, 0, 0, 0, 0, 0] -1 -1\n\n[exit code 0]"

    in_jail(shell_jail, folder, scene)


def test_processes_outside_can_not_be_signalled(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        assert "[exit code 1]" in await sh(worker, f"kill -0 {os.getpid()}")
        await sh(worker, "kill -9 -1")
        assert (await worker.call("read", {"path": "MEMORY.md"})).text.startswith("one")

    in_jail(shell_jail, folder, scene)


@pytest.mark.parametrize(
    "command",
    [
        f"{SLEEP} &",
        f"nohup {SLEEP} > /dev/null 2>&1 & disown",
        f"(setsid {SLEEP} > /dev/null 2>&1 &)",
        f"(sh -c 'trap : TERM HUP INT; {SLEEP}' &) ; ({SLEEP} | {SLEEP}) &",
    ],
)
def test_a_background_process_ends_with_its_command(
    shell_jail: Jail, folder: Path, in_jail: InJail, command: str
) -> None:
    async def scene(worker: Worker) -> None:
        before = len(descendants(worker.process_id or 0))
        told = await worker.call("shell", {"command": command})
        assert told.ok
        assert len(descendants(worker.process_id or 0)) == before
        await worker.close()
        assert worker.process_id is None

    in_jail(shell_jail, folder, scene)
    assert not _sleepers()


def _sleepers() -> list[str]:
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if line.read_bytes() == b"\0".join(SLEEP.encode().split()) + b"\0":
                found.append(str(line))
    return found


@pytest.mark.parametrize(
    "bomb",
    [
        ":(){ :|:& };:",
        ":(){ :|:& };: ; wait; sleep 5",
        f"while true; do {SLEEP} & done",
        python("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"),
    ],
)
def test_a_fork_bomb_is_bounded(shell_jail: Jail, folder: Path, in_jail: InJail, bomb: str) -> None:
    async def scene(worker: Worker) -> None:
        await worker.call("shell", {"command": bomb, "timeout_seconds": 3})
        assert (await worker.call("read", {"path": "MEMORY.md"})).text.startswith("one")

    in_jail(shell_jail, folder, scene)
    assert not _sleepers()


def test_bwrap_gives_each_kind_of_namespace_of_its_own(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    """Each is a second wall behind the filter of system calls, so that no attempt to get out shows its lack."""
    if shell_jail.level != "bwrap":
        pytest.skip("another level has none")
    kinds = ("net", "pid", "ipc", "uts", "mnt", "user", "cgroup")

    async def scene(worker: Worker) -> None:
        told = await sh(worker, "".join(f"readlink /proc/self/ns/{kind};" for kind in kinds))
        outside = [str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in kinds]
        inside = told.splitlines()[: len(kinds)]
        assert [kind.partition(":")[0] for kind in inside] == list(kinds)
        assert not set(inside) & set(outside)

    in_jail(shell_jail, folder, scene)


@pytest.mark.parametrize(
    "filler",
    [
        "head -c 200M /dev/zero > big",
        "for i in $(seq 1000); do head -c 1M /dev/zero > f$i; done; sleep 5",
        "for i in $(seq 1000); do head -c 1M /dev/zero > $TMPDIR/f$i; done; sleep 5",
        "i=0; while true; do : > n$i; i=$((i+1)); done",
    ],
)
def test_the_disk_can_not_be_filled(
    shell_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits, filler: str
) -> None:
    async def scene(worker: Worker) -> None:
        told = await worker.call("shell", {"command": filler})
        assert not told.ok or "File size limit exceeded" in told.text or "File too large" in told.text
        listed = await worker.call("list", {})
        assert listed.ok

    in_jail(shell_jail, folder, scene)
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 24 * limits.folder_bytes


def test_files_deleted_while_they_are_open_count_too(
    shell_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits
) -> None:
    async def scene(worker: Worker) -> None:
        code = (
            'import os\nkept = []\nwhile True:\n  kept.append(open("gone", "wb", 0)); os.unlink("gone")\n'
            '  kept[-1].write(b"x" * 4000000)'
        )
        told = await worker.call("shell", {"command": python(code)})
        assert not told.ok
        assert "bytes written" in told.text

    in_jail(shell_jail, folder, scene, replace(limits, written_bytes=64_000_000))


def test_processes_and_their_memory_are_counted_together(
    shell_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits
) -> None:
    hold = python('import time; kept = bytearray(60_000_000); kept[::4096] = b"x" * len(kept[::4096]); time.sleep(5)')

    async def scene(worker: Worker) -> None:
        many = await worker.call("shell", {"command": f"for i in $(seq 60); do {SLEEP} & done; wait"})
        assert not many.ok or "temporarily unavailable" in many.text  # where the kernel counts: not root's
        large = await worker.call("shell", {"command": f"{hold} & {hold} & {hold} & {hold} & wait"})
        assert not large.ok
        assert "bytes of memory, more than 200,000,000" in large.text

    in_jail(shell_jail, folder, scene, replace(limits, processes=30, memory_bytes=200_000_000))
    assert not _sleepers()


def test_memory_is_bounded(shell_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits) -> None:
    async def scene(worker: Worker) -> None:
        assert "MemoryError" in await sh(worker, python('x = b"x" * 2000000000'))

    in_jail(shell_jail, folder, scene, replace(limits, memory_bytes=512 * 1024 * 1024))


def test_a_command_ends_with_its_time(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        told = await worker.call("shell", {"command": f"echo begun; {SLEEP}", "timeout_seconds": 0.3})
        assert told.text == "begun\n\n[stopped after 0.3 s]"
        told = await worker.call("shell", {"command": "trap '' TERM INT; while :; do :; done", "timeout_seconds": 0.3})
        assert told.text == "\n[stopped after 0.3 s]"

    in_jail(shell_jail, folder, scene)


def test_a_flood_of_output_is_cut_and_stopped(
    shell_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits
) -> None:
    async def scene(worker: Worker) -> None:
        counted = await worker.call("shell", {"command": "seq 1 100000"})
        assert counted.truncated and "[cut: 588,895 bytes in all]" in counted.text
        assert counted.text.startswith("1\n2\n") and counted.text.endswith("100000\n\n[exit code 0]")
        for command in ("yes", "cat /dev/zero", "head -c 3000000 /dev/urandom"):
            told = await worker.call("shell", {"command": command})
            assert told.truncated
            assert len(told.text.encode()) <= limits.output_bytes
        assert "bytes of output]" in await sh(worker, "yes")

    in_jail(shell_jail, folder, scene)


def test_a_closed_directory_is_opened_for_the_owner_at_the_end(shell_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        await sh(worker, "mkdir -p a/b; umask 777; mkdir a/c")

    in_jail(shell_jail, folder, scene)
    assert (folder / "a/c").stat().st_mode & 0o700 == 0o700
