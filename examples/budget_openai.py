"""OpenAI's client on a budget. Here a server on 127.0.0.1 answers: yours is `with_budget(OpenAI())`."""

from openai import OpenAI

from stillroom import RolloutBudget, RolloutBudgetConfig, TurnAborted
from stillroom.budget.adapters.openai import with_budget
from stillroom.testing import LoopbackModel, Say

budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=800, reminder_at_remaining_tokens=(400, 200)))
history = [{"role": "user", "content": "Count as far as you can."}]

with LoopbackModel(Say("and one more")) as server, budget.session("counter"):
    client = with_budget(OpenAI(base_url=server.base_url, api_key="none"))
    try:
        while True:
            with client.responses.stream(model="any", input=history) as stream:
                answer = stream.get_final_response().output_text
            history.append({"role": "assistant", "content": answer})
            print(answer, budget.remaining())
    except TurnAborted as stopped:
        print(stopped.outcome.to_json())
