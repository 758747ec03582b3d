"""What holds of every reader of files of lines, whatever stands in the file."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from corpus import Sample, samples_of
from golden import LIMIT
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import EmptyRollout
from stillroom.sessions.item import Item
from stillroom.sessions.readers import Reader, reader_of

#: A record of these has an id of its own.
AGENTS = ("claude-code", "gemini-cli", "qwen-code", "copilot-cli", "pi", "letta-code", "kimi-code")
#: Pieces so small that every sample has many.
SMALL = Reading(batch_bytes=4096, chunk_bytes=512, head_bytes=4096, tail_window_bytes=2048)
#: Nothing tells whether one of its lines is the same as another, or says the same.
WITHOUT_IDS = ("codex", "stillroom", "cursor")


class Session(NamedTuple):
    """A file of lines, of the home that it is of."""

    sample: Sample
    path: Path

    def read_bytes(self) -> bytes:
        return self.path.read_bytes()


def sessions_of(*agents: str) -> st.SearchStrategy[Session]:
    samples = [sample for agent in agents for sample in samples_of(agent)]
    return st.sampled_from([Session(of, path) for of in samples for path in of.files() if path.suffix == ".jsonl"])


sessions = sessions_of(*AGENTS, *WITHOUT_IDS)
garbage = st.binary(max_size=80) | st.sampled_from(
    [
        *(
            b"{}",
            b"null",
            b"[" * 5000,
            b'{"type":"user"}',
            b'{"type":"user.message","data":7}',
            b'{"$set":{"messages":[3]}}',
        ),
        *(b'{"id":"x","type":"user","content":[3]}', b'{"type":"user","message":{"parts":[3]}}', b'{"$rewindTo":7}'),
        *(b'{"type":[1],"id":"y"}', b'{"type":"message","message":{"role":[1]}}', b'{"type":"system","subtype":[1]}'),
        *(b'{"type":"message","id":"x","message":{"role":"user","content":[3]}}', b'{"type":"message","message":7}'),
        *(b'{"role":"user","message":{"content":[3]}}', b'{"role":7,"message":{"content":"x"}}'),
        *(b'{"type":"context.append_message","message":7}', b'{"type":"context.undo","count":"x"}'),
        b'{"type":"assistant","message":{"role":"assistant","content":[{"type":[1]}]}}',
        b'{"type":"response_item","payload":{"type":"message","role":"user","content":[3]}}',
    ]
)


def put(folder: Path, session: Session, data: bytes) -> tuple[Reader, Path]:
    path = folder / session.path.relative_to(session.sample.folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return reader_of(session.sample.agent), path


def items(folder: Path, session: Session, data: bytes) -> list[Item]:
    reader, path = put(folder, session, data)
    for discovery in reader.discover(folder, {}, max_line_bytes=LIMIT):
        assert discovery is not None
    if not data.strip():
        return []
    with reader.open_items(path, max_line_bytes=LIMIT, reading=SMALL) as stream:
        read = list(stream)
    with reader.open_items(path, max_line_bytes=LIMIT, reading=SMALL) as stream:
        assert b",".join(stream.texts()) == b",".join(item.raw for item in read)
    return read


def said(read: list[Item]) -> Counter[bytes]:
    # What is superseded is only known of the whole file, and of some agents the folder only from the first line.
    return Counter(item.raw.replace(b"/home/dev/demo-app/", b"") for item in read if item.role != "user")


@given(session=sessions, cut=st.floats(0, 1))
def test_a_file_cut_anywhere_loses_nothing_before_the_cut(tmp_path_factory, session: Session, cut: float):
    folder, data = tmp_path_factory.mktemp("cut"), session.read_bytes()
    at = int(len(data) * cut)
    lines = data[:at].count(b"\n")
    before = [(item.line_no, item.type) for item in items(folder, session, data) if item.line_no <= lines]
    part = [(item.line_no, item.type) for item in items(folder, session, data[:at])]
    assert part[: len(before)] == before


def with_another_value(line: bytes, place: int, value: object) -> bytes:
    """The line with something else at one of its places, of whatever depth."""
    read = json.loads(line)
    places: list[tuple[Any, Any]] = []
    inner: list[Any] = [read]
    while inner:
        holder = inner.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        places += ((holder, key) for key in keys)
        inner += (holder[key] for key in keys)
    if places:
        holder, key = places[place % len(places)]
        holder[key] = value
    return json.dumps(read, separators=(",", ":")).encode() + b"\n"


@given(
    session=sessions,
    number=st.integers(0, 1000),
    place=st.integers(0, 1000),
    value=st.sampled_from([None, True, -1, 1.5, 2**80, "", "x", [], ["x"], [[3]], {}, {"type": "x"}]),
)
def test_a_value_of_another_type_raises_nothing(
    tmp_path_factory, session: Session, number: int, place: int, value: object
):
    lines = session.read_bytes().splitlines(keepends=True)
    number %= len(lines)
    if lines[number].strip():
        lines[number] = with_another_value(lines[number], place, value)
    items(tmp_path_factory.mktemp("types"), session, b"".join(lines))


@given(session=sessions, number=st.integers(0, 1000), line=garbage)
def test_a_line_of_garbage_costs_at_most_what_it_held(tmp_path_factory, session: Session, number: int, line: bytes):
    folder, data = tmp_path_factory.mktemp("garbage"), session.read_bytes()
    lines = data.splitlines(keepends=True)
    number %= len(lines)
    whole = items(folder, session, data)
    lines[number] = line.replace(b"\n", b" ") + b"\n"
    damaged = items(folder, session, b"".join(lines))
    others = [item for item in whole if item.line_no != number + 1]
    lost = said(others) - said(damaged)
    # A result whose call is lost is read without knowing of which tool it is.
    assert all(b"call_output" in raw for raw in lost)
    assert len(damaged) >= len(others)


@given(session=sessions_of(*AGENTS))
def test_a_session_stored_twice_in_a_file_says_nothing_twice(tmp_path_factory, session: Session):
    folder, data = tmp_path_factory.mktemp("twice"), session.read_bytes()
    once, twice = items(folder, session, data), items(folder, session, data + data)
    assert [(item.line_no, item.type) for item in twice] == [(item.line_no, item.type) for item in once]
    assert said(twice) == said(once)


@given(first=sessions, second=sessions)
def test_what_follows_a_session_in_a_file_takes_nothing_from_it(tmp_path_factory, first: Session, second: Session):
    folder, data = tmp_path_factory.mktemp("both"), first.read_bytes()
    alone, both = items(folder, first, data), items(folder, first, data + second.read_bytes())
    assert [(item.line_no, item.type) for item in both[: len(alone)]] == [(item.line_no, item.type) for item in alone]
    assert said(both[: len(alone)]) == said(alone)


@given(session=sessions, cut=st.floats(0, 1), taken=st.integers(0, 5))
def test_a_session_that_grows_while_it_is_read_says_nothing_but_its_own(
    tmp_path_factory, session: Session, cut: float, taken: int
):
    folder, data = tmp_path_factory.mktemp("grows"), session.read_bytes()
    whole = items(folder, session, data)
    at = int(len(data) * cut)
    reader, path = put(folder, session, data[:at])
    with reader.open_items(path, max_line_bytes=LIMIT, reading=SMALL) as stream:
        read: list[Item] = []
        with suppress(EmptyRollout):
            read += islice(stream, taken)
        with path.open("ab") as file:
            file.write(data[at:])
        with suppress(EmptyRollout):
            read += stream
    assert [(item.line_no, item.type) for item in read] == [(item.line_no, item.type) for item in whole[: len(read)]]
