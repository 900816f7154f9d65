"""A customer-care agent on the OpenAI Agents SDK: two tools, one of which changes the world. It knows no spanreel.

    python refund_agent.py "Where is my money for order 17?"

The model is reached by OPENAI_BASE_URL and OPENAI_API_KEY, as always. INSTRUCTIONS replaces the agent's instructions.
"""

import os
import sys
from pathlib import Path

from agents import Agent, Runner, function_tool

LEDGER = Path(os.environ.get("LEDGER", "ledger.txt"))
INSTRUCTIONS = os.environ.get("INSTRUCTIONS", "You care for customers of a book shop. Refund late orders.")


@function_tool
def find_order(order_id: int) -> dict[str, str | float]:
    """What is known about an order."""
    return {"order_id": str(order_id), "state": "late", "paid": 12.5}


@function_tool
def refund(order_id: int, amount: float) -> str:
    """Pay money back. This really happens."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"refunded {amount} for order {order_id}\n")
    return f"refunded {amount}"


def answer(question: str) -> str:
    """One question, answered."""
    agent = Agent(name="care", instructions=INSTRUCTIONS, tools=[find_order, refund], model="gpt-5-mini")
    return str(Runner.run_sync(agent, question).final_output)


if __name__ == "__main__":
    print(answer(sys.argv[1] if len(sys.argv) > 1 else "Where is my money for order 17?"))
