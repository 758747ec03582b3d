from __future__ import annotations

import json

import pytest

from stillroom.sessions.fragments import is_excluded, without_images, without_instructions, without_memory


@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>", True),
        ("# AGENTS.md instructions\n<INSTRUCTIONS>x</INSTRUCTIONS>", True),
        ("  # agents.MD Instructions for /w <instructions></instructions>\n", True),
        ("<skill>\n<name>x</name>\n</skill>", True),
        ("<SKILL>x</Skill> ", True),
        ("# AGENTS.md instructions for /w <INSTRUCTIONS>x</INSTRUCTIONS> and more", False),
        ("see <skill>x</skill>", False),
        ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>", False),
        ("<subagent_notification>x</subagent_notification>", False),
        ("<skill>", False),
        ("", False),
    ],
)
def test_which_fragments_are_excluded(text: str, excluded: bool) -> None:
    """Spec §7 and §10.2 item 23."""
    assert is_excluded(text) == excluded


def user(*parts: dict[str, object]) -> bytes:
    return json.dumps({"id": "m1", "type": "message", "role": "user", "content": parts, "x": {"n": 1.50}}).encode()


AGENTS = {"type": "input_text", "text": "# AGENTS.md instructions for /w\n<INSTRUCTIONS>x</INSTRUCTIONS>"}
ENVIRONMENT = {"type": "input_text", "text": "<environment_context>x</environment_context>"}


def test_the_instructions_part_goes_and_the_environment_part_stays() -> None:
    """Spec §10.2 item 25."""
    kept = without_instructions(user(AGENTS, ENVIRONMENT))
    assert kept is not None
    assert json.loads(kept) == json.loads(user(ENVIRONMENT))


def test_a_message_without_parts_left_is_dropped() -> None:
    assert without_instructions(user(AGENTS)) is None
    assert without_instructions(user()) is None


def test_a_message_without_instructions_keeps_its_bytes() -> None:
    raw = user(ENVIRONMENT, {"type": "input_image", "image_url": "x"}, {"type": "strange", "text": 7})
    assert without_instructions(raw) == raw
    assert without_instructions(b'{"type":"message","content":"text"}') == b'{"type":"message","content":"text"}'


def test_only_input_text_is_looked_at() -> None:
    raw = user({**AGENTS, "type": "output_text"})
    assert without_instructions(raw) == raw


def memory(raw: bytes, *, is_user: bool) -> object:
    kept = without_memory(raw, user=is_user)
    return json.loads(kept) if kept is not None else None


def test_memory_that_was_shown_is_taken_out_wherever_it_stands() -> None:
    block = '<stillroom-memory version="1">\nprefers "tabs"\n</stillroom-memory>'
    output = {"type": "function_call_output", "call_id": "c", "output": f"before {block} after {block}"}
    assert memory(json.dumps(output).encode(), is_user=False) == {**output, "output": "before  after "}
    nested = {"type": "function_call", "arguments": json.dumps({"text": f"a {block} b"})}
    assert memory(json.dumps(nested).encode(), is_user=False) == {**nested, "arguments": json.dumps({"text": "a  b"})}


def test_a_message_that_was_only_memory_is_dropped() -> None:
    part = {"type": "input_text", "text": "<stillroom-memory>x</stillroom-memory>\n"}
    assert memory(user(part), is_user=True) is None
    assert memory(user(part, ENVIRONMENT), is_user=True) == json.loads(user(ENVIRONMENT))


def test_an_open_block_ends_with_its_string_except_in_a_persons_words() -> None:
    output = {"type": "function_call_output", "output": "ok <stillroom-memory>cut by the cl"}
    assert memory(json.dumps(output).encode(), is_user=False) == {**output, "output": "ok "}
    words = user({"type": "input_text", "text": "what does the tag <stillroom-memory> do?"})
    assert without_memory(words, user=True) == words
    torn = user({"type": "input_text", "text": "Fix it.\n<stillroom-memory version='1'>\nprefers tabs, and"})
    assert memory(torn, is_user=True) == json.loads(user({"type": "input_text", "text": "Fix it.\n"}))


def test_a_word_like_the_tag_is_no_block() -> None:
    raw = b'{"type":"message","content":[{"text":"stillroom-memory is a name"}]}'
    assert without_memory(raw, user=False) == raw


def test_an_inline_image_is_replaced_by_its_size() -> None:
    url = "data:image/png;base64," + "iVBORw0KGgo=" * 10
    raw = json.dumps(
        {"content": [{"type": "input_image", "image_url": url}], "text": "data:image/png;base64, is short"}
    )
    kept, images = without_images(raw.encode())
    assert images == 1
    assert json.loads(kept)["content"][0]["image_url"] == "[image omitted: 120 bytes]"
    assert json.loads(kept)["text"] == "data:image/png;base64, is short"
    assert without_images(b'"data:image/png;base64,[blob: 77 bytes]"') == (b'"[image omitted: 77 bytes]"', 1)
