"""What an examination finds, and how a check says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

Severity = Literal["ok", "note", "warning", "error"]
"""`ok` and `note` are nothing wrong; a `warning` keeps something from working, an `error` keeps everything from it."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    #: What was looked at: `database`, `history`, `sandbox` …
    check: str
    severity: Severity
    what: str
    where: str | None = None
    #: What to do about it: a command, or a sentence.
    remedy: str | None = None
    #: `--fix` can do it.
    fixable: bool = False
    #: What `--fix` did. The severity says what it was before.
    fixed: str | None = None
    #: Why it could not.
    not_fixed: str | None = None

    @property
    def is_wrong(self) -> bool:
        """Something is to be done about it, still."""
        return self.severity in ("warning", "error") and self.fixed is None


class Found(msgspec.Struct, frozen=True):
    """A finding, with what mends it: a function that says what it did. It raises `StillroomError` or `OSError`."""

    finding: Finding
    mend: Callable[[], str] | None = None


def ok(check: str, what: str, *, where: str | None = None) -> Found:
    """It was looked at, and is as it should be."""
    return Found(Finding(check=check, severity="ok", what=what, where=where))


def found(
    check: str,
    severity: Severity,
    what: str,
    *,
    where: str | None = None,
    remedy: str | None = None,
    mend: Callable[[], str] | None = None,
) -> Found:
    """Something to tell."""
    finding = Finding(check=check, severity=severity, what=what, where=where, remedy=remedy, fixable=mend is not None)
    return Found(finding, mend)


__all__ = ["Finding", "Found", "Severity", "found", "ok"]
