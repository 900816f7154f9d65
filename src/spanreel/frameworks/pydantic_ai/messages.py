"""Prompts and histories of pydantic-ai, as JSON and back, by the library's own writing of messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, cast

from spanreel import json_text
from spanreel.binary import decodable
from spanreel.memory import Known, known
from spanreel.model import Dumped, Json, Message
from spanreel.unaltered import Unaltered, contents_of

VOLATILE = ("timestamp", "run_id", "conversation_id")
"""What a history says of the process that made it, and no model is told."""


def read_prompt(prompt: Any) -> tuple[Message, ...]:
    """A prompt of text or of parts of content, as one message; none where a run goes on without new words."""
    if prompt is None:
        return ()
    parts = [prompt] if isinstance(prompt, str) else dump_prompt(prompt)
    return ({"role": "user", "parts": [read_content(part) for part in parts]},)


def read_content(dumped: Any) -> dict[str, Json]:
    """One part of a prompt's content."""
    if isinstance(dumped, str):
        return {"type": "text", "content": dumped}
    kind, mime_type = dumped.get("kind"), dumped.get("media_type")
    if kind == "text-content":
        return {"type": "text", "content": dumped.get("content")}
    if kind == "binary":
        return {"type": "blob", "mime_type": mime_type, "modality": _modality(mime_type), "content": dumped["data"]}
    if "url" in dumped:
        return {"type": "uri", "uri": dumped["url"], "modality": str(kind).removesuffix("-url"), "mime_type": mime_type}
    if kind == "uploaded-file":
        return {"type": "file", "file_id": dumped.get("file_id"), "modality": _modality(mime_type)}
    return {"type": str(kind), **dumped}


def _modality(mime_type: Any) -> str:
    family = str(mime_type).partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"


def dump_prompt(prompt: Any) -> Json:
    """A prompt as the library itself writes it into a history."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    if isinstance(prompt, str):
        return prompt
    (request,) = dump_history([ModelRequest(parts=[UserPromptPart(content=prompt)])])
    return request["parts"][0]["content"]


def load_prompt(recorded: Json) -> Any:
    """A recorded prompt, native again."""
    if isinstance(recorded, str):
        return recorded
    part = {"part_kind": "user-prompt", "content": recorded}
    return load_history([{"kind": "request", "parts": [part]}])[0].parts[0].content


def dump_history(history: Sequence[Any]) -> Dumped:
    """A history without what changes from process to process; what cannot be written goes by its repr."""
    dumped = _DUMPED.get(history)
    if None in dumped:
        _dump_new(history, dumped)
    messages = cast("list[Known]", dumped)
    return Dumped(messages, 64 + sum(map(len, map(_text_of, messages))))


def _dump_new(history: Sequence[Any], dumped: list[Known | None]) -> None:
    """Fill in the messages that were not written before."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    new = [(place, message) for place, message in enumerate(history) if dumped[place] is None]
    contents = [contents_of(message) for _, message in new]
    written = ModelMessagesTypeAdapter.dump_python([message for _, message in new], mode="json", fallback=repr)
    for (place, message), content, one in zip(new, contents, written, strict=True):
        dumped[place] = entry = known(_without_volatile(one))
        json_text.text_of(entry)  # so that the size of a long history is known at once, from then on
        _DUMPED.put(message, content, entry)


_DUMPED: Final = Unaltered[Known]()
"""Messages that were written before; a run is given all of its conversation each time."""
_text_of: Final[Callable[[Known], str]] = attrgetter("text")


def _without_volatile(message: dict[str, Any]) -> dict[str, Any]:
    for one in (message, *message["parts"]):
        for name in VOLATILE:
            one.pop(name, None)
    return message


def load_history(recorded: Json) -> list[Any]:
    """A recorded history, native again."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.validate_python(decodable(recorded))
