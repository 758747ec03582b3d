"""Each measure on input whose right value is known; a whole engine at work in a throw-away home."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stillroom.config import OFFLINE
from stillroom.evaluate.labels import judge_given, labels_of
from stillroom.evaluate.life import Life, Size, measure_life
from stillroom.evaluate.measures import Cost, leaks, measure_labelled
from stillroom.evaluate.scenario import Scenario, from_table
from stillroom.evaluate.trial import Trial
from stillroom.testing import SAMPLE_MEMORY, LoopbackModel, RecordedRequest, Say

SCRIPT = """
@u the import fails on the new file
@x1 uv run pytest tests/test_import.py
E   ModuleNotFoundError: No module named 'tidelib'
@x0 uv sync --extra marine
Installed 1 package
@x0 uv run pytest tests/test_import.py
9 passed
@u For the future: always use uv in this repo, never pip.
@f Done.
"""


def session(name: str, cwd: str, script: str = SCRIPT, **labels: Any) -> Scenario:
    started = datetime(2026, 11, 2, 9, tzinfo=UTC)
    labels = labels or {"facts": [{"kind": "preference", "all": ["uv", "pip"]}]}
    return from_table(name, {"started": started, "cwd": cwd, "script": script, **labels})


def cost() -> Cost:
    return Cost(seconds=0.0, weighted_tokens=0, usd=0.0, failed=0)


def test_what_is_given_is_looked_for_in_bullets() -> None:
    labels = labels_of(
        {"facts": [{"kind": "fact", "all": ["redis", "6380"]}], "not": [{"kind": "idea", "all": ["zod"]}]}
    )
    facts, kept = judge_given(labels, "redis and 6380 in prose\n- redis is on 6380\n- maybe zod")
    assert (len(facts), len(kept)) == (1, 1)
    assert judge_given(labels, "redis and 6380, maybe zod") == ((), ())


def test_a_line_of_another_project_alone_is_a_leak() -> None:
    mine = 'the user said: "always use pnpm in this repo, never npm" (in shop)'
    both = "`make check` works here, and it takes about four minutes in the usual case"
    memory = {"/shop": f"- {mine}\n- {both}", "/marsh": f"- {both}"}
    assert leaks(memory, {"/shop": f"- {mine}", "/marsh": f"- {both}"}) == ()
    # What was done in a session of one project in the folder of another is that one's too.
    assert leaks({"/shop": f"cwd: /marsh\n- {mine}"}, {"/marsh": f"- {mine}"}) == ()
    # It is known by its beginning: what is given may be cut.
    assert leaks(memory, {"/marsh": f"- {mine[:50]}…\n- {both}"}) == (f"{mine[:50]}…",)


def test_growth_is_statements_after_the_echoes_for_each_before() -> None:
    sizes = (Size(statements=20, bytes=1), Size(statements=25, bytes=2), Size(statements=30, bytes=3))
    life = Life(
        own=0, leaked=(), replaced=0, still_given=0, still_told=(), newer_given=0, sizes=sizes,
        words_before=0, residue=0, returned=0, places=(), cost=cost(),
    )  # fmt: skip
    assert life.growth == 1.5


def test_a_session_is_kept_told_and_given_and_ones_home_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    nothing = session("none", "/home/dev/other", "@u what is the capital of Peru?\n@f Lima.\n", empty=True)
    wanted = {"facts": [{"kind": "preference", "all": ["uv", "pip"]}, {"kind": "fact", "all": ["never said"]}]}
    found = measure_labelled([(session("one", "/home/dev/marsh", **wanted), "a"), (nothing, "b")], engine=OFFLINE)
    assert (found.figures.sessions, found.figures.facts, found.figures.found) == (2, 2, 1)
    assert (found.given.facts, found.given.given) == (2, 1)
    assert (found.figures.empty, found.figures.empty_right) == (1, 1)
    assert found.given.leaks == ()
    assert list(tmp_path.iterdir()) == []


def test_the_words_of_a_session_are_found_until_it_is_forgotten(tmp_path: Path) -> None:
    trial = Trial(tmp_path, engine=OFFLINE)
    one = session("one", "/home/dev/marsh")
    trial.add(one)
    trial.run()
    held, places = trial.residue(["tidelib"])
    assert held > 0
    assert any(place.startswith("memories/") for place in places)
    trial.forget([one.thread_id])
    assert trial.residue(["tidelib"]) == (0, ())


LIFE = r"""
[[sessions]]
name = "shop"
round = 1
started = 2026-11-02T09:00:00Z
cwd = "/home/dev/shop"
script = '''
@u add a cart
@x0 pnpm test
1 passed
@u For the future: always use pnpm in this repo, never npm.
@f Done.
'''

[[sessions]]
name = "marsh"
round = 1
started = 2026-11-02T10:00:00Z
cwd = "/home/dev/marsh"
script = '''
@u the heron import fails
@x1 uv run pytest tests/test_heron.py
E   ModuleNotFoundError: No module named 'heronlib'
@x0 uv sync --extra heron
ok
@x0 uv run pytest tests/test_heron.py
9 passed
@u For the future: always use uv in this repo, never pip.
@f Done.
'''

[[sessions]]
name = "later"
round = 2
started = 2026-11-12T09:00:00Z
cwd = "/home/dev/shop"
script = '''
@u format the cart
@x0 pnpm test
2 passed
@u Always write the changelog in Dutch here.
@f Done.
'''

[[own]]
cwd = "/home/dev/shop"
all = ['pnpm', 'Dutch']

[[own]]
cwd = "/home/dev/marsh"
all = ['heron', '\buv\b']

[[replaced]]
cwd = "/home/dev/shop"
old = ['use pnpm in this repo']
new = ['no such word']

[[replaced]]
cwd = "/home/dev/shop"
old = ['changelog in French']
new = ['changelog in Dutch']

[forgotten]
session = "marsh"
words = ["heronlib"]

[echo]
cwd = "/home/dev/shop"
"""


def test_a_life_is_measured_by_what_is_given_and_left(tmp_path: Path) -> None:
    path = tmp_path / "life.toml"
    path.write_text(LIFE, encoding="utf-8")
    life = measure_life(path, engine=OFFLINE, cycles=1)
    # Of the two that are said to be replaced one never was: it is given, and counted. The other was never said.
    assert (life.replaced, life.still_given, life.newer_given) == (2, 1, 1)
    assert all("use pnpm in this repo" in line for line in life.still_told)
    assert (life.own, life.leaked) == (4, ())
    assert life.words_before > 0
    assert (life.residue, life.returned) == (0, 0)
    assert len(life.sizes) == 2
    assert life.sizes[0].statements > 0


def test_what_belongs_to_one_project_and_is_given_in_another_is_found(tmp_path: Path) -> None:
    path = tmp_path / "life.toml"
    # The set says of a thing that it belongs elsewhere: where it was said it then counts as leaked.
    path.write_text(LIFE.replace("'pnpm', 'Dutch'", "'pnpm'").replace("'heron'", "'Dutch'"), "utf-8")
    assert any("Dutch" in line for line in measure_life(path, engine=OFFLINE, cycles=0).leaked)


def answer(*lines: str) -> Say:
    bullets = "".join(f"- {line}\n" for line in lines)
    text = f"### Task 1: t\n\ntask: t\ntask_group: shop\ntask_outcome: success\n\nPreference signals:\n{bullets}"
    return Say({**SAMPLE_MEMORY, "raw_memory": f"---\ndescription: d\ntask: t\n---\n\n{text}"})


def test_a_model_is_measured_by_what_it_answers_with_its_tokens() -> None:
    wanted = {
        "facts": [{"kind": "preference", "all": ["uv", "pip"]}, {"kind": "command", "all": ["--extra marine"]}],
        "not": [{"kind": "remark", "all": ["weather"]}],
    }
    said = ('the user said: "always use uv in this repo, never pip"', "the weather is fine")
    with LoopbackModel(lambda request: answer(*said)) as server:
        found = measure_labelled(
            [(session("one", "/home/dev/marsh", **wanted), "a")],
            engine="loop:m+offline",
            providers={"loop": server.provider()},
        )
    figures = found.figures
    assert (figures.told, figures.facts, figures.kept_told) == (1, 2, 1)
    assert (figures.right, figures.lines) == (1, 2)
    assert found.cost.weighted_tokens > 0


def test_a_memory_that_takes_up_its_echo_is_seen_to_grow(tmp_path: Path) -> None:
    path = tmp_path / "life.toml"
    path.write_text(LIFE, encoding="utf-8")

    def anew(request: RecordedRequest) -> Say:
        things = ("apples", "barrels", "candles", "drums", "engines", "figs", "gloves", "hammers", "irons", "jars")
        return answer(f"The cellar is where {things[request.number % len(things)]} are stored.")

    with LoopbackModel(anew) as server:
        providers = {"loop": server.provider()}
        life = measure_life(path, engine="loop:m+offline", providers=providers, cycles=2)
    assert life.growth > 1
    assert [size.statements for size in life.sizes] == sorted({size.statements for size in life.sizes})


def test_a_session_of_another_machine_is_given_nowhere_else() -> None:
    foreign = session("one", "E:/indie/cards", SCRIPT.replace("uv in", "hatch in"), empty=True)
    here = session("two", "/home/dev/marsh")
    found = measure_labelled([(foreign, "a"), (here, "a")], engine=OFFLINE)
    assert found.given.leaks == ()
