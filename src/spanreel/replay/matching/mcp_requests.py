"""What a client asks of an MCP server beside calls of tools, in a replay: as recorded, else what the recording implies.

Such a request changes nothing in the world, so that one more of it is no finding, and one less is none.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from spanreel.model import MCP_REQUESTS, Json, Status, ToolKind
from spanreel.point import RecordedError, ToolRequest, ToolResult
from spanreel.replay.comparing.canonical import canonical_arguments, first_difference
from spanreel.replay.matching.answers import tool_answer
from spanreel.replay.matching.recording import RecordedScope, Recording
from spanreel.replay.matching.slots import Slot, ToolSlot
from spanreel.session import ToolCall

NEWEST = "2025-11-25"
"""The protocol version that an unrecorded handshake agrees on, where the client names none."""
NO_METHOD = -32601
_LISTED: dict[str, Json] = {"resultType": "complete", "cacheScope": "private", "ttlMs": 0}
"""What the protocol asks of every list since 2026; clients of an older one leave it out."""
_HANDSHAKE = ("initialize", "server/discover", "ping", "logging/setLevel")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a request is answered with, and the recorded call that it is; ``made_up`` says what was made of what."""

    answer: ToolResult | RecordedError
    slot: ToolSlot | None = None
    made_up: str | None = None


def is_mcp_request(call: ToolCall | ToolRequest) -> bool:
    """Whether it is a request to an MCP server that calls no tool."""
    return call.kind is ToolKind.MCP and call.name in MCP_REQUESTS


def is_required(slot: Slot) -> bool:
    """Whether a recorded call has to be made again, and in its order: a list may be in a cache already."""
    return not (isinstance(slot, ToolSlot) and is_mcp_request(slot.call))


def is_handshake(request: ToolRequest) -> bool:
    """Whether it belongs to a connection, not to what is asked by way of it."""
    return request.name in _HANDSHAKE


def answer(recording: Recording, scope: RecordedScope, request: ToolRequest) -> Answered | None:
    """The answer: the next equal request of the scope, else the last, else one of the session; None for no answer."""
    arguments = canonical_arguments(request.arguments)
    for place in (scope, *recording.all_scopes()):
        alike = [slot for slot in place.tools if slot.call.name == request.name and is_mcp_request(slot.call)]
        alike = [slot for slot in alike if slot.call.status is not Status.UNFINISHED and not slot.result_lost]
        equal = [slot for slot in alike if first_difference(slot.arguments(None), arguments) is None]
        chosen = equal or (alike if is_handshake(request) else [])
        if chosen:
            slot = next((one for one in chosen if not one.spent), chosen[-1])
            slot.spent = True
            return Answered(tool_answer(slot.call), slot)
    return _implied(recording, request)


def _implied(recording: Recording, request: ToolRequest) -> Answered | None:
    asked = request.arguments if isinstance(request.arguments, Mapping) else {}
    if request.name == "initialize":
        hands: Json = {name: {} for name in ("tools", "prompts", "resources", "logging")}
        version = asked.get("protocolVersion") or NEWEST
        about: Json = {"name": "recorded", "version": "0"}
        return Answered(ToolResult({"protocolVersion": version, "capabilities": hands, "serverInfo": about}))
    if request.name == "server/discover":
        # Clients shake hands the older way then.
        error = f"({NO_METHOD}, 'Method not found', None)"
        return Answered(RecordedError("mcp.shared.exceptions.MCPError", error))
    if request.name in _HANDSHAKE:
        return Answered(ToolResult({}))
    if request.name == "tools/list":
        made = "the list of an MCP server's tools was not recorded; it was made of the tools that models were offered"
        return Answered(ToolResult({"tools": _offered(recording), **_LISTED}), made_up=made)
    if request.name.endswith("/list"):
        kind = {"resources/templates/list": "resourceTemplates"}.get(request.name, request.name.partition("/")[0])
        return Answered(
            ToolResult({kind: [], **_LISTED}), made_up=f"{request.name} of an MCP server was not recorded, and is empty"
        )
    return None


def _offered(recording: Recording) -> list[Json]:
    """The tools that models were offered, as a server describes them."""
    described: dict[str, Json] = {}
    for tool in recording.session.tools:
        name, schema = tool.get("name"), tool.get("parameters")
        if isinstance(name, str):
            told = {"description": tool["description"]} if isinstance(tool.get("description"), str) else {}
            described.setdefault(
                name, {"name": name, **told, "inputSchema": copy.deepcopy(schema) or {"type": "object"}}
            )
    return list(described.values())
