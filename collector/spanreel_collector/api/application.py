"""The application: routes, errors, the page's files, its description. What every request passes first is `doors`'."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI
from starlette.staticfiles import StaticFiles

import spanreel
from spanreel_collector.api import exports, house, methods, problems, reports, sessions
from spanreel_collector.api.readiness import Readiness
from spanreel_collector.api.serving import Serving

PAGE = Path(__file__).with_name("page")

_ABOUT = """\
Sessions of AI agents, made of their OpenTelemetry traces. `Authorization: Bearer TOKEN` where the service has tokens:
with the scope `read`; to erase, `erase`; for the size, `operate`. Errors are problem details (RFC 9457). Moments are
RFC 3339, in UTC.
"""


def create_app(serving: Serving | None) -> FastAPI:
    """The application; without anything to serve it only describes itself (`openapi()`).

    It takes requests that `doors.with_caller` has seen, and no others.
    """
    app = FastAPI(
        title="spanreel",
        version=spanreel.__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        # Their pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        responses={"default": problems.DESCRIBED},
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.serving = serving
    app.state.readiness = Readiness(serving.store.ready) if serving is not None else None
    problems.install(app)
    api = APIRouter(prefix="/api/v1")
    for module in (sessions, exports, reports, house):
        api.include_router(module.router)
    app.include_router(api)
    app.include_router(house.health)
    methods.install(app)
    app.add_middleware(methods.with_head)
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    return app
