"""How models that complete a text are asked and answer: one prompt, and what is said to it, under each one's own names.

OpenAI's legacy completions are one of these forms; the others are Bedrock's models of before its Converse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from spanreel.frozen import dataclass
from spanreel.model import Json
from spanreel.protocols.repeats import Path, find

PROMPTS: Final = ("prompt", "inputText", "inputs")
"""The fields that a prompt stands in."""
CONFIGS: Final = ("textGenerationConfig", "parameters")
"""The objects that settings stand in, where they do not stand beside the prompt."""
SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP", "p"),
    "top_k": ("top_k", "topK", "k"),
    "max_tokens": (
        *("max_tokens", "max_gen_len", "max_tokens_to_sample", "maxTokens"),
        *("maxTokenCount", "max_new_tokens", "max_completion_tokens"),
    ),
    "stop_sequences": ("stop", "stop_sequences", "stopSequences"),
    "seed": ("seed",),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
    "presence_penalty": ("presence_penalty", "presencePenalty"),
    "choice_count": ("n", "num_generations", "numResults"),
}
"""Our settings, and the fields that these stand in; the first is OpenAI's."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way of answering: ``entries`` names the list of completions, None where the body itself is the only one.

    ``text`` and ``reason`` are paths in an entry; ``counts`` those of the input's and the output's tokens in the body,
    None where they are told as OpenAI tells them, or not at all. ``reasons`` are its own words for ours.
    """

    name: str
    entries: str | None
    text: Path
    reason: Path
    counts: tuple[Path, Path] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's, which says an id, a model and a time too."""
        return self.name == "openai"

    def speaks(self, body: Mapping[str, Json]) -> bool:
        """Whether an answer, or a line of one, is of this form."""
        if self.entries is None:
            return isinstance(find(body, self.text), str)
        entries = body.get(self.entries)
        return isinstance(entries, list) and bool(entries) and isinstance(find(entries[0], self.text), str)


OPENAI: Final = Form("openai", "choices", ("text",), ("finish_reason",))
FORMS: Final = (
    # An entry of a list before the text of its own, as the words are the same; whoever ends otherwise before OpenAI's.
    Form("deepseek", "choices", ("text",), ("stop_reason",)),
    OPENAI,
    Form(
        "titan",
        "results",
        ("outputText",),
        ("completionReason",),
        (("inputTextTokenCount",), ("results", 0, "tokenCount")),
        {"stop": "FINISH", "length": "LENGTH", "content_filter": "CONTENT_FILTERED"},
    ),
    Form(
        "titan_stream",
        None,
        ("outputText",),
        ("completionReason",),
        (("inputTextTokenCount",), ("totalOutputTextTokenCount",)),
        {"stop": "FINISH", "length": "LENGTH", "content_filter": "CONTENT_FILTERED"},
    ),
    Form(
        "llama",
        None,
        ("generation",),
        ("stop_reason",),
        (("prompt_token_count",), ("generation_token_count",)),
    ),
    Form("claude", None, ("completion",), ("stop_reason",), None, {"stop": "stop_sequence", "length": "max_tokens"}),
    Form("mistral", "outputs", ("text",), ("stop_reason",)),
    Form("cohere", "generations", ("text",), ("finish_reason",), None, {"stop": "COMPLETE", "length": "MAX_TOKENS"}),
    Form("ai21", "completions", ("data", "text"), ("finishReason", "reason"), None, {"stop": "endoftext"}),
    Form("cohere_stream", None, ("text",), ("finish_reason",), None, {"stop": "COMPLETE", "length": "MAX_TOKENS"}),
)
"""Every form; the first that speaks is the one, but for `form_of`."""

_NAMES: Final = {form.name: form for form in FORMS}
_OF_MODELS: Final = (
    ("titan", "titan"),
    ("llama", "llama"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("cohere", "cohere"),
    ("ai21", "ai21"),
    ("claude", "claude"),
)
_STREAMED: Final = {"titan": "titan_stream", "cohere": "cohere_stream"}


def form_named(name: Json) -> Form | None:
    """The form of this name, as recorded; None where there is none."""
    return _NAMES.get(name) if isinstance(name, str) else None


def form_of(body: Mapping[str, Json]) -> Form | None:
    """The form that an answer, or a line of one, is of; None where it is none of these."""
    for form in FORMS:
        if form.speaks(body) and not (form.name == "deepseek" and "stop_reason" not in body["choices"][0]):
            return form
    return None


def form_for(model: str | None, *, stream: bool) -> Form:
    """The form that a model behind Bedrock answers a prompt in; OpenAI's where its name says nothing."""
    known = (name for part, name in _OF_MODELS if part in (model or ""))
    name = next(known, OPENAI.name)
    return _NAMES[_STREAMED.get(name, name) if stream else name]
