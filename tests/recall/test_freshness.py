"""What memory names is fresh, moved or broken, as git knows it; broken is said of nothing that was never there."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.clock import FixedClock
from stillroom.config import Recalling, Settings
from stillroom.recall.freshness.anchors import Anchor, anchors
from stillroom.recall.freshness.checking import Checker, Moment, _can_run
from stillroom.recall.freshness.stored import FILE, load_freshness
from stillroom.recall.injection.instructions import Instructions, fast_instructions
from stillroom.recall.injection.preparing import prepare_recall
from stillroom.store import Store
from stillroom.store.records import Stage1Draft
from stillroom.thread import FileStamp, Thread

NOW = 1_796_029_200  # 2026-11-30T09:00:00Z
DAY = 24 * 3600


class Repo:
    """A repository in which things were moved and deleted after a session ran in it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir(parents=True)
        self.git("init", "-q", "-b", "trunk")
        for path in ("src/old_name.py", "src/deleted.py", "src/kept.py", "lib/util.py", "tools/odd name.py"):
            self.write(path, f"def {Path(path).stem.replace(' ', '_')}_function():\n    return '{path}' * 3\n" * 9)
        self.write("src/symbols.py", "def gone_symbol(): ...\nclass KeptSymbol: ...\n")
        self.write("Makefile", "check:\n\ttrue\nold-target: check\n\ttrue\n")
        self.write("package.json", '{"scripts": {"lint": "x", "deploy": "y"}}')
        self.first = self.commit("first", days_ago=9)
        self.git("mv", "src/old_name.py", "src/new_name.py")
        self.git("mv", "lib/util.py", "src/util.py")
        self.git("rm", "-q", "src/deleted.py")
        self.write("src/symbols.py", "class KeptSymbol: ...\n")
        self.write("Makefile", "check:\n\ttrue\n")
        self.write("package.json", '{"scripts": {"lint": "x"}}')
        self.second = self.commit("second", days_ago=1)

    def write(self, path: str, text: str) -> None:
        (self.top / path).parent.mkdir(parents=True, exist_ok=True)
        (self.top / path).write_text(text, encoding="utf-8")

    def commit(self, message: str, *, days_ago: int) -> str:
        self.git("add", "-A")
        date = f"{NOW - days_ago * DAY} +0000"
        self.git("commit", "-qm", message, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *words: str, **more: str) -> str:
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        environment = {"PATH": os.environ["PATH"], "HOME": "/", "GIT_CONFIG_GLOBAL": "/dev/null", **who, **more}
        command = ["git", "-C", str(self.top), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=30).stdout

    def states(self, *named: tuple[str, str], moments: tuple[Moment, ...] | None = None) -> dict[str, object]:
        checker = Checker(
            place=str(self.top / ".git"),
            folder=str(self.top),
            git_dir=str(self.top / ".git"),
            moments=(Moment(NOW - 8 * DAY),) if moments is None else moments,
            until=time.monotonic() + 60,
            timeout_seconds=30,
        )
        facts, left = checker.check([Anchor(kind, text) for kind, text in named])  # type: ignore[arg-type]
        assert not left
        return {fact.text: fact.state if fact.now is None else (fact.state, fact.now) for fact in facts}


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    return Repo(tmp_path_factory.mktemp("repo") / "shop")


def test_paths_are_fresh_moved_broken_or_nobody_knows(repo: Repo) -> None:
    repo.write("untracked.txt", "x")
    paths = ("src/kept.py", "untracked.txt", "src/old_name.py", "lib/util.py", "src/deleted.py", "dist/never.js")
    names = ("kept.py", "old_name.py", "deleted.py", "never.js", f"{repo.top}/src/kept.py", "/etc/passwd.txt")
    assert repo.states(*(("path", path) for path in (*paths, *names))) == {
        "src/kept.py": "fresh",
        "untracked.txt": "fresh",
        "src/old_name.py": ("moved", "src/new_name.py"),
        "lib/util.py": ("moved", "src/util.py"),
        "src/deleted.py": "broken",
        "dist/never.js": "unknown",
        "kept.py": "fresh",
        "old_name.py": ("moved", "src/new_name.py"),
        "deleted.py": "broken",
        "never.js": "unknown",
        f"{repo.top}/src/kept.py": "fresh",
        "/etc/passwd.txt": "unknown",
    }


def test_symbols_and_commands_are_broken_only_if_they_were_there_when_it_was_learnt(repo: Repo) -> None:
    named = [("symbol", "KeptSymbol"), ("symbol", "gone_symbol"), ("symbol", "of_a_library")]
    named += [("command", c) for c in ("make check", "make old-target", "make nothing", "npm run lint")]
    named += [
        ("command", "npm run deploy"),
        ("command", "npm test"),
        ("commit", repo.first[:9]),
        ("commit", "abcdef012345"),
    ]
    assert repo.states(*named) == {
        "KeptSymbol": "fresh",
        "gone_symbol": "broken",
        "of_a_library": "unknown",
        "make check": "fresh",
        "make old-target": "broken",
        "make nothing": "unknown",
        "npm run lint": "fresh",
        "npm run deploy": "broken",
        "npm test": "unknown",
        repo.first[:9]: "fresh",
        "abcdef012345": "unknown",
    }
    later = (Moment(NOW, commit=repo.second),)
    assert repo.states(("symbol", "gone_symbol"), ("command", "make old-target"), moments=later) == {
        "gone_symbol": "unknown",
        "make old-target": "unknown",
    }
    assert repo.states(("commit", "abcdef012345"), moments=(Moment(NOW, commit="abcdef0123456789"),)) == {
        "abcdef012345": "broken"
    }


def test_what_another_branch_has_is_not_gone(repo: Repo, tmp_path: Path) -> None:
    clone = Repo(tmp_path / "clone")
    clone.git("branch", "main", clone.first)
    assert clone.states(("path", "src/deleted.py"), ("symbol", "gone_symbol")) == {
        "src/deleted.py": "fresh",
        "gone_symbol": "fresh",
    }


def test_a_hostile_repository_runs_nothing_and_a_broken_one_says_nothing(tmp_path: Path) -> None:
    hostile = Repo(tmp_path / "hostile")
    trap = tmp_path / "sprung"
    program = tmp_path / "trap.sh"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n", encoding="utf-8")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand", "diff.x.textconv"):
        hostile.git("config", key, str(program))
    hostile.git("config", "log.showSignature", "true")
    hostile.git("config", "core.hooksPath", str(tmp_path))
    hostile.write(".gitattributes", "* diff=x filter=x\n")
    hostile.git("config", "filter.x.clean", str(program))
    trap.unlink(missing_ok=True)
    named = [
        ("path", "src/deleted.py"),
        ("path", "lib/util.py"),
        ("symbol", "gone_symbol"),
        ("command", "make old-target"),
    ]
    assert set(map(str, hostile.states(*named).values())) == {"broken", "('moved', 'src/util.py')"}
    assert not trap.exists()
    (hostile.top / ".git" / "HEAD").write_text("nonsense", encoding="utf-8")
    checker = Checker(
        place="x",
        folder="x",
        git_dir=str(hostile.top / ".git"),
        moments=(),
        until=time.monotonic() + 9,
        timeout_seconds=9,
    )
    assert checker.check([Anchor("path", "src/deleted.py")]) == ([], [Anchor("path", "src/deleted.py")])


def test_lines_name_paths_symbols_commands_and_commits() -> None:
    line = (
        "- run `make check -j4`, see `src/cart.js:12` and docs/how-to.md, `parse_amount`, `abc1234`, `total`, node.js"
    )
    assert anchors(line) == [
        Anchor("command", "make check"),
        Anchor("path", "src/cart.js"),
        Anchor("symbol", "parse_amount"),
        Anchor("commit", "abc1234"),
        Anchor("path", "docs/how-to.md"),
    ]
    assert (
        anchors("- see https://x.org/a/b.html, `../up.py`, rollout_summaries/a.md, `1234567`, and/or `feedback`") == []
    )


@given(st.text(max_size=300))
def test_no_line_raises_and_none_names_too_much(line: str) -> None:
    for anchor in anchors(line):
        assert anchor.text.strip() == anchor.text != ""
        assert "\n" not in anchor.text


def test_a_session_is_told_what_is_gone_and_an_unchanged_repository_is_not_asked_again(tmp_path: Path) -> None:
    shop = Repo(tmp_path / "shop")
    home = tmp_path / "home"
    settings = Settings(home=home)
    clock = FixedClock(NOW * 1000)
    with Store.open(settings.database, clock=clock) as store:
        _learn(settings, store, str(shop.top))
        settings.root.mkdir()
        lines = ["v1", "", "## User preferences", "", "- look into `src/deleted.py` first (in shop)"]
        lines += ["- and `lib/util.py` too (in shop)", "- keep `src/kept.py` (in shop)", ""]
        (settings.root / "memory_summary.md").write_text("\n".join(lines), encoding="utf-8")
        handbook = (
            f"# Task Group: shop\n\napplies_to: cwd={shop.top}; reuse_rule=x\n\n## Knowledge\n\n- `gone_symbol`\n"
        )
        (settings.root / "MEMORY.md").write_text(handbook, encoding="utf-8")
        prepare_recall(settings, store, clock)
        told = fast_instructions(str(home), None, str(shop.top))
        assert isinstance(told, Instructions)
        assert "`src/deleted.py` first (in shop) (gone: src/deleted.py)\n" in told.text
        assert "`lib/util.py` too (in shop) (moved: lib/util.py is src/util.py)\n" in told.text
        assert "- keep `src/kept.py` (in shop)\n" in told.text
        (checked,) = load_freshness(home).repositories
        assert {fact.text: fact.state for fact in checked.facts}["gone_symbol"] == "broken"
        objects, hidden = shop.top / ".git" / "objects", shop.top / ".git" / "hidden"
        objects.rename(hidden)
        objects.mkdir()  # git can't say anything now
        prepare_recall(settings, store, clock)
        assert load_freshness(home).repositories == (checked,)
        objects.rmdir()
        hidden.rename(objects)
        shop.write("src/deleted.py", "again")
        shop.commit("third", days_ago=0)
        prepare_recall(settings, store, clock)
        told = fast_instructions(str(home), None, str(shop.top))
        assert isinstance(told, Instructions)
        assert "gone: src" not in told.text
        none = Recalling(checking_seconds=0)
        shop.write("more", "x")
        shop.commit("fourth", days_ago=0)
        prepare_recall(Settings(home=home, recalling=none), store, clock)
        (kept,) = load_freshness(home).repositories
        assert (kept.left, {fact.text: fact.state for fact in kept.facts}["gone_symbol"]) == (4, "broken")


@pytest.mark.parametrize("damage", ["", "[]", '{"format": 99}', json.dumps({"repositories": 3})])
def test_a_damaged_file_says_nothing(tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE).write_text(damage, encoding="utf-8")
    assert load_freshness(tmp_path).repositories == ()


def _learn(settings: Settings, store: Store, cwd: str) -> None:
    thread = Thread(
        thread_id="t",
        agent="codex",
        rollout_path="/t",
        source="cli",
        cwd=cwd,
        created_at_ms=(NOW - 8 * DAY) * 1000,
        updated_at_ms=(NOW - 8 * DAY) * 1000,
        preview="hello",
    )
    store.threads.save([(thread, FileStamp(size=1, mtime_ns=1))])
    (claim,) = store.extraction.claim(
        worker_id="w", current_thread_id=None, memories=settings.memories, stage=settings.stage_one, max_claims=1
    )
    store.extraction.finish(claim, Stage1Draft(raw_memory="r", rollout_summary="s"), engine="offline")


@pytest.mark.parametrize(
    ("makefile", "can"),
    [
        ("check: a b\n\ttrue\n", True),
        ("all check:: b\n", True),
        ("check := 3\n", False),
        ("\tcheck: x\n# check: x\n", False),
        ("include rules.mk\n", None),
        ("%: x\n", None),
        ("$(NAME): x\n", None),
        ("$(NAME): x\ncheck:\n", True),
    ],
)
def test_a_makefile_has_a_target_or_has_not_or_does_not_tell(makefile: str, can: bool | None) -> None:
    assert _can_run(["make", "check"], makefile) is can


def test_hostile_lines_take_no_longer_than_others() -> None:
    started = time.process_time()
    for line in ("+a" * 100_000, "a/" * 100_000, "a." * 100_000, "`" * 200_000, "a" * 300_000):
        anchors(line)
        _can_run(["make", "check"], line)
    assert time.process_time() - started < 1
