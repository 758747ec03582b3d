"""What a server may send: real bytes over a real socket."""

from __future__ import annotations

import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.models.http1 import BrokenResponse, Connection, ReplyTooLarge, Response

MOST = 100_000


def exchange(*sent: bytes, seconds: float = 5) -> tuple[Response, bool]:
    """What comes of these bytes, after which the server closes; and whether the connection could be used again."""
    ours, theirs = socket.socketpair()
    connection = Connection(max_reply_bytes=MOST)
    connection.sock = ours
    with ours, theirs:
        theirs.sendall(b"".join(sent))
        theirs.shutdown(socket.SHUT_WR)
        response = connection.exchange(b"POST / HTTP/1.1\r\n\r\n", deadline=time.monotonic() + seconds)
        return response, connection.reusable


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("sent", "body", "reusable"),
    [
        (OK + b"Content-Length: 2\r\n\r\nhi", b"hi", True),
        (b"HTTP/1.1 200\r\ncontent-length:2\r\n\r\nhi", b"hi", True),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", b"hi", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi", False),
        (OK + b"Connection: Close\r\nContent-Length: 2\r\n\r\nhi", b"hi", False),
        (OK + b"Content-Length: 2\r\n\r\nhi and more", b"hi", False),
        (OK + b"\r\nuntil the end", b"until the end", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nhi", b"hi", True),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi", True),
        (
            OK + b"Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nh\r\n00A\r\ni 23456789\r\n0\r\nT: x\r\n\r\n",
            b"hi 23456789",
            True,
        ),
        (OK + b"Transfer-Encoding: Chunked\r\nContent-Length: 1\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi", True),
    ],
)
def test_a_response_is_read_to_its_end_and_no_further(sent: bytes, body: bytes, reusable: bool):
    response, again = exchange(sent)
    assert (response.body, again) == (body, reusable)


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"", "ended before"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "does not speak HTTP/1"),
        (b"HTTP/2 200 OK\r\n\r\n", "does not speak HTTP/1"),
        (OK + b"Content-Length: 3\r\n\r\nhi", "ended before"),
        (OK + b"Content-Length: -3\r\n\r\nhi", "length is `-3`"),
        (OK + b"Content-Length: 2, 3\r\n\r\nhi", "length is `2, 3`"),
        (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "length is `2, 3`"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "coded as `gzip, chunked`"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nhi\r\n", "how long"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\nhi\r\n", "how long"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nhi\r\n0\r\n\r\n", "longer than it says"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", "ended before"),
    ],
)
def test_what_is_no_whole_response_is_told_apart(sent: bytes, says: str):
    with pytest.raises(BrokenResponse, match=says):
        exchange(sent)


@pytest.mark.parametrize(
    "sent",
    [
        OK + b"Content-Length: 100001\r\n\r\n",
        OK + b"Content-Length: 999999999999999\r\n\r\n",
        OK + b"\r\n" + b"x" * (MOST + 1),
        OK + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b"x" * 0x10000 + b"\r\n10000\r\n",
        OK + b"a: " + b"x" * 70_000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 70_000,
    ],
)
def test_a_reply_over_the_limit_is_refused_before_it_is_read(sent: bytes):
    with pytest.raises(ReplyTooLarge):
        exchange(sent)


def test_a_header_that_comes_twice_is_one_list():
    response, _ = exchange(OK + b"X-A: 1\r\nx-a:  2 \r\nno colon\r\nContent-Length: 0\r\n\r\n")
    assert response.headers == {"x-a": "1, 2", "content-length": "0"}


def test_a_server_that_drips_is_left_at_the_deadline():
    ours, theirs = socket.socketpair()
    connection = Connection(max_reply_bytes=MOST)
    connection.sock = ours
    with ours, theirs:
        theirs.sendall(OK)
        with pytest.raises(TimeoutError):
            connection.exchange(b"x", deadline=time.monotonic() + 0.02)


@given(
    body=st.binary(max_size=200),
    cuts=st.lists(st.integers(1, 40), max_size=8),
    ends=st.sampled_from([b"\r\n", b"\n"]),
)
def test_a_body_in_any_chunks_is_the_body(body: bytes, cuts: list[int], ends: bytes):
    parts, at = [], 0
    for size in (*cuts, len(body)):
        if part := body[at : at + size]:
            parts.append(b"%x%b%b%b" % (len(part), ends, part, ends))
        at += size
    response, reusable = exchange(OK, b"Transfer-Encoding: chunked\r\n\r\n", *parts, b"0", ends, ends)
    assert (response.body, reusable) == (body, True)


@given(st.binary(max_size=120))
def test_any_bytes_are_a_response_or_a_failure(sent: bytes):
    for begin in (b"", OK, OK + b"Transfer-Encoding: chunked\r\n\r\n", OK + b"Content-Length: "):
        try:
            exchange(begin, sent)
        except (BrokenResponse, ReplyTooLarge):
            pass
