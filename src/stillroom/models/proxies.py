"""`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`: which proxy a URL is reached through."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from stillroom.errors import ConfigError

_DEFAULT_PORT = 80


class Proxy(msgspec.Struct, frozen=True):
    """An HTTP proxy."""

    host: str
    port: int
    #: Of the request to the proxy itself.
    headers: dict[str, str] = {}


def proxy_for(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for `url`, or None. Raises `ConfigError` for a proxy that is not spoken to over plain HTTP."""
    parts = urlsplit(url)
    names = (f"{parts.scheme}_proxy", f"{parts.scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    # A program that is run by a web server must not take a request's `Proxy:` header for a setting.
    value = next((environ[name] for name in names if environ.get(name) and not _is_header(name, environ)), None)
    if value is None or _is_excluded(parts.hostname or "", environ):
        return None
    proxy = urlsplit(value if "://" in value else f"http://{value}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise ConfigError(
            f"the proxy `{proxy.scheme}://{proxy.hostname}` can't be used", hint="only `http://` proxies are"
        )
    headers = {}
    if proxy.username is not None:
        credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + b64encode(credentials.encode()).decode()
    return Proxy(proxy.hostname, proxy.port or _DEFAULT_PORT, headers)


def _is_header(name: str, environ: Mapping[str, str]) -> bool:
    return name == "HTTP_PROXY" and "REQUEST_METHOD" in environ


def _is_excluded(host: str, environ: Mapping[str, str]) -> bool:
    excluded = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    for entry in excluded.split(","):
        name = entry.strip().lstrip(".").partition(":")[0].lower()
        if name == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
    return False
