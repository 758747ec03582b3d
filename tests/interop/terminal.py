"""A terminal for a client that draws a screen: what a person would type is typed, what it draws is thrown away."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

#: What terminals answer when a program asks what they are, and where the cursor is; some programs wait for it.
_ANSWERS = ((b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62c"))
_WITHOUT_CONTROLS = re.compile(r"\x1b\[[0-9;?<>=]*[A-Za-z]")
_LOOK_SECONDS = 0.2
_END_SECONDS = 10
_SHOWN_BYTES = 4000


class Terminal:
    """A program in a terminal of its own, until the context is left."""

    def __init__(self, command: Sequence[str], *, environ: Mapping[str, str], cwd: Path) -> None:
        self._screen, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._drawn = b""
        self._process = subprocess.Popen(
            command, env=environ, cwd=cwd, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it as a terminal does that is closed."""
        self._signal(signal.SIGHUP)
        try:
            self.wait_until(lambda: self._process.poll() is not None, seconds=_END_SECONDS)
        except TimeoutError:
            self._signal(signal.SIGKILL)
        self._process.wait()
        os.close(self._screen)

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def wait_for(self, text: str, *, seconds: float) -> None:
        """Until it has drawn `text`, and then nothing for a second."""
        self.wait_until(
            lambda: text in _WITHOUT_CONTROLS.sub("", self._drawn.decode("utf-8", "replace")), seconds=seconds
        )
        last, size = time.monotonic(), len(self._drawn)

        def rests() -> bool:
            nonlocal last, size
            if len(self._drawn) != size:
                last, size = time.monotonic(), len(self._drawn)
            return size > 0 and time.monotonic() - last > 1

        self.wait_until(rests, seconds=seconds)

    def wait_until(self, done: Callable[[], bool], *, seconds: float) -> None:
        """Until `done`, while the program may draw. Raises `TimeoutError` with what it drew last."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"after {seconds} s the screen shows: {self._drawn[-_SHOWN_BYTES:]!r}")
            self._read()

    def _read(self) -> None:
        ready, _, _ = select.select([self._screen], [], [], _LOOK_SECONDS)
        if not ready:
            return
        try:
            drawn = os.read(self._screen, 65536)
        except OSError:  # it is gone
            time.sleep(_LOOK_SECONDS)
            return
        self._drawn += drawn
        for question, answer in _ANSWERS:
            if question in drawn:
                os.write(self._screen, answer)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass
