"""Agent frameworks: one library, one file, a table of points at its end."""

from spanreel.frameworks.anthropic import ANTHROPIC
from spanreel.frameworks.openai_agents import OPENAI_AGENTS
from spanreel.point import Framework

FRAMEWORKS: tuple[Framework, ...] = (ANTHROPIC, OPENAI_AGENTS)
