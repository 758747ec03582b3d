"""`stillroom why`: from a line of the memory back to who said so."""

from __future__ import annotations

from collections.abc import Iterator

from stillroom.cli.moment import moment
from stillroom.cli.options import Flag, current_settings
from stillroom.cli.output import Line, print_answer, print_json
from stillroom.clock import SystemClock
from stillroom.config import OFFLINE
from stillroom.insight.why.answer import Answer, Quote, Rests, Support, Why
from stillroom.insight.why.asking import asking
from stillroom.insight.why.origin import Origin
from stillroom.wording import many

_COMMIT_CHARS = 10
_SUPPORT: dict[Support, Line] = {
    "unfound": ("yellow", "said by       nobody in these words: a model wrote it"),
    "unknown": ("yellow", "said by       not noted: a person wrote it, or an earlier release"),
    "format": (None, "said by       the format: a heading, a count or a record claims nothing"),
}


def why_command(
    line: str,
    /,
    *,
    json: Flag = False,
) -> int:
    """Explain a line of the memory: who wrote it, which sessions it rests on, who said so, how often it was cited.

    ```
    stillroom why MEMORY.md:34
    stillroom why "run the tests with -q"
    stillroom why skills/release/SKILL.md:12 --json
    ```

    Parameters
    ----------
    line
        `FILE:LINE`, the file relative to the memory folder; or a phrase, of which the lines are explained that say it.
    json
        Print `{asked, lines, more_lines}` as JSON.
    """
    settings = current_settings().impatient
    with asking(settings, line) as asked:
        # git is at work now: what is imported from here on takes none of the user's time.
        from stillroom.insight.why.explaining import answer
        from stillroom.store import Store

        with Store.look(settings.database, clock=SystemClock(), limits=settings.database_limits) as store:
            found = answer(asked, settings, store)
    if json:
        print_json(found)
        return 0
    print_answer(_lines(found))
    return 0


def _lines(answer: Answer) -> Iterator[Line]:
    for number, why in enumerate(answer.lines):
        if number:
            yield None, ""
        yield from _line(why)
    if answer.more_lines:
        yield "yellow", f"and {many(answer.more_lines, 'line')} more that fit as well: ask for more of the words"


def _line(why: Why) -> Iterator[Line]:
    yield "bold", f"{why.place.path}:{why.place.line}  {why.place.text.strip()}"
    yield from _origin(why.origin)
    if why.support != "format":
        yield from _sessions(why)
    if why.quotes:
        for quote in why.quotes:
            yield ("green" if quote.who == "user" else None), f"said by       {_quote(quote)}"
    else:
        yield _SUPPORT[why.support]
    if why.support != "format":
        last = f", last {moment(why.last_cited)}" if why.last_cited else ""
        times = f"{many(why.cited, 'time')} since{last}" if why.cited else "not since"
        yield None, f"cited         {times} (citations are counted for whole sessions, not for lines)"


def _origin(origin: Origin) -> Iterator[Line]:
    note = f" ({origin.note})" if origin.note else ""
    version = f" {moment(origin.at)}, version {origin.commit[:_COMMIT_CHARS]}" if origin.commit else ""
    match origin.by:
        case "consolidation":
            yield None, f"written by    a consolidation,{version}, run {origin.run}{note}"
            yield None, f"              {_made_by(origin)}"
        case "person":
            yield "cyan", f"written by    a person, by hand{',' if version else ''}{version}{note}"
        case "code":
            yield None, f"written by    Stillroom: {origin.note}"
        case "undo":
            yield None, f"written by    an undo{note}"
        case "unknown":
            yield "yellow", f"written by    not known{note}"


def _made_by(origin: Origin) -> str:
    release = f", release {origin.release}" if origin.release else ""
    if origin.engine is None:
        return f"its engine was not noted{release}"
    if origin.engine == OFFLINE:
        return f"by the offline engine{release}"
    prompt = f", prompts {origin.prompt}" if origin.prompt else ""
    if origin.calls is None or origin.cost_usd is None:
        return f"by {origin.engine}{prompt}{release}"
    unpriced = f", {origin.unpriced_calls:,} of unknown price" if origin.unpriced_calls else ""
    spent = f"{many(origin.calls, 'call')} for the whole consolidation, ${origin.cost_usd:,.4f}{unpriced}"
    return f"by {origin.engine}{prompt}{release}: {spent}"


def _sessions(why: Why) -> Iterator[Line]:
    if not why.rests_on:
        yield "yellow", "rests on      no session: none was noted, and its task names none"
    for each in why.rests_on:
        yield ("dim" if each.by_task else None), f"rests on      {_session(each)}"
    if why.more_sessions:
        yield None, f"              and {many(why.more_sessions, 'session')} more"


def _session(each: Rests) -> str:
    parts = [f"{each.thread_id}  {each.agent or 'not known any more'}"]
    if each.cwd:
        parts.append(f"in {each.cwd}")
    if each.extracted_at:
        prompt = f", prompt {each.prompt}" if each.prompt else ""
        release = f", release {each.release}" if each.release else ""
        cost = f", ${each.cost_usd:,.4f}" if each.cost_usd is not None else ""
        parts.append(f"extracted {moment(each.extracted_at)} by {each.engine}{prompt}{release}{cost}")
    if each.switched_off:
        parts.append("switched off since")
    if each.by_task:
        parts.append("named by its task")
    return ", ".join(parts)


def _quote(quote: Quote) -> str:
    where = f", line {quote.line:,}" if quote.line else ""
    return f"{quote.who}{where} of {quote.thread_id}: {quote.text}"
