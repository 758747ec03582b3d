"""Pages of results. A cursor is the number of results before the page: nothing is kept between calls (spec §3.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from stillroom.errors import InvalidRequest

T = TypeVar("T")
#: More digits than any count of results has, and few enough for `int`.
_CURSOR_DIGITS = 18


class Page(NamedTuple, Generic[T]):
    """Some of the results, and where the next page begins, if there is one."""

    results: tuple[T, ...]
    next_cursor: str | None


def take_page(
    results: Iterable[T], *, cursor: str | None, max_results: int, max_bytes: int, size: Callable[[T], int]
) -> Page[T]:
    """The page at `cursor`. No more results are computed than it takes to know that there are more.

    A page ends early rather than be larger than `max_bytes`, but holds at least one result.
    """
    start = start_of(cursor)
    remaining = iter(results)
    if sum(1 for _ in islice(remaining, start)) < start:
        raise InvalidRequest(f"the cursor {cursor} exceeds the number of results")
    taken: list[T] = []
    used = 0
    for result in remaining:
        used += size(result)
        if len(taken) == max_results or (taken and used > max_bytes):
            return Page(tuple(taken), str(start + len(taken)))
        taken.append(result)
    return Page(tuple(taken), None)


def page_length(max_results: int | None, most: int) -> int:
    """How many results a page may hold: `most` unless fewer are asked for, and never none."""
    return most if max_results is None else min(max(max_results, 1), most)


def start_of(cursor: str | None) -> int:
    """How many results are ahead of the page at `cursor`. Raises `InvalidRequest` when it is no cursor."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()):
        raise InvalidRequest("`cursor` must be a non-negative integer: `next_cursor` of the page before")
    if len(cursor) > _CURSOR_DIGITS:
        raise InvalidRequest("the cursor exceeds the number of results")
    return int(cursor)
