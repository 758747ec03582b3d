"""Anthropic's client on a budget. Here a server on 127.0.0.1 answers: yours is `with_budget(Anthropic())`."""

from anthropic import Anthropic

from stillroom import RolloutBudget, RolloutBudgetConfig, TurnAborted
from stillroom.budget.adapters.anthropic import with_budget
from stillroom.testing import LoopbackModel, Say

budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=800, reminder_at_remaining_tokens=(400, 200)))
history = [{"role": "user", "content": "Count as far as you can."}]

with LoopbackModel(Say("and one more")) as server, budget.session("counter"):
    client = with_budget(Anthropic(base_url=server.base_url.removesuffix("/v1"), api_key="none"))
    try:
        while True:
            with client.messages.stream(model="any", max_tokens=100, messages=history) as stream:
                answer = stream.get_final_text()
            history += [{"role": "assistant", "content": answer}, {"role": "user", "content": "Go on."}]
            print(answer, budget.remaining())
    except TurnAborted as stopped:
        print(stopped.outcome.to_json())
