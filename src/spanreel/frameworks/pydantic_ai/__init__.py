"""pydantic-ai: runs, and the tools of every toolset (MCP's too; output tools are none).

Model calls pass the wire, but for those of the library's models for tests.
"""

from spanreel.frameworks.pydantic_ai.models import MODELS
from spanreel.frameworks.pydantic_ai.runs import read_begun, read_run, read_run_result, rewrite_run
from spanreel.frameworks.pydantic_ai.tools import REFUSAL, watch_toolset
from spanreel.model import ErrorCategory
from spanreel.point import Framework, Injection, Kind, Point

ERRORS = {
    "UsageLimitExceeded": ErrorCategory.MAX_TURNS,
    "RunTimedOut": ErrorCategory.TIMEOUT,
    "RunCancelled": ErrorCategory.CANCELLED,
    "ContentFilterError": ErrorCategory.GUARDRAIL,
    "UnexpectedModelBehavior": ErrorCategory.MODEL,
    "ModelAPIError": ErrorCategory.MODEL,
    "FallbackExceptionGroup": ErrorCategory.MODEL,
}

PYDANTIC_AI = Framework(
    library="pydantic-ai",
    releases=">=2",
    points=(
        Point(
            "pydantic_ai.agent:Agent.iter",
            Kind.RUN,
            read_run,
            read_run_result,
            rewrite=rewrite_run,
            block=True,
            read_begun=read_begun,
            errors=ERRORS,
        ),
        REFUSAL,
        *MODELS,
    ),
    injections=(Injection("pydantic_ai.tool_manager:ToolManager.__init__", "toolset", watch_toolset),),
    replay_environment={
        "OPENAI_API_KEY": "sk-placeholder-of-a-replay",
        "ANTHROPIC_API_KEY": "sk-placeholder-of-a-replay",
    },
)
