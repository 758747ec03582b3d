"""Applies the present rules of redaction to everything that was stored under earlier ones.

What was found is kept in this process only, to look whether it is anywhere else; what is told are kinds and places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from stillroom.config import RedactionStyle, Settings
from stillroom.offline.folder import byhand
from stillroom.rollouts.redact import Secret, redact, secrets_in
from stillroom.store import Store
from stillroom.undoing import unfinished
from stillroom.undoing.cleaning import LOGS, Cleaning, clean, matching, settle
from stillroom.undoing.handbook import GROUP, RECORD_OPENS, is_handbook, with_keys
from stillroom.undoing.residue import Left, residue
from stillroom.undoing.traces import Finder, Traces
from stillroom.undoing.unfinished import Redacting
from stillroom.wording import many
from stillroom.workspace.history import History
from stillroom.workspace.journal import Checkpoint, nothing
from stillroom.workspace.layout import HANDBOOK, SUMMARY
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import shown

#: A shorter "secret" stands in too many places by chance.
_LEAST_LOOKED_FOR_CHARS = 8
_DATABASE, _HISTORY = "state.sqlite3", "history.git"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Secrets of one kind: whoever issued them should issue others."""

    kind: str
    #: Different ones.
    secrets: int
    #: Files of the memory folder, logs, the database, the history.
    places: tuple[str, ...]


class Redacted(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken out, and what is left."""

    kinds: tuple[Kind, ...]
    left: tuple[Left, ...] = ()
    restless: tuple[str, ...] = ()
    log_in_use: bool = False

    @property
    def is_complete(self) -> bool:
        return not (self.left or self.restless or self.log_in_use)


class _Inventory(msgspec.Struct):
    """Secrets, and where they stand."""

    places: dict[Secret, set[str]] = {}

    def look(self, text: str, place: str) -> None:
        for secret in secrets_in(text):
            self.places.setdefault(secret, set()).add(place)

    def kinds(self) -> tuple[Kind, ...]:
        by_kind: dict[str, list[Secret]] = {}
        for secret in self.places:
            by_kind.setdefault(secret.kind, []).append(secret)
        return tuple(
            Kind(
                kind=kind,
                secrets=len(found),
                places=tuple(sorted({place for secret in found for place in self.places[secret]})),
            )
            for kind, found in sorted(by_kind.items())
        )


def find_secrets(settings: Settings, store: Store) -> tuple[Kind, ...]:
    """Which kinds of secret the present rules find in what is stored, and where. Changes nothing."""
    return _inventory(settings, store).kinds()


def redact_stored(settings: Settings, store: Store, *, now: int, checkpoint: Checkpoint = nothing) -> Redacted:
    """Take them out. For whoever works alone (`undoing.alone`)."""
    settle(settings)
    work = Redacting(at=now)
    unfinished.begin(settings.home, work)
    checkpoint("begun")
    return redact_all(settings, store, work, checkpoint=checkpoint)


def redact_all(settings: Settings, store: Store, work: Redacting, *, checkpoint: Checkpoint = nothing) -> Redacted:
    """Do all of it, whatever of it is done already."""
    inventory, style = _inventory(settings, store), settings.memories.redaction
    store.forgetting.rewrite_texts(lambda text: redact(text, style=style))
    checkpoint("database cleaned")
    contents = _Contents(style)
    for version in _versions(settings):
        contents.data(version)  # the record speaks of their lines
    cleaning = Cleaning(
        content=contents.data,
        line=lambda line: redact(line, style=style),
        is_gone=lambda path: False,
        message=f"Redact {many(len(inventory.places), 'secret')}",
        now=work.at,
    )
    done = clean(settings, cleaning, checkpoint=checkpoint)
    emptied = store.compact()
    checkpoint("database written anew")
    unfinished.end(settings.home)
    checkpoint("ended")
    wanted = frozenset(each.text for each in inventory.places if len(each.text) >= _LEAST_LOOKED_FOR_CHARS)
    finder = Finder(Traces(names=wanted))
    left = residue(settings, lambda data: _count(finder, data)) if wanted else []
    return Redacted(kinds=inventory.kinds(), left=tuple(left), restless=done.folder.restless, log_in_use=not emptied)


class _Contents(msgspec.Struct):
    """Files without their secrets. A generated line that changes is still generated."""

    style: RedactionStyle
    #: Of lines of summaries and handbooks that change: their hashes, and those of what they become.
    summary: dict[str, set[str]] = msgspec.field(default_factory=dict)
    handbook: dict[str, set[str]] = msgspec.field(default_factory=dict)

    def data(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "surrogateescape")
        clean_text = redact(text, style=self.style)
        before, after = text.split("\n"), clean_text.split("\n")
        if before[0] == "v1":
            _learn(self.summary, before, after)
        elif before[0].startswith(RECORD_OPENS):
            clean_text = self._with_keys(before)
        elif is_handbook(before):
            _learn(self.handbook, before, after)
            clean_text = self._with_keys(after)
        return clean_text.encode("utf-8", "surrogateescape")

    def _with_keys(self, lines: Sequence[str]) -> str:
        record = byhand.split_record("\n".join(lines))[1]
        swapped = {
            name: (known.keys() & there, {new for key in known.keys() & there for new in known[key]})
            for name, known, there in (
                ("handbook", self.handbook, record.handbook or frozenset()),
                ("summary", self.summary, record.summary or frozenset()),
            )
        }
        return "\n".join(with_keys(lines, swapped))


def _count(finder: Finder, data: bytes) -> int:
    if not finder.may_be_in(data):
        return 0
    return sum(map(finder.names_in, data.decode("utf-8", "replace").split("\n")))


def _learn(known: dict[str, set[str]], before: Sequence[str], after: Sequence[str]) -> None:
    gone, new = _keys(before) - _keys(after), _keys(after) - _keys(before)
    if len(before) == len(after):
        for old, line in zip(map(byhand.key, before), map(byhand.key, after), strict=True):
            if old in gone and line:
                known.setdefault(old, set()).add(line)
    else:  # a secret of many lines
        for old in gone:
            known.setdefault(old, set()).update(new)


def _keys(lines: Sequence[str]) -> set[str]:
    return {byhand.key(line) for line in lines} - {""}


def _inventory(settings: Settings, store: Store) -> _Inventory:
    inventory = _Inventory()
    store.forgetting.each_text(lambda text: inventory.look(text, _DATABASE))
    if settings.root.is_dir():
        scan(
            settings.root,
            limits=settings.stage_two,
            visit=lambda path, data, _: inventory.look(data.decode("utf-8", "replace"), shown(path)),
        )
    _each_version(settings, lambda data: inventory.look(data.decode("utf-8", "replace"), _HISTORY))
    for path in matching(settings.home, LOGS):
        inventory.look(path.read_text(encoding="utf-8", errors="replace"), path.name)
    return inventory


def _versions(settings: Settings) -> Iterator[bytes]:
    """Every version of the summary and of the handbook, and those that there are."""
    for there in (settings.root / SUMMARY, settings.root / HANDBOOK):
        if there.is_file() and not there.is_symlink():
            yield there.read_bytes()
    found: list[bytes] = []
    _each_version(
        settings, lambda data: found.append(data) if data.startswith(b"v1\n") or GROUP.encode() in data else None
    )
    yield from found


def _each_version(settings: Settings, visit: Callable[[bytes], None]) -> None:
    history = History(settings.history, limits=settings.stage_two)
    if settings.history.exists() and history.repository.loads():
        history.repository.visit(
            lambda name, kind, data: visit(data) if kind == "blob" else None, ids=history.repository.blob_paths()
        )
