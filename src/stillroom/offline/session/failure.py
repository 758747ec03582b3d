"""A command that failed, or a fault that was reported, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stillroom.offline.session.findings import Statement


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that failed, or a fault that the user reported, and the story up to the run that passed."""

    turn: int
    step: int
    command: str = ""
    exit_code: int | None = None
    error: str = ""
    reported: str = ""  #: the user's words, when no command showed it
    worded: bool = True  #: those words say what is wrong, more than "fix"
    asked: bool = False  #: those words only ask what is the case: what explains it is the answer
    measured: bool = False  #: a command read otherwise after the fix than before it
    attempts: int = 1
    #: The run that passed: the same command, or another one for the same purpose.
    passed: str = ""
    passed_turn: int = -1
    passed_step: int = -1
    other_command: bool = False
    files: tuple[str, ...] = ()
    remedy: str = ""  #: the command in between, when no file was changed
    change: str = ""  #: lines that the last edit added, when nobody said why
    causes: tuple[Statement, ...] = ()
    told: str = ""  #: what the user said of it
    #: The check was not seen to pass: nothing was changed after it failed for the last time, or something was.
    ending: Literal["failing", "unseen", ""] = ""

    @property
    def resolved(self) -> bool:
        return bool(self.passed)

    @property
    def worth_keeping(self) -> bool:
        """A run that failed once and then passed by itself teaches nothing."""
        if self.reported:
            return bool(self.causes) or (self.measured and bool(self.files))
        if self.resolved:
            known = bool(self.error or self.causes or self.other_command)
            return known and bool(self.files or self.causes or self.other_command or self.told or self.remedy)
        return bool(self.error) and (self.attempts > 1 or bool(self.causes or self.told))
