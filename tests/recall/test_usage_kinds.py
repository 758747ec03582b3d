from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom import memories_usage_kinds_from_command as kinds
from stillroom.recall.usage import usage_kinds
from stillroom.recall.usage.plain_script import plain_commands

M = "/home/u/.codex/memories"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (f"cat {M}/MEMORY.md", ["memory_md"]),
        (f"cat {M}/memory_summary.md", ["memory_summary"]),
        (f"cat {M}/raw_memories.md", ["raw_memories"]),
        (f"cat {M}/rollout_summaries/2026-11-29T12-16-13-ab12-tests.md", ["rollout_summaries"]),
        (f"cat {M}/skills/deploy/SKILL.md", ["skills"]),
        # By what is in the path, wherever it lies.
        ("cat memories/MEMORY.md", ["memory_md"]),
        ("cat 'C:\\Users\\u\\memories\\MEMORY.md'", ["memory_md"]),
        (
            f"cat {M}/MEMORY.md && cat {M}/raw_memories.md; cat {M}/MEMORY.md",
            ["memory_md", "raw_memories", "memory_md"],
        ),
        (f"cat {M}/MEMORY.md || true", ["memory_md"]),
        (f"cat {M}/MEMORY.md\ncat {M}/skills/a/SKILL.md\n", ["memory_md", "skills"]),
        (f"cat {M}/MEMORY.md | grep -n test | head -n 5", ["memory_md"]),
        # Every program that reads.
        (f"cat -n {M}/MEMORY.md", ["memory_md"]),
        (f"more {M}/MEMORY.md", ["memory_md"]),
        (f"bat --theme TwoDark {M}/MEMORY.md", ["memory_md"]),
        (f"batcat -p {M}/MEMORY.md", ["memory_md"]),
        (f"less -p tests {M}/MEMORY.md", ["memory_md"]),
        (f"head {M}/MEMORY.md", ["memory_md"]),
        (f"head -n 40 {M}/MEMORY.md", ["memory_md"]),
        (f"head -40 {M}/MEMORY.md", ["memory_md"]),
        (f"tail -n +20 {M}/MEMORY.md", ["memory_md"]),
        (f"nl -ba {M}/MEMORY.md", ["memory_md"]),
        (f"awk '{{print $1}}' {M}/MEMORY.md", ["memory_md"]),
        (f"sed -n '10,40p' {M}/MEMORY.md", ["memory_md"]),
        (f"sed -n -e 7p {M}/MEMORY.md", ["memory_md"]),
        (f"Get-Content -Raw -Path {M}/MEMORY.md", ["memory_md"]),
        # And searches, which Codex does not see.
        (f"rg -n 'make check' {M}/MEMORY.md", ["memory_md"]),
        (f"rg -n -g '*.md' -A 3 check {M}/rollout_summaries", ["rollout_summaries"]),
        (f"rg -e memories/raw_memories.md {M}/MEMORY.md", ["memory_md"]),
        (f"grep -rniE 'a|b' --include '*.md' {M}/skills {M}/MEMORY.md", ["skills", "memory_md"]),
        (f"grep -nA 2 check {M}/MEMORY.md", ["memory_md"]),
        (f"git grep --no-index TODO {M}/skills/", ["skills"]),
        (f"ag check {M}/MEMORY.md", ["memory_md"]),
        (f"find {M}/rollout_summaries -name '*deploy*'", ["rollout_summaries"]),
        (f"fd deploy {M}/rollout_summaries", ["rollout_summaries"]),
        (f"rg -l check {M}/rollout_summaries/ | xargs cat", ["rollout_summaries"]),
        # The home of the user, and ours.
        ("cat ~/.codex/memories/MEMORY.md", ["memory_md"]),
        ("cat $HOME/.codex/memories/MEMORY.md", ["memory_md"]),
        ('cat "${HOME}/.codex/memories/MEMORY.md"', ["memory_md"]),
        ("rg check $STILLROOM_HOME/memories/MEMORY.md", ["memory_md"]),
        ('rg check "$STILLROOM_HOME"/memories/rollout_summaries', ["rollout_summaries"]),
        # Where one goes first.
        ("cd ~/.stillroom/memories && cat MEMORY.md && rg x rollout_summaries", ["memory_md", "rollout_summaries"]),
        ("cd ~/.stillroom && cd memories && sed -n 1,9p ./MEMORY.md", ["memory_md"]),
        ("cd memories/skills && cat ../MEMORY.md", ["memory_md"]),
        (f"cd memories && cat {M}/skills/a && cat ~/x", ["skills"]),
        (f"echo reading && cat {M}/MEMORY.md | wc -l", ["memory_md"]),
        ("cat memories/MEM\"ORY.m\"'d'", ["memory_md"]),
    ],
)
def test_reading_and_searching_memory_is_counted(command: str, found: list[str]) -> None:
    assert list(kinds(command)) == found


@pytest.mark.parametrize(
    "command",
    [
        "",
        "cat README.md",
        # Listing is no use, and the pattern of a search no path.
        f"ls {M}/skills/",
        f"tree {M}/rollout_summaries",
        f"rg --files {M}/skills",
        f"find {M}/rollout_summaries",
        "rg memories/MEMORY.md src",
        "grep -e memories/MEMORY.md src",
        "git grep memories/MEMORY.md",
        # More than plain words.
        f"cat {M}/MEMORY.md > copy.md",
        f"cat {M}/MEMORY.md 2>/dev/null",
        f"cat < {M}/MEMORY.md",
        f"cat $(echo {M}/MEMORY.md)",
        f"cat `echo {M}/MEMORY.md`",
        f"(cat {M}/MEMORY.md)",
        f"if true; then cat {M}/MEMORY.md; fi",
        f"for f in a; do cat {M}/MEMORY.md; done",
        f"cat {M}/MEMORY.md &",
        f"cat {M}/MEMORY.md # a look",
        f"A=1 cat {M}/MEMORY.md",
        f"! cat {M}/MEMORY.md",
        f"cat {M}/MEMORY.md |& head",
        f"cat {M}/rollout_summaries/*.md",
        f"cat {M}/{{MEMORY,raw_memories}}.md",
        "cat $CODEX/memories/MEMORY.md",
        "cat ${HOME:-/x}/memories/MEMORY.md",
        "cat ~other/memories/MEMORY.md",
        "cat a$HOME/memories/MEMORY.md",
        "cat memories/MEMORY.md\\ old",
        f"cat {M}/MEMORY.md && cat <<E\nx\nE",
        f"cat {M}/MEMORY.md '",
        # A command that nobody knows, or that changes something, anywhere in the script.
        f"cat {M}/MEMORY.md && make check",
        f"make check; cat {M}/MEMORY.md",
        f"cat {M}/MEMORY.md | python -m json.tool",
        f"cat {M}/MEMORY.md; echo done",
        f"rm {M}/MEMORY.md",
        f"time cat {M}/MEMORY.md",
        f"cat {M}/MEMORY.md {M}/raw_memories.md",
        f"sed -i 's/a/b/' {M}/MEMORY.md",
        f"sed -n -i 1,2p {M}/MEMORY.md",
        f"sed s/a/b/ {M}/MEMORY.md",
        f"tail -f {M}/MEMORY.md",
        f"find {M}/skills -name x -delete",
        f"fd x {M}/skills -x rm",
        f"git show {M}/MEMORY.md",
        f"rg -l x {M}/skills/ | xargs rm",
        f"rg -l x {M}/skills/ | xargs sed -i s/a/b/",
        "cat '" + M + "/MEMORY.md' " + "a" * 20_000,
    ],
)
def test_everything_else_counts_nothing(command: str) -> None:
    assert kinds(command) == ()


@pytest.mark.parametrize(
    "spare", ["wc -l", "sort | uniq -c", "sed -n 1,5p", "awk '{print}'", "head -n 3", "nl -ba", "true"]
)
def test_what_only_forms_the_output_is_passed_over(spare: str) -> None:
    assert kinds(f"cat {M}/MEMORY.md | {spare}") == ("memory_md",)


def test_a_relative_path_begins_where_the_command_runs() -> None:
    assert kinds("cat MEMORY.md", cwd=M) == ("memory_md",)
    assert kinds("cat SKILL.md", cwd=f"{M}/skills/deploy") == ("skills",)
    assert kinds("cat MEMORY.md", cwd="/home/u/project") == ()
    assert kinds("cd /home/u && cat MEMORY.md", cwd=M) == ()


def test_a_memory_folder_may_have_any_name() -> None:
    variables = {"HOME": "/home/u", "STILLROOM_HOME": "/home/u/still"}
    for path in ("/home/u/still/mem/MEMORY.md", "~/still/mem/MEMORY.md", "$STILLROOM_HOME/mem/MEMORY.md"):
        assert kinds(f"cat {path}") == ()
        assert kinds(f"cat {path}", root="/home/u/still/mem", variables=variables) == ("memory_md",)
    assert kinds("rg x ~/still/mem/skills", root="/home/u/still/mem/", variables=variables) == ("skills",)
    assert kinds("cat ~/still/memo/MEMORY.md", root="/home/u/still/mem", variables=variables) == ()


WORDS = ("cat|rg|cd|&&|;|>|$HOME/memories/MEMORY.md|'memories/skills/a b'|\"memories/|\"|'|(|-n|head|~/x|\\|$(|#|--"
         "|rollout_summaries/|\n|é|\0|echo|sed|1,2p")  # fmt: skip
WORD = st.sampled_from([*WORDS.split("|"), "|"])


@given(st.lists(WORD, max_size=10).map(" ".join))
def test_any_script_is_answered_and_the_quick_look_changes_no_answer(script: str) -> None:
    found = kinds(script)
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(usage_kinds, "_names_memory", lambda *_: True)
        assert kinds(script) == found


@given(st.lists(st.text('ab \t"\\$`{}*?[]~^#=;|&<>()!é漢', max_size=6), max_size=4))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    script = " ".join(["x", *(f"'{word}'" for word in words)])
    assert plain_commands(script) == [["x", *words]]


@given(st.lists(st.text("ab \"'\\=!é", max_size=6), max_size=4))
def test_words_are_those_of_a_shell(words: list[str]) -> None:
    script = " ".join(["x", *words])
    try:
        expected = shlex.split(script)
    except ValueError:
        return
    assert plain_commands(script) in (None, [expected])
