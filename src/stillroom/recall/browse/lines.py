"""Finds lines in a long text without splitting it: a file may be millions of lines, and an answer shows a few."""

from __future__ import annotations

from collections.abc import Iterator

#: Characters whose line feeds are counted in one call.
_STRIDE = 1 << 16


def skip_lines(text: str, start: int, count: int) -> int | None:
    """Where the line begins that is `count` line feeds after `start`; None when there are fewer."""
    while count:
        end = min(start + _STRIDE, len(text))
        found = text.count("\n", start, end)
        if found < count:
            if end == len(text):
                return None
            count -= found
            start = end
            continue
        for _ in range(count):
            start = text.index("\n", start) + 1
        return start
    return start


def lines_with(text: str, needle: str) -> Iterator[int]:
    """The numbers, from 0, of the lines that hold `needle`, in order."""
    line = at = 0
    while (found := text.find(needle, at)) >= 0:
        line += text.count("\n", at, found)
        yield line
        at = text.find("\n", found)
        if at < 0:
            return


class LineReader:
    """Stretches of a text by their line numbers, each beginning no earlier than the one before."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 0
        self._start = 0

    def between(self, first: int, last: int) -> str:
        """The lines `first` to `last`, counted from 0, or as many as there are; joined, without an end of line."""
        start = skip_lines(self._text, self._start, first - self._line)
        if start is None:
            return ""
        self._line, self._start = first, start
        end = skip_lines(self._text, self._start, last - first + 1)
        stretch = self._text[self._start : end]
        if stretch.endswith("\n"):
            stretch = stretch[:-1].removesuffix("\r")
        return stretch.replace("\r\n", "\n")
