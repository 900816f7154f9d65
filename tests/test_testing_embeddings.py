"""The scripted provider's embeddings, by the real SDK."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import httpx2
import openai

from spanreel import testing

TEXTS = ["Returns within thirty days.", "Postage is free."]


def embed(**asked: Any) -> Any:
    """What the SDK is answered."""
    provider = testing.ScriptedProvider([testing.embeddings])
    http = httpx2.Client(transport=provider.transport("httpx2"))
    with openai.OpenAI(api_key="none", base_url="http://scripted/v1", http_client=http) as sdk:
        return sdk.embeddings.create(**{"model": "text-embedding-3-small", "input": TEXTS, **asked})


def near(one: list[float], other: list[float]) -> float:
    return sum(left * right for left, right in zip(one, other, strict=True))


def test_texts_are_near_to_those_that_share_words() -> None:
    returns, postage = (one.embedding for one in embed().data)
    (asked,) = (one.embedding for one in embed(input="After how many days are returns late?").data)
    assert (len(returns), math.hypot(*returns)) == (256, 1.0)
    assert near(asked, returns) > near(asked, postage)


def test_the_same_text_has_the_same_embedding_however_it_is_asked_for() -> None:
    plain = embed(encoding_format="float", dimensions=16)
    packed = embed(encoding_format="base64", dimensions=16)
    assert [one.index for one in plain.data] == [0, 1]
    for one, other in zip(plain.data, packed.data, strict=True):
        vector = struct.unpack("<16f", base64.b64decode(other.embedding))
        assert max(abs(left - right) for left, right in zip(one.embedding, vector, strict=True)) < 1e-6


def test_the_answer_counts_tokens_and_names_the_model() -> None:
    answered = embed()
    assert (answered.object, answered.model) == ("list", "text-embedding-3-small")
    assert answered.usage.prompt_tokens == answered.usage.total_tokens == 7


def test_tokens_and_texts_without_words_have_embeddings_too() -> None:
    assert len(embed(input=[[1, 2, 3], [4]]).data) == 2
    assert [math.hypot(*one.embedding) for one in embed(input=["?", ""]).data] == [1.0, 1.0]
