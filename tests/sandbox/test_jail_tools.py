"""What the file tools do and refuse, at every level of confinement that the machine has."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from stillroom.sandbox import Jail, JailLimits, Worker, choose

InJail = Callable[..., None]


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def test_files_are_listed_read_searched_and_written(any_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        written = await worker.call("write", {"path": "skills/x/SKILL.md", "content": "# Skill\nTwo\n"})
        assert written.ok and written.changed
        listed = await worker.call("list", {"depth": 3})
        assert listed.text == ("MEMORY.md  14 bytes\nskills/\nskills/x/\nskills/x/SKILL.md  12 bytes")
        assert not listed.changed
        read = await worker.call("read", {"path": "MEMORY.md", "first_line": 2, "max_lines": 1})
        assert read.text == "two\n[cut: lines 2 to 2 of 3; go on with first_line=3]"
        assert read.truncated
        found = await worker.call("search", {"query": "two"})
        assert found.text == "MEMORY.md:2: two\nskills/x/SKILL.md:2: Two"

    in_jail(any_jail, folder, scene)
    assert (folder / "skills/x/SKILL.md").read_text(encoding="utf-8") == "# Skill\nTwo\n"
    assert sorted(names(folder)) == ["MEMORY.md", "skills"]


def test_writing_the_same_text_is_no_change(any_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        again = await worker.call("write", {"path": "MEMORY.md", "content": "one\ntwo\nthree\n"})
        assert again.ok and not again.changed

    in_jail(any_jail, folder, scene)


OUTSIDE = (
    *("../secret.txt", "/etc/passwd", "a/../../secret.txt", "~/x", ".git/config", "a/.GIT/config", ".gitattributes"),
    *("\\\\host\\x", "c:/x", "a\nb", "x" * 300, "/".join("a" * 20)),
)


@pytest.mark.parametrize("tool", ["read", "list", "search", "write", "apply_patch"])
def test_no_tool_takes_a_path_out_of_the_folder(folder: Path, in_jail: InJail, tool: str) -> None:
    """At the level without a jail, where the rules of the tools are all there is."""

    async def scene(worker: Worker) -> None:
        for path in OUTSIDE:
            arguments = {
                "search": {"query": "x", "path": path},
                "write": {"path": path, "content": "x"},
                "apply_patch": {"patch": f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"},
            }.get(tool, {"path": path})
            result = await worker.call(tool, arguments)
            assert not result.ok and not result.changed, path

    in_jail(choose("files"), folder, scene)


def test_links_and_special_files_are_neither_followed_nor_replaced(
    any_jail: Jail, folder: Path, in_jail: InJail
) -> None:
    (folder / "link.md").symlink_to(folder.parent / "secret.txt")
    (folder / "up").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))

    async def scene(worker: Worker) -> None:
        for tool, arguments in (
            ("read", {"path": "link.md"}),
            ("read", {"path": "up/secret.txt"}),
            ("read", {"path": "pipe"}),
            ("read", {"path": "socket"}),
            ("list", {"path": "up"}),
            ("search", {"query": "outside", "path": "up"}),
            ("write", {"path": "link.md", "content": "x"}),
            ("write", {"path": "up/secret.txt", "content": "x"}),
            ("write", {"path": "pipe", "content": "x"}),
            ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: link.md\n*** End Patch"}),
            ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: up/secret.txt\n-outside\n+in\n*** End Patch"}),
        ):
            result = await worker.call(tool, arguments)
            assert not result.ok, (tool, arguments)
            assert not result.changed
        assert (await worker.call("search", {"query": "outside"})).text == "(no line matches)"
        refused = await worker.call("read", {"path": "link.md"})
        assert refused.text == "`link.md`: is a link; links are not followed"

    in_jail(any_jail, folder, scene)
    assert (folder / "link.md").is_symlink()
    assert (folder.parent / "secret.txt").read_text(encoding="utf-8") == "outside"


def test_bad_arguments_and_unknown_tools_are_answers(any_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        for tool, arguments, words in (
            ("rm", {}, "no tool `rm`"),
            ("read", {}, "bad arguments"),
            ("read", {"path": 7}, "a path is a string"),
            ("read", {"path": "nothing.md"}, "no such file"),
            ("read", {"path": "."}, "is a folder"),
            ("read", {"path": "MEMORY.md", "first_line": "x"}, "bad arguments"),
            ("read", {"path": "MEMORY.md", "first_line": 9}, "has 3 lines"),
            ("read", {"path": "MEMORY.md/x"}, "is not a folder"),
            ("search", {"query": "("}, "no line matches"),
            ("search", {"query": "(", "regex": True}, "not a regular expression"),
            ("write", {"path": "x", "content": None}, "`content` is text"),
            ("write", {"path": ".", "content": ""}, "is a folder"),
            ("write", {"path": "x", "content": "x", "mode": "a"}, "bad arguments"),
        ):
            result = await worker.call(tool, arguments)
            assert words in result.text, (tool, arguments, result)

    in_jail(any_jail, folder, scene)


def test_binary_and_torn_files_are_named_not_shown(any_jail: Jail, folder: Path, in_jail: InJail) -> None:
    (folder / "a.bin").write_bytes(b"\x00\x01")
    (folder / "b.md").write_bytes(b"caf\xe9")

    async def scene(worker: Worker) -> None:
        assert (await worker.call("read", {"path": "a.bin"})).text == "`a.bin` is binary (2 bytes)"
        assert (await worker.call("read", {"path": "b.md"})).text == "`b.md` is not UTF-8 text (4 bytes)"
        assert (await worker.call("search", {"query": "caf"})).text == "b.md:1: caf�"

    in_jail(any_jail, folder, scene)


def test_every_answer_is_bounded_and_says_when_it_was_cut(
    any_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits
) -> None:
    (folder / "long.md").write_text("x" * 500_000 + "\nend\n", encoding="utf-8")
    (folder / "many.md").write_text("needle\n" * 50_000, encoding="utf-8")
    (folder / "wide.md").write_text("\U0001f600" * 100_000, encoding="utf-8")
    for number in range(400):
        (folder / f"{number:03}-{'n' * 150}").touch()

    async def scene(worker: Worker) -> None:
        for tool, arguments in (
            ("read", {"path": "long.md"}),
            ("read", {"path": "many.md"}),
            ("read", {"path": "wide.md"}),
            ("search", {"query": "needle"}),
            ("list", {}),
            ("read", {"path": "../" * 20_000}),
            ("x" * 100_000, {}),
        ):
            result = await worker.call(tool, arguments)
            assert len(result.text.encode()) <= limits.output_bytes
            assert tool.startswith("x") or "cut" in result.text or ".." in result.text
        assert (await worker.call("read", {"path": "long.md", "first_line": 2})).text == "end"

    in_jail(any_jail, folder, scene)


def test_an_endless_expression_is_stopped(any_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits) -> None:
    (folder / "a.md").write_text("a" * 40 + "b\n", encoding="utf-8")

    async def scene(worker: Worker) -> None:
        result = await worker.call("search", {"query": "(a+)+$", "regex": True})
        assert not result.ok
        assert result.text == "the search took more than 0.5 s"
        assert (await worker.call("search", {"query": "ab"})).ok

    in_jail(any_jail, folder, scene, replace(limits, call_seconds=1))


def test_the_folder_can_not_grow_past_its_limit(
    any_jail: Jail, folder: Path, in_jail: InJail, limits: JailLimits
) -> None:
    async def scene(worker: Worker) -> None:
        half = "x" * (limits.folder_bytes // 2)
        assert (await worker.call("write", {"path": "a", "content": half})).ok
        refused = await worker.call("write", {"path": "b", "content": half})
        assert not refused.ok and not refused.changed
        assert "don't fit" in refused.text
        assert (await worker.call("write", {"path": "a", "content": "small"})).ok
        assert (await worker.call("write", {"path": "b", "content": half})).ok

    in_jail(any_jail, folder, scene)


@pytest.mark.slow
@pytest.mark.parametrize(
    "too_much",
    [
        "for i in $(seq 20); do head -c 1M /dev/zero > f$i; done; sleep 5",
        "for i in $(seq 600); do : > f$i; done; sleep 5",
    ],
)
def test_what_is_too_much_can_be_deleted_slowly_but_not_added_to(
    shell_jail: Jail, folder: Path, in_jail: InJail, too_much: str
) -> None:
    async def scene(worker: Worker) -> None:
        filled = await worker.call("shell", {"command": too_much})
        assert not filled.ok and "the tools were stopped" in filled.text
        more = await worker.call("shell", {"command": "head -c 1M /dev/zero > g1; : > g2; sleep 5"})
        assert not more.ok and "the tools were stopped" in more.text
        assert (await worker.call("shell", {"command": "sleep 0.1; ls | wc -l"})).ok
        cleaned = await worker.call("shell", {"command": "sleep 0.1; rm f* g*; sleep 0.1; ls"})
        assert cleaned.ok and "delete what isn't needed" not in cleaned.text
        assert "MEMORY.md" in cleaned.text

    in_jail(shell_jail, folder, scene)


def test_a_patch_changes_all_its_files_or_none(any_jail: Jail, folder: Path, in_jail: InJail) -> None:
    (folder / "old.md").write_text("alpha\nbeta\n", encoding="utf-8")

    async def scene(worker: Worker) -> None:
        patch = (
            "*** Begin Patch\n*** Add File: new/note.md\n+hello\n*** Update File: MEMORY.md\n@@ one\n-two\n+2\n"
            "*** Update File: old.md\n*** Move to: moved.md\n@@\n alpha\n-beta\n+gamma\n"
            "*** Delete File: {gone}\n*** End Patch"
        )
        failed = await worker.call("apply_patch", {"patch": patch.format(gone="missing.md")})
        assert not failed.ok and not failed.changed
        assert failed.text == "`missing.md` doesn't exist"
        assert sorted(names(folder)) == ["MEMORY.md", "old.md", "tmp.md"]
        done = await worker.call("apply_patch", {"patch": patch.format(gone="tmp.md")})
        assert done.ok and done.changed

    (folder / "tmp.md").touch()
    in_jail(any_jail, folder, scene)
    assert (folder / "MEMORY.md").read_text(encoding="utf-8") == "one\n2\nthree\n"
    assert (folder / "moved.md").read_text(encoding="utf-8") == "alpha\ngamma\n"
    assert sorted(names(folder)) == ["MEMORY.md", "moved.md", "new"]


def test_a_patch_that_fails_half_way_is_undone(any_jail: Jail, folder: Path, in_jail: InJail) -> None:
    async def scene(worker: Worker) -> None:
        patch = (
            "*** Begin Patch\n*** Update File: MEMORY.md\n-two\n+2\n*** Add File: x.md\n+x\n"
            "*** Add File: x.md/below\n+x\n*** End Patch"
        )
        failed = await worker.call("apply_patch", {"patch": patch})
        assert not failed.ok

    in_jail(any_jail, folder, scene)
    assert (folder / "MEMORY.md").read_text(encoding="utf-8") == "one\ntwo\nthree\n"
    assert sorted(names(folder)) == ["MEMORY.md"]
