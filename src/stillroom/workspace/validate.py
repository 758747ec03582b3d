"""Judges what the consolidator wrote before it may enter the memory folder (spec §1.5 step 4, §1.15).

What stood in the folder before is not held against it: a person may write a block as they like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.config import RedactionStyle, StageTwo
from stillroom.errors import WorkspaceError
from stillroom.pattern import late
from stillroom.rollouts.redact import redact_counted
from stillroom.workspace.artifacts import SUMMARIES
from stillroom.workspace.finding import Finding
from stillroom.workspace.handbook import shape
from stillroom.workspace.history import compare, gather
from stillroom.workspace.layout import HANDBOOK, LINES, SUMMARY, may_publish
from stillroom.workspace.scanning import Memory, Scan, scan
from stillroom.workspace.tree import DEFAULTS, Entry, drop, naming, opened, parent, shown, write_new

#: More of them tell nobody more.
_MAX_FINDINGS = 200
_BYTES_PER_TOKEN = 4
#: A placeholder is short; matching stays cheap on any line.
_MAX_ELISION_CHARACTERS = 160

_REFERENCE = late(rf"{SUMMARIES}/([^\s/()\[\]<>*`'\",;|{{}}]+?\.md)\b")
_SKILL = late(r"(?<![\w./~-])skills/[\w./-]+?\.md\b")
_DOTS = r"(?:\.{3,}|…)"
_SUBJECT = (
    r"(?:rest|remainder|remaining|other|others|existing|previous|prior|above|below|everything|all|same|content|file)"
)
_KEPT = (
    r"(?:unchanged|omitted|elided|as before|same as before|not shown|truncated|kept as is|stays? the same|for brevity)"
)
_ELISION = late(
    rf"[\[(<{{]+!?-*\s*{_DOTS}?[^\n]*\b{_SUBJECT}\b[^\n]*\b{_KEPT}\b[^\n]*[\])>}}]+|"
    rf"{_DOTS}[^\n]*\b{_KEPT}\b[^\n]*|"
    rf"(?:the )?{_SUBJECT}\b[^\n]*\b{_KEPT}\s*{_DOTS}|"
    rf"[\[(（【]?{_DOTS}?\s*(?:其余|其他|以下|以上|剩余)[^\n]*(?:不变|省略|略|同前|相同)[^\n]*",
    re.IGNORECASE,
)


class Before(msgspec.Struct, frozen=True):
    """What the agent was shown."""

    files: Mapping[str, Entry] = {}
    handbook: bytes = b""
    #: Paths that went away since the baseline: what rests on them must go too.
    deleted: frozenset[str] = frozenset()


def check_artifacts(
    folder: Path, *, before: Before | None = None, limits: StageTwo = DEFAULTS, memory: Memory | None = None
) -> list[Finding]:
    """Everything that is wrong with a folder, fatal findings first. Changes nothing.

    Without `before`, every file is judged as if the agent had just written it, and none as an input.
    """
    contents: dict[str, bytes] = {}

    def visit(path: str, data: bytes, entry: Entry) -> None:
        if _is_text(path):
            contents[path] = data

    try:
        found = scan(folder, limits=limits, visit=visit, memory=memory, wanted=lambda path, _: _is_text(path))
    except WorkspaceError as error:
        return [Finding("unreadable", ".", 0, str(error))]
    known = before or Before()
    findings = [*_kinds(found, known), *_handbook(found, contents, known, limits), *_summary(found, contents, limits)]
    for path, data in contents.items():
        if known.files.get(path) != found.files[path]:
            findings += _text(path, data, known)
        findings += _references(path, data, found, known)
    if before is not None:
        findings += _inputs(found, before)
    findings.sort(key=lambda finding: not finding.fatal)
    return findings[:_MAX_FINDINGS]


def scrub(
    folder: Path,
    *,
    before: Before,
    limits: StageTwo = DEFAULTS,
    style: RedactionStyle = "typed",
    memory: Memory | None = None,
) -> list[Finding]:
    """Put placeholders for secrets into what the agent wrote, and tell where. For the staging folder only."""
    contents, _ = gather(folder, before.files, limits=limits, memory=memory)
    findings: list[Finding] = []
    with opened(folder) as root:
        for path, content in contents.items():
            if not _is_text(path):
                continue
            try:
                text, secrets = redact_counted(content.data.decode("utf-8"), style=style)
            except UnicodeDecodeError:
                continue
            if not secrets:
                continue
            findings += [
                Finding("secret", shown(path), 0, f"{count} × {kind} replaced", fatal=False)
                for kind, count in sorted(secrets.items())
            ]
            with naming(path, "written"), parent(root, path, create=False) as (descriptor, name):
                drop(descriptor, name)
                write_new(descriptor, name, text.encode("utf-8"), executable=content.executable, durable=False)
    return findings


def _is_text(path: str) -> bool:
    """Whether what a consolidator wrote there is for people and models to read."""
    return may_publish(path) and path != LINES


def _kinds(found: Scan, before: Before) -> Iterator[Finding]:
    for path in found.links:
        yield Finding("link", shown(path), 0, "links are not allowed in the memory folder")
    for path in found.odd:
        yield Finding("kind", shown(path), 0, "neither a file nor a folder, or too deep")
    for path in found.too_large:
        yield Finding("size", shown(path), 0, "the file is too large", fatal=path not in before.files)
    for path in (*found.unseen, *found.files):
        if path not in before.files and any(step.lower().startswith(".git") for step in path.split("/")):
            yield Finding("git", shown(path), 0, "names that mean something to git are not allowed")


def _handbook(found: Scan, contents: Mapping[str, bytes], before: Before, limits: StageTwo) -> Iterator[Finding]:
    data = contents.get(HANDBOOK)
    if data is None:
        yield Finding("missing", HANDBOOK, 0, "there must be a regular file of this name")
        return
    if len(data) > limits.max_handbook_bytes:
        yield Finding("size", HANDBOOK, 0, f"{len(data)} bytes, at most {limits.max_handbook_bytes} are allowed")
    lines = data.decode("utf-8", "replace").splitlines()
    if not any(line.startswith("# ") for line in lines):
        yield Finding("title", HANDBOOK, 0, "there is no heading: at least a title line is needed")
    elif any(path.startswith(f"{SUMMARIES}/") for path in found.files) and not any(
        line.startswith("# Task Group:") for line in lines
    ):
        yield Finding("empty", HANDBOOK, 0, "there are inputs, but no `# Task Group:`", fatal=False)
    old = before.handbook.decode("utf-8", "replace")
    for problem in shape(lines):
        yield Finding("shape", HANDBOOK, problem.line, problem.message, fatal=problem.block not in old)
    least = len(before.handbook) * (100 - limits.max_handbook_shrink_percent) // 100
    if len(data) < least and not before.deleted:
        message = f"{len(before.handbook)} bytes became {len(data)} though no input went away"
        yield Finding("collapse", HANDBOOK, 0, message, fatal=False)


def _summary(found: Scan, contents: Mapping[str, bytes], limits: StageTwo) -> Iterator[Finding]:
    data = contents.get(SUMMARY)
    if data is None:
        yield Finding("missing", SUMMARY, 0, "there must be a regular file of this name")
        return
    first = data.partition(b"\n")[0]
    if first != b"v1":
        reason = f"it is `{shown(first[:40].decode('utf-8', 'replace'))}`"
        if first.startswith(b"\xef\xbb\xbf"):
            reason = "a byte order mark stands before it"
        elif first == b"v1\r":
            reason = "the file has Windows line ends"
        elif not first:
            reason = "it is empty"
        yield Finding("version", SUMMARY, 1, f"the first line must be exactly `v1`: {reason}")
    most = limits.max_summary_tokens * _BYTES_PER_TOKEN
    if len(data) > most:
        yield Finding("size", SUMMARY, 0, f"{len(data)} bytes, at most {most} are allowed")


def _text(path: str, data: bytes, before: Before) -> Iterator[Finding]:
    """A file that the agent wrote: text, whole, without secrets."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield Finding("text", shown(path), data.count(b"\n", 0, error.start) + 1, "not UTF-8")
        return
    if "\0" in text:
        yield Finding("text", shown(path), text[: text.index("\0")].count("\n") + 1, "a zero byte: this is no text")
        return
    old = set(before.handbook.decode("utf-8", "replace").splitlines()) if path == HANDBOOK else set()
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip().lstrip("-*#>/ ")
        if len(bare) <= _MAX_ELISION_CHARACTERS and line not in old and _ELISION.fullmatch(bare):
            yield Finding("elision", shown(path), number, f"a placeholder stands for text: `{shown(bare)}`")
    _, secrets = redact_counted(text)
    for kind, count in sorted(secrets.items()):
        yield Finding("secret", shown(path), 0, f"{count} × {kind}")


def _references(path: str, data: bytes, found: Scan, before: Before) -> Iterator[Finding]:
    old = before.handbook.splitlines() if path == HANDBOOK else []
    known = set(old)
    for number, raw in enumerate(data.splitlines(), 1):
        if b"rollout_summaries/" not in raw and b"skills/" not in raw:
            continue
        line = raw.decode("utf-8", "replace")
        for name in dict.fromkeys(_REFERENCE.findall(line)):
            target = f"{SUMMARIES}/{name}"
            if target not in found.files:
                # A dead reference that was there before is a person's, unless its file went away just now.
                fatal = raw not in known or target in before.deleted
                yield Finding("reference", shown(path), number, f"`{shown(target)}` does not exist", fatal=fatal)
        for target in dict.fromkeys(_SKILL.findall(line)):
            if target not in found.files:
                yield Finding("reference", shown(path), number, f"`{shown(target)}` does not exist", fatal=False)


def _inputs(found: Scan, before: Before) -> Iterator[Finding]:
    """What is not the agent's to write never leaves the staging folder; it is said all the same."""
    for status, path in compare(before.files, found.files):
        if not may_publish(path):
            message = {"A": "an extra file", "M": "an input was changed", "D": "an input was deleted"}[status]
            yield Finding("ignored", shown(path), 0, f"{message}: it is left out", fatal=False)
