"""Public sets that can be fetched: from where, in which version, under which licence.

Files are taken at one commit and must have the checksum that is written here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from stillroom.errors import StillroomError

_HOST = "https://raw.githubusercontent.com"
_TIMEOUT_SECONDS = 30
_MAX_BYTES = 4 * 1024 * 1024


class DownloadError(StillroomError):
    """A public set could not be fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A set as its authors publish it."""

    name: str
    about: str
    repository: str
    commit: str
    licence: str
    kilobytes: int
    #: Name here: path there, SHA-256.
    files: Mapping[str, tuple[str, str]]


PUBLISHED = {
    "devmembench": Published(
        name="devmembench",
        about="DevMemBench: 25 coding chats, 200 questions",
        repository="prosperitypirate/opencode-memory",
        commit="9019b20e3968c36a5d005db27cbba7123a94a47e",
        licence="MIT",
        kilobytes=110,
        files={
            "sessions.json": (
                "benchmark/src/dataset/sessions.json",
                "3228bdcb9019f1e1c3adf1089f0e940ef529a43033d4ceca9dfb410c4ce14bff",
            ),
            "questions.json": (
                "benchmark/src/dataset/questions.json",
                "b0fb1c9ac7a3facbe66494a99058e3b77348b22e1e15aca491476ffb3b2ef8c1",
            ),
        },
    ),
    "remem": Published(
        name="remem",
        about="remem's extraction corpus: 27 short transcripts",
        repository="majiayu000/remem",
        commit="886e6eda08daca8163752b25d78803ab8f7218fd",
        licence="MIT",
        kilobytes=30,
        files={
            "corpus.json": (
                "eval/extraction/corpus.json",
                "5968eb9884e333ff9f88cd840233865d49cf7ea7efd3a8348cb038e3158517f1",
            )
        },
    ),
}


def folder_of(home: Path, name: str) -> Path:
    """Where a fetched set is kept."""
    return home / "eval" / name


def is_there(home: Path, published: Published) -> bool:
    """Whether all files of a set were fetched."""
    return all((folder_of(home, published.name) / name).is_file() for name in published.files)


def download(published: Published, home: Path, *, host: str = _HOST) -> Path:
    """Fetch a set and return its folder. Raises `DownloadError`; then nothing of it is kept."""
    folder = folder_of(home, published.name)
    fetched = {}
    for name, (path, checksum) in published.files.items():
        url = f"{host}/{published.repository}/{published.commit}/{path}"
        try:
            with urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
                content: bytes = answer.read(_MAX_BYTES + 1)
        except (URLError, OSError) as error:
            hint = f"get the file yourself into `{folder}` as `{name}`"
            raise DownloadError(f"`{url}` can't be fetched: {error}", hint=hint) from error
        if hashlib.sha256(content).hexdigest() != checksum:
            raise DownloadError(f"`{url}` is not the file that it should be", hint="its checksum differs")
        fetched[name] = content
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in fetched.items():
        part = folder / f"{name}.part"
        part.write_bytes(content)
        part.replace(folder / name)
    return folder
