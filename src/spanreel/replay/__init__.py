"""The replay of a recorded session: matching, answers, verdicts, and what keeps everything else from running."""

from spanreel.replay.running.child import activate_from_environment
from spanreel.replay.running.runner import replay

__all__ = ["activate_from_environment", "replay"]
