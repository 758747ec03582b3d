"""Whether a session took in words from outside: the web, or an MCP server (`disable_on_external_context`, spec §4.12).

Such words may have been written to be remembered. Codex marks these threads while they run; here they are found when
they are read, also those of a Codex that did not mark them. What a shell command fetched is not seen, as in Codex. Our
own server is not outside: it tells what is in the memory already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stillroom.sessions.item import Item

_OUTSIDE = frozenset({"web_search_call", "tool_search_call", "tool_search_output"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
#: How a call names a tool of an MCP server, in its name or in its namespace.
_MCP = re.compile(rb'"name(?:space)?": ?"mcp__(?!stillroom(?:__|"))')
#: The name stands ahead of the arguments, in which the same letters would mean nothing.
_HEAD_BYTES = 400


class ExternalContext:
    """Passes items on and notices."""

    def __init__(self) -> None:
        self.seen = False

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if not self.seen and _is_external(item):
                self.seen = True
            yield item


def _is_external(item: Item) -> bool:
    if item.type in _OUTSIDE:
        return True
    if item.type not in _CALLS:
        return False
    head = item.raw[:_HEAD_BYTES].partition(b'"arguments"')[0].partition(b'"input"')[0]
    return _MCP.search(head) is not None
