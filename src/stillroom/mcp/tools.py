"""The memory tools as MCP has them: schemas from the requests and answers, errors as text for the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from msgspec import Meta

from stillroom.clock import Clock
from stillroom.config import SERVING, Serving, Settings
from stillroom.errors import InvalidRequest, StillroomError
from stillroom.recall.browse.listing import Listing
from stillroom.recall.browse.reading import Reading
from stillroom.recall.browse.searching import SearchResult
from stillroom.recall.browse.tools import (
    ListRequest,
    NoteRequest,
    ReadRequest,
    SearchRequest,
    call_list,
    call_note,
    call_read,
    call_search,
)
from stillroom.recall.projects.switched_off import is_switched_off
from stillroom.recall.usage.counts import CitationReceipt, record_citation
from stillroom.rollouts.redact import redact
from stillroom.store import Store


class Noted(msgspec.Struct, frozen=True):
    """The note is written."""


class CitationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Report which memories were of use, when the reply itself can't end with a citation block."""

    citation: Annotated[str, Meta(description="The block: `<oai-mem-citation>` to `</oai-mem-citation>`.")]
    thread_id: Annotated[str, Meta(description="The session that cites, if its id is known.")] | None = None


class MemoryTool(NamedTuple):
    """One tool: what it takes, what it answers, and what it does."""

    name: str
    title: str
    request: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    reads_only: bool
    call: Callable[[Any], msgspec.Struct]  # Any: each takes the request that stands beside it


def memory_tools(settings: Settings, clock: Clock) -> dict[str, MemoryTool]:
    """Every tool by its name. None does anything where the memory of the server's folder is switched off."""
    root, style = settings.root, settings.memories.redaction

    def clean(text: str) -> str:
        # A person may have written a secret into the folder by hand; here it would leave for a model.
        return redact(text, style=style)

    def read(request: ReadRequest) -> Reading:
        reading = call_read(root, request)
        return msgspec.structs.replace(reading, content=clean(reading.content))

    def search(request: SearchRequest) -> SearchResult:
        result = call_search(root, request)
        matches = (msgspec.structs.replace(match, content=clean(match.content)) for match in result.matches)
        return msgspec.structs.replace(result, matches=tuple(matches))

    def note(request: NoteRequest) -> Noted:
        # An agent writes it, and may have been told to by a page: it is for this project alone.
        check_order(request.note)
        call_note(root, request.note, name=request.filename, clock=clock, redaction=style, cwd=Path(here()))
        return Noted()

    def cite(request: CitationRequest) -> CitationReceipt:
        if len(request.citation) > SERVING.max_citation_chars:
            raise InvalidRequest(f"the citation has more than {SERVING.max_citation_chars:,} characters")
        with Store.open(settings.database, clock=clock, limits=settings.database_limits) as store:
            return record_citation(settings, store, clock, thread_id=request.thread_id, citation=request.citation)

    def unless_off(tool: MemoryTool) -> MemoryTool:
        def call(request: Any) -> msgspec.Struct:  # Any: the tool's own
            if is_switched_off(str(settings.home), here()):
                raise InvalidRequest(
                    "the memory of this project is switched off", hint="`stillroom memories --on` switches it on"
                )
            return tool.call(request)

        return tool._replace(call=call)

    tools = (
        MemoryTool("list", "List memory", ListRequest, Listing, True, lambda request: call_list(root, request)),
        MemoryTool("read", "Read memory", ReadRequest, Reading, True, read),
        MemoryTool("search", "Search memory", SearchRequest, SearchResult, True, search),
        MemoryTool("add_ad_hoc_note", "Add a note to memory", NoteRequest, Noted, False, note),
        MemoryTool("record_citation", "Record what was of use", CitationRequest, CitationReceipt, False, cite),
    )
    return {tool.name: unless_off(tool) for tool in tools}


def here() -> str:
    """The folder in which an agent started the server: the one that it works in. A deleted one is no project's."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def check_order(note: str) -> None:
    """Raises `InvalidRequest` for a note that tells agents to fetch, run or send something from or to a host."""
    from stillroom.sessions.directives import is_directive  # the lists take long to compile
    from stillroom.sessions.terms import is_address, terms_of

    for line in note.splitlines():
        if is_directive(line) and any(map(is_address, terms_of(line).names)):
            raise InvalidRequest(
                "a note that has agents fetch, run or send something is for a person to write",
                hint="ask the user to run `stillroom note`",
            )


def describe(tool: MemoryTool) -> Tool:
    """The tool as a client lists it."""
    return Tool(
        name=tool.name,
        title=tool.title,
        description=(tool.request.__doc__ or "").strip(),
        input_schema=schema_of(tool.request),
        output_schema=schema_of(tool.answer),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=False,
            idempotent_hint=tool.reads_only,
            open_world_hint=False,
        ),
    )


def run_tool(tool: MemoryTool, arguments: Mapping[str, Any] | None, *, limits: Serving = SERVING) -> CallToolResult:
    """Call it. What the caller did wrong is an answer that says so, never an error of the protocol."""
    try:
        answer = tool.call(msgspec.convert(dict(arguments or {}), tool.request))
    except msgspec.ValidationError as error:
        return _failed(f"the arguments can't be used: {error}")
    except StillroomError as error:
        return _failed(f"{error}" + (f" ({error.hint})" if error.hint else ""))
    data = msgspec.json.encode(answer)
    if len(data) > limits.max_answer_bytes:
        return _failed("the answer is too large: ask for fewer lines or results")
    return CallToolResult(content=[TextContent(text=data.decode())], structured_content=msgspec.to_builtins(answer))


def schema_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """A JSON schema in few words: without references, which some clients don't follow, and without `null` for what
    may be left out."""
    (_,), named = msgspec.json.schema_components([struct], ref_template="{name}")

    def plain(part: Any) -> Any:
        if isinstance(part, list):
            return [plain(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            beside = {key: value for key, value in part.items() if key != "$ref"}
            return plain({**named[part["$ref"]], **beside})
        if part.get("default", ...) is None and {"type": "null"} in part.get("anyOf", ()):
            (some,) = (choice for choice in part["anyOf"] if choice != {"type": "null"})
            return plain(some)
        # The names of our classes tell a model nothing.
        return {key: plain(value) for key, value in part.items() if key not in ("title", "discriminator")}

    schema: dict[str, Any] = plain(named[struct.__name__])
    schema.pop("description", None)  # the tool's
    return schema


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)
