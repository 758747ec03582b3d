"""Ranked search over a real store and folder: what is found, in which order, and that the index follows."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.clock import FixedClock
from stillroom.config import Settings, StageOne
from stillroom.errors import InvalidRequest, PathRefused, StoreUnavailable
from stillroom.recall.fulltext.excerpt import excerpt
from stillroom.recall.fulltext.ranked import RankedSearch
from stillroom.recall.fulltext.words import indexed, match_expression, query_words
from stillroom.store import Stage1Claim, Stage1Draft, Store
from stillroom.thread import FileStamp, Thread

CLOCK = FixedClock(1_800_000_000_000)


def remember(store: Store, thread_id: str, text: str, *, cwd: str = "/work/app", updated_at: int = 1000) -> None:
    thread = Thread(
        thread_id=thread_id,
        agent="codex",
        rollout_path=f"/sessions/{thread_id}.jsonl",
        source="cli",
        cwd=cwd,
        created_at_ms=updated_at * 1000,
        updated_at_ms=updated_at * 1000,
        preview="hello",
    )
    store.threads.save([(thread, FileStamp(size=1, mtime_ns=1))])
    claim = store.extraction.try_claim(
        thread_id, worker_id="w", source_updated_at=updated_at, stage=StageOne(), max_running=8
    )
    assert isinstance(claim, Stage1Claim)
    heading, _, rest = text.partition("\n")
    draft = Stage1Draft(raw_memory=rest or text, rollout_summary=f"# {heading}", rollout_slug="slug")
    assert store.extraction.finish(claim, draft, engine="offline")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.database, clock=CLOCK) as store:
        yield store


@pytest.fixture
def search(settings: Settings) -> Iterator[RankedSearch]:
    with RankedSearch(settings, clock=CLOCK) as search:
        yield search


def threads(search: RankedSearch, text: str) -> list[str | None]:
    return [hit.thread_id for hit in search.search(text).hits]


def test_the_title_counts_most_and_every_word_before_some(store: Store, search: RankedSearch) -> None:
    remember(store, "body", "Something else\nthe timeout of the queue was flaky")
    remember(store, "title", "Flaky timeout\nnothing more")
    remember(store, "half", "A timeout\nnothing more")
    result = search.search("flaky timeout")
    assert ([hit.thread_id for hit in result.hits], result.every_word) == (["title", "body"], True)
    some = search.search("flaky zebra")
    assert (some.every_word, {hit.thread_id for hit in some.hits}) == (False, {"title", "body"})
    assert search.search("zebra").hits == ()


@pytest.mark.parametrize(
    "text", ['"', "*", "NEAR(", "title:flaky", 'a" OR "b', "-", "^flaky", "(", "{a b}", "AND", "a\udcff"]
)
def test_nothing_in_a_query_has_a_special_meaning(store: Store, search: RankedSearch, text: str) -> None:
    remember(store, "one", "Flaky title\nand near or not")
    try:
        search.search(text)
    except InvalidRequest:
        assert not any(map(str.isalnum, text))


@given(st.text(max_size=60))
def test_any_query_is_an_expression_that_sqlite_understands(text: str) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (title)")
    words = query_words(text)
    for every in (True, False):
        if words:
            db.execute("SELECT * FROM words WHERE words MATCH ?", (match_expression(words, every=every),)).fetchall()
    db.close()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("请在东京都部署服务", "京都"),
        ("请在东京都部署服务", "务"),  # one character, the last of a run
        ("请在东京都部署服务", "请"),
        ("テストはmake verifyで実行する", "実行"),
        ("テストはmake verifyで実行する", "verify"),
        ("배포는 화요일에만 합니다", "화요일"),
        ("ติดตั้งโปรแกรมใหม่", "โปรแกรม"),
        ("Größe und Café", "cafe"),
        ("ＡＢＣ full width", "abc"),
        ("run parse_amount now", "parse_amount"),
        ("run parse_amount now", "amount"),
        ("deployments", "deploy"),
        ("C++ and c#", "c++"),
    ],
)
def test_words_of_every_script_are_found(store: Store, search: RankedSearch, text: str, query: str) -> None:
    remember(store, "it", f"Title\n{text}")
    remember(store, "other", "Title\n东方 京城 비밀 別の話")
    result = search.search(query)
    assert [hit.thread_id for hit in result.hits] == ["it"]
    assert result.hits[0].excerpt == text


@given(st.text("東京都大阪ab ", min_size=1, max_size=20), st.data())
def test_any_part_of_a_run_is_found(text: str, data: st.DataObject) -> None:
    runs = [run for run in "".join(c if c not in "ab " else " " for c in text).split() if run]
    if not runs:
        return
    run = data.draw(st.sampled_from(runs))
    start = data.draw(st.integers(0, len(run) - 1))
    part = run[start : data.draw(st.integers(start + 1, len(run)))]
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (body)")
    db.execute("INSERT INTO words VALUES (?)", (indexed(text),))
    expression = match_expression(query_words(part), every=True)
    assert db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression,)).fetchone()[0] == 1
    db.close()


def test_the_folders_own_texts_are_found_with_their_lines(settings: Settings, search: RankedSearch) -> None:
    (settings.root / "skills" / "ship").mkdir(parents=True)
    (settings.root / "skills" / "ship" / "SKILL.md").write_text("# Ship\n\nUse the `quokka` tool.\n", encoding="utf-8")
    group = "# Task Group: {0}\n\napplies_to: cwd=/work/{0}; any checkout\n\n{1}\n\n"
    handbook = group.format("app", "walrus") + group.format("web", "quokka")
    (settings.root / "MEMORY.md").write_text(handbook, encoding="utf-8")
    hits = search.search("quokka").hits
    assert sorted((hit.path, hit.line, hit.title, hit.cwd) for hit in hits) == [
        ("MEMORY.md", 11, "web", "/work/web"),
        ("skills/ship/SKILL.md", 3, "Ship", None),
    ]
    here = search.search("quokka", cwd=Path("/work/app")).hits
    assert [hit.path for hit in here] == ["skills/ship/SKILL.md"]


def test_a_folder_keeps_other_projects_out(store: Store, search: RankedSearch) -> None:
    remember(store, "here", "Build\nmake", cwd="/work/app")
    remember(store, "below", "Build\nmake", cwd="/work/app/sub")
    remember(store, "there", "Build\nmake", cwd="/work/app-two")
    found = search.search("make", cwd=Path("/work/app")).hits
    assert {hit.thread_id for hit in found} == {"here", "below"}


def test_a_clone_elsewhere_is_the_same_project(store: Store, search: RankedSearch, tmp_path: Path) -> None:
    for name in ("one", "two", "other"):
        (tmp_path / name / "sub").mkdir(parents=True)
        origin = "other" if name == "other" else "shop"
        for command in (["init", "-q"], ["remote", "add", "origin", f"https://example.com/team/{origin}.git"]):
            subprocess.run(["git", *command], cwd=tmp_path / name, check=True, timeout=30)
        remember(store, name, "Build\nmake", cwd=str(tmp_path / name))
    found = search.search("make", cwd=tmp_path / "two" / "sub").hits
    assert {hit.thread_id for hit in found} == {"one", "two"}


def test_the_index_follows_what_is_new_changed_and_forgotten(
    settings: Settings, store: Store, search: RankedSearch
) -> None:
    remember(store, "a", "Title\nfirstword")
    assert threads(search, "firstword") == ["a"]
    remember(store, "a", "Title\nsecondword", updated_at=2000)
    assert (threads(search, "firstword"), threads(search, "secondword")) == ([], ["a"])
    note = settings.root / "extensions/ad_hoc/notes/2026-01-01T00-00-00-x.md"
    note.parent.mkdir(parents=True)
    note.write_text("thirdword", encoding="utf-8")
    assert [hit.path for hit in search.search("thirdword").hits] == ["extensions/ad_hoc/notes/2026-01-01T00-00-00-x.md"]
    note.unlink()
    store.threads.set_memory_mode("a", "disabled")
    assert search.search("secondword").hits == search.search("thirdword").hits == ()
    search.close()
    assert b"secondword" not in settings.search_index.read_bytes()


def test_pages_follow_each_other(store: Store, search: RankedSearch) -> None:
    for number in range(5):
        remember(store, f"t{number}", "Same\nword", updated_at=1000 + number)
    first = search.search("word", max_results=3)
    assert ([hit.thread_id for hit in first.hits], first.next_cursor) == (["t4", "t3", "t2"], "3")
    second = search.search("word", max_results=3, cursor="3")
    assert ([hit.thread_id for hit in second.hits], second.next_cursor) == (["t1", "t0"], None)
    with pytest.raises(InvalidRequest):
        search.search("word", cursor="x")


def test_a_damaged_index_is_built_again(settings: Settings, store: Store) -> None:
    remember(store, "a", "Title\nword")
    for damage in (b"no database at all", None):
        with RankedSearch(settings, clock=CLOCK) as search:
            assert threads(search, "word") == ["a"]
        if damage is not None:
            settings.search_index.write_bytes(damage)
        else:
            with settings.search_index.open("r+b") as file:
                file.seek(4096)
                file.write(b"\xff" * 16384)
    with RankedSearch(settings, clock=CLOCK) as search:
        assert threads(search, "word") == ["a"]
    assert settings.search_index.stat().st_mode & 0o077 == 0


def test_an_index_of_another_version_is_built_again(settings: Settings, store: Store) -> None:
    remember(store, "a", "Title\nword")
    db = sqlite3.connect(settings.search_index)
    db.executescript("CREATE TABLE passages (x); PRAGMA user_version = 99;")
    db.close()
    with RankedSearch(settings, clock=CLOCK) as search:
        assert threads(search, "word") == ["a"]


def test_a_damaged_state_database_is_a_clear_error_and_an_empty_home_is_none(settings: Settings) -> None:
    with RankedSearch(settings, clock=CLOCK) as search:
        assert search.search("word").hits == ()
    assert not settings.home.exists()
    settings.home.mkdir()
    settings.database.write_bytes(b"x" * 4096)
    with RankedSearch(settings, clock=CLOCK) as search, pytest.raises(StoreUnavailable, match="is damaged"):
        search.search("word")


def test_a_memory_folder_that_is_a_link_is_refused(settings: Settings, tmp_path: Path) -> None:
    settings.home.mkdir()
    (tmp_path / "elsewhere").mkdir()
    settings.root.symlink_to(tmp_path / "elsewhere")
    with RankedSearch(settings, clock=CLOCK) as search, pytest.raises(PathRefused):
        search.search("word")


def test_many_searches_at_once_make_one_index(settings: Settings, store: Store) -> None:
    for number in range(20):
        remember(store, f"t{number}", f"Title\nword{number} common")
    found: list[int] = []

    def ask() -> None:
        with RankedSearch(settings, clock=CLOCK) as search:
            found.append(len(search.search("common").hits))

    askers = [threading.Thread(target=ask) for _ in range(6)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert found == [20] * 6


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=5), max_size=3))
def test_an_excerpt_is_a_part_of_its_line(text: str, words: list[str]) -> None:
    found = excerpt(text, words)
    assert found.text.strip("…") in text.split("\n")[found.line]
