"""Says whether what a consolidator made may come into the folder, and whether a person is asked first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from stillroom.config import OFFLINE, Settings, StageTwo
from stillroom.errors import InvalidArtifacts, WorkspaceError
from stillroom.lanes import Quarantined
from stillroom.workspace import held
from stillroom.workspace.evidence import check_evidence
from stillroom.workspace.finding import Finding
from stillroom.workspace.scanning import scan
from stillroom.workspace.staging import Staging
from stillroom.workspace.tree import Entry
from stillroom.workspace.validate import Before, check_artifacts, scrub

#: So many findings are told in a failure's reason; the first ones say enough.
FINDINGS_TOLD = 5
#: What is wrong with a text, not with the form of the folder: a person can judge it, and mend it.
_FOR_A_PERSON = frozenset({"collapse", "elision", "reference", "secret", "evidence", "instruction", "quarantine"})


_REMEDIES = {
    "quarantine": "It is withheld: take the line out, and what says the same in other words, in all files.",
    "reference": "Cite a file that is there, or take the citation out.",
    "version": "Begin the file with the line `v1`.",
    "size": "Say the same in fewer words; what is used least goes first.",
    "missing": "Write it.",
    "elision": "Write the whole text that belongs there.",
    "secret": "Write `[REDACTED_SECRET]` in its place.",
    "shape": "Add what is missing.",
    "text": "Write it as UTF-8 text.",
}
_LINE_CHARS = 200


def refuse(findings: Iterable[Finding]) -> None:
    """Raises `InvalidArtifacts` with the first fatal findings, if there are any."""
    fatal = [str(finding) for finding in findings if finding.fatal]
    if fatal:
        more = f"; and {len(fatal) - FINDINGS_TOLD} more" if len(fatal) > FINDINGS_TOLD else ""
        raise InvalidArtifacts("; ".join(fatal[:FINDINGS_TOLD]) + more)


def _to_mend(findings: Sequence[Finding], folder: Path, limits: StageTwo) -> list[str]:
    """Where something is wrong, what, the line that is meant, and what to do."""
    meant = {finding.path for finding in findings if finding.line}
    texts: dict[str, list[str]] = {}

    def visit(path: str, data: bytes, entry: Entry) -> None:
        if path in meant:
            texts[path] = data.decode("utf-8", "replace").splitlines()

    try:
        scan(folder, limits=limits, visit=visit)
    except WorkspaceError:  # as one of the findings says
        pass
    return [_told(finding, texts.get(finding.path, [])) for finding in findings]


def _told(finding: Finding, lines: Sequence[str]) -> str:
    where = f"`{finding.path}:{finding.line}`" if finding.line else f"`{finding.path}`"
    parts = [f"{where}: {finding.message}."]
    if 0 < finding.line <= len(lines):
        parts.append(f"The line: {lines[finding.line - 1].strip()[:_LINE_CHARS]}")
    return " ".join([*parts, _REMEDIES.get(finding.rule, "")]).rstrip()


class Judge:
    """The validators, for one staging copy; `withheld` may stand nowhere in it. All of it may block."""

    def __init__(self, staging: Staging, settings: Settings, *, engine: str, withheld: Sequence[Quarantined]) -> None:
        self._staging, self._settings, self._engine, self._withheld = staging, settings, engine, withheld

    def check(self, folder: Path) -> list[str]:
        """What an agent is told when it says that it is done with the folder: where, what, and what to do."""
        fatal = [finding for finding in self._findings(folder) if finding.fatal]
        return _to_mend(fatal, folder, self._settings.stage_two) if fatal else []

    def validate(self) -> list[Finding]:
        """Redact what the agent wrote, then judge it; the findings that don't end the run here.

        Raises `InvalidArtifacts` with the first fatal ones: all of them, or those that no person is asked about.
        """
        folder, limits, style = self._staging.path, self._settings.stage_two, self._settings.memories.redaction
        findings = scrub(folder, before=self._before, limits=limits, style=style, memory=self._staging.memory)
        findings += self._findings(folder)
        asked = _FOR_A_PERSON if self._settings.memories.review != "never" else frozenset[str]()
        refuse(finding for finding in findings if finding.rule not in asked)
        return [finding for finding in findings if not finding.fatal or finding.rule in asked]

    def must_wait(self, findings: Sequence[Finding]) -> bool:
        """Whether the settings want a person to see this first."""
        match self._settings.memories.review:
            case "never":
                return False
            case "warnings":
                return any(finding.rule in _FOR_A_PERSON for finding in findings)
            case "always":
                return held.changes_anything(self._staging)

    @cached_property
    def _before(self) -> Before:
        return self._staging.before()

    def _findings(self, folder: Path) -> list[Finding]:
        limits, memory = self._settings.stage_two, self._staging.memory
        findings = check_artifacts(folder, before=self._before, limits=limits, memory=memory)
        if any(finding.rule == "unreadable" for finding in findings):  # too full: nothing more can be told of it
            return findings
        if self._engine == OFFLINE:  # it copies lines of its inputs, and those are without what is withheld
            return findings
        shown_files = {path: content.data for path, content in self._staging.shown_files().items()}
        return findings + check_evidence(
            folder,
            shown_files=shown_files,
            seen=self._staging.seen,
            withheld=self._withheld,
            limits=limits,
            memory=memory,
        )
