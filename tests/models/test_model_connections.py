from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from stillroom.errors import ConfigError
from stillroom.models.connections import ConnectionFailed, Connections, ReplyTooLarge, Response
from stillroom.models.proxies import Proxy, proxy_for
from stillroom.stopping import Stop, Stopped
from stillroom.testing import CutOff, Hang, LoopbackModel, NeverEnd, Say, SendBytes

BODY = b'{"model":"m"}'


def connections(url: str, *, proxy: Proxy | None = None, max_reply_bytes: int = 1_000_000) -> Connections:
    return Connections(
        url,
        headers={"content-type": "application/json"},
        connect_timeout_seconds=5,
        max_reply_bytes=max_reply_bytes,
        proxy=proxy,
    )


def send(opened: Connections, *, stop: Stop | None = None, seconds: float = 20) -> Response:
    return opened.post(BODY, seconds=seconds, stop=stop or Stop())


def post(opened: Connections, *, times: int = 1) -> list[Response]:
    try:
        return [send(opened) for _ in range(times)]
    finally:
        opened.close()


def test_one_connection_serves_request_after_request():
    with LoopbackModel(Say("hello")) as server:
        responses = post(connections(f"{server.base_url}/responses"), times=5)
    assert [response.status for response in responses] == [200] * 5
    assert responses[0].headers["content-type"] == "application/json"
    assert server.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again():
    with LoopbackModel([CutOff(Say("x")), Say("hello")]) as server:
        opened = connections(f"{server.base_url}/responses")
        with pytest.raises(ConnectionFailed, match="ended before the reply did"):
            send(opened)
        assert send(opened).status == 200
        opened.close()
    assert server.connections == 2


def test_a_reply_without_end_is_refused():
    with LoopbackModel(NeverEnd()) as server, pytest.raises(ReplyTooLarge):
        post(connections(f"{server.base_url}/responses", max_reply_bytes=200_000))


def test_stopping_ends_the_thread_that_waits():
    with LoopbackModel(Hang()) as server, ThreadPoolExecutor(1) as pool:
        opened, stop = connections(f"{server.base_url}/responses"), Stop()
        waiting = pool.submit(send, opened, stop=stop)
        while not server.in_flight:
            assert not waiting.done()
        stop.ask()
        with pytest.raises(Stopped):
            waiting.result(10)
        opened.close()


def test_no_server_is_a_failure():
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionFailed, match="ConnectionRefusedError"):
        post(connections(f"http://127.0.0.1:{port}/v1/responses"))


def test_what_is_not_http_is_a_failure():
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]

        def babble() -> None:
            accepted, _ = listening.accept()
            with closing(accepted):
                accepted.recv(65536)
                accepted.sendall(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        with pytest.raises(ConnectionFailed, match="does not speak HTTP"):
            post(connections(f"http://127.0.0.1:{port}/v1/responses"))
        thread.join(10)


def test_a_plain_url_goes_through_the_proxy_with_its_credentials():
    with LoopbackModel(SendBytes(b"{}")) as proxy:
        environ = {"http_proxy": f"http://user:p%40ss@127.0.0.1:{proxy.port}"}
        found = proxy_for("http://model.invalid/v1", environ)
        post(connections("http://model.invalid/v1/responses", proxy=found))
    (request,) = proxy.requests
    assert request.path == "http://model.invalid/v1/responses"
    assert request.headers["host"] == "model.invalid"
    assert request.headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"


@pytest.mark.parametrize("through", ["", "a proxy"])
def test_a_secured_server_is_spoken_to_with_the_certificates_that_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through: str
):
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("needs openssl for a certificate")
    made, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    asked = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    name = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(made)]
    subprocess.run([openssl, *asked.split(), *name], check=True, capture_output=True, timeout=20)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    heads: list[bytes] = []

    def serve(listening: socket.socket) -> None:
        for _ in range(2):
            accepted, _ = listening.accept()
            with closing(accepted):
                if through:
                    heads.append(accepted.recv(65536))
                    accepted.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                try:
                    with context.wrap_socket(accepted, server_side=True) as secured:
                        heads.append(secured.recv(65536))
                        secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                except ssl.SSLError:  # the certificate is not trusted
                    pass

    with closing(socket.create_server(("127.0.0.1", 0))) as listening, ThreadPoolExecutor(1) as pool:
        port = listening.getsockname()[1]
        serving = pool.submit(serve, listening)
        url, proxy = f"https://localhost:{port}/v1/responses", None
        if through:
            url, proxy = "https://localhost/v1/responses", Proxy("127.0.0.1", port, {"Proxy-Authorization": "Basic x"})
        with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
            post(connections(url, proxy=proxy))
        monkeypatch.setenv("SSL_CERT_FILE", str(made))
        assert [response.body for response in post(connections(url, proxy=proxy))] == [b"hi"]
        serving.result(10)
    assert heads[-1].startswith(b"POST /v1/responses HTTP/1.1\r\nHost: localhost")
    if through:
        assert heads[-2].startswith(b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n")
        assert b"Proxy-Authorization: Basic x\r\n" in heads[-2]
        assert b"Proxy-Authorization" not in heads[-1]


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api.openai.com/v1", {}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://p:3128"}, Proxy("p", 3128)),
        ("https://api.openai.com/v1", {"https_proxy": "p:3128"}, Proxy("p", 3128)),
        ("https://api.openai.com/v1", {"ALL_PROXY": "http://p"}, Proxy("p", 80)),
        ("https://api.openai.com/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://p", "NO_PROXY": "x, .openai.com"}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://p", "no_proxy": "*"}, None),
        ("https://notopenai.com/v1", {"HTTPS_PROXY": "http://p", "NO_PROXY": "openai.com"}, Proxy("p", 80)),
        ("http://h/v1", {"HTTP_PROXY": "http://p", "REQUEST_METHOD": "POST"}, None),
    ],
)
def test_the_environment_names_the_proxy(url: str, environ: dict[str, str], proxy: Proxy | None):
    assert proxy_for(url, environ) == proxy


def test_a_proxy_of_another_kind_is_a_setting_to_change():
    with pytest.raises(ConfigError, match="socks5"):
        proxy_for("https://h/v1", {"ALL_PROXY": "socks5://127.0.0.1:9"})
