"""Removes one statement for good: from the memory folder, from what was extracted, and from every later run.

    plan = plan_removal(settings, store, "MEMORY.md:34", now=…)    # shows what goes; nothing is changed
    done = remove(settings, store, plan)

A tombstone keeps it out: a hash of its words, for lines that say the same. It is one version of the history, and `undo`
takes it back. Killed at any point, the next consolidation does the rest: what is extracted is without it by then.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import PurePath

import msgspec

from stillroom.config import Settings
from stillroom.errors import InvalidRequest, NotFound
from stillroom.offline.folder import byhand
from stillroom.pattern import late
from stillroom.store import Store
from stillroom.store.forgetting import KeptOutput
from stillroom.tombstones import Buried, counted_forms, forms, says, without
from stillroom.undoing.cleaning import matching, settle
from stillroom.undoing.handbook import with_keys
from stillroom.undoing.versions import REMOVAL
from stillroom.workspace import artifacts
from stillroom.workspace.history import History, gather
from stillroom.workspace.layout import EXTENSIONS, HANDBOOK, LINES, SUMMARY, may_publish, prepare_folder
from stillroom.workspace.removing import put_text, rewrite_statements
from stillroom.workspace.staging import Staging, open_staging
from stillroom.workspace.syncing import sync
from stillroom.workspace.tree import shown

#: Of several statements that are meant, so many are named.
NAMED = 12
_NUMBERED = late(r"(?P<path>.+):(?P<line>\d{1,9})")
#: A point of a list that says something itself: no list of files, no key words, no entry of an index.
_POINT = late(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+\S")
_NO_STATEMENT = late(r"rollout_summaries/|thread_id=|^\s*[-*+]\s+(?:desc|learnings|description): |^\s*[-*+]\s+\[\d+\]")
_HEADING = late(r"^(#{1,6})\s+(.*)$")
_LISTS = frozenset({"keywords", "rollout_summary_files", "what's in memory"})
_NOTES = f"{EXTENSIONS}/ad_hoc/notes/"
_PLAIN = re.compile(r"\s+")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A line that goes, or loses these words."""

    path: str
    line: int
    text: str


class RemovalPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What goes."""

    statement: str
    places: tuple[Place, ...]
    #: Sessions of which it was extracted.
    sessions: tuple[str, ...]


class RemovalPlan(msgspec.Struct, frozen=True):
    """What is to be removed, and what a person is shown of it."""

    forms: dict[bytes, int]
    run: str
    at: int  #: seconds
    preview: RemovalPreview


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    written: tuple[str, ...]
    #: Changed by a person meanwhile, and left alone: the next run takes it out there.
    kept_for_user: tuple[str, ...]
    sessions: int
    commit: str | None


class Several(InvalidRequest):
    """A phrase that several statements have."""

    def __init__(self, asked: str, places: list[Place]) -> None:
        listed = "\n".join(f"  {place.path}:{place.line}  {place.text.strip()[:100]}" for place in places[:NAMED])
        more = f"\n  and {len(places) - NAMED} more" if len(places) > NAMED else ""
        super().__init__(
            f"{len(places)} statements have `{shown(asked)}`; nothing was changed:\n{listed}{more}",
            hint=f"name one: `stillroom rm {places[0].path}:{places[0].line}`",
        )


def plan_removal(settings: Settings, store: Store, asked: str, *, now: int) -> RemovalPlan:
    """Find the one statement that is meant, `FILE:LINE` or a phrase of it, and every place. Changes nothing.

    Raises `RecallError` for none, and `Several`.
    """
    files = _files(settings)
    found = _named(files, asked)
    wanted = counted_forms(found.text)
    places = tuple(_places(files, wanted))
    sessions: list[str] = []

    def visit(output: KeptOutput) -> None:
        if any(without(text, wanted)[1] for text in (output.raw_memory, output.rollout_summary)):
            sessions.append(output.thread_id)

    store.forgetting.each_output(visit)
    preview = RemovalPreview(statement=found.text.strip(), places=places, sessions=tuple(sorted(sessions)))
    return RemovalPlan(wanted, f"{now}-{uuid.uuid4().hex[:8]}", now, preview)


def remove(settings: Settings, store: Store, plan: RemovalPlan) -> Removed:
    """Carry the plan out. For whoever works alone (`undoing.alone`)."""
    settle(settings)
    prepare_folder(settings.root)
    history = History(settings.history, limits=settings.stage_two)
    history.ensure(settings.root, now=plan.at)
    # 1. The database: from now on no run writes it again.
    sessions = store.tombstones.bury(plan.forms, run=plan.run)
    # 2. Notes, which sessions are given as they are.
    for path, text in _files(settings).items():
        if path.startswith(_NOTES):
            left, gone = without(text, plan.forms)
            if gone:
                put_text(settings.root, path, left if left.strip() else None)
    # 3. The folder, as any result comes into it.
    memories = settings.memories
    selection = store.consolidation.select(
        limit=memories.max_raw_memories_for_consolidation, max_unused_days=memories.max_unused_days
    )
    with open_staging(settings.root, settings.staging, history, run_id=plan.run, limits=settings.stage_two) as staging:
        before = _texts(staging)
        if selection.on_disk or (staging.path / artifacts.RAW_MEMORIES).exists():
            made = artifacts.render(selection.on_disk)
            sync(staging.path, made, present=staging.copied)
            staging.seal()
            _rename(staging, made)
        else:
            staging.seal()
        rewrite_statements(staging.path, plan.forms)
        _keep_record(staging, before)
        report = staging.publish(f"{REMOVAL}a statement", now=plan.at)
    # 4. What was made of it ahead.
    for made_ahead in matching(settings.home, ("recall.json", "search.sqlite3*")):
        made_ahead.unlink(missing_ok=True)
    return Removed(written=report.written, kept_for_user=report.kept_for_user, sessions=sessions, commit=report.commit)


def _files(settings: Settings) -> dict[str, str]:
    """The texts of the folder, what sessions are given first."""
    if not settings.root.is_dir():
        return {}
    contents, _ = gather(settings.root, {}, limits=settings.stage_two)
    texts = {path: each.data.decode("utf-8", "surrogateescape") for path, each in contents.items()}
    return dict(sorted(texts.items(), key=lambda each: (_rank(each[0]), each[0])))


def _rank(path: str) -> int:
    if path in (HANDBOOK, SUMMARY):
        return 0 if path == HANDBOOK else 1
    return 2 if may_publish(path) or path.startswith(_NOTES) else 3


def _named(files: Mapping[str, str], asked: str) -> Place:
    if (numbered := _NUMBERED.fullmatch(asked.strip())) and (path := numbered["path"].removeprefix("./")) in files:
        lines, number = files[path].split("\n"), int(numbered["line"])
        if not 1 <= number <= len(lines):
            raise InvalidRequest(f"`{shown(path)}` has no line {number}: it has {len(lines):,}")
        text = lines[number - 1]
        if number not in dict(_statements(path, files[path])):
            raise InvalidRequest(
                f"line {number} of `{shown(path)}` is no statement, but a title, a list of files or blank",
                hint="`stillroom forget` takes whole sessions out, `stillroom edit` changes a line",
            )
        return Place(path=path, line=number, text=text)
    phrase = _folded(asked)
    if not phrase:
        raise InvalidRequest("the phrase is empty")
    found: dict[frozenset[bytes], Place] = {}
    for path, text in files.items():
        for number, line in _statements(path, text) if phrase in _folded(text) else ():
            if phrase in _folded(line):
                known = forms(line)
                if not any(known & other for other in found):
                    found[known] = Place(path=path, line=number, text=line)
    if not found:
        raise NotFound(f"no statement of the memory has `{shown(asked)}`", hint="`stillroom search` looks everywhere")
    if len(found) > 1:
        raise Several(asked, list(found.values()))
    return next(iter(found.values()))


def _statements(path: str, text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something themselves, with their numbers."""
    if path.startswith(f"{EXTENSIONS}/") and not path.startswith(_NOTES):
        return
    of_files = 0  #: the level of the heading of a list of files, key words or titles
    for number, line in enumerate(text.split("\n"), 1):
        if heading := _HEADING.match(line):
            level = len(heading[1])
            if not of_files or level <= of_files:
                of_files = level if heading[2].strip().casefold() in _LISTS else 0
        elif not of_files and _is_statement(path, line):
            yield number, line


def _is_statement(path: str, line: str) -> bool:
    is_point = bool(_POINT.match(line)) or path.startswith(_NOTES)
    return is_point and not _NO_STATEMENT.search(line) and bool(forms(line))


def _folded(text: str) -> str:
    return _PLAIN.sub(" ", text).strip().casefold()


def _places(files: Mapping[str, str], wanted: Buried) -> Iterator[Place]:
    for path, text in files.items():
        if not without(text, wanted)[1]:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip() and (says(line, wanted) or without(line, wanted)[1]):
                yield Place(path=path, line=number, text=line)


def _texts(staging: Staging) -> dict[str, str]:
    """The two files of whose generated lines there is a record, and the record."""
    files = {path: staging.path / path for path in (HANDBOOK, SUMMARY, LINES)}
    return {
        path: file.read_text(encoding="utf-8", errors="surrogateescape")
        for path, file in files.items()
        if file.is_file()
    }


def _keep_record(staging: Staging, before: Mapping[str, str]) -> None:
    """What a program took out or renamed is none of a person's edits."""
    after = _texts(staging)
    swapped = {
        name: (_keys(before.get(path, "")) - _keys(text), _keys(text) - _keys(before.get(path, "")))
        for name, path in (("handbook", HANDBOOK), ("summary", SUMMARY))
        if (text := after.get(path)) is not None
    }
    if any(gone or new for gone, new in swapped.values()):
        for path in (LINES, HANDBOOK):  # a handbook of an earlier release ends with the record
            if path in after and (text := "\n".join(with_keys(after[path].split("\n"), swapped))) != after[path]:
                put_text(staging.path, path, text)


def _keys(text: str) -> set[str]:
    return {byhand.key(line) for line in text.split("\n")} - {""}


def _rename(staging: Staging, made: Mapping[str, object]) -> None:
    """A summary whose name had the words has another one now: the handbook names that."""
    new = {PurePath(path).stem: path for path in made if path.startswith(f"{artifacts.SUMMARIES}/")}
    names: dict[str, str] = {}
    for path in staging.copied:
        stem = PurePath(path).stem
        if path in made or not path.startswith(f"{artifacts.SUMMARIES}/"):
            continue
        if (found := next((new[each] for each in new if stem.startswith(f"{each}-")), None)) is not None:
            names[path] = found
    for path in (HANDBOOK, SUMMARY):
        file = staging.path / path
        if names and file.is_file():
            text = file.read_text(encoding="utf-8", errors="surrogateescape")
            for old, name in names.items():
                text = text.replace(old, name)
            put_text(staging.path, path, text)


__all__ = ["Place", "RemovalPlan", "RemovalPreview", "Removed", "Several", "plan_removal", "remove"]
