"""A team of OpenAI's Agents SDK on one budget. Here a double is the model."""

import asyncio

from agents import Agent, RunConfig, Runner, Usage
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from stillroom import RolloutBudget, RolloutBudgetConfig, TurnAborted
from stillroom.budget.adapters.openai_agents import BudgetHooks

used = Usage(requests=1, output_tokens=100)
says = ModelStep(output=[assistant_message("The sea is deep.")], usage=used)
asks = [ModelStep(output=[function_call("research", '{"input": "sea"}', call_id=f"{n}")], usage=used) for n in range(9)]

budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=700, reminder_at_remaining_tokens=(350, 175)))
hooks = BudgetHooks()
researcher = Agent(name="researcher", model=ScriptedModel([says] * 9))
editor = Agent(
    name="editor", model=ScriptedModel(asks), tools=[researcher.as_tool("research", "Finds facts.", hooks=hooks)]
)

with budget.session("editor"):
    try:
        asyncio.run(Runner.run(editor, "Write the book.", hooks=hooks, run_config=RunConfig(tracing_disabled=True)))
    except TurnAborted as stopped:
        print(stopped.outcome.to_json())
