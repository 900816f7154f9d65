"""A policy applied to what arrives, item by item, before it is kept."""

from __future__ import annotations

from spanreel.policy import Policy
from spanreel_collector.otlp.items import KeptSignal
from spanreel_collector.otlp.parts import Apart
from spanreel_collector.otlp.rewriting import rewrite
from spanreel_collector.redaction.traces import redact_request


def redact_apart(apart: Apart, signal: KeptSignal, policy: Policy) -> Apart:
    """The same without what the policy finds. What is not known of a newer protocol cannot be examined, and goes."""
    return rewrite(apart, signal, lambda said: redact_request(said, policy))
