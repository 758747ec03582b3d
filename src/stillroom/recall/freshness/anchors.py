"""What a line of memory names that a repository has, or has no longer: paths, symbols, commands, commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from stillroom.pattern import late

Kind = Literal["path", "symbol", "command", "commit"]

#: Of a line so many are looked at; one that names more is a listing.
MOST_OF_A_LINE = 8
_MOST_CHARS = 4000

_CODE = late(r"`([^`\n]{2,200})`")
_STEP = r"[\w@+-][\w.@+-]*"
#: With an extension: `and/or` and `origin/main` are no paths.
_PATH = rf"(?:\.{{1,2}}/)?(?:{_STEP}/)*{_STEP}\.[A-Za-z]\w{{0,7}}"
_BARE_PATH = late(rf"(?<![\w/.:@~+-])(?:{_STEP}/)+{_STEP}\.[A-Za-z]\w{{0,7}}(?![\w/])")
_CODE_PATH = late(rf"(?P<path>/?{_PATH})(?::\d+(?:[:-]\d+)?)?")
_COMMIT = late(r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}")
_SYMBOL = late(r"(?:[A-Za-z_]\w*(?:\.|::|#))*(?P<name>[A-Za-z_]\w{3,60})(?P<call>\(\))?")
_CAMEL = late(r"[a-z][A-Z]")
_COMMAND = late(r"(?:make|npm run|npm run-script|pnpm run) ([A-Za-z][\w:.-]{0,60})(?: |$)|(npm) (test|start)(?: |$)")
#: Files of the memory itself.
_OURS = ("rollout_summaries/", "MEMORY.md", "memory_summary.md", "raw_memories.md", "skills/", "extensions/")
#: Names that end like a file and are none.
_NO_FILES = frozenset({"node.js", "next.js", "vue.js", "three.js", "socket.io", "asp.net", "e.g", "i.e"})


class Anchor(NamedTuple):
    """Something that is named, as it is looked for."""

    kind: Kind
    text: str


def anchors(line: str) -> list[Anchor]:
    """What a line names, each once, in its order."""
    found = dict.fromkeys(_found(line[:_MOST_CHARS]))
    return list(found)[:MOST_OF_A_LINE]


def _found(line: str) -> Iterator[Anchor]:
    for code in _CODE.findall(line):
        yield from _of_code(code.strip())
    for match in _BARE_PATH.finditer(_CODE.sub(" ", line)):
        yield from _path(match[0])


def _of_code(code: str) -> Iterator[Anchor]:
    if command := _COMMAND.match(code):
        yield Anchor("command", command[0].strip())
    if " " in code:
        for word in code.split():
            if "/" in word and (match := _CODE_PATH.fullmatch(word)):
                yield from _path(match["path"])
        return
    if _COMMIT.fullmatch(code):
        yield Anchor("commit", code)
    elif match := _CODE_PATH.fullmatch(code):
        # `module.function` ends like a file as well.
        yield from _path(match["path"])
    elif (match := _SYMBOL.fullmatch(code)) and _is_coined(match["name"], called=bool(match["call"])):
        yield Anchor("symbol", match["name"])


def _path(text: str) -> Iterator[Anchor]:
    text = text.removeprefix("./")
    if ".." not in text.split("/") and not text.startswith(_OURS) and text.casefold() not in _NO_FILES:
        yield Anchor("path", text)


def _is_coined(name: str, *, called: bool) -> bool:
    """Whether nobody writes the word but who means this name: an ordinary word is found everywhere, or nowhere."""
    return called or "_" in name.strip("_") or _CAMEL.search(name) is not None
