"""The text of a `.zst` file. Few sessions are stored as one: what unpacks it is imported where one is met."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Archive(zstd.ZstdFile):
    """Is read by a `BufferedReader`, and closes the file that it reads from, too. Damage is an `EOFError`."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._stored = file

    def readinto(self, buffer: WriteableBuffer) -> int:
        """The next piece. Raises `EOFError` where the file is cut off or damaged, `OSError`."""
        try:
            return super().readinto(buffer)
        except zstd.ZstdError as error:
            raise EOFError(str(error)) from error

    def close(self) -> None:
        """Close both."""
        try:
            super().close()
        finally:
            self._stored.close()
