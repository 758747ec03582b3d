"""Finds the lines that somebody asks about, and begins to ask git who wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import NamedTuple, TypeVar

from stillroom.config import Settings
from stillroom.insight.why.origin import Origin, origins_of
from stillroom.insight.why.places import Spot, find_spots

#: A phrase that fits more lines is explained for the first few.
_SPOTS = 3

_Result = TypeVar("_Result")


class Asked(NamedTuple):
    """What was asked, and the lines that are meant."""

    words: str
    spots: Sequence[Spot]
    #: Who wrote each of them, once git has said so.
    origins: Callable[[], Sequence[Origin]]
    #: Lines that fit as well.
    more: int


@contextmanager
def asking(settings: Settings, words: str) -> Iterator[Asked]:
    """The line `FILE:LINE`, or those that say a phrase. Git works beside the block: it takes as long as all the rest.

    Raises `RecallError` when no line is meant.
    """
    spots, more = find_spots(settings.root, words, most=_SPOTS)
    with _beside(partial(origins_of, spots, settings)) as origins:
        yield Asked(words, spots, origins, more)


@contextmanager
def _beside(work: Callable[[], _Result]) -> Iterator[Callable[[], _Result]]:
    """Work that raises nothing, in a thread; the yielded function returns what it comes to, once it is done.

    `concurrent.futures` takes longer to import than git to begin.
    """
    results: list[_Result] = []
    thread = Thread(target=lambda: results.append(work()))

    def result() -> _Result:
        thread.join()
        return results[0]

    thread.start()
    try:
        yield result
    finally:
        thread.join()
