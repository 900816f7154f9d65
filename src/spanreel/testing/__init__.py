"""A provider that answers from a script, for tests, examples and demos: no model, no key, the same every time.

    from spanreel import testing

    script = [
        testing.tool_call("get_weather", {"city": "Paris"}),
        testing.text("It is sunny in Paris."),
    ]
    with testing.ScriptedProvider(script) as provider:
        client = openai.OpenAI(base_url=provider.base_url, api_key="none")
        ...
    assert provider.requests[1].request.messages[-1]["parts"][0]["response"] == "sunny"

It speaks the protocols that spanreel knows (of OpenAI, Anthropic, Gemini, Ollama, Cohere, Bedrock), plain and streamed
as each request asks; the path of a request says which. It checks no key and judges no parameter: what a real provider
would refuse, it answers.
"""

from spanreel.testing.embedding import embeddings
from spanreel.testing.provider import Asked, ScriptedProvider
from spanreel.testing.script import Options, Script, Scripted, Step, answer, error, from_session, text, tool_call

__all__ = [
    "Asked",
    "Options",
    "Script",
    "Scripted",
    "ScriptedProvider",
    "Step",
    "answer",
    "embeddings",
    "error",
    "from_session",
    "text",
    "tool_call",
]
