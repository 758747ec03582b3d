"""A public set is fetched whole and as it was written down, or not at all."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stillroom.evaluate.downloads import PUBLISHED, DownloadError, Published, download, is_there


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def published(**contents: bytes) -> Published:
    files = {f"{name}.json": (f"data/{name}.json", hashlib.sha256(text).hexdigest()) for name, text in contents.items()}
    return Published(
        name="tiny", about="Tiny", repository="a/b", commit="c0ffee", licence="MIT", kilobytes=1, files=files
    )


def put(folder: Path, **contents: bytes) -> None:
    (folder / "a" / "b" / "c0ffee" / "data").mkdir(parents=True)
    for name, text in contents.items():
        (folder / "a" / "b" / "c0ffee" / "data" / f"{name}.json").write_bytes(text)


def test_a_set_is_fetched_into_the_home(tmp_path: Path) -> None:
    put(tmp_path / "web", one=b"[1]", two=b"[2]")
    tiny = published(one=b"[1]", two=b"[2]")
    assert not is_there(tmp_path, tiny)
    with served(tmp_path / "web") as host:
        folder = download(tiny, tmp_path, host=host)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"one.json": b"[1]", "two.json": b"[2]"}
    assert is_there(tmp_path, tiny)


@pytest.mark.parametrize("second", [b"[changed]", None])
def test_nothing_is_kept_when_a_file_is_another_or_missing(tmp_path: Path, second: bytes | None) -> None:
    put(tmp_path / "web", one=b"[1]", **({"two": second} if second else {}))
    with served(tmp_path / "web") as host, pytest.raises(DownloadError, match="two"):
        download(published(one=b"[1]", two=b"[2]"), tmp_path, host=host)
    assert not (tmp_path / "eval").exists()


def test_what_is_published_under_a_licence_that_forbids_it_is_not_fetched() -> None:
    assert {each.licence for each in PUBLISHED.values()} == {"MIT"}
    assert "locomo" not in PUBLISHED
