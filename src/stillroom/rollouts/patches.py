"""The edits that an `apply_patch` text asks for."""

from __future__ import annotations

from typing import Literal

import msgspec

Action = Literal["add", "update", "delete"]
BEGIN = "*** Begin Patch"
_ACTIONS: dict[str, Action] = {
    "*** Add File: ": "add",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}
_MOVE = "*** Move to: "


class Edit(msgspec.Struct, frozen=True):
    """A change of one file."""

    #: As the patch names it; of a moved file the new one.
    path: str
    action: Action
    diff: str


def parse_patch(text: str) -> tuple[Edit, ...]:
    """Read a patch leniently: what stands before its first file or after its end is passed over."""
    edits: list[Edit] = []
    path: str | None = None
    action: Action = "update"
    body: list[str] = []
    for line in text[text.find(BEGIN) :].splitlines():
        named = next((mark for mark in _ACTIONS if line.startswith(mark)), None)
        if named is not None or line.startswith("*** End Patch"):
            if path is not None:
                edits.append(Edit(path, action, "\n".join(body)))
            if named is None:
                return tuple(edits)
            path, action, body = line[len(named) :].strip(), _ACTIONS[named], []
        elif path is not None and line.startswith(_MOVE):
            path = line[len(_MOVE) :].strip()
        elif path is not None:
            body.append(line)
    if path is not None:
        edits.append(Edit(path, action, "\n".join(body)))
    return tuple(edits)
