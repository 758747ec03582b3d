"""Where the output of a call comes from: a file of the repository, a tool, or the web."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stillroom.lanes import Lane
from stillroom.pattern import late
from stillroom.sessions.events import Ran

_WEB_TOOL = late(r"web|browser|fetch|http|url|crawl|scrape|navigate|page", re.IGNORECASE)
_WEB_COMMAND = late(r"\b(?:curl|wget|lynx|w3m|httpie|xh|gh|glab|az repos|tea|jira)\b|https?://")
_FILE_TOOL = late(r"^(?:read|view|cat|open)|read_?(?:file|many|text)|file_?read|view_?file|grep|glob", re.IGNORECASE)
_FILE_COMMAND = late(
    r"^\s*(?:cd\s+[^&;|]+(?:&&|;)\s*)?(?:cat|bat|sed|head|tail|less|more|rg|grep|ag|nl|awk|git\s+(?:show|diff|grep))\b"
)
#: Other people's files that happen to lie in the folder.
_FOREIGN = late(r"node_modules|site-packages|vendor/|\.venv|\.cargo|/pkg/mod/|dist-packages|third[_-]party|/tmp/")
#: What these are called with is said, not done.
_SAYING = late(r"\bgit\s+(?:commit|tag|notes)\b|^\s*(?:gh|glab|echo|printf)\b")
_DOCUMENT = late(r"\.(?:md|mdx|markdown|rst|txt|adoc|org)$", re.IGNORECASE)


def lane_of(run: Ran) -> Lane:
    """Where the output of a call comes from."""
    asked = run.command if run.command is not None else run.arguments
    if run.command is None and _WEB_TOOL.search(run.tool):
        return "web"
    if run.command is not None and _WEB_COMMAND.search(run.command):
        return "web"
    reads = _FILE_COMMAND.search(run.command) if run.command is not None else _FILE_TOOL.search(run.tool)
    return "file" if reads and not _FOREIGN.search(asked) else "tool"


def works(run: Ran) -> Iterator[str]:
    """What a call did that worked: an edit of code, or a command. To look for something, to say it, or to write it into
    a document is to do nothing."""
    if not (run.ok or run.exit_code == 0):
        return
    yield from (f"{edit.path}\n{edit.diff}" for edit in run.edits if not _DOCUMENT.search(edit.path))
    if run.command is not None and not run.edits and lane_of(run) == "tool" and not _SAYING.search(run.command):
        yield run.command
