"""A repository's remote, so written that every way to spell it gives the same text. Imports nothing but `os`."""

from __future__ import annotations

import os

from stillroom.system import READ

#: Longer configurations exist by accident only; a remote stands near the top.
_CONFIG_BYTES = 1024 * 1024
_DEFAULT_PORTS = {"ssh": "22", "https": "443", "http": "80", "git": "9418"}
#: Hosts that answer ssh on the port of https, for networks that block port 22.
_SAME_HOSTS = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
#: They take no notice of case in `owner/name`; elsewhere a path may be case-sensitive.
_CASELESS = ("github.com", "gitlab.com", "bitbucket.org")


def remote_of(common_directory: str, *, top: str) -> str | None:
    """The normalised remote of a repository: `origin`, else the only one there is, else None."""
    urls = remote_urls(_read(f"{common_directory}/config"))
    url = urls.get("origin") or (next(iter(urls.values())) if len(urls) == 1 else None)
    return normalise_remote(url, relative_to=top) if url else None


def normalise_remote(url: str, *, relative_to: str = "/") -> str | None:
    """`host/owner/name`, the same for https, ssh and scp-like addresses; `file:/path` for one on this disk.

    Credentials, default ports and a `.git` at the end are dropped.
    """
    scheme, found, rest = url.strip().partition("://")
    scheme = scheme.lower().removeprefix("git+").removesuffix("+git")
    if found and scheme == "file":
        return _local(rest[rest.find("/") :] if "/" in rest else rest, relative_to)
    if not found:
        host, colon, path = url.strip().partition(":")
        if not colon or "/" in host or len(host) == 1:  # one letter: a drive
            return _local(url.strip(), relative_to)
        scheme, rest = "", f"{host}/{path}"
    authority, _, path = rest.partition("/")
    address = authority.rpartition("@")[2].lower()
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        host, port = address, ""
    if port and port in (_DEFAULT_PORTS.get(scheme), "443" if host in _SAME_HOSTS else None):
        port = ""
    host = _SAME_HOSTS.get(host, host)
    steps = [step for step in path.partition("#")[0].partition("?")[0].split("/") if step not in ("", ".")]
    if not host or not steps:
        return None
    name = without_git_suffix("/".join(steps))
    return f"{host}{':' if port else ''}{port}/{name.lower() if host in _CASELESS else name}"


def repository_name(remote: str | None) -> str:
    """The last word of a normalised remote on a server; "" for one on this disk, or none."""
    return "" if remote is None or remote.startswith("file:") else remote.rpartition("/")[2].lower()


def without_git_suffix(path: str) -> str:
    """`/x/.git`, `/x.git` and `/x/` are all `/x`."""
    return path.rstrip("/").removesuffix("/.git").removesuffix(".git").rstrip("/")


def remote_urls(config: str) -> dict[str, str]:
    """The first `url` of every `[remote "name"]`. Included files are not followed."""
    urls: dict[str, str] = {}
    name: str | None = None
    for raw in config.split("\n"):
        line = raw.strip()
        if line.startswith("["):
            head, _, line = line[1:].partition("]")
            section, _, sub = head.partition(" ")
            name = sub.strip().strip('"') if section.lower() == "remote" else None
        key, equals, value = line.partition("=")
        if name and equals and key.strip().lower() == "url" and (url := _value(value)):
            urls.setdefault(name, url)
    return urls


def _value(text: str) -> str:
    """A value without its quotes, escapes and comment."""
    kept: list[str] = []
    quoted = escaped = False
    for character in text:
        if escaped:
            kept.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        else:
            kept.append(character)
    return "".join(kept).strip()


def _local(path: str, relative_to: str) -> str | None:
    if not path or "\0" in path:
        return None
    return f"file:{without_git_suffix(os.path.realpath(os.path.join(relative_to, path)))}"


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, READ)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _CONFIG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
