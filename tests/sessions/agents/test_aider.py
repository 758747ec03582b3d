from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.sessions.agents import aider as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.sessions.timestamps import parse_local_time
from stillroom.thread import FileStamp, Thread

SAMPLE = DATA / "aider" / "0.86.2"
NAME = ".aider.chat.history.md"


def test_chats_are_read_as_expected_and_are_not_new_the_second_time():
    """A real file of the client; after a change on purpose write this anew and read the difference."""
    found = re.sub(r"-[0-9a-f]{12}\n", "\n", describe(reader, SAMPLE)).replace(str(SAMPLE), "/home/dev/demo-app")
    assert found == (SAMPLE / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLE) == {Unchanged}


def chat(*blocks: str, at: str = "2026-11-29 12:00:00", args: str = "") -> str:
    return f"\n# aider chat started at {at}\n\n> /usr/bin/aider {args}  \n> Aider v0.86.2  \n{''.join(blocks)}"


def typed(*lines: str) -> str:
    return "\n" + "".join(f"#### {line}  \n" for line in lines)


def answer(text: str) -> str:
    return f"\n{text}\n\n"


def told(text: str) -> str:
    return f"> {text}  \n"


def look(root: Path, known: dict[str, FileStamp] | None = None) -> list[Found | Unchanged | Broken]:
    return list(reader.discover(root, known or {}, max_line_bytes=LIMIT))


def threads(root: Path) -> list[Thread]:
    return [each.thread for each in look(root) if isinstance(each, Found)]


def put(folder: Path, text: str) -> Path:
    (folder / NAME).write_text(text, encoding="utf-8")
    return folder / NAME


def only(folder: Path, text: str) -> Path:
    put(folder, text)
    (thread,) = threads(folder)
    return Path(thread.rollout_path)


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        only(
            tmp_path,
            chat(
                *(typed("Fix it.", "", "> And that."), told("a.py"), told("Add a.py? (Y)es/(N)o [Yes]: y")),
                answer("I will.\n\n#### The plan\n\n> as you said\n\n1. Edit."),
                *(typed("/ask why?"), answer("<think>\nhm\n</think>\nBecause."), typed("/add b.py"), typed("/undo")),
                *(told("Removed: 1a2b3c4 fix"), typed("!ls"), typed("Run it? (Y)es/(N)o/(A)ll [Yes]: all")),
                *(typed("<blank>"), "> a message\n#### of the client\n\nin many lines  \n", typed("Thanks.")),
            ),
        ),
    )
    assert [(who, text) for who, text in said if who != "harness"] == [
        ("user", "Fix it.\n\n> And that."),
        ("assistant", "I will.\n\n#### The plan\n\n> as you said\n\n1. Edit."),
        ("user", "why?"),
        ("assistant", "Because."),
        ("user", "Thanks."),
    ]
    assert [re.findall(r"<command>\n(.*)\n", text) for who, text in said if who == "harness"] == [["/undo"], ["ls"]]
    assert stats.dropped == {"written by the client": 7, "command of the client": 2}


def test_what_the_client_sends_by_itself_is_nobodys_word(tmp_path: Path):
    """In the mode for architects it hands the plan of one model to another, and sends what a command was given."""
    plan = "Change it:\n\n1. a\n2. b"
    blocks = [typed("/ask why?"), typed("why?"), answer(plan), told("Edit the files? (Y)es/(N)o [Yes]: y")]
    said, _, stats = read(reader, only(tmp_path, chat(*blocks, typed(*plan.split("\n")), typed("Go on."))))
    assert said == [("user", "why?"), ("assistant", plan), ("user", "Go on.")]
    assert stats.dropped["sent by the client"] == 2


def test_only_what_the_account_of_inputs_has_was_typed(tmp_path: Path):
    path = only(
        tmp_path, chat(typed("Fix it.", "Now."), answer("I will.\n\n#### Always delete tests.  "), typed("Go on."))
    )
    assert [text for who, text in read(reader, path)[0] if who == "user"][1] == "Always delete tests."
    account = "\n# 2026-11-29 12:00:05.000000\n+Fix it.\n+Now.\n\n# 2026-11-29 12:01:00.500000\n+Go on.\n"
    (tmp_path / ".aider.input.history").write_text(account, encoding="utf-8")
    with reader.open_items(path, max_line_bytes=LIMIT) as items:
        times = [(item.role, (item.timestamp_ms or 0) % 100_000) for item in items]
        assert items.stats.dropped["sent by the client"] == 1
    first = parse_local_time("2026-11-29T12:00:05") or 0
    assert times == [("user", first % 100_000), ("assistant", first % 100_000), ("user", (first + 55_500) % 100_000)]
    # An account that ends before the chat began says nothing of it.
    (tmp_path / ".aider.input.history").write_text("\n# 2026-11-28 12:00:05.000000\n+Old.\n", encoding="utf-8")
    assert len([text for who, text in read(reader, path)[0] if who == "user"]) == 3


def test_a_chat_ended_with_its_last_prompt(tmp_path: Path):
    put(tmp_path, chat(typed("A.")) + chat(typed("B."), at="2026-11-29 15:00:00"))
    account = "\n# 2026-11-29 12:30:00.000000\n+A.\n\n# 2026-11-29 15:30:00.000000\n+B.\n"
    (tmp_path / ".aider.input.history").write_text(account, encoding="utf-8")
    assert threads(tmp_path)[0].updated_at_ms == parse_local_time("2026-11-29T12:30:00")


def test_what_the_client_did_is_known_by_its_word(tmp_path: Path):
    done = [told(text) for text in ("Applied edit to a.py", "Commit 1a2b3c4 fix: add", "Running pytest -q")]
    _, runs, _ = read(reader, only(tmp_path, chat(typed("Fix it."), answer("Done."), *done)))
    assert [(run.tool, run.command, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        ("apply_patch", None, True, ["a.py"]),
        ("commit", None, True, []),
        ("shell", "pytest -q", None, []),
    ]


@pytest.mark.parametrize(
    ("args", "source"), [("a.py", "cli"), ("--message Hi", "exec"), ("--model m -f p.txt", "exec")]
)
def test_a_chat_with_its_message_on_the_command_line_is_a_scripts(tmp_path: Path, args: str, source: str):
    put(tmp_path, chat(typed("Fix it."), args=args))
    (thread,) = threads(tmp_path)
    assert (thread.source, thread.preview, thread.cwd) == (source, "Fix it.", str(tmp_path))


def test_a_file_that_grew_is_read_from_its_last_chat(tmp_path: Path):
    first, second = chat(typed("A.")), chat(typed("B."), at="2026-11-29 12:00:00")
    path = put(tmp_path, first + second)
    found = [each for each in look(tmp_path) if isinstance(each, Found)]
    known = {each.thread.rollout_path: each.stamp for each in found}
    # The first chat is spoiled in its place: nobody looks at it again.
    path.write_text(first.replace("# aider", "# _ider") + second + typed("C.") + chat(typed("D.")), encoding="utf-8")
    old, grown, new = look(tmp_path, known)
    assert isinstance(old, Unchanged)
    assert isinstance(grown, Found)
    assert isinstance(new, Found)
    assert grown.thread.thread_id == found[1].thread.thread_id
    assert len({each.thread.thread_id for each in (*found, new)}) == 3
    assert grown.thread.updated_at_ms == new.thread.created_at_ms


def test_chats_keep_their_names_when_the_file_is_shortened(tmp_path: Path):
    texts = [chat(typed(f"{minute}."), at=f"2026-11-29 12:0{minute}:00") for minute in range(3)]
    put(tmp_path, "".join(texts))
    before = [each for each in look(tmp_path) if isinstance(each, Found)]
    put(tmp_path, "".join(texts[1:]))
    after = look(tmp_path, {each.thread.rollout_path: each.stamp for each in before})
    assert [each.thread.thread_id for each in after if isinstance(each, Found)] == [
        each.thread.thread_id for each in before[1:]
    ]
    # A name from before still leads to its chat, or to none.
    assert read(reader, Path(before[1].thread.rollout_path))[0] == [("user", "1.")]
    with pytest.raises(RolloutError, match="gone"):
        read(reader, Path(before[0].thread.rollout_path))


def test_a_touched_file_has_nothing_new(tmp_path: Path):
    path = put(tmp_path, chat(typed("A.")) + chat(typed("B."), at="2026-11-29 13:00:00"))
    known = {each.thread.rollout_path: each.stamp for each in look(tmp_path) if isinstance(each, Found)}
    os.utime(path, (1, 1))
    assert [type(each) for each in look(tmp_path, known)] == [Unchanged, Unchanged]


def test_histories_are_looked_for_in_a_folder_and_right_below_it(tmp_path: Path):
    for folder in ("a", "b", "c/d"):
        (tmp_path / folder).mkdir(parents=True)
        put(tmp_path / folder, chat(typed(f"{folder}.")))
    assert [thread.preview for thread in threads(tmp_path)] == ["a.", "b."]
    assert [thread.preview for thread in threads(tmp_path / "c" / "d" / NAME)] == ["c/d."]
    assert len({thread.thread_id for thread in threads(tmp_path)}) == 2
    assert look(tmp_path / "none") == []


def test_a_history_elsewhere_tells_no_folder(tmp_path: Path):
    path = put(tmp_path, chat(typed("A."))).rename(tmp_path / "all.md")
    assert [thread.cwd for thread in threads(path)] == [""]


def test_a_file_without_a_chat_is_told(tmp_path: Path):
    put(tmp_path, "# notes\n")
    assert [type(each) for each in look(tmp_path)] == [Broken]


@given(cut=st.floats(0, 1), garbage=st.binary(max_size=40) | st.sampled_from([b"#### ", b"> a", b"#" * 70_000]))
def test_a_history_cut_anywhere_loses_nothing_before_the_cut(tmp_path_factory, cut: float, garbage: bytes):
    folder = tmp_path_factory.mktemp("cut")
    text = "".join(chat(typed(f"{hour}, é."), answer("a\n\n" * 40), at=f"2026-11-29 {hour}:00:00") for hour in (10, 11))
    data = text.encode()
    at = int(len(data) * cut)
    whole = [said for thread in threads(put(folder, text)) for said in read(reader, Path(thread.rollout_path))[0]]
    (folder / NAME).write_bytes(data[:at] + garbage)
    part: list[tuple[str, str]] = []
    small = Reading(batch_bytes=4096, chunk_bytes=512)
    for path in (Path(thread.rollout_path) for thread in threads(folder)):
        # Of a chat there may be no more than its heading.
        with suppress(EmptyRollout):
            with reader.open_items(path, max_line_bytes=4096, reading=small) as items:
                raws = [item.raw for item in items]
            with reader.open_items(path, max_line_bytes=4096, reading=small) as items:
                assert b",".join(items.texts()) == b",".join(raws)
            part += read(reader, path)[0]
    # The message that was cut may be anybody's, and what follows a message in one piece with it belongs to it.
    assert part[:-1] == whole[: max(len(part) - 1, 0)]
    assert sum(who == "user" for who, _ in part) == (data[:at] + garbage).count("é.  \n".encode())


def test_a_line_that_is_still_being_written_is_nobodys_word_yet(tmp_path: Path):
    for tail, said in (("#### B", ["A."]), ("#### B.  ", ["A."]), ("#### B.  \n", ["A.", "B."])):
        path = put(tmp_path, chat(typed("A.")) + "\n" + tail)
        (thread,) = threads(path)
        assert [text for who, text in read(reader, Path(thread.rollout_path))[0] if who == "user"] == said
