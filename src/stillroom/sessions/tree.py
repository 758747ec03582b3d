"""Sessions whose records name the record that they follow: a tree, in which the talk is the branch that ends last."""

from __future__ import annotations


class Tree:
    """Takes the records of a session in their order. Memory stays within `max_records`, a few numbers each."""

    def __init__(self, *, max_records: int) -> None:
        self._max_records = max_records
        self._parents: dict[int, int] = {}
        self._roots: dict[int, int] = {}
        self._prompts: list[int] = []
        self._last = 0
        self._full = False

    def add(self, record_id: str, parent_id: str | None, *, is_prompt: bool) -> None:
        """One record; a second one with the same id is passed over."""
        number = hash(record_id)
        if number in self._parents:
            return
        if len(self._parents) == self._max_records:
            self._full = True
            return
        parent = hash(parent_id) if parent_id is not None else 0
        self._last = number
        self._parents[number] = parent
        # Where a record is missing nobody knows what stood above it: a tree of its own begins.
        self._roots[number] = self._roots.get(parent, number)
        if is_prompt:
            self._prompts.append(number)

    def left(self) -> frozenset[int]:
        """The hashes of the prompts' ids that were left behind: those of the last record's tree, but not above it.

        None of a session with more records than are remembered.
        """
        if self._full:
            return frozenset()
        above: set[int] = set()
        at = self._last
        while at in self._parents and at not in above:
            above.add(at)
            at = self._parents[at]
        root = self._roots.get(self._last)
        return frozenset(prompt for prompt in self._prompts if self._roots[prompt] == root and prompt not in above)
