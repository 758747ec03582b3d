"""A team of Pydantic AI agents on one budget. Here a double is the model: yours is `BudgetModel("openai:gpt-6")`."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from stillroom import RolloutBudget, RolloutBudgetConfig, TurnAborted
from stillroom.budget.adapters.pydantic_ai import BudgetModel

budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=700, reminder_at_remaining_tokens=(350, 175)))
researcher = Agent(BudgetModel(TestModel()))
editor = Agent(BudgetModel(TestModel()), instructions="Write the report; ask `research` for facts.")


@editor.tool_plain
async def research(topic: str) -> str:
    with budget.session(f"research {topic}", limit_tokens=200):
        return (await researcher.run(topic)).output


with budget.session("editor"):
    try:
        while True:
            print(asyncio.run(editor.run("One more chapter.")).output, budget.remaining())
    except TurnAborted as stopped:
        print(stopped.outcome.to_json())
