"""Which sessions are to be forgotten, and by what they are known wherever something repeats them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.errors import InvalidRequest
from stillroom.recall.projects.declared import is_of
from stillroom.recall.projects.remotes import repository_name
from stillroom.recall.projects.repository import Repository, identify
from stillroom.store import Store
from stillroom.store.forgetting import KeptOutput
from stillroom.thread import Thread, meant_by
from stillroom.undoing.projects import declared_projects, place_of
from stillroom.undoing.purging import SUMMARY_HEAD
from stillroom.undoing.traces import Traces, phrases_of, shared_phrases
from stillroom.workspace.artifacts import (
    RAW_MEMORIES,
    SUMMARIES,
    hash_in_name,
    raw_sections,
    summary_stem,
    thread_hash,
)
from stillroom.workspace.history import History
from stillroom.workspace.layout import EXTENSIONS
from stillroom.workspace.scanning import scan

#: A shorter text is in everything.
_LEAST_WORDS_CHARS = 4


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants to have forgotten: what any of these names."""

    threads: tuple[str, ...] = ()
    #: A folder of a project, or the name of its repository.
    repository: str | None = None
    #: A text that sessions say, in upper or lower case.
    match: str | None = None
    #: Sessions that were active since then, in milliseconds.
    since_ms: int | None = None


def choose(settings: Settings, store: Store, choice: Choice) -> list[Thread]:
    """The threads that are meant, with their sub-agents; newest first. Raises `InvalidRequest`, and `WorkspaceError`
    where it can't be known what a person said of projects."""
    if choice.match is not None and len(choice.match.strip()) < _LEAST_WORDS_CHARS:
        raise InvalidRequest(f"`{choice.match}` is too short: it would be found everywhere")
    known = store.threads.newest(limit=sys.maxsize)
    chosen = set(_named(choice.threads, known))
    if choice.repository is not None:
        chosen |= _of_repository(settings, store, choice.repository, known)
    if choice.since_ms is not None:
        chosen |= {thread.thread_id for thread in known if thread.updated_at_ms >= choice.since_ms}
    if choice.match is not None:
        chosen |= _saying(store, choice.match.strip(), known)
    while below := {t.thread_id for t in known if t.parent_thread_id in chosen} - chosen:
        chosen |= below
    return [thread for thread in known if thread.thread_id in chosen]


def traces_of(
    settings: Settings, store: Store, history: History | None, threads: list[Thread], choice: Choice
) -> Traces:
    """By what the threads are known in the folder, in every version of it, and in the database.

    What they alone said; what another session or a person's note says too is nobody's trace.
    """
    ids = frozenset(thread.thread_id for thread in threads)
    names = {name for thread in threads for name in (thread.thread_id, thread.rollout_path) if name}
    texts: list[str] = [text for thread in threads for text in (thread.title, thread.preview)]
    others: list[str] = []

    def visit(output: KeptOutput) -> None:
        said = f"{output.raw_memory}\n{output.rollout_summary}"
        if output.thread_id in ids:
            texts.append(said)
            names.add(summary_stem(output.thread_id, output.source_updated_at, None))
        else:
            others.append(said)

    store.forgetting.each_output(visit)
    here = _folder_texts(settings)
    others += (text for path, text in here if path.startswith(f"{EXTENSIONS}/"))
    for path, text in [*here, *_old_texts(history, ids)]:
        if (head := SUMMARY_HEAD.match(text)) and head[1] in ids and path.startswith(f"{SUMMARIES}/"):
            names.add(Path(path).stem)
            texts.append(text.partition("\n\n")[2])
        elif any(thread_id in text for thread_id in ids):
            texts += (section for thread_id, section in raw_sections(text) if thread_id in ids)
    if choice.repository is not None:
        names |= _own_folders(store, ids)
    phrases = {phrase for text in texts for line in text.splitlines() for phrase in phrases_of(line)}
    return Traces(
        threads=ids,
        names=frozenset(names),
        words=frozenset({choice.match.strip()} if choice.match else ()),
        phrases=frozenset(phrases - shared_phrases(phrases, others)),
    )


def _named(names: Collection[str], known: Iterable[Thread]) -> Iterator[str]:
    listed = [thread.thread_id for thread in known]
    for name in names:
        found = meant_by(name, listed)
        if not found:
            raise InvalidRequest(
                f"no session `{name}` is known", hint="`stillroom forget --match TEXT` finds sessions by what they say"
            )
        if len(found) > 1:
            raise InvalidRequest(f"`{name}` begins the ids of {len(found):,} sessions", hint="write more of it")
        yield found[0]


def _of_repository(settings: Settings, store: Store, name: str, known: Iterable[Thread]) -> set[str]:
    """Sessions of a project, by a folder of it or by the name of its repository."""
    declared = declared_projects(settings)
    places = [place_of(folder, declared) for folder in store.folders.newest(limit=sys.maxsize)]
    path = Path(name).expanduser()
    if "/" in name or name in (".", "..") or path.is_dir():
        folder = str(path.absolute())
        meant = declared.project_of(folder, identify(folder))
        cwds = {cwd for cwd, place in places if is_of(place, [meant]) or cwd.rstrip("/") == folder}
        cwds |= {cwd for cwd, place in places if declared.same(meant, [place])}
    else:
        named = [project for _, project in places if name in _names(project)]
        cwds = {cwd for cwd, project in places if declared.same(project, named)}
    if not cwds:
        raise InvalidRequest(f"no session of `{name}` is known", hint="name a folder, or a repository")
    return {thread.thread_id for thread in known if thread.cwd in cwds}


def _names(project: Repository) -> set[str]:
    return {Path(project.folder).name, project.remote or "", repository_name(project.remote)} - {""}


def _saying(store: Store, text: str, known: Iterable[Thread]) -> set[str]:
    wanted = text.casefold()
    found = {t.thread_id for t in known if wanted in f"{t.title}\n{t.preview}".casefold()}

    def visit(output: KeptOutput) -> None:
        if wanted in f"{output.raw_memory}\n{output.rollout_summary}\n{output.rollout_slug}".casefold():
            found.add(output.thread_id)

    store.forgetting.each_output(visit)
    return found


def _own_folders(store: Store, ids: Collection[str]) -> set[str]:
    """Folders in which only these threads ran, nor any other below them."""
    threads = store.threads.newest(limit=sys.maxsize)
    theirs = {thread.cwd for thread in threads if thread.thread_id in ids and thread.cwd.count("/") > 1}
    rest = [thread.cwd for thread in threads if thread.thread_id not in ids]
    return {cwd for cwd in theirs if not any(other.startswith(cwd) for other in rest)}


def _folder_texts(settings: Settings) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if settings.root.is_dir():
        scan(
            settings.root,
            limits=settings.stage_two,
            visit=lambda path, data, _: found.append((path, data.decode("utf-8", "surrogateescape"))),
        )
    return found


def _old_texts(history: History | None, ids: Collection[str]) -> list[tuple[str, str]]:
    """What code copied into any version of the folder, where it names one of these threads. Of thousands of summaries
    those are read whose names may be of them.

    `raw_memories.md` is large and in every version; it is read only if a thread's summary says that there is more than
    one version of what was extracted of it.
    """
    if history is None or history.head() is None:
        return []
    paths = history.repository.blob_paths()
    hashes = {None, *map(thread_hash, ids)}
    summaries = {
        blob for blob, path in paths.items() if path.startswith(f"{SUMMARIES}/") and hash_in_name(path) in hashes
    }
    found = _naming(history, paths, summaries, ids)
    if len(found) > len({head[1] for _, text in found if (head := SUMMARY_HEAD.match(text))}):
        found += _naming(history, paths, {blob for blob, path in paths.items() if path == RAW_MEMORIES}, ids)
    return found


def _naming(
    history: History, paths: Mapping[str, str], blobs: Collection[str], ids: Collection[str]
) -> list[tuple[str, str]]:
    marks = [thread_id.encode("utf-8", "surrogateescape") for thread_id in ids]
    found: list[tuple[str, str]] = []

    def visit(name: str, kind: str, data: bytes) -> None:
        if kind == "blob" and any(mark in data for mark in marks):
            found.append((paths[name], data.decode("utf-8", "surrogateescape")))

    history.repository.visit(visit, ids=blobs)
    return found
