"""LiteLLM on a budget. Here it makes the answers up itself (`mock_response`)."""

import asyncio

import litellm

from stillroom import RolloutBudget, RolloutBudgetConfig, TurnAborted
from stillroom.budget.adapters.litellm import BudgetCallback

budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=250, reminder_at_remaining_tokens=(100, 50)))
history = [{"role": "user", "content": "Count as far as you can."}]
litellm.callbacks = [BudgetCallback()]


async def count(name: str) -> None:
    with budget.session(name):
        while True:
            answer = await litellm.acompletion(model="gpt-4o", messages=history, mock_response="and one more")
            print(name, answer.choices[0].message.content, budget.remaining())


async def main() -> None:
    with budget.session("root"):
        await asyncio.gather(count("one"), count("two"))


try:
    asyncio.run(main())
except TurnAborted as stopped:
    print(stopped.outcome.to_json())
