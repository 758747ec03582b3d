"""Tool calls that a model wrote as tags into its text: how editors ask models that know no tools."""

from __future__ import annotations

import re
from typing import NamedTuple

from stillroom.rollouts.agents.scaffolding import without_blocks

_TOOL_NAMES = """
    access_mcp_resource apply_diff ask_followup_question attempt_completion browser_action codebase_search condense
    execute_command fetch_instructions insert_content list_code_definition_names list_files new_task plan_mode_respond
    plan_mode_response read_file replace_in_file search_and_replace search_files switch_mode update_todo_list
    use_mcp_tool web_fetch write_to_file
"""
_TOOL = re.compile(rf"<({'|'.join(_TOOL_NAMES.split())})>")
_FIELD = re.compile(r"<(\w{1,40})>")
# What may hold tags itself: it ends at the last tag that closes it.
_FREE = frozenset({"arguments", "content", "diff", "message", "response", "result"})


class Written(NamedTuple):
    """A call."""

    tool: str
    arguments: dict[str, str]


def split(text: str) -> tuple[str, Written | None]:
    """What is said in a text, and the call that it ends with; the client carries out no other."""
    text = without_blocks(text, "thinking")
    opening = _TOOL.search(text)
    if opening is None:
        return text, None
    end = text.rfind(f"</{opening[1]}>")
    inside = text[opening.end() : end if end >= opening.end() else len(text)]
    return text[: opening.start()], Written(opening[1], _arguments(inside))


def _arguments(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while (opening := _FIELD.search(text, at)) is not None:
        closing = f"</{opening[1]}>"
        find = text.rfind if opening[1] in _FREE else text.find
        end = find(closing, opening.end())
        if end < 0:
            break
        found.setdefault(opening[1], text[opening.end() : end].strip("\n"))
        at = end + len(closing)
    return found
