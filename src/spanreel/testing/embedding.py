"""Embeddings of any text, the same every time: texts that share words are near each other."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from typing import Any

from spanreel.model import Answer, Json, Request, Usage
from spanreel.testing.script import Scripted

DIMENSIONS = 256


def embeddings(request: Request) -> Scripted:
    """The answer to a request for embeddings: how often an input has each word, at a place that the word gives.

    As many dimensions as the request asks for, else 256; of length 1; as numbers or in base64, as it asks.

        testing.ScriptedProvider([testing.embeddings, testing.text("hello")])
    """
    asked = request.settings.get("dimensions")
    dimensions = asked if isinstance(asked, int) and asked > 0 else DIMENSIONS
    packed = request.settings.get("encoding_formats") == ["base64"]
    vectors = [_embed(part, dimensions) for message in request.messages for part in message["parts"]]
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": _pack(vector) if packed else vector}
        for index, vector in enumerate(vectors)
    ]
    # The tokens of the request are counted when it comes.
    return Scripted(Answer(usage=Usage(), provider_fields={"data": data}))


def _embed(part: dict[str, Any], dimensions: int) -> list[float]:
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", str(part.get("content", part)).lower()):
        vector[zlib.crc32(word.encode()) % dimensions] += 1.0
    length = math.hypot(*vector)
    return [number / length for number in vector] if length else [1.0, *vector[1:]]  # a text without words


def _pack(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
