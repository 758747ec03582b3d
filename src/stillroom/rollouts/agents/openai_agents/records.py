"""Responses items, which the SDK stores as the model was given them, as the items that memory keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import LineDecoder, text_of
from stillroom.rollouts.agents.made import Made, function_call, said_by_assistant, said_by_user, taken_back
from stillroom.rollouts.agents.openai_agents.calls import CALLS, Fields, shell_output
from stillroom.rollouts.agents.openai_agents.database import Stored
from stillroom.rollouts.agents.programs import content_of, prompt_of, returned

# Known, and nothing for memory.
_PASSED_OVER_NAMES = """
    reasoning image_generation_call mcp_list_tools mcp_approval_request mcp_approval_response item_reference compaction
    compaction_summary tool_search_call tool_search_output additional_tools program program_output
"""
_PASSED_OVER = frozenset(_PASSED_OVER_NAMES.split())
_ENDS = "_output"
# The SDK's for models that give none.
_NO_ID = "__fake_id__"
# How the SDK answers for a tool that raised.
_RAISED = "An error occurred while running the tool."
# A handoff can pack the talk so far into one message, in either role.
_PACKED = "<CONVERSATION HISTORY>"
_PACKED_CHARS = 400


class _Line(msgspec.Struct):
    item: dict[str, Any]
    message: Stored


_line = msgspec.json.Decoder(_Line)


class Records(LineDecoder):
    """Decodes the lines that `database.lines` writes."""

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a row."""
        read = _line.decode(line)
        item_id = text_of(read.item.get("id"))
        if item_id and item_id != _NO_ID and not self.is_new(f"item {item_id}"):
            return None, ()
        return read.message.at, self._made(read.item, left=read.message.left)

    def _made(self, item: Fields, *, left: bool) -> Iterator[Made]:
        kind = text_of(item.get("type")) or "message"
        call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
        if kind == "message":
            yield from self._message(item, left=left)
        elif kind in _PASSED_OVER:
            return
        elif kind == "function_call" or kind in CALLS:
            if not call_id or self.is_new(f"call {call_id}"):
                for made in self._call(kind, item, call_id):
                    yield made if made.type.endswith(_ENDS) else self.called(call_id, made)
        elif kind.endswith(_ENDS) and "output" in item:
            if not call_id or self.is_new(f"result {call_id}"):
                yield self._result(item, call_id)
        else:
            self.stats.count_unknown(kind)

    def _message(self, item: Fields, *, left: bool) -> Iterator[Made]:
        role, content = item.get("role"), content_of(item.get("content"))
        if any(_PACKED in text[:_PACKED_CHARS] for text in content.texts):
            self.stats.drop("compaction summary")
        elif role == "user":
            self.stats.images += content.images
            words = prompt_of(content)
            if not words:
                self.stats.drop("nothing said")
            elif left:
                self.stats.superseded += 1
                yield taken_back(*words)
            else:
                yield said_by_user(*words)
        elif role == "assistant":
            yield from map(said_by_assistant, content.texts)
        elif role in ("system", "developer"):
            self.stats.drop("instructions")
        else:
            self.stats.count_unknown(f"message/{role}")

    def _call(self, kind: str, item: Fields, call_id: str) -> Iterator[Made]:
        if kind in CALLS:
            return CALLS[kind](item, call_id)
        arguments = text_of(item.get("arguments")).encode("utf-8", "replace")
        return iter([function_call(text_of(item.get("name")), arguments, call_id)])

    def _result(self, item: Fields, call_id: str) -> Made:
        call, value = self.call_of(call_id), item["output"]
        if item.get("type") == "shell_call_output" and isinstance(value, list):
            return shell_output(call, call_id, value)
        ok = {"failed": False, "incomplete": False}.get(text_of(item.get("status")))
        if item.get("type") == "apply_patch_call_output" and ok is None:
            ok = True
        return returned(call, call_id, value, ok=False if text_of(value).startswith(_RAISED) else ok)
