"""A team of LangChain agents on one budget. Here doubles are the models."""

from itertools import repeat

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from stillroom import RolloutBudget, RolloutBudgetConfig, TurnAborted
from stillroom.budget.adapters.langchain import BudgetMiddleware

answer = AIMessage("The sea is deep.", usage_metadata={"input_tokens": 20, "output_tokens": 80, "total_tokens": 100})
budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=700, reminder_at_remaining_tokens=(350, 175)))
researcher = create_agent(GenericFakeChatModel(messages=repeat(answer)), middleware=[BudgetMiddleware()])
editor = create_agent(GenericFakeChatModel(messages=repeat(answer)), middleware=[BudgetMiddleware()])

with budget.session("editor"):
    try:
        while True:
            with budget.session("researcher", limit_tokens=600):
                facts = researcher.invoke({"messages": [("user", "Find facts.")]})
            chapter = editor.invoke({"messages": [*facts["messages"], ("user", "One more chapter.")]})
            print(chapter["messages"][-1].content, budget.remaining())
    except TurnAborted as stopped:
        print(stopped.outcome.to_json())
