"""Who wrote a line: the version of the memory folder that first has it, and what is known of how that was made."""

from __future__ import annotations

from collections.abc import Sequence
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

#: In so many versions git looks for a line at once. Most are younger; and to start it takes as long as to read some.
_VERSIONS_AT_ONCE = 100
#: A shorter text stands in every version: the whole line is looked for instead.
_CORE_CHARS = 10
_CONSOLIDATES = "Consolidate "
_FORMAT = "--format=%x01%H %ct%n%B"


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


_BROUGHT_BACK = "an undo brought it back"
_NOT_YET = Origin(by="person", note="it was written since the last consolidation")


class _Version(NamedTuple):
    commit: str
    at: int
    message: str


def origins_of(spots: Sequence[Spot], settings: Settings) -> list[Origin]:
    """Who wrote each line, as far as the history knows. Says so where it can't tell; raises nothing."""
    origins: dict[int, Origin] = {}
    files: dict[str, list[int]] = {}
    for number, spot in enumerate(spots):
        files.setdefault(spot.place.path, []).append(number)
    for path, numbers in files.items():
        told = _origins(path, [spots[number].place.text for number in numbers], settings)
        origins.update(zip(numbers, told, strict=True))
    return [origins[number] for number in range(len(spots))]


def _origins(path: str, lines: Sequence[str], settings: Settings) -> Sequence[Origin]:
    if is_written_by_code(path):
        return [Origin(by="code", note="what was extracted, as it is")] * len(lines)
    if not settings.history.is_dir():
        return [Origin(by="unknown", note="there is no history of the folder")] * len(lines)
    try:
        return _found(Repository(settings.history), path, lines)
    except HistoryError as error:
        return [Origin(by="unknown", note=f"the history can't be read: {error}")] * len(lines)


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


class _Trail:
    """Follows one text back through the versions of its file, newest first, to the one that brought it."""

    def __init__(self, line: str) -> None:
        core = claim_of(line).core
        #: What is looked for.
        self.text = core if len(core) >= _CORE_CHARS and core in line else line
        self.origin: Origin | None = None
        self._holder: _Version | None = None  #: the version met last, if it has the text
        self._is_brought_back = False

    def meet(self, version: _Version, *, has: bool) -> None:
        """The next older version that changed the file."""
        if has:
            self._holder = version
        elif self._holder is not None:
            self._leave(self._holder)
        elif not self._is_brought_back:  # the newest one doesn't have it
            self.origin = _NOT_YET

    def end(self) -> Origin:
        """Who wrote it, once all versions are met."""
        if self.origin is None and self._holder is not None:
            self._leave(self._holder)
        return self.origin or (Origin(by="undo", note=_BROUGHT_BACK) if self._is_brought_back else _NOT_YET)

    def _leave(self, holder: _Version) -> None:
        """The version before this one doesn't have it."""
        self._holder = None
        if UNDOES in holder.message:
            self._is_brought_back = True
        else:
            self.origin = _made(holder, note=_BROUGHT_BACK if self._is_brought_back else "")


def _found(repository: Repository, path: str, lines: Sequence[str]) -> list[Origin]:
    trails = [_Trail(line) for line in lines]
    versions = _versions(repository, path)
    for start in range(0, len(versions), _VERSIONS_AT_ONCE):
        some = versions[start : start + _VERSIONS_AT_ONCE]
        open_trails = [trail for trail in trails if trail.origin is None]
        if not open_trails:
            break
        held: dict[str, list[str]] = {version.commit: [] for version in some}
        for commit, line in repository.lines_with([trail.text for trail in open_trails], held, path):
            held[commit].append(line)
        for version in some:
            for trail in open_trails:
                if trail.origin is None:
                    trail.meet(version, has=any(trail.text in line for line in held[version.commit]))
    return [trail.end() for trail in trails]


def _versions(repository: Repository, path: str) -> list[_Version]:
    """Those that changed a file, newest first."""
    told = repository.run("log", _FORMAT, BRANCH, "--", f":(literal){path}")
    found = []
    for part in told.decode("utf-8", "replace").split("\x01")[1:]:
        head, _, message = part.partition("\n")
        commit, at = head.split()
        found.append(_Version(commit, int(at), message))
    return found


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
