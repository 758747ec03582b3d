"""Anything else on a budget: a decorator for the function that sends the request."""

from stillroom import RolloutBudget, RolloutBudgetConfig, TurnAborted
from stillroom.budget.adapters.function import metered

budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=700, reminder_at_remaining_tokens=(350, 175)))


@metered(reminder="reminder")
def ask(history: list[str], *, reminder: str | None = None) -> dict:
    sent = [*history, reminder] if reminder else history  # your model call
    return {"text": f"an answer to {len(sent)} messages", "usage": {"prompt_tokens": 60, "completion_tokens": 40}}


def work(history: list[str], depth: int) -> None:
    with budget.session(f"agent {depth}"):
        while True:
            answer = ask(history)
            history.append(answer["text"])
            print("  " * depth, answer["text"], budget.remaining())
            if depth < 2:
                work(["help me"], depth + 1)


try:
    work(["go"], 0)
except TurnAborted as stopped:
    print(stopped.outcome.to_json())
