from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.config import StageTwo
from stillroom.offline import consolidate
from stillroom.store.records import Stage1Output
from stillroom.workspace.artifacts import render
from stillroom.workspace.syncing import sync
from stillroom.workspace.validate import check_artifacts

NOW = 1_795_000_000


def output(
    number: int,
    *,
    wishes: Sequence[str] = (),
    facts: Sequence[str] = (),
    cwd: str = "/home/ada/shop",
    origin: str | None = None,
    used: int = 0,
    name: str = "",
) -> Stage1Output:
    name = name or f"task number {number}"
    lines = ["---", f"description: {name}", f"task: {name}", "task_group: shop", "task_outcome: success"]
    lines += [f"cwd: {cwd}", "keywords: make test, shop.py", "---", "", f"### Task 1: {name}", "", f"task: {name}"]
    lines += ["task_group: shop", "task_outcome: success", ""]
    if wishes:
        lines += ["Preference signals:", *(f'- the user asked: "{wish}" -> default in shop' for wish in wishes)]
    if facts:
        lines += ["Reusable knowledge:", *(f"- {fact}" for fact in facts)]
    lines += ["References:", "- [1] `make test` -> passed, 2 times: 12 passed"]
    moment = NOW - (100 - number) * 86_400
    return Stage1Output(
        thread_id=f"0194f5a6-89ab-7cde-8123-4567{number:08x}",
        source_updated_at=moment,
        raw_memory="\n".join(lines) + "\n",
        rollout_summary=f"# {name}\n",
        rollout_slug=None,
        rollout_path=f"/rollouts/{number}.jsonl",
        cwd=cwd,
        git_branch=None,
        git_origin_url=origin,
        generated_at=moment + 60,
        engine="offline",
        usage_count=used,
    )


def run(folder: Path, outputs: Sequence[Stage1Output], limits: StageTwo | None = None) -> tuple[str, str]:
    limits = limits or StageTwo()
    folder.mkdir(exist_ok=True)
    sync(folder, render(sorted(outputs, key=lambda o: o.thread_id)))
    consolidate(folder, outputs, now=NOW, limits=limits)
    assert [f for f in check_artifacts(folder, limits=limits) if f.fatal] == []
    return (
        (folder / "MEMORY.md").read_text(encoding="utf-8"),
        (folder / "memory_summary.md").read_text(encoding="utf-8"),
    )


def insert(path: Path, *, after: str, lines: Sequence[str]) -> None:
    text = path.read_text(encoding="utf-8").split("\n")
    at = next(i for i, line in enumerate(text) if after in line)
    text[at + 1 : at + 1] = lines
    path.write_text("\n".join(text), encoding="utf-8")


def test_no_inputs_make_minimal_valid_files(tmp_path: Path) -> None:
    handbook, summary = run(tmp_path / "m", [])
    assert handbook.startswith("# Memory\n")
    assert summary.startswith("v1\n\n## User preferences\n")


def test_a_second_run_changes_no_byte(tmp_path: Path) -> None:
    outputs = [output(1, wishes=["always use uv"]), output(2, facts=["The queue is Redis 7."], cwd="/home/ada/other")]
    first = run(tmp_path / "m", outputs)
    assert run(tmp_path / "m", outputs) == first
    assert run(tmp_path / "n", outputs) == first


def test_the_same_wish_stands_once_with_every_task(tmp_path: Path) -> None:
    handbook, _ = run(
        tmp_path / "m", [output(1, wishes=["提交信息一律用中文。"]), output(2, wishes=["提交信息一律用中文！"])]
    )
    [line] = [line for line in handbook.splitlines() if "提交信息" in line]
    assert line.endswith("[Task 1][Task 2]")


def test_what_a_fork_repeats_of_its_origin_counts_once(tmp_path: Path) -> None:
    origin, other = output(1, name="find the leak"), output(3)
    told = output(2, name="find the leak")
    fork = msgspec.structs.replace(told, raw_memory=told.raw_memory.replace("2 times", "3 times"))
    handbook, _ = run(tmp_path / "m", [origin, fork, other])
    assert "`make test` works here (passed, 5 times, " in handbook


def test_a_newer_wish_supersedes_an_older_one_and_says_so(tmp_path: Path) -> None:
    old = output(1, wishes=["line length is always 80 characters"])
    new = output(2, wishes=["from now on line length is 100 characters, no longer 80"])
    handbook, summary = run(tmp_path / "m", [old, new])
    [line] = [line for line in handbook.splitlines() if line.startswith("- ") and "line length" in line]
    assert "from now on line length is 100" in line
    assert f'(supersedes: "line length is always 80 characters", {day_of(old)})' in line
    assert "always 80" not in summary


def test_a_later_session_of_the_same_day_wins_too(tmp_path: Path) -> None:
    old = output(1, wishes=["line length is always 80 characters"])
    new = output(1, wishes=["from now on line length is 100 characters, no longer 80"])
    new = msgspec.structs.replace(
        new, thread_id=old.thread_id[:-1] + "f", source_updated_at=old.source_updated_at + 3600
    )
    handbook, _ = run(tmp_path / "m", [old, new])
    [line] = [line for line in handbook.splitlines() if line.startswith("- ") and "line length" in line]
    assert "from now on line length is 100" in line


def day_of(out: Stage1Output) -> str:
    return datetime.fromtimestamp(out.source_updated_at, tz=UTC).date().isoformat()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("use pnpm for installs here, not yarn", "from now on use yarn for installs here"),
        ("always use spaces instead of tabs in the sources", "always use tabs in the sources"),
        ("zum Bauen immer ninja nehmen, nicht make", "zum Bauen immer make nehmen"),
        ("テストは jest ではなく vitest を使う", "テストは jest を使う"),
    ],
)
def test_whoever_wants_what_was_refused_has_changed_their_mind(tmp_path: Path, old: str, new: str) -> None:
    handbook, summary = run(tmp_path / "m", [output(1, wishes=[old]), output(2, wishes=[new])])
    [line] = [line for line in handbook.splitlines() if line.startswith("- ") and new in line]
    assert "supersedes" in line and old not in summary


def test_a_wish_told_with_what_it_refuses_is_the_same_wish(tmp_path: Path) -> None:
    told = [
        output(1, wishes=["use pnpm for installs here"]),
        output(2, wishes=["use pnpm for installs here, not yarn"]),
    ]
    handbook, _ = run(tmp_path / "m", told)
    assert sum("use pnpm for installs" in line for line in handbook.splitlines() if line.startswith("- the user")) == 1


def test_projects_take_turns_where_the_summary_has_no_room_for_all(tmp_path: Path) -> None:
    chores = ("rotate the logs", "name the branches after tickets", "squash the commits", "sign the tags")
    outputs = [
        output(number, wishes=[f"always {chore} of {name}" for chore in chores], cwd=f"/home/ada/{name}", name=name)
        for number, name in enumerate(("billing", "gateway", "kiosk"), 1)
    ]
    _, summary = run(tmp_path / "m", outputs)
    wishes = [line for line in summary.splitlines() if line.startswith("- the user asked")]
    assert len({line.rpartition("(in ")[2] for line in wishes[:3]}) == 3


def test_where_a_wish_holds_is_said_once_whatever_the_checkout_is_called(tmp_path: Path) -> None:
    wished = output(1, wishes=["always use uv"], cwd="/home/ada/shop-hotfix", origin="git@host.example:ada/shop.git")
    raw = wished.raw_memory.replace("-> default in shop", "-> default in shop-hotfix")
    checkout = msgspec.structs.replace(wished, raw_memory=raw)
    main = output(2, facts=["The queue is Redis 7."], origin="git@host.example:ada/shop.git")
    _, summary = run(tmp_path / "m", [checkout, main])
    [line] = [line for line in summary.splitlines() if "always use uv" in line and line.startswith("- the user")]
    assert line.endswith("-> default (in shop)")


def test_two_rules_on_neighbouring_subjects_both_hold(tmp_path: Path) -> None:
    outputs = [
        output(1, wishes=["run pytest before every commit"]),
        output(2, wishes=["from now on run ruff before every commit"]),
    ]
    handbook, _ = run(tmp_path / "m", outputs)
    assert "supersedes" not in handbook
    assert "run pytest" in handbook
    assert "run ruff" in handbook


def test_checkouts_of_one_origin_are_one_group(tmp_path: Path) -> None:
    outputs = [
        output(1, cwd="/home/ada/shop", origin="git@github.com:ada/shop.git"),
        output(2, cwd="/tmp/worktree", origin="https://github.com/ada/shop"),
        output(3, cwd="/home/ada/shop/web"),
    ]
    handbook, _ = run(tmp_path / "m", outputs)
    assert handbook.count("# Task Group:") == 1


def test_used_groups_come_first(tmp_path: Path) -> None:
    handbook, _ = run(tmp_path / "m", [output(2, cwd="/w/new"), output(1, cwd="/w/used", used=3)])
    assert handbook.index("# Task Group: used") < handbook.index("# Task Group: new")


def test_what_rested_on_an_input_that_is_gone_goes(tmp_path: Path) -> None:
    stays, goes = output(1, wishes=["always use uv"]), output(2, wishes=["never use big.Rat"])
    run(tmp_path / "m", [stays, goes])
    handbook, summary = run(tmp_path / "m", [stays])
    assert "big.Rat" not in handbook + summary
    assert "always use uv" in handbook


def test_notes_are_told_with_their_tag(tmp_path: Path) -> None:
    notes = tmp_path / "m" / "extensions" / "ad_hoc" / "notes"
    notes.mkdir(parents=True)
    (notes / "2026-11-12-licence.md").write_text("# Licence\n- New files need the SPDX line.\n", encoding="utf-8")
    handbook, summary = run(tmp_path / "m", [output(1)])
    assert "- New files need the SPDX line. [ad-hoc note]" in handbook
    assert "New files need the SPDX line. [ad-hoc note]" in summary


def test_a_note_is_never_cut_and_all_of_it_is_for_its_project(tmp_path: Path) -> None:
    notes = tmp_path / "m" / "extensions" / "ad_hoc" / "notes"
    notes.mkdir(parents=True)
    label = f"in shop (/srv/{'deep/' * 30}shop): "
    text = f"{label}Deploys on Tuesdays. {'x ' * 100}y.\n- By Ada alone.\n"
    (notes / "2026-11-12-deploys.md").write_text(text, encoding="utf-8")
    (notes / "2026-11-13-tabs.md").write_text("In this repo tabs.\n", encoding="utf-8")
    handbook, summary = run(tmp_path / "m", [output(1)])
    for line in (f"- {text.splitlines()[0]} [ad-hoc note]", f"- {label}By Ada alone. [ad-hoc note]"):
        assert line in handbook.splitlines() and line in summary.splitlines()
    assert "In this repo tabs." in handbook and "In this repo" not in summary  # nobody knows in which
    outputs = [output(n, wishes=[f"wish {n} {'x' * 200}"], cwd=f"/w/{n % 20}") for n in range(1, 90)]
    _, summary = run(tmp_path / "m", outputs, StageTwo(max_summary_tokens=600))
    assert "Deploys" not in summary and "…" not in summary


def test_a_persons_lines_stay_word_for_word_where_they_stood(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    run(folder, [output(1, wishes=["always use uv"], facts=["The queue is Redis 7."])])
    insert(folder / "MEMORY.md", after="always use uv", lines=["* MINE:   odd  spacing kept"])
    insert(folder / "MEMORY.md", after="## Reusable knowledge", lines=["", "A paragraph of mine.", "On two lines."])
    insert(folder / "memory_summary.md", after="## General Tips", lines=["", "- my own tip"])
    (folder / "MEMORY.md").write_text(
        "Preamble of mine.\n\n" + (folder / "MEMORY.md").read_text(encoding="utf-8"), encoding="utf-8"
    )
    later = [output(1, wishes=["always use uv"], facts=["The queue is Redis 7."]), output(2, wishes=["never push"])]
    handbook, summary = run(folder, later)
    assert handbook.startswith("Preamble of mine.\n")
    assert "* MINE:   odd  spacing kept\n" in handbook
    assert "A paragraph of mine.\nOn two lines.\n" in handbook
    assert "- my own tip\n" in summary
    assert "never push" in handbook
    assert run(folder, later) == (handbook, summary)


def test_a_line_that_a_person_took_out_stays_out(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    outputs = [output(1, wishes=["always use uv"], facts=["The queue is Redis 7."])]
    handbook, _ = run(folder, outputs)
    kept = [line for line in handbook.splitlines() if "Redis 7" not in line]
    (folder / "MEMORY.md").write_text("\n".join(kept) + "\n", encoding="utf-8")
    for _ in range(2):
        handbook, _ = run(folder, [*outputs, output(2)])
        assert "Redis 7" not in handbook
        assert "always use uv" in handbook


def test_a_line_that_a_person_rewrote_stays_rewritten(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    outputs = [output(1, facts=["The queue is Redis 7."])]
    handbook, _ = run(folder, outputs)
    (folder / "MEMORY.md").write_text(handbook.replace("Redis 7", "Valkey 8"), encoding="utf-8")
    handbook, _ = run(folder, [*outputs, output(2)])
    assert "Valkey 8" in handbook
    assert "Redis 7" not in handbook


def test_a_block_of_a_persons_own_survives_its_neighbours(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    handbook, _ = run(folder, [output(1)])
    own = "# My servers\n\n## Staging\n\n- db1 is the primary\n\n```\nalways - not a rule\n```\n"
    (folder / "MEMORY.md").write_text(own + "\n" + handbook, encoding="utf-8")
    for outputs in ([output(1), output(2)], [output(2, cwd="/w/else")], []):
        handbook, _ = run(folder, outputs)
        assert own in handbook


def test_a_fence_that_is_never_closed_swallows_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    run(folder, [output(1, wishes=["always use uv"])])
    insert(folder / "MEMORY.md", after="# Task Group", lines=["```"])
    first = run(folder, [output(1, wishes=["always use uv"])])
    assert first[0].count("always use uv") == 1
    assert run(folder, [output(1, wishes=["always use uv"])]) == first


def test_hashes_of_generated_lines_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    handbook, summary = run(tmp_path, [output(1, wishes=["always use uv"])])
    record = (tmp_path / ".stillroom-lines").read_text(encoding="utf-8")
    assert "handbook: " in record and "summary: " in record
    assert "<!--" not in handbook + summary and "handbook: " not in handbook


def test_a_handbook_that_ends_with_its_record_is_read_as_before(tmp_path: Path) -> None:
    outputs = [output(1, wishes=["always use uv"], facts=["The queue is Redis 7.", "The port is 8080."])]
    run(tmp_path, outputs)
    path, record = tmp_path / "MEMORY.md", tmp_path / ".stillroom-lines"
    path.write_text(path.read_text(encoding="utf-8") + "\n" + record.read_text(encoding="utf-8"), encoding="utf-8")
    record.unlink()
    insert(path, after="always use uv", lines=["- a line of mine"])
    edited = [line for line in path.read_text(encoding="utf-8").split("\n") if "Redis 7" not in line]
    path.write_text("\n".join(edited), encoding="utf-8")
    for _ in range(2):
        handbook, _ = run(tmp_path, [*outputs, output(2)])
        assert handbook.count("- a line of mine\n") == 1 and handbook.count("The port is 8080.") == 1
        assert "Redis 7" not in handbook and "<!--" not in handbook
        assert record.read_text(encoding="utf-8").count("\nout: ") == 1


def test_a_record_says_nothing_of_files_that_another_program_wrote_since(tmp_path: Path) -> None:
    outputs = [output(1, wishes=["always use uv"], facts=["The queue is Redis 7."])]
    run(tmp_path, outputs)
    theirs = ["# Task Group: theirs", "scope: their work", "applies_to: cwd=/w/theirs"]
    theirs += [f"- fact {number} of theirs [Task 1]" for number in range(60)]
    (tmp_path / "MEMORY.md").write_text("\n".join(theirs) + "\n", encoding="utf-8")
    handbook, _ = run(tmp_path, outputs)
    assert "The queue is Redis 7." in handbook and "of theirs" not in handbook


def test_a_folder_without_a_record_keeps_what_is_not_of_our_shape(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# House rules\n\nNo deploys on Fridays.\n", encoding="utf-8")
    handbook, _ = run(folder, [output(1)])
    assert "# House rules\n\nNo deploys on Fridays.\n" in handbook


def test_at_the_cap_the_newest_and_the_most_used_stay(tmp_path: Path) -> None:
    """Inputs come oldest first, and the oldest were kept."""
    many = [output(n, wishes=[f"always call helper_{n} before module {n}"]) for n in range(2, 99)]
    oldest = output(1, wishes=["always use yarn in this repository"])
    used = output(0, wishes=["always answer in German"], used=3)
    newest = output(99, wishes=["always use pnpm in this repository, never yarn"])
    handbook, summary = run(tmp_path, [used, oldest, *many, newest], StageTwo(max_handbook_bytes=20_000))
    assert "always use pnpm" in handbook and "always use yarn" not in handbook
    assert "answer in German" in handbook and "helper_98 " in handbook and "helper_2 " not in handbook
    assert "always use pnpm" in summary


def test_sizes_are_never_exceeded(tmp_path: Path) -> None:
    limits = StageTwo(max_summary_tokens=600, max_handbook_bytes=20_000)
    outputs = [
        output(n, wishes=[f"wish {n} {'x' * 200}"], facts=[f"fact {n} {'y' * 200}"], cwd=f"/w/{n % 20}")
        for n in range(1, 90)
    ]
    handbook, summary = run(tmp_path / "m", outputs, limits)
    assert 4_000 < len(handbook.encode()) <= 20_000
    assert len(summary.encode()) <= 2_400


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    raw=st.lists(st.text(max_size=200), max_size=3),
    edit=st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=120),
    at=st.integers(0, 40),
)
def test_any_raw_memory_and_any_edit_end_in_valid_stable_files(
    tmp_path_factory: pytest.TempPathFactory, raw: list[str], edit: str, at: int
) -> None:
    folder = tmp_path_factory.mktemp("m")
    outputs = [msgspec.structs.replace(output(n), raw_memory=text or "x") for n, text in enumerate(raw, 1)]
    sync(folder, render(outputs))
    consolidate(folder, outputs, now=NOW, limits=StageTwo())
    lines = (folder / "MEMORY.md").read_text(encoding="utf-8").split("\n")
    lines.insert(min(at, len(lines)), "MY LINE " + " ".join(edit.split()))
    (folder / "MEMORY.md").write_text("\n".join(lines), encoding="utf-8")
    consolidate(folder, outputs, now=NOW, limits=StageTwo())
    first = (folder / "MEMORY.md").read_bytes(), (folder / "memory_summary.md").read_bytes()
    consolidate(folder, outputs, now=NOW, limits=StageTwo())
    assert ((folder / "MEMORY.md").read_bytes(), (folder / "memory_summary.md").read_bytes()) == first
    assert b"MY LINE" in first[0]


def test_a_wish_holds_where_it_was_made_and_everywhere_once_three_projects_have_it(tmp_path: Path) -> None:
    cwds = ["/w/shop", "/w/api", "/w/site", "/w/legacy"]
    always, rare = "answers are always in English", "commits always have a ticket number"
    outputs = [output(n, wishes=[always] if n < 3 else [], cwd=cwd) for n, cwd in enumerate(cwds)]
    outputs += [output(n + 10, wishes=[rare] if n < 2 else [], cwd=cwd) for n, cwd in enumerate(cwds)]
    _, summary = run(tmp_path / "m", outputs)
    endings = {line.rpartition(" (in ")[2] for line in summary.split("\n") if "the user asked" in line}
    assert endings == {"every project)", "api, shop)"}
    outputs.append(output(20, wishes=["answers are never in English"], cwd="/w/legacy"))
    _, summary = run(tmp_path / "m", outputs)
    assert "(in every project)" not in summary


FAILS = 'when `make test` fails with "No module named x"'


def raw(*lines: str, kind: str = "Failures and how to do differently") -> str:
    head = (
        "---\ndescription: d\ntask: t\ntask_outcome: success\ncwd: /w\nkeywords: cart.py, make lint, deploy.sh\n---\n\n"
    )
    return f"{head}### Task 1: fix the cart\n\n{kind}:\n" + "".join(f"- {line}\n" for line in lines)


def made(tmp_path: Path, texts: Sequence[str], *, projects: bool = False) -> tuple[str, str]:
    """What becomes of these outputs, each of a task of its own; in one project, or in one for each."""
    outputs = [
        msgspec.structs.replace(
            output(n, cwd=f"/w/p{n}" if projects else "/w"),
            raw_memory=text.replace("fix the cart", f"task {n}").replace("cwd: /w", f"cwd: /w{f'/p{n}' * projects}"),
        )
        for n, text in enumerate(texts, 1)
    ]
    return run(tmp_path / "m", outputs)


def bullets(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ") and word in line]


def test_what_several_sessions_say_stands_once_with_how_often_and_when(tmp_path: Path) -> None:
    wish, fact = 'the user said: "always squash the commits"', "The queue is Redis 7 on port 6390"
    texts = [raw(wish, kind="Preference signals") + f"\nReusable knowledge:\n- {fact}{end}\n" for end in ("", ".", "!")]
    handbook, summary = made(tmp_path, texts)
    last = day_of(output(3))
    assert bullets(handbook, "squash") == [f"- {wish} (said in 3 sessions, last {last}) [Task 1][Task 2][Task 3]"]
    assert bullets(handbook, "Redis") == [f"- {fact}! (in 3 sessions, last {last}) [Task 1][Task 2][Task 3]"]
    assert bullets(summary, "squash") == [f"- {wish} (said in 3 sessions, last {last}) (in w)"]


def test_facts_that_differ_in_a_name_or_a_number_both_stand(tmp_path: Path) -> None:
    fact = "The service of the staging cluster in Frankfurt keeps its totals in cents and its log in /log/{}, port {}"
    texts = [raw(fact.format(*each), kind="Reusable knowledge") for each in (("a", 80), ("b", 80), ("a", 81))]
    assert len(bullets(made(tmp_path, texts)[0], "keeps its totals")) == 3


def test_a_line_that_a_person_took_out_stays_out_when_it_is_said_again(tmp_path: Path) -> None:
    texts = [raw('the user said: "always squash the commits"', kind="Preference signals")] * 2
    made(tmp_path, texts[:1])
    path = tmp_path / "m" / "MEMORY.md"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if "squash" not in line]
    path.write_text("\n".join(kept), encoding="utf-8")
    assert bullets(made(tmp_path, texts)[0], "squash") == []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [f"Fix in `a.py` (`+x = 1`) {FAILS} (then it passed)", f"Fix in `b.py` {FAILS} (then it passed)"],
            f"Fix in `a.py` (`+x = 1`); fix in `b.py` {FAILS} (then it passed)",
        ),
        (
            [
                "`make` failed (exit 1): boom | fixed in `a` | then passed",
                "`make` failed (exit 1): boom | fixed in `b`",
            ],
            "`make` failed (exit 1): boom | fixed in `a` | fixed in `b` | then passed",
        ),
        ([f"Run `uv sync` {FAILS}", f"Run `uv sync` {FAILS} (then `make` passed)"], f"Run `uv sync` {FAILS}"),
    ],
)
def test_an_error_is_one_line_however_many_files_were_edited(tmp_path: Path, lines: list[str], expected: str) -> None:
    assert bullets(made(tmp_path, [raw(*lines)])[0], "fail") == [f"- {expected} [Task 1]"]


def test_the_newest_cure_of_an_error_stands(tmp_path: Path) -> None:
    handbook, _ = made(tmp_path, [raw(f"Run `pip install x` {FAILS}"), raw(f"Run `uv sync` {FAILS}")])
    [line] = bullets(handbook, "No module")
    assert line.startswith(f"- Run `uv sync` {FAILS} (in 2 sessions, last ")


def test_a_command_that_another_one_took_over_from_works_no_more(tmp_path: Path) -> None:
    passes = "\nReferences:\n- [1] `tox -e quick` -> passed, 2 times\n- [2] `make lint` -> passed\n"
    before = raw('Run `tox -e quick` when `pytest` fails with "No tapes"') + passes
    taken_over = 'Run `just test` when `tox -e quick` fails with "gone"'
    for line in (
        taken_over,
        f"{taken_over} (then `just test` passed)",
        "`tox -e quick` failed (exit 1) | what worked: `just test`",
    ):
        handbook, _ = made(tmp_path, [before, raw(line) + "\nReferences:\n- [1] `just test` -> passed\n"])
        assert {line.split("`")[1] for line in bullets(handbook, "works here")} == {"just test", "make lint"}
        assert bullets(handbook, "No tapes") == []
    cured = raw('Run `uv sync` when `tox -e quick` fails with "gone" (then `tox -e quick` passed)')
    assert bullets(made(tmp_path, [before, cured])[0], "`tox -e quick` works here")
    later = raw("It passes again", kind="Reusable knowledge") + passes
    assert bullets(made(tmp_path, [before, raw(taken_over), later])[0], "`tox -e quick` works here")


def test_tips_are_cures_and_nothing_is_cut(tmp_path: Path) -> None:
    long = f'Fix in `a.py` {FAILS} (cause, said by the assistant: "{"why " * 70}"; then it passed)'
    _, summary = made(tmp_path, [raw("`make lint` failed (exit 1): boom", long, f'Run `uv sync` {FAILS[:-1]} y"')])
    tips = summary.partition("## General Tips")[2].partition("## What's")[0]
    assert [line for line in tips.splitlines() if line] == [
        f"- {long} (in w)",
        f'- Run `uv sync` {FAILS[:-1]} y" (in w)',
    ]


def test_keywords_belong_to_their_task(tmp_path: Path) -> None:
    text = raw("Run `make lint` first") + "\n### Task 2: ship it\n\nReusable knowledge:\n- deploy.sh needs a token\n"
    handbook, _ = made(tmp_path, [text])
    assert [line for line in handbook.splitlines() if line in ("- make lint", "- deploy.sh")] == [
        "- make lint",
        "- deploy.sh",
    ]


def test_the_profile_says_which_languages_the_user_writes_or_is_left_out(tmp_path: Path) -> None:
    german = ["immer Biome nehmen, nicht Prettier", "bitte keine Kommentare mit Namen", "提交信息用中文"]
    english = ["always use biome and not prettier", "never put names into comments of the code"]
    cases = ((german, "- Writes: German"), ([*english, *german], "- Writes: English, German"), (english, ""))
    for wishes, expected in cases:
        folder = tmp_path / str(len(wishes))
        folder.mkdir()
        _, summary = made(folder, [raw(*(f'the user said: "{wish}"' for wish in wishes), kind="Preference signals")])
        profile = summary.partition("## User Profile\n\n")[2].partition("\n")[0]
        assert profile == expected


@pytest.mark.parametrize(
    ("wish", "projects", "everywhere"),
    [
        ("in all my projects use tabs", 1, True),
        ("in allen meinen Projekten Tabs nehmen", 1, True),
        ("utilise des tabulations dans tous mes projets", 1, True),
        ("usa tabuladores en todos mis proyectos", 1, True),
        ("во всех моих проектах используй табы", 1, True),
        ("所有项目都用制表符", 1, True),
        ("すべてのプロジェクトでタブを使う", 1, True),
        ("모든 프로젝트에서 탭을 써", 1, True),
        ("we wszystkich projektach tabulatory", 1, True),
        ("bütün projelerde sekme kullan", 1, True),
        ("सभी प्रोजेक्ट में टैब", 1, True),
        ("use tabs everywhere in this repo", 4, False),
        ("Unsere Kantoren werden gesiezt, überall.", 1, False),
        ("use tabs everywhere", 2, True),
        ("always use tabs, never spaces", 2, False),
        ("always use tabs, never spaces", 3, True),
        ("always use tabs here", 4, False),
        ("in this repo always use tabs", 4, False),
        ("deploys of this go through Ada", 4, False),
        ("hier immer Tabs nehmen", 4, False),
        ("in diesem Projekt nie Leerzeichen", 4, False),
        ("dans ce dépôt toujours des tabulations", 4, False),
        ("en este proyecto siempre tabuladores", 4, False),
        ("neste projeto sempre use tabs", 4, False),
        ("in questo progetto usa sempre i tab", 4, False),
        ("в этом репозитории всегда табы", 4, False),
        ("w tym projekcie zawsze tabulatory", 4, False),
        ("bu projede hep sekme kullan", 4, False),
        ("इस प्रोजेक्ट में हमेशा टैब", 4, False),
        ("这个项目里一律用制表符", 4, False),
        ("このプロジェクトでは必ずタブを使う", 4, False),
        ("이 저장소에서는 항상 탭을 써", 4, False),
    ],
)
def test_a_sentence_that_points_never_holds_everywhere(
    tmp_path: Path, wish: str, projects: int, everywhere: bool
) -> None:
    texts = [raw(f'the user said: "{wish}"', kind="Preference signals")] * projects
    _, summary = made(tmp_path, texts, projects=True)
    [line] = [line for line in summary.splitlines() if line.startswith("- the user said")]
    assert line.endswith("(in every project)") is everywhere
