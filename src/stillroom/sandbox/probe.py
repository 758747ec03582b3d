"""Which jails this machine has, found out by starting each; and the choice of one."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stillroom.config import JailChoice, StageTwo
from stillroom.errors import JailUnavailable
from stillroom.sandbox.bwrap import BwrapJail, bwrap_jail
from stillroom.sandbox.files import FilesJail, files_jail
from stillroom.sandbox.jail import Jail, JailLimits, Level
from stillroom.sandbox.landlock import LandlockJail, landlock_jail
from stillroom.sandbox.seatbelt import SeatbeltJail, seatbelt_jail
from stillroom.sandbox.worker_process import FILTER, worker_config

_TRY_SECONDS = 10
_AnyJail = BwrapJail | LandlockJail | SeatbeltJail | FilesJail
#: The strongest first: the order of `auto`.
_LEVELS: dict[Level, Callable[[], _AnyJail]] = {
    "bwrap": bwrap_jail,
    "landlock": landlock_jail,
    "seatbelt": seatbelt_jail,
    "files": files_jail,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReport:
    """Whether one level can be had here. `reason` is empty when it can."""

    level: Level
    available: bool
    reason: str


def probe(*, until_one_works: bool = False) -> list[LevelReport]:
    """Try every level, the strongest first, or only as far as `auto` would: about 0.1 s for each that works."""
    reports = []
    for level in _LEVELS:
        try:
            _working(level)
        except JailUnavailable as error:
            reports.append(LevelReport(level=level, available=False, reason=str(error)))
        else:
            reports.append(LevelReport(level=level, available=True, reason=""))
            if until_one_works:
                break
    return reports


def choose(asked: JailChoice) -> Jail:
    """The asked level, or for `auto` the strongest that works. Never a lower one: `JailUnavailable`."""
    if asked != "auto":
        try:
            return _working(asked)
        except JailUnavailable as error:
            # Said with the setting that asks for it: who reads this sees a failed consolidation, not a call.
            raise JailUnavailable(
                f"the jail `{asked}` can't be had: {error}",
                hint=error.hint or '`memories.jail = "auto"` takes the strongest that this machine has',
            ) from error
    reasons = []
    for level in _LEVELS:
        try:
            return _working(level)
        except JailUnavailable as error:
            reasons.append(f"{level}: {error}")
    raise JailUnavailable("no jail works on this machine: " + "; ".join(reasons))


def _working(level: Level) -> _AnyJail:
    """The jail, after its worker has come up in it once."""
    jail = _LEVELS[level]()
    with tempfile.TemporaryDirectory(prefix="stillroom-") as folder:
        limits = JailLimits.of(StageTwo())
        launch = jail.launch(Path(folder).resolve(), limits=limits)
        read_end, write_end = os.pipe()
        try:
            os.write(write_end, launch.filter_program or b"")
            os.close(write_end)
            tried = subprocess.run(
                [str(read_end) if word == FILTER else word for word in launch.argv],
                input=worker_config(launch, limits),
                capture_output=True,
                timeout=_TRY_SECONDS,
                cwd=launch.working_directory,
                env=launch.environment,
                pass_fds=(read_end,),
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JailUnavailable(f"`{launch.argv[0]}`: {error}") from error
        finally:
            os.close(read_end)
            if launch.scratch is not None:
                with contextlib.suppress(OSError):
                    shutil.rmtree(launch.scratch)
    if tried.stdout != b'{"ready": true}\n':
        said = " ".join(tried.stderr.decode("utf-8", "replace").split())[-300:]
        raise JailUnavailable(f"the `{level}` jail doesn't start: {said or f'exit code {tried.returncode}'}")
    return jail
