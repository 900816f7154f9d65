"""Agent frameworks: one library, one file, a table of points at its end."""

from spanreel.frameworks.anthropic import ANTHROPIC
from spanreel.frameworks.google_genai import GOOGLE_GENAI
from spanreel.frameworks.langchain import LANGCHAIN, LANGGRAPH
from spanreel.frameworks.mcp import MCP
from spanreel.frameworks.openai_agents import OPENAI_AGENTS
from spanreel.frameworks.pydantic_ai import PYDANTIC_AI
from spanreel.point import Framework

FRAMEWORKS: tuple[Framework, ...] = (ANTHROPIC, GOOGLE_GENAI, LANGCHAIN, LANGGRAPH, MCP, OPENAI_AGENTS, PYDANTIC_AI)
