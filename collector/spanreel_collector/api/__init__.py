"""The HTTP API of the service and the page, as one FastAPI application. What it answers comes from the store."""

from __future__ import annotations

from spanreel_collector.api.application import create_app
from spanreel_collector.api.serving import Serving

__all__ = ["Serving", "create_app"]
