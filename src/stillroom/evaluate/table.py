"""The results as a table: a row a measure, a column an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from stillroom.evaluate.chats import Held
from stillroom.evaluate.evaluation import Measured, Result
from stillroom.evaluate.life import Life
from stillroom.evaluate.measures import Chatted, Cost, Labelled
from stillroom.wording import many

_NAME = 44
_CELL = 22
_EXAMPLES = 3
_LINE_CHARS = 150

Row = tuple[str, str]


def table_lines(results: Sequence[Result], *, verbose: bool = False) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is a heading. `verbose` adds the lines that leaked or no longer hold."""
    for name in dict.fromkeys(result.name for result in results):
        columns = [result for result in results if result.name == name]
        yield name.ljust(_NAME) + "".join(result.engine[: _CELL - 2].rjust(_CELL) for result in columns), True
        cells = [dict(_rows(result.measured)) if result.measured else {} for result in columns]
        for row in dict.fromkeys(label for column in cells for label in column):
            yield f"  {row}".ljust(_NAME) + "".join(column.get(row, "-").rjust(_CELL) for column in cells), False
        for result in columns:
            if result.problem:
                yield f"  {result.engine}: not measured: {result.problem}", False
            elif result.measured:
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
    def share(held: Held) -> str:
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


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    """By set, then by engine."""
    sets: dict[str, dict[str, Any]] = {}
    for result in results:
        sets.setdefault(result.name, {})[result.engine] = result.table()
    return {"sets": sets}
