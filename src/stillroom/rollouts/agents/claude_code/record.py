"""One line of a Claude Code session: which kinds there are, and the fields that Stillroom looks at."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from stillroom.rollouts.item import UNREADABLE

# The client's bookkeeping: nothing in it was said or done. The requests among it repeat the whole session.
_BOOKKEEPING_NAMES = """
    agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-shape atis-latch
    content-replacement cost-state custom-title file-history-delta file-history-snapshot fork-context-ref last-prompt
    mode permission-mode pr-link progress queue-operation relocated result session-owner started summary tag tools-used
    worktree-state
"""
BOOKKEEPING = frozenset(_BOOKKEEPING_NAMES.split())

# What the client tells the model unasked. Beside these only a queued prompt is somebody's words.
_ATTACHMENT_NAMES = """
    agent_listing_delta agent_mention auto_mode auto_mode_exit background_remote_session_status budget_usd
    command_permissions compact_file_reference critical_system_reminder date date_change deferred_tools_delta
    diagnostics directory dynamic_skill edited_image_file edited_text_file environment file hook_additional_context
    hook_blocking_error hook_cancelled hook_error_during_execution hook_non_blocking_error hook_stopped_continuation
    hook_success hook_system_message instructions invoked_skills mcp_instructions_delta mcp_resource model
    nested_memory opened_file_in_ide output_style pdf_reference plan_file_reference plan_mode plan_mode_exit
    plan_mode_reentry prompt_snapshot relevant_memories remote_session_change selected_lines_in_ide session_context
    skill_listing task_reminder task_status todo todo_reminder token_usage ultramemory
"""
ATTACHMENTS = frozenset(_ATTACHMENT_NAMES.split())
QUEUED = "queued_command"

# What the client shows to the person.
_NOTICE_NAMES = """
    agents_killed api_error api_metrics api_retry away_summary compact_boundary informational local_command
    memory_saved microcompact_boundary stop_hook_summary thinking turn_duration
"""
SYSTEM = frozenset(_NOTICE_NAMES.split())

# The first bytes of most lines tell what they are.
_START = re.compile(
    rb'\{(?:"type":"(?P<kind>[\w-]{1,40})"'
    rb'|"parentUuid":(?:null|"[\w-]{1,80}"),"isSidechain":(?:true|false),(?:"agentId":"[\w-]{1,80}",)?'
    rb'"attachment":\{"type":"(?P<attachment>\w{1,40})")'
)
# The same for a line of the talk in a third of the time.
_BOOKED = b'{"type":"'
_ATTACHED = b'"attachment":{"type":"'
_WITHIN_BYTES = 300
_KINDS = frozenset(kind.encode() for kind in BOOKKEEPING)
_ATTACHMENTS = frozenset(kind.encode() for kind in ATTACHMENTS)
# Python objects take up to fifty times the room of their text.
_REPAIRED_BYTES = 1024 * 1024


# A field of a strange type must spoil nothing else: everything is `Any` here, and looked at where it is used.
class Block(msgspec.Struct, gc=False):
    """A part of a message's content, of any kind."""

    type: Any = None
    text: msgspec.Raw = msgspec.Raw(b"null")
    id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"null")
    tool_use_id: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: Any = None
    source: msgspec.Raw = msgspec.Raw(b"null")


class Message(msgspec.Struct, gc=False):
    """What the provider's API calls a message."""

    model: Any = None
    content: list[Block] | str = ""


class Attachment(msgspec.Struct, rename="camel", gc=False):
    """What the client put beside the talk."""

    type: Any = None
    prompt: list[Block] | str = ""
    command_mode: Any = None
    origin: Any = None


class Record(msgspec.Struct, rename="camel", gc=False):
    """A line."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    session_id: Any = None
    timestamp: Any = None
    cwd: Any = None
    message: Message | None = None
    attachment: Attachment | None = None
    is_sidechain: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    origin: Any = None
    prompt_source: Any = None
    row_source: Any = None
    tool_denial_kind: Any = None
    tool_use_result: msgspec.Raw = msgspec.Raw(b"null")


_record = msgspec.json.Decoder(Record)


def parse_record(line: bytes) -> Record | None:
    """The line, read; None if it is none. Raises nothing."""
    try:
        return _record.decode(line)
    except UNREADABLE:
        repaired = _repaired(line)
    try:
        return _record.decode(repaired) if repaired is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None


def is_passed_over(line: bytes) -> bool:
    """True only of a line whose first bytes say that memory keeps nothing of it."""
    if line[:9] != _BOOKED and line.find(_ATTACHED, 0, _WITHIN_BYTES) < 0:
        return False
    start = _START.match(line)
    return start is not None and (start["kind"] in _KINDS or start["attachment"] in _ATTACHMENTS)


def text_of(raw: bytes | msgspec.Raw) -> str:
    """A JSON string, decoded, damage replaced; "" for every other value."""
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    text = bytes(raw)
    try:
        value = json.loads(text.decode("utf-8", "replace"), strict=False) if text.startswith(b'"') else ""
    except ValueError:
        return ""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _repaired(line: bytes) -> bytes | None:
    """A second, more tolerant look: NULs of a crash, bare control characters, half surrogate pairs, broken UTF-8."""
    if len(line) > _REPAIRED_BYTES:
        return None
    try:
        value = json.loads(line.lstrip(b"\0").decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
