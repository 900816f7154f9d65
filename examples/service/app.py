"""The help desk of a book shop as a service: FastAPI, an agent of LangChain, retrieval, conversations in a database.

    uvicorn app:app

It knows no spanreel. The model is reached by OPENAI_BASE_URL and OPENAI_API_KEY, as always; any number of processes
share the conversations in DATABASE. PASSAGES says how many passages of the handbook the agent is shown.
"""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Body, FastAPI
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.checkpoint.sqlite import SqliteSaver

HANDBOOK = [
    "Returns: a reader may send a book back for thirty days.",
    "Postage: we pay for sending a book back when it came damaged.",
    "Orders: an order leaves the shop within two days.",
    "Gifts: a book can be wrapped, for two euros.",
]

# Texts go out as they are: to count their tokens, the tokenizer would be downloaded.
shelf = InMemoryVectorStore(OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False))
retriever = shelf.as_retriever(search_kwargs={"k": int(os.environ.get("PASSAGES", "2"))})


@dynamic_prompt
def with_passages(request: ModelRequest[Any]) -> str:
    """The instructions, with what the handbook says on the last question."""
    question = next(message.text for message in reversed(request.messages) if message.type == "human")
    passages = "\n".join(f"- {document.page_content}" for document in retriever.invoke(question))
    return f"You are the help desk of a book shop. Answer from the handbook:\n{passages}"


@tool
def find_order(order: int) -> str:
    """Where an order is."""
    return f"order {order} left the shop yesterday"


agent: Any = create_agent(
    ChatOpenAI(model="gpt-5-mini"),
    tools=[find_order],
    middleware=[with_passages],
    checkpointer=SqliteSaver(
        sqlite3.connect(os.environ.get("DATABASE", "conversations.db"), check_same_thread=False, timeout=60)
    ),
    name="help desk",
)


def answer(question: str, conversation: str = "none") -> str:
    """One question of a conversation, answered."""
    asked = {"messages": [("user", question)]}
    state = agent.invoke(asked, {"configurable": {"thread_id": conversation}}, durability="exit")
    return str(state["messages"][-1].text)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Each process has the handbook in memory."""
    await shelf.aadd_texts(HANDBOOK)
    yield


app = FastAPI(lifespan=lifespan)


@app.post("/conversations/{conversation}")
def ask(conversation: str, question: Annotated[str, Body(embed=True)]) -> dict[str, str]:
    """The next question of a conversation; its answer."""
    return {"answer": answer(question, conversation)}
