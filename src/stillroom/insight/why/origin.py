"""Who wrote a line: the version of the memory folder that first has it, and what is known of how that was made."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from stillroom.config import OFFLINE, Settings
from stillroom.errors import HistoryError
from stillroom.insight.why.claims import claim_of
from stillroom.insight.why.places import Spot
from stillroom.workspace.artifacts import is_written_by_code
from stillroom.workspace.git import BRANCH, Repository
from stillroom.workspace.history import TAKEN
from stillroom.workspace.trailers import EDITS, ENGINE, PROMPT, RELEASE, REVIEWED, RUN, UNDOES, trailers_of

if TYPE_CHECKING:  # git is asked before the database is opened
    from stillroom.store import Store

Writer = Literal["consolidation", "person", "code", "undo", "unknown"]
"""`code`: copied from what was extracted, as every consolidation does; `undo`: a version brought it back."""

#: So many versions that added or took out the words are looked into for the one that brought the line.
_VERSIONS_LOOKED_INTO = 12
#: A shorter text stands in every version: the whole line is looked for instead.
_CORE_CHARS = 10
_CONSOLIDATES = "Consolidate "
_FORMAT = "--format=%x01%H %ct %P%n%B"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Who wrote a line, and when."""

    by: Writer
    #: What is to be known beside it, as a sentence; "" if nothing is.
    note: str = ""
    commit: str | None = None
    at: int | None = None  #: seconds
    subject: str = ""
    run: str | None = None
    #: `offline`, or the model; None: that version does not say.
    engine: str | None = None
    #: Of the prompts that the model was sent.
    prompt: str | None = None
    release: str | None = None
    #: Of the whole consolidation. None: it is not known, or no model was called.
    calls: int | None = None
    cost_usd: float | None = None
    unpriced_calls: int = 0


class _Version(NamedTuple):
    commit: str
    at: int
    parent: str | None
    message: str


def origin_of(spot: Spot, settings: Settings) -> Origin:
    """Who wrote the line, as far as the history knows. Says so where it can't tell; raises nothing."""
    path = spot.place.path
    if is_written_by_code(path):
        return Origin(by="code", note="what was extracted, as it is")
    if not settings.history.is_dir():
        return Origin(by="unknown", note="there is no history of the folder")
    repository = Repository(settings.history)
    try:
        return _blamed(spot, repository)
    except HistoryError as error:
        return Origin(by="unknown", note=f"the history can't be read: {error}")


def with_cost(origin: Origin, store: Store) -> Origin:
    """The same with what its consolidation cost, where a model was called. Raises `StoreError`."""
    began = (origin.run or "").partition("-")[0]
    if origin.by != "consolidation" or origin.engine == OFFLINE or origin.at is None or not began.isdigit():
        return origin
    # One consolidation runs at a time: every call of its time is its own.
    spent = [
        each for each in store.ledger.spending(since=int(began), until=origin.at + 1) if each.phase == "consolidate"
    ]
    if not spent:
        return origin
    return msgspec.structs.replace(
        origin,
        engine=origin.engine or spent[0].model,
        calls=sum(each.calls for each in spent),
        cost_usd=sum(each.cost_usd for each in spent),
        unpriced_calls=sum(each.unpriced_calls for each in spent),
    )


def _blamed(spot: Spot, repository: Repository) -> Origin:
    path, line = spot.place.path, spot.place.text
    core = claim_of(line).core
    needle = core if len(core) >= _CORE_CHARS and core in line else line
    found = _changed(repository, path, needle)
    if not found:  # no version ever had it
        return Origin(by="person", note="it was written since the last consolidation")
    if len(found) == 1 and UNDOES not in found[0].message:  # there is nothing to tell it from
        return _made(found[0], note="")
    texts = _texts(repository, [f"{BRANCH}:{path}", *(f"{each.parent}:{path}" for each in found if each.parent)])
    if needle.encode("utf-8", "surrogateescape") not in texts[f"{BRANCH}:{path}"]:
        return Origin(by="person", note="it was written since the last consolidation")
    brought = False
    for version in found:
        before = texts[f"{version.parent}:{path}"] if version.parent else b""
        if needle.encode("utf-8", "surrogateescape") in before:
            continue  # it took one of several out, or added one more
        if UNDOES in version.message:
            brought = True
            continue
        return _made(version, note="an undo brought it back" if brought else "")
    note = "an undo brought it back" if brought else "no version that the history still has brought it"
    return Origin(by="undo" if brought else "unknown", note=note)


def _changed(repository: Repository, path: str, needle: str) -> list[_Version]:
    """The versions that have the words more or less often than the one before, newest first."""
    told = repository.run("log", f"--max-count={_VERSIONS_LOOKED_INTO}", f"-S{needle}", _FORMAT, BRANCH, "--", path)
    found = []
    for part in told.decode("utf-8", "replace").split("\x01")[1:]:
        head, _, message = part.partition("\n")
        commit, at, *parents = head.split()
        found.append(_Version(commit, int(at), parents[0] if parents else None, message))
    return found


def _texts(repository: Repository, names: list[str]) -> dict[str, bytes]:
    """Contents of `version:path`; nothing where a version has no such file."""
    answer = repository.run("cat-file", "--batch", stdin=b"".join(os.fsencode(name) + b"\n" for name in names))
    texts: dict[str, bytes] = {}
    at = 0
    for name in names:
        end = answer.index(b"\n", at)
        about = answer[at:end].split(b" ")
        at = end + 1
        texts[name] = b""
        if len(about) == 3 and about[2].isdigit():  # else `… missing`
            size = int(about[2])
            texts[name] = answer[at : at + size]
            at += size + 1
    return texts


def _made(version: _Version, *, note: str) -> Origin:
    subject = version.message.strip().partition("\n")[0]
    trailers = trailers_of(version.message)
    run = trailers.get(RUN)
    if subject == EDITS:
        return Origin(by="person", note=note, commit=version.commit, at=version.at, subject=subject)
    if subject == TAKEN:
        told = note or "it was in the folder when this history began"
        return Origin(by="unknown", note=told, commit=version.commit, at=version.at, subject=subject)
    if run is None or not subject.startswith(_CONSOLIDATES):
        told = note or "no consolidation made that version"
        return Origin(by="person", note=told, commit=version.commit, at=version.at, subject=subject)
    if REVIEWED in version.message:
        note = "; ".join(filter(None, (note, "a person reviewed it, and may have edited it")))
    engine = trailers.get(ENGINE)
    return Origin(
        by="consolidation",
        note=note,
        commit=version.commit,
        at=version.at,
        subject=subject,
        run=run,
        engine=engine,
        prompt=trailers.get(PROMPT),
        release=trailers.get(RELEASE),
    )
