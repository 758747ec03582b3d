"""`stillroom search`: what does the memory know about this?"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

from stillroom.cli.folder import say_more
from stillroom.cli.options import WORDS, Flag, current_settings, option
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.clock import SystemClock
from stillroom.config import LOOKUP
from stillroom.errors import ConfigError
from stillroom.recall.browse.matching import AllOnSameLine, AllWithinLines, AnyQuery, MatchMode
from stillroom.recall.browse.searching import Match, SearchResult, search_memories
from stillroom.recall.fulltext.ranked import Hit, RankedResult, RankedSearch


def search_command(
    words: Annotated[list[str], WORDS],
    /,
    *,
    cwd: Path | None = None,
    mode: str | None = None,
    path: str | None = None,
    context: Annotated[int | None, option(at_least=0)] = None,
    case_sensitive: Flag = False,
    normalized: Flag = False,
    max_results: Annotated[int | None, option("--limit", "-n", at_least=1)] = None,
    cursor: str | None = None,
    json: Flag = False,
) -> int:
    """Search the memory: the best pieces first, or every line that holds the words exactly.

    Without `--mode` it is a ranked search through what was extracted of all sessions, the handbook, skills and notes.
    A word is also found as the beginning of a longer one; if nothing has all the words, pieces with some are shown.

    With `--mode`, or any option that goes with it, the files of the memory folder are searched line by line. Each
    argument is then one text to look for: quote what belongs together.

    ```
    stillroom search flaky timeout                    # ranked
    stillroom search deploy --cwd .                   # only this project
    stillroom search "make verify" pytest --mode any  # lines with either
    stillroom search parse_amount --path MEMORY.md --context 2
    ```

    Parameters
    ----------
    words
        What to look for. No character has a special meaning.
    cwd
        Ranked: leave out what other projects than this folder's said.
    mode
        `ranked` (the default); `any`: a line with one of the words; `line`: with all of them; `lines:N`: all within N
        lines.
    path
        Exact: search only this file or folder of the memory folder.
    context
        Exact: show so many lines before and after.
    case_sensitive
        Exact: upper and lower case differ.
    normalized
        Exact: look at letters and digits only, so that `rollout budget` finds `rollout_budget`.
    max_results
        At most so many results. Default: 10 ranked, 200 exact; never more than 200.
    cursor
        Where to go on: what the page before said.
    json
        Print the whole answer as JSON.
    """
    settings = current_settings().impatient
    exact = {"--path": path, "--context": context, "--case-sensitive": case_sensitive, "--normalized": normalized}
    given = [name for name, value in exact.items() if value not in (None, False)]
    if mode == "ranked" or (mode is None and not given):
        if given:
            raise ConfigError(f"`{given[0]}` does not go with `--mode ranked`", hint="use `--mode any`")
        with RankedSearch(settings, clock=SystemClock()) as search:
            length = max_results or LOOKUP.ranked_results
            found = search.search(" ".join(words), cwd=cwd, cursor=cursor, max_results=length)
        print_json(found) if json else _print_ranked(found, settings.root)
        return 0
    if cwd is not None:
        raise ConfigError("`--cwd` goes with a ranked search only", hint="leave `--mode`, `--path` and the like out")
    result = search_memories(
        settings.root,
        words,
        match_mode=_mode(mode or "any"),
        path=path,
        cursor=cursor,
        context_lines=context or 0,
        case_sensitive=case_sensitive,
        normalized=normalized,
        max_results=max_results,
    )
    print_json(result) if json else _print_exact(result)
    return 0


def _mode(text: str) -> MatchMode:
    name, _, count = text.partition(":")
    if text == "any":
        return AnyQuery()
    if text == "line":
        return AllOnSameLine()
    if name == "lines" and count.isascii() and count.isdigit() and 0 < len(count) < 10 and int(count):
        return AllWithinLines(int(count))
    raise ConfigError(f"`--mode {text}` is not known", hint="it is one of: ranked, any, line, lines:N")


def _print_ranked(found: RankedResult, root: Path) -> None:
    if not found.hits:
        print_lines([("yellow", "nothing found" if root.exists() else "there is no memory yet")])
    elif not found.every_word:
        print_lines([("yellow", "nothing has all the words; these have some")])
    for hit in found.hits:
        print_data(_heading(hit))
        print_data(f"    {hit.title}")
        if hit.excerpt.lstrip("# ") != hit.title:
            print_data(f"    {hit.excerpt}")
    say_more(found.next_cursor)


def _heading(hit: Hit) -> str:
    """Where to read it, and what it is about."""
    place = hit.path or f"session {hit.thread_id}"
    if hit.line is not None:
        place += f":{hit.line}"
    about = [hit.cwd] if hit.cwd else []
    if hit.thread_id and hit.updated_at is not None:
        about.append(datetime.fromtimestamp(hit.updated_at).astimezone().strftime("%Y-%m-%d"))
    return f"{place}  ({', '.join(about)})" if about else place


def _print_exact(result: SearchResult) -> None:
    if not result.matches:
        print_lines([("yellow", "nothing found")])
    around = any("\n" in match.content for match in result.matches)
    for number, match in enumerate(result.matches):
        if around and number:
            print_data("--")
        _print_match(match)
    for skipped in result.skipped:
        print_lines([("yellow", f"not searched: {skipped.reason}")])
    say_more(result.next_cursor)


def _print_match(match: Match) -> None:
    for number, line in enumerate(match.content.split("\n"), match.content_start_line_number):
        print_data(f"{match.path}:{number}: {line}")
