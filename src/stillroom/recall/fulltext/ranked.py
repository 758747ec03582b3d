"""Finds what the memory says about some words, best first: the raw memories and summaries of all sessions, the
handbook, skills and notes."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Self

import msgspec

from stillroom.clock import Clock
from stillroom.config import LOOKUP, Lookup, Settings
from stillroom.errors import InvalidRequest, RecallError
from stillroom.folders import status
from stillroom.recall.browse.paging import page_length, start_of
from stillroom.recall.browse.paths import opened_path, readable
from stillroom.recall.fulltext.excerpt import excerpt
from stillroom.recall.fulltext.index import Row, SearchIndex, find, folders, refresh
from stillroom.recall.fulltext.passages import file_stamps, origins, thread_of
from stillroom.recall.fulltext.words import match_expression, query_words
from stillroom.recall.injection.folders import known_folders
from stillroom.recall.projects.declared import load_declared
from stillroom.recall.projects.repository import identify
from stillroom.store import Store
from stillroom.workspace.artifacts import SUMMARIES


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of memory that was found."""

    title: str
    #: The line that says most of what was asked for.
    excerpt: str
    #: The file in the memory folder that has it, if one does.
    path: str | None
    #: Where in that file.
    line: int | None
    #: The session that it was extracted from.
    thread_id: str | None
    cwd: str | None
    updated_at: int | None  #: seconds


class RankedResult(msgspec.Struct, frozen=True, kw_only=True):
    """One page of what was found."""

    words: tuple[str, ...]
    #: False: nothing has all the words, these have some.
    every_word: bool
    hits: tuple[Hit, ...]
    next_cursor: str | None
    truncated: bool


class RankedSearch:
    """A search that is asked more than once: it keeps the index open, and looks only at what has changed."""

    def __init__(self, settings: Settings, *, clock: Clock, limits: Lookup = LOOKUP) -> None:
        self._settings = settings
        self._clock = clock
        self._limits = limits
        self._index = SearchIndex(settings.search_index)
        self._store: Store | None = None
        self._held = ExitStack()
        self._seen: object = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the index and the store."""
        self._index.close()
        self._store = None
        self._held.close()

    def search(
        self,
        text: str,
        *,
        cwd: Path | None = None,
        cursor: str | None = None,
        max_results: int | None = None,
    ) -> RankedResult:
        """The pieces that have all the words of `text`, or if none has, some of them. A word is also found as the
        beginning of a longer one.

        With `cwd`, what other projects than this folder's said is left out. Raises `InvalidRequest` for a text without
        words, `StoreError` when the state database can't be read.
        """
        words = query_words(text)[: self._limits.max_queries]
        if not words:
            raise InvalidRequest("there is no word to search for")
        start = start_of(cursor)
        length = page_length(max_results, self._limits.max_search_results)

        if not self._settings.database.exists() and not self._settings.root.exists():
            return RankedResult(words=tuple(words), every_word=True, hits=(), next_cursor=None, truncated=False)

        def work(db: Connection) -> tuple[bool, list[Row]]:
            self._refresh(db)
            among = None if cwd is None else self._of_project(folders(db), cwd)
            for every in (True, False):
                expression = match_expression(words, every=every)
                rows = find(db, expression, among=among, limit=length + 1, offset=start)
                # A page beyond the last result is empty; it doesn't begin the other list.
                if rows or (start and find(db, expression, among=among, limit=1, offset=0)):
                    break
            return every, rows

        every, rows = self._index.use(work)
        summaries = _present(self._settings.root, (row.passage.path for row in rows if thread_of(row.origin)))
        more = len(rows) > length
        return RankedResult(
            words=tuple(words),
            every_word=every,
            hits=tuple(_hit(row, words, summaries) for row in rows[:length]),
            next_cursor=str(start + length) if more else None,
            truncated=more,
        )

    def _refresh(self, db: Connection) -> None:
        """Bring the index up to date, unless nothing has changed since this object last did."""
        if self._store is None and self._settings.database.exists():
            limits = self._settings.database_limits
            self._store = self._held.enter_context(
                Store.look(self._settings.database, clock=self._clock, limits=limits)
            )
        state = self._store and self._store.change_mark()
        seen = (self._index.openings, state, file_stamps(self._settings.root))
        if seen != self._seen:
            refresh(db, origins(self._store, self._settings.root, limits=self._limits))
            self._seen = seen

    def _of_project(self, folders: Sequence[str], cwd: Path) -> list[str]:
        """The folders that are checkouts of the project of `cwd`, or lie below it."""
        declared = load_declared(str(self._settings.home))
        here, session = str(cwd.resolve()), declared.project_of(str(cwd), identify(cwd))
        known = {}
        if self._store is not None:
            known = {folder.cwd: folder.repository for folder in known_folders(self._settings, self._store)}
        projects = [known.get(folder) or declared.project_of(folder, identify(folder)) for folder in folders]
        same = declared.same(session, projects)
        below = {
            number
            for number, folder in enumerate(folders)
            if f"{folder}/".startswith(f"{here}/") and projects[number].part in ("", session.part)
        }
        return [folder for number, folder in enumerate(folders) if number in same | below]


def _hit(row: Row, words: Sequence[str], summaries: Collection[str]) -> Hit:
    passage, thread_id = row.passage, thread_of(row.origin)
    found = excerpt(passage.body, words)
    # The line is that of the text which was extracted: the file has other lines ahead of it.
    line = passage.line + found.line if thread_id is None else None
    return Hit(
        title=passage.title,
        excerpt=found.text,
        path=readable(passage.path) if thread_id is None or passage.path in summaries else None,
        line=line,
        thread_id=thread_id,
        cwd=passage.cwd,
        updated_at=passage.updated_at,
    )


def _present(root: Path, paths: Iterable[str]) -> set[str]:
    """Those of the summaries that are files in the folder: a session that is not selected has none."""
    found: set[str] = set()
    try:
        with opened_path(root, SUMMARIES) as folder:
            for path in paths:
                with suppress(OSError):
                    name = path.removeprefix(f"{SUMMARIES}/")
                    if stat.S_ISREG(status(folder.descriptor, name).st_mode):
                        found.add(path)
    except RecallError:
        pass
    return found
