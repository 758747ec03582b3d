"""What a command line does, as far as a memory of the project needs it."""

from __future__ import annotations

import pytest

from stillroom.offline import distil, shell
from stillroom.sessions.events import Edit, Ran, Said
from stillroom.thread import Thread


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("cd api && make test; echo done", ["make test"]),
        ("bash -lc 'uv run pytest -q'", ["uv run pytest -q"]),
        ('for f in *.md; do echo "--- $f"; done', []),
        ('if [ -d "$DIR" ]; then make test; fi', []),
        ('DIR="/work/shop"; ls "$DIR"', []),
        ("export NODE_ENV=test && npm test", ["npm test"]),
        ("git -C /work/shop status --short", []),
        ("git --no-pager log -3", []),
        ("cat <<EOF > a.txt\nx\nEOF", []),
        ("NODE_ENV=test npm test", ["NODE_ENV=test npm test"]),
        ("continue", []),
    ],
)
def test_a_command_of_the_project_is_told_from_looks_and_scripts(command: str, told: list[str]) -> None:
    assert shell.telling(command) == told


def run(command: str, *, good: bool = True, output: str = "", edits: tuple[Edit, ...] = ()) -> Ran:
    return Ran(tool="shell", command=command, output=output, exit_code=int(not good), ok=good, edits=edits)


def told(*events: Said | Ran) -> str:
    thread = Thread(
        thread_id="t",
        agent="codex",
        rollout_path="/s",
        cwd="/work/shop",
        source="cli",
        created_at_ms=0,
        updated_at_ms=0,
    )
    draft = distil(thread, [Said(who="user", text="From now on always use pnpm here."), *events])
    return draft.raw_memory if draft else ""


def test_what_the_sandbox_denies_is_no_failure_of_the_project() -> None:
    denied = run("git fetch --all", good=False, output="Sandbox(Denied { exit_code: 255 })")
    assert "git fetch" not in told(denied, run("make test"), run("git fetch --all"))


def test_a_module_that_is_not_found_is_a_failure_with_its_cure() -> None:
    missing = run("uv run pytest", good=False, output="E   ModuleNotFoundError: No module named 'tidelib'")
    assert "Run `uv sync` when `uv run pytest` fails" in told(missing, run("uv sync"), run("uv run pytest"))


def test_of_a_loop_nobody_knows_what_failed() -> None:
    loop = "for f in a b; do cat $f; done"
    assert "for f" not in told(run(loop, good=False, output="cat: a: No such file or directory"), run(loop))


def test_where_no_command_ran_nothing_is_told_that_only_the_assistant_says() -> None:
    claim = Said(who="assistant", text="The cache is full because `evict()` compares seconds with milliseconds.")
    edit = Ran(tool="apply_patch", ok=True, edits=(Edit("src/cache.ts", "update", "-a\n+b"),))
    assert "compares seconds" not in told(Said(who="user", text="add a cache"), claim, edit)
