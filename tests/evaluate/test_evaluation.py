"""Sets are found by name and by path, engines stand side by side, and a person is asked before anything is fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.config import OFFLINE
from stillroom.errors import ConfigError
from stillroom.evaluate.chats import ChatSet
from stillroom.evaluate.downloads import Published
from stillroom.evaluate.evaluation import LabelledSet, LifeSet, Result, estimates, evaluate, find_set
from stillroom.evaluate.labels import labels_of
from stillroom.evaluate.shipped import LIFE, SETS
from stillroom.evaluate.table import table_lines
from stillroom.testing import LoopbackModel

HEAD = 'started = 2026-11-24T08:00:00Z\ncwd = "/home/a/shop"\n'
WISH = (
    HEAD + "script = '''\n@u add a cart\n@x0 pnpm test\n1 passed\n"
    "@u For the future: always use pnpm in this repo, never npm.\n@f Done.\n'''\n"
    'facts = [{ kind = "preference", all = ["pnpm", "npm"] }, { kind = "fact", all = ["never said"] }]\n'
)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "wish.toml").write_text(WISH, encoding="utf-8")
    return folder


def test_sets_are_found_by_name_and_by_path(tmp_path: Path, own: Path) -> None:
    found = [find_set(str(name), home=tmp_path) for name in ("blind", "life", "remem", own, own / "wish.toml", LIFE)]
    assert [type(each) for each in found] == [LabelledSet, LifeSet, Published, LabelledSet, LabelledSet, LifeSet]
    with pytest.raises(ConfigError, match="there is no set `nonsense`"):
        find_set("nonsense", home=tmp_path)
    (tmp_path / "void").mkdir()
    with pytest.raises(ConfigError, match="has no sessions"):
        find_set(str(tmp_path / "void"), home=tmp_path)


def test_a_limit_takes_sessions_from_all_over(tmp_path: Path) -> None:
    found = find_set("blind", home=tmp_path, limit=3)
    assert isinstance(found, LabelledSet)
    names = sorted(path.stem for path in SETS["blind"].glob("*.toml"))
    assert [scenario.name for scenario, _ in found.scenarios] == [names[0], names[7], names[14]]


def test_a_fetched_set_is_read_from_the_home(tmp_path: Path) -> None:
    (tmp_path / "eval" / "remem").mkdir(parents=True)
    (tmp_path / "eval" / "remem" / "corpus.json").write_text('{"cases": []}', encoding="utf-8")
    assert find_set("remem", home=tmp_path) == ChatSet(name="remem", chats=(), questions=())


def test_the_offline_engine_costs_nothing(tmp_path: Path) -> None:
    assert estimates([LifeSet(name="life", path=LIFE)], [OFFLINE], {}) == []


def test_a_models_cost_is_told_before_anything_is_sent(own: Path, tmp_path: Path) -> None:
    with LoopbackModel() as server:
        provider = server.provider()
        labelled = find_set(str(own), home=tmp_path)
        assert isinstance(labelled, LabelledSet)
        (one, life) = estimates([labelled, LifeSet(name="life", path=LIFE)], ["loop:m", OFFLINE], {"loop": provider})
        assert server.requests == []
    assert (one.engine, one.name, life.name) == ("loop:m", "own", "life")
    # The ten echoes are ten consolidations more.
    assert life.weighted_tokens > 10 * one.weighted_tokens > 0


def test_what_an_engine_can_not_do_is_told_beside_the_others(own: Path, tmp_path: Path) -> None:
    chosen = find_set(str(own), home=tmp_path)
    assert isinstance(chosen, LabelledSet)
    results = list(evaluate([chosen], [OFFLINE]))
    results.append(Result(name="own", engine="openai:x", measured=None, problem="no answer"))
    lines = [line for line, _ in table_lines(results)]
    assert lines[0].split() == ["own", "offline", "openai:x"]
    kept = next(line for line in lines if "facts told" in line)
    assert kept.split()[2:] == ["0.50", "(1/2)", "-"]
    assert "  openai:x: not measured: no answer" in lines


def test_the_command_measures_ones_own_set_and_leaves_no_home(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    assert run_command(["eval", "--set", str(own), "--json", "--home", str(home)]) == 0
    one = json.loads(capsys.readouterr().out)["sets"]["own"]["offline"]
    assert (one["facts"], one["told"], one["start"]["given"], one["cost"]["usd"]) == (2, 1, 1, 0)
    assert run_command(["eval", "--set", str(own), "--home", str(home)]) == 0
    assert "facts given at the start of a session" in capsys.readouterr().out
    assert not home.exists()


def test_nothing_is_fetched_unless_somebody_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["eval", "--set", "devmembench", "--home", str(tmp_path)]) == 2
    assert "nobody can be asked here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_tells_the_price_and_sends_nothing(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    words = [
        "eval",
        "--set",
        str(own),
        "--set",
        "remem",
        "--engine",
        "openai:gpt-5-mini",
        "--home",
        str(tmp_path / "home"),
    ]
    assert run_command([*words, "--dry-run"]) == 0
    told = capsys.readouterr()
    assert "openai:gpt-5-mini on own: about $0." in told.err
    assert "majiayu000/remem" in told.err
    assert told.out == ""
    assert run_command([*words[:3], *words[5:]]) == 2  # nobody agrees
    assert not (tmp_path / "home").exists()


def test_what_ships_is_small_enough_to_ship() -> None:
    sets = [path for folder in (*SETS.values(), LIFE.parent) for path in folder.glob("*.toml")]
    assert len(sets) > 50
    assert sum(path.stat().st_size for path in sets) < 400_000


def test_an_unknown_set_is_an_error_with_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["eval", "--set", "nonsense"]) == 2
    assert "heldout" in capsys.readouterr().err


def test_the_documented_session_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "eval.md").read_text(encoding="utf-8")
    (tmp_path / "shown.toml").write_text(page.partition("```labelled\n")[2].partition("```")[0], encoding="utf-8")
    chosen = find_set(str(tmp_path / "shown.toml"), home=tmp_path)
    assert isinstance(chosen, LabelledSet)
    labels = labels_of(chosen.scenarios[0][0].table)
    assert [fact.kind for fact in labels.facts] == ["preference", "failure"]
    assert labels.facts[1].cause == ()
