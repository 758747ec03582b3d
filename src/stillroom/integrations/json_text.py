"""Edits a JSON file as text, so that a person's order, indentation and way of writing numbers stay what they are.

    text = append(text, ("hooks", "SessionStart"), {"hooks": []})
    text = remove(text, ("hooks", "SessionStart", 1))

Appending and then removing gives the same bytes again. Only what `check` accepts may be edited.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
_BLANK = " \t\r\n"
_TOO_DEEP = "nested too deeply"


class NotEditable(ValueError):
    """The text is no JSON that can be edited: the message says what is in the way."""


@dataclass(frozen=True, slots=True)
class _Child:
    """A value in an object or array; `start` is where its key begins, `at` where the value does."""

    key: str | int
    start: int
    value: _Node


@dataclass(frozen=True, slots=True)
class _Node:
    """A value between two offsets of the text."""

    start: int
    end: int
    kind: str  # "{", "[" or "" for everything else
    children: tuple[_Child, ...] = ()

    def child(self, key: str | int) -> _Child | None:
        # Of two members with one name the last counts, as in every parser.
        return next((child for child in reversed(self.children) if child.key == key), None)


def check(text: str) -> dict[str, Any]:
    """The object that the text holds. Raises `NotEditable`, with line and column, for anything else."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        comment = " (JSON has no comments)" if text.startswith(("//", "/*"), error.pos) else ""
        raise NotEditable(f"no valid JSON: {error.msg}, line {error.lineno} column {error.colno}{comment}") from error
    except NotEditable:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise NotEditable(f"no valid JSON: {error}") from error
    except RecursionError as error:
        raise NotEditable(_TOO_DEEP) from error
    if not isinstance(value, dict):
        raise NotEditable("no JSON object")
    return value


def _no_constant(name: str) -> None:
    raise NotEditable(f"no valid JSON: `{name}`")


def append(text: str, path: tuple[str, ...], value: object) -> str:
    """The text with `value` at the end of the array at `path`; what is missing on the way is made.

    Raises `NotEditable` if something on the way has another shape.
    """
    node = _parse(text)
    for depth, key in enumerate(path):
        child = node.child(key)
        if child is None:
            made: object = [value]
            for name in reversed(path[depth + 1 :]):
                made = {name: made}
            return _insert(text, node, made, key=key)
        node = child.value
        if node.kind != ("[" if depth == len(path) - 1 else "{"):
            raise NotEditable(f"`{'.'.join(path[: depth + 1])}` has an unexpected shape")
    return _insert(text, node, value, key=None)


def replace(text: str, path: Path, value: object) -> str:
    """The text with `value` in the place of what is at `path`."""
    _, child = _find(text, path)
    rendered = _render(text, value, pad=_indent_of(text, child.start), wide="\n" in _slice(text, child.value))
    return text[: child.value.start] + rendered + text[child.value.end :]


def remove(text: str, path: Path) -> str:
    """The text without what is at `path`, and without the containers that this leaves empty."""
    parent, child = _find(text, path)
    if len(parent.children) == 1:
        if len(path) > 1:
            return remove(text, path[:-1])
        return text[: parent.start + 1] + text[parent.end - 1 :]
    place = parent.children.index(child)
    if place == len(parent.children) - 1:
        return text[: parent.children[place - 1].value.end] + text[child.value.end :]
    return text[: child.start] + text[parent.children[place + 1].start :]


def _find(text: str, path: Path) -> tuple[_Node, _Child]:
    parent = _parse(text)
    for key in path[:-1]:
        parent = _child(parent, key).value
    return parent, _child(parent, path[-1])


def _child(parent: _Node, key: str | int) -> _Child:
    child = parent.child(key)
    if child is None:
        raise KeyError(key)
    return child


def _insert(text: str, container: _Node, value: object, *, key: str | None) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not container.children:
        closing = _indent_of(text, container.start)
        pad = closing + _unit(text)
        wide = "\n" in text.strip(_BLANK) or container.start == len(text) - len(text.lstrip(_BLANK))
        body = name + _render(text, value, pad=pad, wide=wide)
        inside = f"{newline}{pad}{body}{newline}{closing}" if wide else body
        return text[: container.start + 1] + inside + text[container.end - 1 :]
    first, last = container.children[0], container.children[-1]
    wide = "\n" in text[container.start : first.start]
    pad = _indent_of(text, first.start)
    body = name + _render(text, value, pad=pad, wide=wide)
    glue = f",{newline}{pad}" if wide else ", "
    return text[: last.value.end] + glue + body + text[last.value.end :]


def _render(text: str, value: object, *, pad: str, wide: bool) -> str:
    if not wide:
        return json.dumps(value, ensure_ascii=False)
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", newline + pad)


def _unit(text: str) -> str:
    """What one level is indented by: the indentation of the first member, or two spaces."""
    root = _parse(text)
    if root.children and "\n" in text[root.start : root.children[0].start]:
        return _indent_of(text, root.children[0].start) or "  "
    return "  "


def _indent_of(text: str, offset: int) -> str:
    """The blanks at the beginning of the line."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _slice(text: str, node: _Node) -> str:
    return text[node.start : node.end]


def _parse(text: str) -> _Node:
    """Where everything is. The text is valid: no step needs to ask."""
    try:
        return _value(text, _skip(text, 0))
    except RecursionError as error:  # the parser in C goes deeper
        raise NotEditable(_TOO_DEEP) from error


def _value(text: str, at: int) -> _Node:
    opening = text[at]
    if opening not in "{[":
        _, end = _DECODER.raw_decode(text, at)
        return _Node(at, end, "")
    children: list[_Child] = []
    place = _skip(text, at + 1)
    while text[place] not in "}]":
        start, key = place, len(children) if opening == "[" else ""
        if opening == "{":
            key, place = _DECODER.raw_decode(text, place)
            place = _skip(text, _skip(text, place) + 1)
        value = _value(text, place)
        children.append(_Child(key, start, value))
        place = _skip(text, value.end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    return _Node(at, place + 1, opening, tuple(children))


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


_DECODER = json.JSONDecoder()

__all__ = ["NotEditable", "Path", "append", "check", "remove", "replace"]
