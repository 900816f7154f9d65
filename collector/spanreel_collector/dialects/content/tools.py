"""Tools' arguments and results, out of what frameworks and decorators wrap them in."""

from __future__ import annotations

import ast
import re
from typing import Any

from spanreel.model import Error, ErrorCategory, Json
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import gemini, reprs

_LONGEST_LITERAL = 1_000_000
_SHOWN = re.compile(r"\w+=")
_BETWEEN = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")| (?=[a-z_]\w*=)""")
"""What stands between two fields, but not in a string."""


def read_arguments(value: Json) -> Json:
    """The arguments of a tool call. One without its name is left so: it stands in the model's request only."""
    found = read_literal(values.arguments(value))
    if not isinstance(found, dict):
        return found
    if "input_str" in found:
        # LangChain's callback: the arguments as an object, where it has them, and as text.
        inputs = found.get("inputs")
        return inputs if isinstance(inputs, dict) and inputs else read_literal(values.arguments(found["input_str"]))
    if set(found) == {"args"} and isinstance(found["args"], list) and len(found["args"]) == 1:
        inner = values.arguments(found["args"][0])  # OpenLLMetry's JavaScript has a callback's
        return inner if isinstance(inner, dict) else found
    if set(found) == {"tool_name", "arguments"}:
        return found["arguments"]
    if set(found) == {"name", "arguments"} and isinstance(found["name"], str) and isinstance(found["arguments"], str):
        inner = values.arguments(found["arguments"])  # AG2's function call as the model wrote it
        return inner if isinstance(inner, dict) else found
    if isinstance(found.get("kwargs"), dict) and not found.get("args"):
        return found["kwargs"]
    if set(found) == {"input"} or (set(found) == {"input", "options"} and found["options"] is None):
        # LangChain's JavaScript puts the arguments under this name, as JSON; BeeAI beside the options of the run.
        inner = values.arguments(found["input"])
        return inner if isinstance(inner, dict) else found
    return found


def read_result(result: Json) -> tuple[Json, dict[str, Any]]:
    """A result out of its wrapping, and what the wrapping tells: of LangChain, llama-index, ADK, MCP and AG2."""
    if isinstance(result, list) and len(result) == 2 and isinstance(result[0], bool) and isinstance(result[1], dict):
        outcome = result[1]
        if outcome.get("role") == "function" and "content" in outcome:
            return outcome["content"], {} if result[0] else {"status": "error"}
    if not isinstance(result, dict):
        return result, {}
    inner = result.get("data") if result.get("type") == "tool" else result.get("kwargs") if "lc" in result else None
    if inner is None and isinstance(result.get("output"), dict) and set(result) <= {"output", "kwargs"}:
        inner = result["output"]
        if "lc" in inner:
            inner = inner.get("kwargs")
    if isinstance(inner, dict) and "content" in inner:
        return inner["content"], inner
    if "content" in result and result.get("type") == "tool":
        return result["content"], result
    if {"raw_output", "tool_name"} <= set(result):
        return result["raw_output"], {"status": "error"} if result.get("is_error") is True else {}
    if isinstance(result.get("content"), list) and ("isError" in result or "structuredContent" in result):
        return _text_of(result["content"]), {"status": "error"} if result.get("isError") is True else {}
    if set(result) == {"id", "name", "response"}:
        return gemini.read_result(result["response"]), result
    return result, {}


def failure(told: dict[str, Any], result: Json) -> Error | None:
    """The failure that a result's wrapping tells of, where the span does not."""
    if told.get("status") != "error":
        return None
    return Error(ErrorCategory.TOOL, "tool_error", result if isinstance(result, str) else None)


def read_literal(value: Json) -> Json:
    """A dict that was written as Python writes it; other values, and what is no such text, as they are."""
    if not isinstance(value, str) or not value.startswith("{") or len(value) > _LONGEST_LITERAL:
        return value
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return found if isinstance(found, dict) else value


def read_shown(value: Json) -> dict[str, Json]:
    """The fields that a model of pydantic's shows as text, ``status='success' result=4``; none of any other text."""
    if not isinstance(value, str) or not _SHOWN.match(value):
        return {}
    try:
        fields = _BETWEEN.sub(lambda found: found.group(1) or ", ", value)
        found = reprs.parse(f"Shown({fields})")
    except ValueError:
        return {}
    return {name: one for name, one in found.items() if name} if isinstance(found, dict) else {}


def _text_of(content: list[Json]) -> Json:
    """The text of MCP's content where it is one text alone."""
    block = content[0] if len(content) == 1 and isinstance(content[0], dict) else {}
    return block["text"] if block.get("type") == "text" and isinstance(block.get("text"), str) else content
