"""Memory that a session was shown is no evidence for the same memory."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.sessions import normalize
from stillroom.sessions.feedback_filter import FeedbackFilter, Told
from stillroom.sessions.item import Item

ROOT = Path("/home/dev/.stillroom/memories")
FACT = "The integration tests need `make seed` before the first run, or they hang."


def items(*several: normalize.NormalizedItem) -> list[Item]:
    return [Item(each.type, each.role, each.raw, None, number) for number, each in enumerate(several, 1)]


def call(name: str, call_id: str = "c1", **arguments: object) -> normalize.NormalizedItem:
    return normalize.function_call(name, json.dumps(arguments).encode(), call_id)


def ended(call_id: str, text: str) -> normalize.NormalizedItem:
    return normalize.output(None, call_id, text, exit_code=0, ok=True)


def kept(*several: normalize.NormalizedItem, root: Path = ROOT) -> bytes:
    """What is left, read both ways, which must agree."""
    given = items(*several)
    home = Path("/home/dev")
    one_by_one = [item.raw for item in FeedbackFilter(root, user_home=home).items(given)]
    joined = list(FeedbackFilter(root, user_home=home).texts([b",".join(item.raw for item in given)] if given else []))
    assert joined == ([b",".join(one_by_one)] if one_by_one else [])
    return b",".join(one_by_one)


@pytest.mark.parametrize(
    "asked",
    [
        call("mcp__stillroom__read", path="MEMORY.md"),
        call("stillroom_search", queries=["seed"]),
        call("stillroom-search", queries=["seed"]),
        call("shell", command=["bash", "-lc", "cat /home/dev/.stillroom/memories/MEMORY.md"]),
        call("exec_command", cmd="rg -n seed ~/.stillroom/memories"),
        call("exec_command", cmd='cat "$HOME"/.stillroom/memories/memory_summary.md'),
        call("exec_command", cmd="cat $CODEX_HOME/memories/MEMORY.md"),
        call("exec_command", cmd="sed -n 1,40p ~/.codex/memories/MEMORY.md"),
        call("exec_command", cmd="cat MEMORY.md", workdir="/home/dev/.stillroom/memories"),
        call("bash", command="stillroom search 'how are the tests run'"),
        call("bash", command="python -m stillroom read MEMORY.md"),
        call("Read", file_path="/home/dev/.stillroom/memories/MEMORY.md"),
    ],
)
def test_what_was_read_out_of_the_memory_is_gone_and_so_is_what_the_assistant_repeats_of_it(
    asked: normalize.NormalizedItem,
) -> None:
    left = kept(
        asked, ended("c1", f"3:- {FACT} [Task 1]"), normalize.said_by_assistant(f"Memory says: {FACT} I go on.")
    )
    assert b"make seed" not in left
    assert b"I go on." in left
    assert asked.raw not in left


@pytest.mark.parametrize(
    "asked",
    [
        call("exec_command", cmd="cat docs/memories/MEMORY.md"),
        call("exec_command", cmd="cat /home/dev/.stillroom/memories-of-summer/notes.md"),
        call("exec_command", cmd="pytest tests/stillroom"),
        call("exec_command", cmd="git clone https://example.org/stillroom.git"),
        call("distillroom_read", path="x"),
        normalize.patch_call(normalize.add_patch("docs/use.md", "Say `stillroom search TEXT`.", cwd="/p"), "c1"),
    ],
)
def test_what_only_looks_alike_stays(asked: normalize.NormalizedItem) -> None:
    answer = ended("c1", FACT)
    assert kept(asked, answer, normalize.said_by_assistant(FACT)).count(b"make seed") == 2


def test_what_a_person_says_again_stays_their_word() -> None:
    left = kept(call("mcp__stillroom__read"), ended("c1", FACT), normalize.said_by_user(FACT))
    assert b"make seed" in left


def test_an_assistant_finds_the_same_out_before_it_is_told() -> None:
    left = kept(normalize.said_by_assistant(FACT), call("mcp__stillroom__read"), ended("c1", FACT))
    assert b"make seed" in left


def test_citations_go_and_what_they_stand_under_stays() -> None:
    block = "<oai-mem-citation>\n<citation_entries>\nMEMORY.md:3-4|note=[seed first]\n</citation_entries>\n"
    left = kept(normalize.said_by_assistant(f"Seeded, and the tests pass.\n{block}</oai-mem-citation>"))
    assert b"tests pass" in left
    assert b"citation" not in left
    assert b"seed first" not in kept(normalize.said_by_assistant(f"Done it all now.\n{block}"))


def test_of_a_search_through_many_folders_only_what_it_found_in_the_memory_goes() -> None:
    found = f"/home/dev/.stillroom/memories/MEMORY.md:3:- {FACT}\n/home/dev/app/Makefile:9:seed: db"
    left = kept(call("exec_command", cmd="rg seed /home/dev"), ended("c1", found))
    assert b"integration" not in left
    assert b"seed: db" in left


def test_a_folder_elsewhere_counts_as_well() -> None:
    asked = call("exec_command", cmd="cat /srv/team/notes/MEMORY.md")
    assert kept(asked, ended("c1", FACT), root=Path("/srv/team/notes")) == b""
    assert b"make seed" in kept(asked, ended("c1", FACT))


@pytest.mark.parametrize("asked", ["cat ~/notes/mem/MEMORY.md", 'cat "$HOME"/notes/mem/MEMORY.md'])
def test_a_folder_elsewhere_in_the_home_counts_however_it_is_named(asked: str) -> None:
    answer = ended("c1", FACT)
    assert kept(call("exec_command", cmd=asked), answer, root=Path("/home/dev/notes/mem")) == b""


def test_what_a_session_is_told_at_its_start_is_heard_wherever_the_client_keeps_it() -> None:
    block = f"<stillroom-memory version='1'>\n- {FACT}\n</stillroom-memory>"
    plain = {"type": "response_item", "payload": {"role": "developer", "content": [{"text": block}]}}
    packed = {"type": "attachment", "stdout": json.dumps({"additionalContext": block})}
    for line in (plain, packed):
        told = Told()
        told.add_line(json.dumps(line).encode())
        assert told.says("So the integration tests need make seed before the first run.")
        assert not told.says("The unit tests need nothing at all before a run.")
    talk = Told()
    talk.add_line(json.dumps({"text": f"Is the <stillroom-memory> tag right? {FACT}"}).encode())
    assert not talk


def test_sentences_of_languages_without_spaces_are_compared_too() -> None:
    told = Told()
    told.add("- 用户要求：提交之前必须运行完整的测试。(in app)")
    assert told.without("提交之前必须运行完整的测试。现在开始修改代码。") == "现在开始修改代码。"


@given(st.binary(max_size=200), st.sampled_from(["function_call", "function_call_output", "message", "agent_message"]))
def test_nothing_that_an_item_holds_raises(noise: bytes, kind: str) -> None:
    text = noise.decode("utf-8", "replace") + " ~/.stillroom/memories <oai-mem-citation>"
    value = {"type": kind, "role": "assistant", "call_id": "c", "name": text, "output": text, "content": [text]}
    echo = FeedbackFilter(ROOT)
    list(echo.items([Item(kind, None, msgspec.json.encode(value), None, 1), Item(kind, None, noise, None, 2)]))
    list(echo.texts([noise, msgspec.json.encode(value)]))
