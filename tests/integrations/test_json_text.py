"""Editing JSON as text: what a person wrote stays as it was written."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.integrations.json_text import NotEditable, append, check, remove, replace

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text(max_size=3), inner, min_size=1),
    max_leaves=6,
)
INDENTS = st.sampled_from([None, 1, 2, 4, "\t"])
ADDED = {"hooks": [{"type": "command", "command": "é"}]}


@given(
    rest=st.dictionaries(st.text(max_size=3), VALUES, max_size=3),
    ours=st.none() | st.fixed_dictionaries({"Start": st.lists(VALUES, min_size=1, max_size=2)}),
    indent=INDENTS,
    crlf=st.booleans(),
    end=st.sampled_from(["", "\n", "\n\n"]),
)
def test_what_is_appended_and_removed_leaves_every_byte(
    rest: dict[str, object], ours: dict[str, list[object]] | None, indent: str | int | None, crlf: bool, end: str
) -> None:
    before = {**rest, **({"hooks": ours} if ours else {})}
    text = json.dumps(before, indent=indent) + end
    text = text.replace("\n", "\r\n") if crlf else text
    rest.pop("hooks", None)
    if not ours:
        text = json.dumps(rest, indent=indent) + end
    after = append(text, ("hooks", "Start"), ADDED)
    held = check(after)
    assert held["hooks"]["Start"][-1] == ADDED
    assert remove(after, ("hooks", "Start", len(held["hooks"]["Start"]) - 1)) == text
    changed = replace(after, ("hooks", "Start", len(held["hooks"]["Start"]) - 1), {"other": 1})
    assert check(changed)["hooks"]["Start"][-1] == {"other": 1}


def test_the_way_it_is_written_stays() -> None:
    text = '{\n\t"big": 1.0e3, "list": ["a", "b"],\n\t"list2": [ 1 ],\n\t"z": {}\n}\n'
    assert append(text, ("list",), "c") == text.replace('["a", "b"]', '["a", "b", "c"]')
    assert append(text, ("z", "y"), 1) == text.replace('"z": {}', '"z": {\n\t\t"y": [\n\t\t\t1\n\t\t]\n\t}')
    assert remove(text, ("list", 0)) == text.replace('["a", "b"]', '["b"]')
    assert append("{}", ("a",), 1) == '{\n  "a": [\n    1\n  ]\n}'
    assert append('{"b":1}', ("a",), 1) == '{"b":1, "a": [1]}'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1 column 1"),
        ('{\n  // mine\n  "a": 1\n}', "JSON has no comments"),
        ('{"a": 1,}', "no valid JSON"),
        ("[]", "no JSON object"),
        ('{"a": NaN}', "`NaN`"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "no valid JSON"),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(NotEditable, match=says.replace("`", ".")):
        check(text)


def test_every_depth_is_kept_or_refused() -> None:
    text, refused = '{"deep": %s0%s}', 0
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit() + 50):
        deep = text % ("[" * depth, "]" * depth)
        try:
            assert append(deep, ("x",), 1) == deep[:-1] + ', "x": [1]}'
        except NotEditable:
            refused += 1
    assert 0 < refused < 250


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"Start": {}}}', '{"hooks": {"Start": "no"}}'])
def test_an_unexpected_shape_on_the_way_is_refused(text: str) -> None:
    with pytest.raises(NotEditable, match="hooks"):
        append(text, ("hooks", "Start"), ADDED)
