"""LangChain and LangGraph (deepagents with them): graphs as runs, tools and retrievers. Model calls pass the wire.

Chains without a graph are no runs. What a graph is asked and comes to is kept by the fields of its objects, by which
they are known again in a replay.
"""

from spanreel.frameworks.langchain.graphs import LANGGRAPH
from spanreel.frameworks.langchain.tools import LANGCHAIN

__all__ = ["LANGCHAIN", "LANGGRAPH"]
