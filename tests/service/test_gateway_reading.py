"""Bodies and events, however they are cut."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import GATEWAY
from stillroom.errors import ConfigError
from stillroom.service.asked import Asked, opened
from stillroom.service.dialects import Dialect, prepare
from stillroom.service.http import Dechunker, Head, Malformed
from stillroom.service.metering import Meter, UsageChunkFilter
from stillroom.service.unpacking import TooLarge, unpacker, zstd
from stillroom.service.upstream import Upstream

cuts = st.lists(st.integers(1, 50), max_size=40)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """The same bytes in pieces of these sizes, and the rest."""
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [piece for piece in [*pieces, data[at:]] if piece]


@given(st.lists(st.binary(min_size=1, max_size=60)), cuts)
def test_chunks_are_joined_however_they_arrive(chunks: list[bytes], sizes: list[int]) -> None:
    wire = b"".join(b"%X;x=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nx: y\r\n\r\n"
    reader = Dechunker()
    pieces = cut(wire, sizes)
    assert b"".join(map(reader.feed, pieces)) == b"".join(chunks)
    assert reader.ended


@given(st.binary(max_size=200), cuts)
def test_bytes_that_are_no_chunks_are_malformed_or_wait(data: bytes, sizes: list[int]) -> None:
    reader = Dechunker()
    try:
        for piece in cut(data, sizes):
            reader.feed(piece)
            if reader.ended:
                return
    except Malformed:
        pass


DELTA = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"\\"usage\\""}\n\n'
LAST = b'data: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":3}}}\n\n'


@given(st.integers(0, 5), cuts, st.booleans(), st.booleans())
def test_usage_is_found_however_a_stream_is_cut(deltas: int, sizes: list[int], crlf: bool, packed: bool) -> None:
    stream = DELTA * deltas + LAST
    stream = stream.replace(b"\n", b"\r\n") if crlf else stream
    wire = gzip.compress(stream) if packed else stream
    meter = Meter("responses", streamed=True, encoding="gzip" if packed else "", max_bytes=10_000)
    for piece in cut(wire, sizes):
        meter.feed(piece)
    meter.finish()
    assert meter.usage == {"input_tokens": 7, "output_tokens": 3}


@given(st.binary(max_size=300), cuts, st.sampled_from(["", "gzip", "zstd", "br"]), st.booleans())
def test_no_bytes_make_a_meter_fail(data: bytes, sizes: list[int], encoding: str, streamed: bool) -> None:
    meter = Meter("chat", streamed=streamed, encoding=encoding, max_bytes=100)
    for piece in cut(b"data: " + data, sizes):
        meter.feed(piece)
    meter.finish()


def test_an_event_that_is_too_long_is_passed_over_and_the_next_is_read() -> None:
    meter = Meter("responses", streamed=True, encoding="", max_bytes=1000)
    for piece in (b"data: ", b"x" * 5000, b"y" * 5000, b"\n\n" + LAST):
        meter.feed(piece)
    assert meter.usage == {"input_tokens": 7, "output_tokens": 3}


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_what_unpacks_to_far_more_than_an_answer_is_is_not_read(encoding: str) -> None:
    packed = gzip.compress(bytes(5_000_000)) if encoding == "gzip" else zstd.compress(bytes(5_000_000))
    reader = unpacker(encoding, max_bytes=100_000)
    assert reader is not None
    with pytest.raises(TooLarge):
        reader.feed(packed)
    meter = Meter("responses", streamed=True, encoding=encoding, max_bytes=100_000)
    meter.feed(packed)
    meter.finish()
    assert meter.usage == {}


@given(st.binary(max_size=2000), cuts, st.sampled_from(["gzip", "deflate", "zstd"]))
def test_a_packed_body_is_the_same_however_it_is_cut_and_what_follows_it_is_nothing(
    data: bytes, sizes: list[int], encoding: str
) -> None:
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}[encoding]
    reader = unpacker(encoding, max_bytes=2000)
    assert reader is not None
    assert b"".join(map(reader.feed, cut(pack(data), sizes))) == data
    assert reader.is_whole
    assert reader.feed(b"more") == b""


CHUNK = b'data: {"choices":[{"delta":{"content":"say \\"usage\\""}}],"usage":null}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'


@given(st.integers(0, 4), cuts, st.booleans())
def test_only_the_chunk_with_the_usage_is_taken_out(chunks: int, sizes: list[int], crlf: bool) -> None:
    kept, whole = CHUNK * chunks + b"data: [DONE]\n\n", CHUNK * chunks + USAGE + b"data: [DONE]\n\n"
    if crlf:
        kept, whole = kept.replace(b"\n", b"\r\n"), whole.replace(b"\n", b"\r\n")
    taken = UsageChunkFilter()
    assert b"".join(map(taken.feed, cut(whole, sizes))) + taken.finish() == kept


def test_an_event_that_is_far_too_long_for_a_usage_is_not_held_up() -> None:
    taken = UsageChunkFilter()
    long = b"data: " + b"x" * 200_000
    assert taken.feed(long) == long
    assert taken.feed(b"y\n\n" + USAGE + CHUNK) == b"y\n\n" + CHUNK


@pytest.mark.parametrize("dialect", ["responses", "chat", "messages"])
@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"input":7,"messages":7}', b'{"messages":[{"role":5}]}', b'{"a":\xff}', b"{}"]
)
def test_a_request_that_makes_no_sense_goes_on_as_it_is(dialect: str, body: bytes) -> None:
    prepared = prepare(body, dialect, "told")  # type: ignore[arg-type]
    assert (prepared.body, prepared.reminded) == (body, False)


def test_what_is_before_a_reminder_stays_byte_for_byte() -> None:
    items = b'[{"n":1e400,"content":"\\u00e9 1.0"},{"n":1.0,  "role":"user","content":[]}]'
    body = b'{"model":"m","input":' + items + b',"x":1.50}'
    prepared = prepare(body, "responses", "told")
    first, second = items[1:-1].split(b",{")
    assert first in prepared.body
    assert b"{" + second in prepared.body
    assert prepared.body.endswith(b',"x":1.50}')
    assert json.loads(prepared.body)["input"][-1]["role"] == "developer"


@pytest.mark.parametrize("dialect", ["responses", "chat", "messages"])
def test_half_a_character_keeps_no_reminder_out(dialect: str) -> None:
    member = "input" if dialect == "responses" else "messages"
    items = [{"role": "user", "content": "cut \ud83d"}]
    prepared = prepare(json.dumps({member: items, "stream": True}).encode(), dialect, "told")  # type: ignore[arg-type]
    assert prepared.reminded
    content = json.loads(prepared.body)[member][0]["content"]
    assert (content[0]["text"] if dialect == "messages" else content) == "cut \ud83d"
    meter = Meter("responses", streamed=False, encoding="", max_bytes=1000)
    meter.feed(b'{"output":"\\ud83d","usage":{"input_tokens":1}}')
    meter.finish()
    assert meter.usage == {"input_tokens": 1}


def test_a_request_for_a_compaction_keeps_its_end() -> None:
    body = b'{"input":[{"role":"user"},{"type":"compaction_trigger"}]}'
    assert prepare(body, "responses", "told").body == body


@pytest.mark.parametrize(
    ("upstream", "asked", "sent"),
    [
        ("https://api.openai.com/v1", "/v1/responses", "/v1/responses"),
        ("https://api.openai.com/v1/", "/responses?a=/v1", "/v1/responses?a=/v1"),
        ("https://api.anthropic.com", "/v1/messages", "/v1/messages"),
        ("https://openrouter.ai/api/v1", "/v1/chat/completions", "/api/v1/chat/completions"),
        ("http://localhost:11434", "/api/chat", "/api/chat"),
    ],
)
def test_paths_meet_where_they_overlap(upstream: str, asked: str, sent: str) -> None:
    assert Upstream(upstream, GATEWAY).path_of(asked) == sent


@pytest.mark.parametrize(
    "url",
    ["http://api.openai.com/v1", "ftp://localhost", "https://", "https://u:p@h/v1", "localhost:80", "http://[::1"],
)
def test_an_upstream_that_would_see_keys_in_the_clear_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        Upstream(url, GATEWAY)


@pytest.mark.parametrize("dialect", ["responses", None])
@pytest.mark.parametrize("packed", [True, False])
def test_only_a_packed_question_to_a_model_is_unpacked(dialect: Dialect | None, packed: bool) -> None:
    plain = b'{"input":"hello"}'
    headers = (("Host", "localhost"), ("X-Mine", "1"), *((("Content-Encoding", "gzip"),) if packed else ()))
    body = gzip.compress(plain) if packed else plain
    head = Head(("POST", "/v1/responses", "HTTP/1.1"), headers)
    asked, passed = opened(Asked("POST", "/v1/responses", None, head, dialect, body), max_bytes=1000)
    is_opened = packed and dialect is not None
    assert asked.body == (plain if is_opened else body)
    assert [name for name, _ in passed] == ["X-Mine", *(["Content-Encoding"] if packed and not is_opened else [])]
