"""Makes files that only their owner can read, and writes them whole."""

from __future__ import annotations

import os
from pathlib import Path

from stillroom.system import NEW


def create_private(path: Path) -> None:
    """Make an empty file, and its folder, for the owner only; one that is there stays as it is. Raises `OSError`.

    One that is there is not even opened: closing it would drop the locks that SQLite has on it in this process.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, NEW, 0o600))
    except FileExistsError:
        pass


def write_private(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Put `data` in the file's place: whoever reads sees the old content or the new one. Raises `OSError`.

    Of several that write at once the last one counts. `durable`: it is on the disk when this returns.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, NEW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
