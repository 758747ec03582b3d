"""The MCP server: the memory tools, and what a session is told at its start as a prompt and as a resource."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
)

from stillroom import __version__
from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.errors import StillroomError
from stillroom.mcp.tools import describe, here, memory_tools, run_tool
from stillroom.recall.injection.instructions import Nothing, instructions

NAME = "stillroom"
PROMPT = "memory"
INSTRUCTIONS_URI = "stillroom://memory/instructions"
_MARKDOWN = "text/markdown"
#: Codex shows a session the first 240 characters.
_ABOUT = (
    "What earlier coding sessions here learned: the user's preferences, failures and their fixes, commands."
    " Before work like earlier work `search` it, then `read` what matches; `MEMORY.md` first. It may be out of date."
)


def build_server(settings: Settings, *, clock: Clock) -> Server[Any]:
    """A server that answers from the memory folder as it is at each call."""
    tools = memory_tools(settings, clock)

    async def list_tools(context: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[describe(tool) for tool in tools.values()])

    async def call_tool(context: object, params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool `{params.name}`")
        return await asyncio.to_thread(run_tool, tool, params.arguments)

    async def list_prompts(context: object, params: PaginatedRequestParams | None) -> ListPromptsResult:
        folder = PromptArgument(name="cwd", description="The folder that you work in; default: the server's.")
        prompt = Prompt(name=PROMPT, description="What is remembered for this project.", arguments=[folder])
        return ListPromptsResult(prompts=[prompt])

    async def get_prompt(context: object, params: GetPromptRequestParams) -> GetPromptResult:
        if params.name != PROMPT:
            raise MCPError(INVALID_PARAMS, f"there is no prompt `{params.name}`")
        text = await asyncio.to_thread(_told, settings, (params.arguments or {}).get("cwd"))
        return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(text=text))])

    async def list_resources(context: object, params: PaginatedRequestParams | None) -> ListResourcesResult:
        resource = Resource(
            uri=INSTRUCTIONS_URI,
            name="memory instructions",
            description="What is remembered for the project in the server's folder, and how to use it.",
            mime_type=_MARKDOWN,
        )
        return ListResourcesResult(resources=[resource])

    async def list_templates(context: object, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        # Clients that see resources ask for templates too, and some show a refusal to the user.
        return ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(context: object, params: ReadResourceRequestParams) -> ReadResourceResult:
        if str(params.uri) != INSTRUCTIONS_URI:
            raise MCPError(INVALID_PARAMS, f"there is no resource `{params.uri}`")
        text = await asyncio.to_thread(_told, settings, None)
        contents = TextResourceContents(uri=INSTRUCTIONS_URI, mime_type=_MARKDOWN, text=text)
        return ReadResourceResult(contents=[contents])

    return Server(
        NAME,
        version=__version__,
        title="Stillroom",
        instructions=_ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _told(settings: Settings, cwd: str | None) -> str:
    """What a session is told; when that is nothing, why."""
    try:
        told = instructions(settings, str(Path(here(), cwd or "")))
    except StillroomError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
    return f"Nothing is remembered: {told.reason}.\n" if isinstance(told, Nothing) else told.text
