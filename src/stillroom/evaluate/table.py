"""The results as a table: a row a measure, a column an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from stillroom.evaluate.chats import Held as Share
from stillroom.evaluate.evaluation import Measured, Result
from stillroom.evaluate.life import Life
from stillroom.evaluate.measures import Chatted, Cost, Labelled
from stillroom.evaluate.mine import Held, Mine
from stillroom.wording import many

_NAME = 44
_CELL = 22
_EXAMPLES = 3
_LINE_CHARS = 150
_EXAMPLE_CHARS = 70

Row = tuple[str, str]


def table_lines(
    results: Sequence[Result], *, verbose: bool = False, examples: bool = True
) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is a heading. Examples are lines that leaked or no longer hold, `verbose` all."""
    for name in dict.fromkeys(result.name for result in results):
        columns = [result for result in results if result.name == name]
        yield name.ljust(_NAME) + "".join(result.engine[: _CELL - 2].rjust(_CELL) for result in columns), True
        cells = [dict(_rows(result.measured)) if result.measured else {} for result in columns]
        for row in dict.fromkeys(label for column in cells for label in column):
            yield f"  {row}".ljust(_NAME) + "".join(column.get(row, "-").rjust(_CELL) for column in cells), False
        for result in columns:
            if result.problem:
                yield f"  {result.engine}: not measured: {result.problem}", False
            elif result.measured and examples:
                for line in _examples(result.measured)[: None if verbose else _EXAMPLES]:
                    yield f"    {line[:_LINE_CHARS]}", False
        yield "", False


def _rows(measured: Measured) -> list[Row]:
    match measured:
        case Labelled():
            return [*_labelled(measured), *_cost(measured.cost)]
        case Chatted():
            return [*_chatted(measured), *_cost(measured.cost)]
        case Life():
            return [*_life(measured), *_cost(measured.cost)]
        case _:
            assert_never(measured)


def _labelled(measured: Labelled) -> list[Row]:
    f, given = measured.figures, measured.given
    rows = [
        ("facts kept, with evidence", _share(f.found, f.facts)),
        ("facts told", _share(f.told, f.facts)),
        ("facts given at the start of a session", _share(given.given, given.facts)),
        ("  of those that are told", _share(given.given_told, f.told)),
        ("told lines right (strict)", _share(f.right, f.lines)),
        ("causes right, beside their error", _share(f.causes_right, f.causes)),
        ("traps told", _share(f.kept_told, f.forbidden)),
        ("traps in the evidence", _share(f.kept_evidence, f.forbidden)),
        ("traps given at the start", _share(given.kept, given.forbidden)),
        ("what was replaced, given all the same", _share(given.replaced_kept, given.replaced)),
        ("lines of another project given", f"{len(given.leaks)}"),
        ("sessions that must be empty, and are", _share(f.empty_right, f.empty)),
        ("tokens given to a session, in the median", f"{given.tokens:,}"),
    ]
    return [row for row in rows if row[1]]


def _chatted(measured: Chatted) -> list[Row]:
    def share(held: Share) -> str:
        return f"{held.share:.2f} ({held.whole} whole)"

    rows = [
        ("questions with an answer", f"{measured.kept.questions}"),
        ("answers' words said in the chats", share(measured.said)),
        ("kept, with evidence", share(measured.kept)),
        ("told", share(measured.told)),
        ("given at the start of a session", share(measured.given)),
        ("in ten results of a search", share(measured.searched)),
        ("sessions that gave nothing", f"{measured.empty}/{measured.sessions}"),
    ]
    if measured.kept.forbidden:
        rows.append(("forbidden phrases kept", _share(measured.kept.kept, measured.kept.forbidden)))
    return rows


def _life(measured: Life) -> list[Row]:
    first, last = measured.sizes[0], measured.sizes[-1]
    return [
        ("lines of another project given", f"{len(measured.leaked)}"),
        ("what was replaced, given all the same", _share(measured.still_given, measured.replaced)),
        ("what replaced it, given", _share(measured.newer_given, measured.replaced)),
        (f"growth over {many(len(measured.sizes) - 1, 'echo', 'echoes')}", f"{measured.growth:.2f}"),
        ("  statements", f"{first.statements} to {last.statements}"),
        ("  bytes, with the list of each session's file", f"{first.bytes:,} to {last.bytes:,}"),
        ("bytes left after `forget`", f"{measured.residue:,} of {measured.words_before:,}"),
        ("  and after the passes that followed", f"{measured.returned:,}"),
    ]


def _cost(cost: Cost) -> list[Row]:
    rows = [("time", f"{cost.seconds:.1f} s")]
    if cost.weighted_tokens:
        price = "price not known" if cost.usd is None else f"${cost.usd:.2f}"
        rows.append(("cost", f"{price}, {cost.weighted_tokens:,} tokens"))
    if cost.failed:
        rows.append(("sessions that could not be extracted", f"{cost.failed}"))
    return rows


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f} ({part}/{whole})" if whole else ""


def _examples(measured: Measured) -> list[str]:
    match measured:
        case Labelled():
            return [f"of another project: {line}" for line in measured.given.leaks]
        case Life():
            leaked = [f"of another project: {line}" for line in measured.leaked]
            left = [f"left after forget: {place}" for place in measured.places]
            return [*leaked, *left, *(f"replaced: {line}" for line in measured.still_told)]
        case _:
            return []


def mine_lines(mine: Mine, *, verbose: bool = False) -> Iterator[tuple[str, bool]]:
    """What one's own sessions tell, with some examples, or all of them."""
    most = None if verbose else _EXAMPLES
    by = mine.again_by()
    yield f"{many(mine.sessions, 'session')} in {many(mine.projects, 'project')}, {mine.with_memory} with memory", True
    yield from _counted("sentences of yours, long enough to be known again", f"{mine.sentences:,}")
    yield from _counted("said again in a later session", f"{len(mine.again)}")
    for held, words in _HELD:
        yield from _counted(f"  {words}", f"{by[held]}")
    examples = {(each.project, each.first_said): each for each in reversed(mine.again)}
    for again in sorted(examples.values(), key=lambda each: _ORDER.index(each.held))[:most]:
        yield f"    {again.project}: {_short(again.said)} | before: {_short(again.first_said)} ({again.held})", False
    cured = sum(each.cured for each in mine.failed_again)
    yield from _counted("failures that came again although memory told the cure", f"{len(mine.failed_again)}")
    yield from _counted("  and the cure was used then", f"{cured}")
    for failed in mine.failed_again[:most]:
        yield f"    {failed.project}: `{_short(failed.command)}` | {_short(failed.line)}", False
    yield from _counted("sessions in memory that a later one cited", f"{mine.cited} of {mine.memories}")
    yield from _counted("  citations", f"{mine.citations}")
    commands = len({(each.project, each.command) for each in mine.followed})
    yield from _counted("commands told that a later session ran with success", f"{commands} of {mine.commands}")
    for followed in mine.followed[:most]:
        yield f"    {followed.project}: `{_short(followed.command)}`", False
    if mine.unreadable:
        yield from _counted("sessions that can't be read", f"{mine.unreadable}")


_ORDER = ("told", "no", "evidence", "late")
_HELD: tuple[tuple[Held, str], ...] = (
    ("told", "memory told it by then"),
    ("evidence", "it could be found by search"),
    ("late", "memory has it since"),
    ("no", "memory does not have it"),
)


def _counted(label: str, count: str) -> Iterator[tuple[str, bool]]:
    yield f"  {label}".ljust(_NAME + _CELL // 2) + count.rjust(_CELL // 2), False


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EXAMPLE_CHARS else f"{text[:_EXAMPLE_CHARS]}…"


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """By set, then by engine."""
    sets: dict[str, dict[str, Any]] = {}
    for result in results:
        sets.setdefault(result.name, {})[result.engine] = result.table()
    return {"sets": sets}
