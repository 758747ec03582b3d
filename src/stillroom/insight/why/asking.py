"""Finds the lines that somebody asks about, and begins to ask git who wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from stillroom.config import Settings
from stillroom.insight.why.origin import Origin, origin_of
from stillroom.insight.why.places import Spot, find_spots

#: A phrase that fits more lines is explained for the first few.
_SPOTS = 3


class Asked(NamedTuple):
    """What was asked, and the lines that are meant."""

    words: str
    #: Each with who wrote it, once git has said so.
    spots: Sequence[tuple[Spot, Future[Origin]]]
    #: Lines that fit as well.
    more: int


@contextmanager
def asking(settings: Settings, words: str) -> Iterator[Asked]:
    """The line `FILE:LINE`, or those that say a phrase. Git works beside the block: it takes as long as all the rest.

    Raises `RecallError` when no line is meant.
    """
    spots, more = find_spots(settings.root, words, most=_SPOTS)
    with ThreadPoolExecutor(max_workers=_SPOTS) as beside:
        yield Asked(words, [(spot, beside.submit(origin_of, spot, settings)) for spot in spots], more)
