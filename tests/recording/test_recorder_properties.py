"""Whatever an agent says, and wherever its file is cut: a thread that is recorded again loses nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stillroom import Recorder
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import open_thread, reader_of

LIMIT = 8 * 1024 * 1024
#: Nothing of these is a blank message, scaffolding, or looks like a secret.
texts = st.text(min_size=1, max_size=60).map(lambda text: f"said: {text}")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def events(home: Path) -> list[Said | Ran]:
    (found,) = reader_of("stillroom").discover(home, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found), found
    with open_thread(found.thread, max_line_bytes=LIMIT) as items:
        return read_events(items)


@pytest.mark.slow
@given(said=st.lists(texts, min_size=1, max_size=6), cut=st.floats(0, 1))
@example(said=["said: x"], cut=0.0)
@example(said=["said: \ud800 \x00 \u2028 \n"], cut=1.0)
def test_a_file_cut_anywhere_loses_nothing_before_the_cut_and_nothing_after(
    tmp_path_factory, said: list[str], cut: float
) -> None:
    home: Path = tmp_path_factory.mktemp("cut")
    with Recorder("bot", thread_id="t", home=home, redaction=None) as recorder:
        for text in said:
            recorder.user(text)
    data = recorder.path.read_bytes()
    at = int(len(data) * cut)
    recorder.path.write_bytes(data[:at])
    with Recorder("bot", thread_id="t", home=home) as again:
        again.user("after it")
    # The line at the cut is whole if only its newline is missing.
    before = max(data[:at].count(b"\n") - 1, 0)
    read = [event.text for event in events(home) if isinstance(event, Said)]
    whole = [text.encode("utf-8", "replace").decode() for text in said]
    assert read in ([*whole[:before], "after it"], [*whole[: before + 1], "after it"])


@given(arguments=values, output=values)
def test_a_call_with_any_arguments_keeps_its_result(tmp_path_factory, arguments: object, output: object) -> None:
    home: Path = tmp_path_factory.mktemp("call")
    with Recorder("bot", home=home) as recorder:
        recorder.tool_result(recorder.tool_call("look", arguments), output, ok=True)
    (ran,) = events(home)
    assert isinstance(ran, Ran) and (ran.tool, ran.ok) == ("look", True)
