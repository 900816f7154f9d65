"""Errors as problem details (RFC 9457): what is wrong, where, and what to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from spanreel_collector.stores.store import StoreError

_log = logging.getLogger("spanreel.api")

_TITLES = {
    400: "the request says something that cannot be",
    401: "a token is needed",
    403: "the token does not allow this",
    404: "there is none of it",
    405: "not by this method",
    408: "the request took too long to arrive",
    413: "the body is too large",
    422: "the request cannot be read",
    429: "asked too often",
    500: "the service failed",
    503: "the service cannot do this now",
}


class ProblemDetails(BaseModel):
    """What is wrong (``title``, ``detail``), where (``instance``, and ``place`` in what was sent), and what to do."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str | None = None
    place: str | None = None
    advice: str | None = None


MEDIA_TYPE: Final = "application/problem+json"
DESCRIBED: Final[dict[str, Any]] = {
    "description": "What is wrong, where, and what to do",
    "content": {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}},
}
"""An answer that is a problem, for the API's description."""


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        detail: str,
        advice: str | None = None,
        place: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.advice, self.place, self.headers = status, detail, advice, place, headers


def no_session(session: str) -> Problem:
    """There is no such session, or it is another tenant's."""
    advice = (
        "a session appears when its traces have been quiet for some seconds; GET /api/v1/sessions lists what is there"
    )
    return Problem(404, f"no session {session!r}", advice)


def answer(problem: Problem, instance: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A problem as an answer."""
    details = ProblemDetails(
        title=_TITLES.get(problem.status, "error"),
        status=problem.status,
        detail=problem.detail,
        instance=instance,
        place=problem.place,
        advice=problem.advice,
    )
    content = details.model_dump(exclude_none=True)
    return JSONResponse(content, problem.status, dict(headers or {}), media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Have all errors of an application answered so."""

    @app.exception_handler(Problem)
    def _problem(request: Request, error: Problem) -> JSONResponse:
        return answer(error, request.url.path, error.headers)

    @app.exception_handler(RequestValidationError)
    def _unreadable(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        problem = Problem(422, f"{place}: {first['msg']}", "see /api/openapi.json", place)
        return answer(problem, request.url.path)

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> JSONResponse:
        problem = Problem(error.status_code, str(error.detail), "see /api/openapi.json")
        return answer(problem, request.url.path, error.headers)

    @app.exception_handler(StoreError)
    def _store(request: Request, error: StoreError) -> JSONResponse:
        problem = Problem(503, f"the store cannot be used now: {error}", "try again in some seconds")
        return answer(problem, request.url.path, {"Retry-After": "5"})

    @app.exception_handler(Exception)
    def _fault(request: Request, error: Exception) -> JSONResponse:
        # What failed is for the log: its text may hold what the session says.
        problem = Problem(500, "a fault of the service; its log says more", "report it, with the log")
        return answer(problem, request.url.path)
