"""What is too large is cut: each value, then a span as a whole, the newest content first. Cut JSON stays JSON.

Sizes are bytes of UTF-8. What was cut says so in the text, and the caller marks it in fidelity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from spanreel import conventions as names
from spanreel import json_text
from spanreel.fidelity import CONTENT

_PLAIN: Final = frozenset({int, float, bool, type(None)})
LEAST_WORTH_KEEPING: Final = 256
"""A value that would have to become shorter than this is dropped."""


_MESSAGES: Final = (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES)
_TOOL_VALUES: Final = frozenset(
    {
        *(names.TOOL_CALL_ARGUMENTS, names.TOOL_ARGUMENTS_AFTER, names.TOOL_CALL_RESULT, "tool.parameters"),
        names.TOOL_RAISED,
        *("tool.output", "tool_arguments"),
        *("tool_response", "ai.toolCall.args", "ai.toolCall.result", "gcp.vertex.agent.tool_call_args"),
        *("gcp.vertex.agent.tool_response", "mcp.request.argument", "mcp.tool.result"),
    }
)
_SHARED: Final = ("input.value", "output.value", "traceloop.entity.input", "traceloop.entity.output")
"""What other instrumentations use for every kind of span."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """Attributes within bounds, and which of them were cut or dropped."""

    attributes: dict[str, AttributeValue]
    truncated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def bound(attributes: Mapping[str, AttributeValue], max_value: int, max_span: int) -> Bounded:
    """Cut values over ``max_value``, then the newest content until all attributes are within ``max_span``."""
    bounded = dict(attributes)
    sizes = {name: size_of(value) for name, value in attributes.items()}
    truncated: dict[str, None] = {}
    dropped: dict[str, None] = {}

    def shrink(name: str, limit: int) -> None:
        cut = cut_value(bounded[name], limit) if limit >= LEAST_WORTH_KEEPING else None
        if cut is None:
            del bounded[name], sizes[name]
            dropped[name] = None
            truncated.pop(name, None)
        else:
            bounded[name], sizes[name] = cut, size_of(cut)
            truncated[name] = None

    for name, size in list(sizes.items()):
        if size > max_value:
            shrink(name, max_value)
    total = sum(sizes.values())
    for name in _newest_first(sizes) if total > max_span else ():
        before = sizes[name]
        if before <= LEAST_WORTH_KEEPING:
            continue
        shrink(name, before - (total - max_span))
        total += sizes.get(name, 0) - before
        if total <= max_span:
            break
    return Bounded(bounded, tuple(truncated), tuple(dropped))


def tighten(attributes: Mapping[str, AttributeValue], tool: int, payload: int) -> Bounded:
    """Cut strings that tools were given and gave to ``tool`` characters each, other payloads to ``payload`` in all.

    In messages these are the parts of tool calls; in the spans of other instrumentations what they name so.
    """
    tightened = dict(attributes)
    truncated = []
    for name, value in attributes.items():
        cut: AttributeValue | None = value
        if isinstance(value, str) and len(value) > tool:
            if name in _MESSAGES:
                cut = _in_parts(value, tool)
            elif name in _TOOL_VALUES or (name in _SHARED and _is_tool(attributes)):
                cut = _in_strings(value, tool)
            if len(str(cut)) > payload:
                cut = cut_value(cut, payload)
        if cut is None:
            cut = cut_text(str(value), payload)
        if cut is not value and cut != value:
            tightened[name] = cut
            truncated.append(name)
    return Bounded(tightened, tuple(truncated))


def size_of(value: Any) -> int:
    """The bytes of an attribute value, near enough."""
    if type(value) in _PLAIN:
        return 8
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    if isinstance(value, Mapping):
        return sum(size_of(key) + size_of(item) + 4 for key, item in value.items())
    if isinstance(value, Sequence):
        return sum(size_of(item) + 2 for item in value)
    return 8


def cut_value(value: AttributeValue, limit: int) -> AttributeValue | None:
    """The value within this many bytes, or None where nothing sensible of it is."""
    if isinstance(value, str):
        return _cut_json(value, limit) if value[:1] in {"{", "["} else cut_text(value, limit)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value[:limit])
    if isinstance(value, Sequence) and value and all(isinstance(item, str) for item in value):
        strings = [str(item) for item in value]
        longest = _longest_that_fit([size_of(item) + 2 for item in strings], limit)
        return None if longest is None else [cut_text(item, longest) for item in strings]
    return None


def cut_text(text: str, limit: int) -> str:
    """The beginning of the text and how much is missing, within the limit; the text itself where it is short enough."""
    size = size_of(text)
    if size <= max(limit, len(_marker(size).encode())):
        return text
    keep = max(0, limit - len(_marker(size).encode()))
    beginning = text.encode("utf-8", "surrogatepass")[:keep].decode("utf-8", "ignore")
    return beginning + _marker(size - size_of(beginning))


def cut_characters(text: str, limit: int) -> str:
    """`cut_text` by characters."""
    if len(text) <= limit:
        return text
    beginning = text[: max(0, limit - len(_marker(size_of(text))))]
    return beginning + _marker(size_of(text) - size_of(beginning))


def _in_parts(text: str, limit: int) -> str:
    """Messages as JSON, with the strings of their tool calls and results cut; each message by itself."""
    if isinstance(text, json_text.Listed):
        items = tuple(_in_parts(item, limit) if len(item) > limit else item for item in text.items)
        return text if items == text.items else json_text.listed(items)
    try:
        value = json_text.decode(text)
    except ValueError:
        return text
    cut = _cut_parts(value, limit)
    return text if cut == value else json_text.encode(cut)


def _cut_parts(value: Any, limit: int) -> Any:
    if isinstance(value, list):
        return [_cut_parts(item, limit) for item in value]
    if not isinstance(value, dict):
        return value
    if str(value.get("type", "")).endswith(("tool_call", "tool_call_response")):
        return _cut_characters(value, limit)
    return {key: _cut_parts(item, limit) if key == "parts" else item for key, item in value.items()}


def _in_strings(text: str, limit: int) -> str:
    """A tool's value, as JSON or as text, with each of its strings cut."""
    if text[:1] in {"{", "[", '"'}:
        try:
            return json_text.encode(_cut_characters(json_text.decode(text), limit))
        except ValueError:
            pass
    return cut_characters(text, limit)


def _cut_characters(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cut_characters(value, limit)
    if isinstance(value, dict):
        return {key: _cut_characters(item, limit) for key, item in value.items()}
    return [_cut_characters(item, limit) for item in value] if isinstance(value, list) else value


def _is_tool(attributes: Mapping[str, AttributeValue]) -> bool:
    kinds = (attributes.get("openinference.span.kind"), attributes.get("traceloop.span.kind"))
    return any(isinstance(kind, str) and kind.lower() == "tool" for kind in kinds)


def _marker(missing: int) -> str:
    return f"…[truncated {missing} bytes]"


def _cut_json(text: str, limit: int) -> str | None:
    """JSON with its longest strings cut, all to one length, so that short ones (names, ids) stay whole."""
    try:
        value = json_text.decode(text)
    except ValueError:
        return cut_text(text, limit)
    sizes: list[int] = []
    _collect(value, sizes)
    structure = len(json_text.encode(value).encode()) - sum(sizes)
    longest = _longest_that_fit(sizes, limit - structure)
    while longest is not None and longest > 0:
        cut = json_text.encode(_cut_strings(value, longest))
        if size_of(cut) <= limit:
            return cut
        longest = longest * 3 // 4  # escapes and markers took more than was reckoned
    return None


def _collect(value: Any, sizes: list[int]) -> None:
    if isinstance(value, str):
        sizes.append(len(json_text.encode(value).encode()) - 2)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, sizes)
    elif isinstance(value, list):
        for item in value:
            _collect(item, sizes)


def _cut_strings(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, longest) if size_of(value) > longest else value
    if isinstance(value, dict):
        return {key: _cut_strings(item, longest) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut_strings(item, longest) for item in value]
    return value


def _longest_that_fit(sizes: list[int], limit: int) -> int | None:
    """The greatest length to which all may be cut so that their sum is within the limit; None where there is none."""
    if limit <= 0:
        return None
    left, remaining = limit, len(sizes)
    for size in sorted(sizes):
        if size * remaining > left:
            return max(left // remaining, 1)
        left -= size
        remaining -= 1
    return limit


def _newest_first(sizes: Mapping[str, int]) -> list[str]:
    """Others' attributes first, the last set before the others, then our content from its end, then what is left."""
    order = {name: place for place, name in enumerate(CONTENT)}
    ours = {name for name in sizes if name.startswith(("spanreel.", "gen_ai.")) and name not in order}
    foreign = [name for name in reversed(list(sizes)) if name not in order and name not in ours]
    content = sorted((name for name in sizes if name in order), key=lambda name: -order[name])
    return [*foreign, *content, *reversed([name for name in sizes if name in ours])]
