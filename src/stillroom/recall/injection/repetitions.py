"""Takes out what would be said twice: the summary says again, for all projects, what `MEMORY.md` and the notes say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stillroom.recall.injection.prepared import HANDBOOK, NOTES, SUMMARY, Prepared
from stillroom.recall.injection.statements import INDEX, PREFERENCES, Statement

# Chinese, Japanese and Korean are written without spaces: every letter counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_LABEL = re.compile(
    r" \(in [^()]*(?:\([^()]*\)[^()]*)?\)(?: \[ad-hoc note\])?\s*\Z| \[ad-hoc note\]\s*\Z| \([\w.-]{1,140}\.md\)\Z"
)
#: So much of a statement in another one, and it says nothing of its own.
_SHARE = 0.85


def without_repetitions(ready: Prepared) -> Prepared:
    """The same copy without statements of the summary that `MEMORY.md` or a note has, and without preferences of one
    project that hold in all of them. A project with a task group has its index from there."""
    everywhere = ready.part(-1)
    shared = [statement for statement in everywhere if statement.file == SUMMARY and statement.kind == PREFERENCES]
    notes = _Said(statement for statement in everywhere if statement.file.startswith(NOTES))
    parts = [[statement for statement in everywhere if statement.file != SUMMARY or statement not in notes]]
    general = _Said(shared)
    groups = [_OfScope(ready.part(scope), ready.scopes[scope][0]) for scope in range(len(ready.scopes))]
    by_project: dict[int, list[_OfScope]] = {}
    for number, scope in enumerate(groups):
        for project in scope.projects or [-1 - number]:
            by_project.setdefault(project, []).append(scope)
    for number, scope in enumerate(groups):
        places = [by_project[project] for project in scope.projects or [-1 - number]]
        parts.append([statement for statement in scope.statements if not _is_repeated(statement, places, general)])
    ready.parts = parts
    return ready


class _Said:
    """Statements, by their words."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self.exact: set[str] = set()
        self.holders: dict[str, list[int]] = {}
        for number, statement in enumerate(statements):
            text = _LABEL.sub("", statement.text)
            self.exact.add(text.casefold())
            for word in set(_words(text)):
                self.holders.setdefault(word, []).append(number)

    def __contains__(self, statement: object) -> bool:
        assert isinstance(statement, Statement)
        text = _LABEL.sub("", statement.text)
        if text.casefold() in self.exact:
            return True
        words = set(_words(text))
        found: dict[int, int] = {}
        for word in words:
            for number in self.holders.get(word, ()):
                found[number] = found.get(number, 0) + 1
        return len(words) > 3 and max(found.values(), default=0) >= _SHARE * len(words)


class _OfScope:
    def __init__(self, statements: Sequence[Statement], projects: Sequence[int]) -> None:
        self.statements = statements
        self.projects = list(projects)
        self.has_group = any(statement.file == HANDBOOK for statement in statements)
        self.said = _Said(statement for statement in statements if statement.file != SUMMARY)


def _is_repeated(statement: Statement, places: Sequence[Sequence[_OfScope]], general: _Said) -> bool:
    """Whether each project that it is for is given the same from elsewhere."""
    if statement.file != SUMMARY:
        return statement.kind == PREFERENCES and statement in general
    if statement.kind == INDEX:
        return all(any(scope.has_group for scope in scopes) for scopes in places)
    return all(any(statement in scope.said for scope in scopes) for scopes in places)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


__all__ = ["without_repetitions"]
