"""A shell script as lists of words, if it is nothing but plain commands, one after the other (spec §2.3).

Parsed with the grammar that Codex uses. Plain are words joined by `&&`, `||`, `;`, `|` or new lines. What a shell would
expand, substitute, redirect, assign or repeat makes a script not plain, as nobody can tell what it reads.
"""

from __future__ import annotations

import re
from functools import cache

import tree_sitter
import tree_sitter_bash

#: The variables that may stand in a word: they are kept as written, and always name a folder.
VARIABLES = ("HOME", "STILLROOM_HOME")

_GROUPS = frozenset({"program", "list", "pipeline"})
_JOINTS = frozenset({"&&", "||", ";", "|", "\n"})
_EXPANSIONS = frozenset(form for name in VARIABLES for form in (f"${name}", f"${{{name}}}"))
#: To every shell nothing but itself, whatever the grammar calls it.
_is_plain = re.compile(rb"[\w./:@%+-]+").fullmatch
_BARE = frozenset({"word", "number"})
#: A shell gives these a meaning outside of quotes.
_SPECIAL = re.compile(r"[{}*?\[\]\\~^#$`]|^=")
#: The grammar passes over an escaped blank between words; to a shell it is one of a word's letters.
_ESCAPED_BLANK = re.compile(rb"""'[^']*'|"(?:\\[\s\S]|[^"\\])*"|\\[^ \t]|(\\[ \t])""")
_ESCAPED = re.compile(r'\\([$`"\\])')


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def plain_commands(script: str) -> list[list[str]] | None:
    """The words of every command; None if the script is not plain.

    `~`, `$HOME` and `$STILLROOM_HOME` at the beginning of a word stay as they are, as `~` or `$NAME`.
    """
    source = script.encode("utf-8", "replace")
    root = _parser().parse(source).root_node
    if root.has_error or (b"\\" in source and any(found[1] for found in _ESCAPED_BLANK.finditer(source))):
        return None
    commands: list[list[str]] = []
    rest = [root]
    while rest:
        node = rest.pop()
        kind = node.type
        if kind == "command":
            words: list[str] = []
            for child in node.children:
                word = _word(child, source)
                if word is None:
                    return None
                words.append(word)
            commands.append(words)
        elif kind in _GROUPS:
            rest += reversed(node.children)
        elif kind not in _JOINTS:
            return None
    return commands


def _word(node: tree_sitter.Node, source: bytes) -> str | None:
    """What a shell would make of a word; None where that depends on more than the word."""
    written = source[node.start_byte : node.end_byte]
    if _is_plain(written):
        return written.decode()
    text = written.decode("utf-8", "replace")
    kind = node.type
    if kind in _BARE:
        return None if _SPECIAL.search(text, 1 if text.startswith("~/") or text == "~" else 0) else text
    if kind == "command_name":
        return _word(node.children[0], source) if node.child_count == 1 else None
    if kind == "raw_string":
        return text[1:-1]
    if kind == "string":
        return _quoted(node, text[1:-1], source)
    if kind in ("simple_expansion", "expansion"):
        return f"${text.strip('${}')}" if text in _EXPANSIONS else None
    return _joined(node, source) if kind == "concatenation" else None


def _joined(node: tree_sitter.Node, source: bytes) -> str | None:
    parts: list[str] = []
    for child in node.children:
        part = _word(child, source)
        # A variable in the middle is no folder to begin at.
        if part is None or (parts and child.type.endswith("expansion")):
            return None
        parts.append(part)
    return "".join(parts)


def _quoted(node: tree_sitter.Node, text: str, source: bytes) -> str | None:
    for child in node.named_children:
        if child.type != "string_content" and (child.start_byte != node.start_byte + 1 or _word(child, source) is None):
            return None
    if not text.startswith("$"):
        return _ESCAPED.sub(r"\1", text) if "\\" in text else text
    name, slash, rest = text.partition("/")
    return None if "\\" in rest or name not in _EXPANSIONS else f"${name.strip('${}')}{slash}{rest}"
