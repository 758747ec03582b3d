"""No project is told of another: whoever wrote the summary, however projects are called."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stillroom.config import Memories, Settings, StageTwo
from stillroom.offline import consolidate
from stillroom.recall.injection.instructions import Instructions, compose
from stillroom.recall.injection.preparing import make_ready
from stillroom.recall.injection.scopes import KnownFolder, Scope, resolve
from stillroom.recall.injection.summary import parse
from stillroom.recall.projects.repository import Repository
from stillroom.store.records import Stage1Output
from stillroom.workspace import artifacts
from stillroom.workspace.syncing import sync


def plain(path: str, *, has_memory: bool = True) -> KnownFolder:
    return KnownFolder(path, Repository(place=path, folder=path, is_git=False), has_memory=has_memory)


def checkout(path: str, *, remote: str | None = None, cwd: str = "", has_memory: bool = True) -> KnownFolder:
    return KnownFolder(cwd or path, Repository(place=f"{path}/.git", folder=path, remote=remote), has_memory=has_memory)


def scope_of(label: str, *folders: KnownFolder, more: str = "") -> Scope | None:
    """What a preference that ends with this label is for; the projects are numbered as the folders are."""
    summary = parse(f"v1\n## User preferences\n- x (in {label})\n{more}")
    found = resolve(summary.labels, summary.index, folders)
    number = next(line.scope for line in summary.lines if line.text.startswith("- x"))
    scope = found.scopes[number] if number >= 0 else None
    if scope is None or not scope.known:
        return scope
    repositories = list(dict.fromkeys(folder.repository for folder in folders))
    return Scope(known=tuple(repositories.index(found.repositories[n]) for n in scope.known))


SHOP, API = checkout("/w/shop", remote="example.com/ada/shop"), checkout("/w/api", cwd="/w/api/backend")
ELSEWHERE = checkout("/else/api")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("shop", Scope(known=(0,))),
        ("Shop", Scope(known=(0,))),
        ("example.com/ada/shop", Scope(known=(0,))),
        ("shop (example.com/ada/shop)", Scope(known=(0,))),
        ("shop (Ada's web shop)", Scope(known=(0,))),
        ("/w/shop/src", Scope(known=(0,))),
        ("`/w/shop`", Scope(known=(0,))),
        ("backend", Scope(known=(1,))),
        ("backend (/w/api/backend)", Scope(known=(1,))),
        ("shop, backend", Scope(known=(0, 1))),
        ("shop, English", Scope(known=(0,))),
        ("api", Scope()),  # there are two
        ("api, backend", Scope(known=(1,))),
        ("/w/unknown", Scope(paths=("/w/unknown",))),
        ("English", None),
        ("any case", None),
        ("every project", None),
    ],
)
def test_what_labels_mean(label: str, expected: Scope | None) -> None:
    assert scope_of(label, SHOP, API, ELSEWHERE) == expected


def test_a_section_with_folders_says_which_of_two_projects_of_a_name_is_meant() -> None:
    index = "## What's in Memory\n### api\n- queue\n  - desc: waits; cwd=/else/api\n"
    assert scope_of("api", SHOP, API, ELSEWHERE, more=index) == Scope(known=(2,))


def test_of_two_projects_of_a_name_the_one_with_memory_is_meant() -> None:
    assert scope_of("api", SHOP, API, checkout("/else/api", has_memory=False)) == Scope(known=(1,))
    # A name that only a project without memory has is still no word of everyday language.
    assert scope_of("tmp", SHOP, plain("/w/tmp", has_memory=False)) == Scope(known=(1,))


def test_a_project_may_be_called_as_everything_is() -> None:
    assert scope_of("general", SHOP, checkout("/w/general")) == Scope(known=(1,))
    assert scope_of("general", SHOP) is None


def test_a_folder_without_git_owns_nothing_below_it() -> None:
    assert scope_of("/home/ada/x", plain("/home/ada")) == Scope(paths=("/home/ada/x",))
    assert scope_of("/home/ada", plain("/home/ada")) == Scope(known=(0,))


def _output(number: int, cwd: str, word: str, origin: str | None) -> Stage1Output:
    raw = f"""---
description: {word} work
task: {word} work
task_group: x
task_outcome: success
cwd: {cwd}
keywords: {word}, make
---

### Task 1: {word} work

task: {word} work
task_group: x
task_outcome: success

Preference signals:
- the user asked: "always use {word} for naming" -> default

Reusable knowledge:
- {word} needs the server

Failures and how to do differently:
- `make {word}` failed (exit 1): no such file | then passed
"""
    return Stage1Output(
        thread_id=f"0194f5a6-89ab-7cde-8123-4567{number:08x}",
        source_updated_at=1_795_000_000 + number * 86_400,
        raw_memory=raw,
        rollout_summary=f"# {word}\n",
        rollout_slug=None,
        rollout_path=f"/rollouts/{number}.jsonl",
        cwd=cwd,
        git_branch=None,
        git_origin_url=origin,
        generated_at=1_795_000_000,
        engine="offline",
    )


_CWDS = st.lists(
    st.builds(
        "/w/{}/{}".format,
        st.sampled_from(["a", "b"]),
        st.sampled_from(["api", "shop", "in docker", "x, y", "every project", "a (b)", "[z]", "ü漢", "c.d"]),
    ),
    min_size=2,
    max_size=6,
    unique=True,
)


@given(_CWDS, st.integers(300, 5000))
@example(["/w/a/a (b)", "/w/b/a (b)"], 3001)
@example(["/w/a/x, y", "/w/b/x, y", "/w/a/in docker"], 3001)
def test_what_the_offline_engine_learnt_in_one_project_is_told_in_no_other(
    tmp_path_factory: pytest.TempPathFactory, cwds: list[str], summary_tokens: int
) -> None:
    base = tmp_path_factory.mktemp("scopes")
    settings = Settings(home=base, memories=Memories(scope="repository"))
    settings.root.mkdir()
    words = {cwd: f"word{'abcdefgh'[number] * 3}" for number, cwd in enumerate(cwds)}
    outputs = [_output(number, cwd, words[cwd], None) for number, cwd in enumerate(cwds)]
    sync(settings.root, artifacts.render(outputs))
    consolidate(settings.root, outputs, now=0, limits=StageTwo(max_summary_tokens=summary_tokens))
    ready = make_ready(settings, [plain(cwd) for cwd in cwds])
    for cwd in [*cwds, "/w/c/api"]:
        told = compose(ready, home=str(base), cwd=cwd)
        text = told.text if isinstance(told, Instructions) else ""
        if summary_tokens > 3000 and cwd in words:  # less has no room for all
            assert words[cwd] in text
        assert [word for other, word in words.items() if other != cwd and word in text] == []
