"""Writes a file of ours whole, for its owner only."""

from __future__ import annotations

import os
from pathlib import Path

from stillroom.system import NEW


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
