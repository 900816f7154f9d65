"""Under which names spans of all dialects tell of their session: its id, its user, its name, its tags, its metadata."""

from __future__ import annotations

from spanreel import conventions as names

SESSION_IDS = (
    names.CONVERSATION_ID,
    "session.id",
    "langfuse.session.id",
    "gcp.vertex.agent.session_id",
    "anvia.trace.session_id",
    "metadata.sessionId",
    "group_id",
    "gen_ai.thread.id",
    "gen_ai.session.id",
    "conversation.id",
    "spring.ai.chat.client.conversation.id",
    "wandb.thread_id",
    "ag.session.id",
    "langfuse.session_id",
    "langfuse.sessionId",
    "langfuse.observation.metadata.langfuse_session_id",
)
SESSION_IDS_IN_METADATA = (
    *("session_id", "thread_id", "conversation_id", "sessionId", "threadId", "session.id"),
    *("chat_id", "langfuse_session_id"),
)
BARE_SESSION_IDS = ("session_id", "conversation_id", "thread_id", "sessionId")
"""What hand-written spans call it, Opik and gateways ask for: of texts alone, a thread's number is the machine's."""

USER_IDS = (
    names.USER_ID,
    "langfuse.user.id",
    "langfuse.observation.metadata.langfuse_user_id",
    "anvia.trace.user_id",
    "gen_ai.user.id",
    "enduser.id",
    "user_id",
    "userId",
)
ON_RESOURCES = (
    *(names.CONVERSATION_ID, "session.id", "langfuse.session.id", "gen_ai.session.id"),
    *(names.USER_ID, "langfuse.user.id", "gen_ai.user.id", "enduser.id"),
)
"""Those that a resource may have, of a process that is one session; the others mean something else there."""
USER_IDS_IN_METADATA = ("user_id", "userId", "user.id", "resourceId", "langfuse_user_id")

SESSION_NAMES = (names.SESSION_NAME, "langfuse.trace.name")
TAGS = (names.SESSION_TAGS, "tag.tags", "langfuse.trace.tags", "mastra.tags", "anvia.trace.tags", "opik.tags")

OPENINFERENCE_METADATA = "metadata"
METADATA = (OPENINFERENCE_METADATA, names.SESSION_METADATA)
"""Of names that hold all of the user's metadata."""
METADATA_PREFIXES = (
    "ai.telemetry.metadata.",
    "ai.settings.context.",
    "mastra.metadata.",
    "traceloop.association.properties.",
    "langsmith.metadata.",
    "langfuse.trace.metadata.",
    "lmnr.association.properties.metadata.",
    "lmnr.association.properties.",
    "opik.metadata.",
    "anvia.trace.metadata.",
)
"""Of names that end in a key of the user's metadata; the longer of two that begin alike stands first."""
STEPS_OWN = ("langgraph_", "ls_", "lc_", "checkpoint_ns", "__pregel", "LANGSMITH_", "LANGCHAIN_", "usage_metadata")
"""How those keys begin that LangChain puts beside the user's, for each of its steps."""

MASTRA_TYPE = "mastra.span.type"
MASTRA = ("threadId", "sessionId", "resourceId", "userId")
"""Metadata that Mastra before 1.0 wrote without a prefix."""
