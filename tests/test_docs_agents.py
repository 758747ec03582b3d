"""What `docs/agents.md` says of the places where sessions lie is what the code looks at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stillroom.homes import HOMES

PAGE = (Path(__file__).parents[1] / "docs" / "agents.md").read_text(encoding="utf-8")
ROWS = {
    row[0].strip("` "): (row[1], row[2])
    for line in PAGE.splitlines()
    if line.startswith("| `") and len(row := line.strip("|").split("|")) == 3
}
#: Formats whose section is called otherwise than the client that the table names first.
SECTIONS = {
    "chat-messages": "Chat messages",
    "cline": "Cline, Roo Code, Kilo Code",
    "inspect-ai": "Inspect",
    "langchain": "LangChain and LangGraph",
    "openai-agents": "OpenAI Agents SDK",
    "otel-genai": "OpenTelemetry GenAI",
    "swe-agent": "SWE-agent and mini-swe-agent",
}


def test_every_format_has_a_row() -> None:
    assert list(ROWS) == list(HOMES)


@pytest.mark.parametrize("agent", [agent for agent in HOMES if agent != "stillroom"])
def test_a_row_names_the_clients_own_variable_and_default(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, _ = ROWS[agent]
    home = HOMES[agent]  # type: ignore[index]
    monkeypatch.setenv("HOME", "/nobody")
    defaults = [f"`~/{root.relative_to('/nobody')}" for root in home.roots({}) if root.is_relative_to("/nobody")]
    assert (home.variable is None) == (place.strip() == "nowhere")
    assert home.variable is None or f"${home.variable}" in place
    assert not [default for default in defaults if default not in place]


@pytest.mark.parametrize("agent", [agent for agent in HOMES if agent != "stillroom"])
def test_every_format_has_a_section(agent: str) -> None:
    title = SECTIONS.get(agent) or agent.replace("-", " ")
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert [each for each in headings if each.lower().startswith(title.lower().removesuffix(" cli"))]
