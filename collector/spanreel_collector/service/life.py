"""The service's life: what it is made of is opened, runs, and ends so that nothing that was answered is lost."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from spanreel.errors import SettingsError
from spanreel.policy_file import find_policy
from spanreel_collector.access import Access, Tls, check_address, check_tls
from spanreel_collector.api import Serving, create_app, doors
from spanreel_collector.api.events import Events
from spanreel_collector.house import Retention, keep_house
from spanreel_collector.receiver.committing import Committer, QueueLimits
from spanreel_collector.receiver.connections import bounded_connections
from spanreel_collector.receiver.grpc import GrpcServer, start_grpc
from spanreel_collector.receiver.http import receiver_app
from spanreel_collector.receiver.intake import Intake, IntakeLimits
from spanreel_collector.receiver.receiving import Receiver
from spanreel_collector.service.derivation import Derivation
from spanreel_collector.service.numbers import observe_service, timed, traced
from spanreel_collector.service.settings import ServiceSettings
from spanreel_collector.service.telemetry import Telemetry, exports
from spanreel_collector.service.workshop import Closed, NotStarted, Workshops
from spanreel_collector.stores.store import Store, StoreError

_OTLP: Final = "/v1/"
_HOUSE_EVERY: Final = 300.0
_log: Final = logging.getLogger("spanreel.service")

Started = Callable[[str, str | None], None]
"""Told when requests are taken: the address of the HTTP door, and of the gRPC one."""


def serve(settings: ServiceSettings, access: Access, store: Store, started: Started) -> None:
    """Serve until told to stop (SIGTERM, SIGINT). The store is the caller's to close.

    Raises:
        SettingsError: it must not, or cannot, listen where it is told to; or a setting is wrong.
    """
    with ExitStack() as stack:
        door = stack.enter_context(_listening(settings, access))
        try:
            telemetry = Telemetry(exports(_own_addresses(settings)))
        except ValueError as error:
            _log.warning("the service exports no traces of itself: %s", error)
            telemetry = Telemetry()
        stack.callback(telemetry.close)
        events = Events()
        workshop = Workshops(settings.derive_processes, settings.derive_patience)
        derivation = Derivation(
            store,
            traced(workshop.make, telemetry),
            events.publish,
            settings.quiet_seconds,
            most_bytes=settings.derive_bytes,
            hands=settings.derive_processes,
        )
        committer = Committer(timed(store.append, telemetry), QueueLimits(settings.queue_bytes)).start()
        stack.callback(_finish, committer, settings.stop_seconds)
        receiver = Receiver(committer, _intake(settings))
        observe_service(telemetry, store, receiver, derivation)
        stack.enter_context(_working(derivation, workshop))
        stack.enter_context(_keeping_house(store, settings))
        grpc = stack.enter_context(_grpc(receiver, access, settings))
        state = _State(committer)
        serving = Serving(store, events, state.unready, telemetry.text)
        app = _doors(receiver, create_app(serving), access, telemetry)
        asyncio.run(_serve(app, door, settings, _Running(events, state, lambda: started(_url(settings, door), grpc))))


@dataclass(eq=False, slots=True)
class _State:
    committer: Committer
    stopping: bool = False

    def unready(self) -> str | None:
        """Why nothing should be sent here now, for everybody."""
        if self.stopping:
            return "the service is stopping"
        # What the store's own probe does not meet: there may be room for one row on a disk, and not for a request.
        trouble = self.committer.trouble
        return f"the store could not write what came last: {trouble.reason}" if trouble is not None else None


@dataclass(frozen=True, slots=True)
class _Running:
    events: Events
    state: _State
    started: Callable[[], None]


# -- HTTP ------------------------------------------------------------------------------------------------------------


def _doors(receiver: Receiver, api: ASGIApp, access: Access, telemetry: Telemetry) -> ASGIApp:
    """All there is behind the HTTP port."""
    otlp, rest = receiver_app(receiver, access), doors.behind_doors(api, access, telemetry.answered)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_OTLP):
            # No spans of these: whoever exports spans to a service would make it export more.
            await otlp(scope, receive, send)
            return
        # A path may name a user.
        door = "/".join(scope.get("path", "").split("/")[:4])
        with telemetry.span(f"{scope.get('method', '')} {door}"):
            await rest(scope, receive, send)

    return route


class _Server(uvicorn.Server):
    """uvicorn's, which leaves signals to us: what is behind it ends in an order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None."""
        yield


async def _serve(app: ASGIApp, door: socket.socket, settings: ServiceSettings, running: _Running) -> None:
    config = uvicorn.Config(
        app,
        http=bounded_connections(settings.connections),
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=max(1, int(settings.stop_seconds)),
        ssl_certfile=settings.tls_certificate or None,
        ssl_keyfile=settings.tls_key or None,
        ssl_ca_certs=settings.tls_client_authority or None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if settings.tls_client_authority else ssl.CERT_NONE,
        # Exporters send every few seconds: a connection that ends in between costs a request now and then.
        timeout_keep_alive=75,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        running.state.stopping = True
        running.events.close()
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    running.events.open()
    serving = asyncio.ensure_future(server.serve(sockets=[door]))
    while not (server.started or serving.done()):  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    if server.started:
        _log.info("serving")
        running.started()
    await serving
    _log.info("no more requests are taken; what was begun is finished")


@contextmanager
def _listening(settings: ServiceSettings, access: Access) -> Iterator[socket.socket]:
    """A socket at the HTTP address, which nobody else has.

    Raises:
        SettingsError: it must not or cannot listen there.
    """
    address = settings.address("http")
    if address is None:
        raise SettingsError("--http off: the service has no other door for its API; give it HOST:PORT")
    host, port = address
    check_address(access, host)
    check_tls(settings.tls_certificate, settings.tls_key, settings.tls_client_authority)
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        door = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError(f"cannot listen on {settings.http!r}: {error.strerror or error}") from error
    with door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(place)
            door.listen(2048)
        except OSError as error:
            advice = "is another service, or a Collector, running there? choose another with --http HOST:PORT"
            raise SettingsError(f"cannot listen on {settings.http!r}: {error.strerror or error}; {advice}") from error
        yield door


def _url(settings: ServiceSettings, door: socket.socket) -> str:
    host, port = door.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls_certificate else 'http'}://{name}:{port}"


def _own_addresses(settings: ServiceSettings) -> list[tuple[str, int]]:
    return [address for address in (settings.address("http"), settings.address("grpc")) if address is not None]


# -- what runs beside it ---------------------------------------------------------------------------------------------


@contextmanager
def _grpc(receiver: Receiver, access: Access, settings: ServiceSettings) -> Iterator[str | None]:
    """The gRPC door; gives its address."""
    address = settings.address("grpc")
    if address is None:
        yield None
        return
    tls = None
    if settings.tls_certificate:
        tls = Tls(settings.tls_certificate, settings.tls_key, settings.tls_client_authority or None)
    server: GrpcServer = start_grpc(receiver, access, address, tls)
    try:
        yield f"{address[0]}:{server.port}"
    finally:
        server.stop(settings.stop_seconds)


def _intake(settings: ServiceSettings) -> Intake:
    policy = find_policy(settings.policy) if settings.policy else None
    return Intake(IntakeLimits(body=settings.body_bytes, copies=8 * settings.body_bytes), policy)


def _finish(committer: Committer, seconds: float) -> None:
    if not committer.close(seconds):
        _log.error("not all that waited was committed within %g seconds; it was not answered either", seconds)


@contextmanager
def _working(derivation: Derivation, workshop: Workshops) -> Iterator[None]:
    """Sessions are made. What is not done at the end stays pending."""

    def work(stop: threading.Event) -> None:
        with suppress(Closed, NotStarted):  # what is wrong is said when there is a job
            workshop.open()
        derivation.run(stop)

    with _beside("spanreel-derivation", work, workshop.close):
        yield


@contextmanager
def _keeping_house(store: Store, settings: ServiceSettings) -> Iterator[None]:
    """What is too old or too much goes, now and then."""
    retention = Retention(settings.keep or None, settings.keep_bytes or None)

    def keep(stop: threading.Event) -> None:
        while not stop.wait(_HOUSE_EVERY):
            try:
                gone = keep_house(store, retention, stop.is_set)
                if gone.sessions or gone.traces:
                    _log.info("retention removed %d sessions, %d traces", gone.sessions, gone.traces)
            except StoreError as error:
                _log.warning("no upkeep while the store cannot be used: %s", error)
            except Exception:  # noqa: BLE001 - a fault of ours must not end what bounds the disk's use
                _log.exception("upkeep failed; it is tried again")

    with _beside("spanreel-house", keep, lambda: None):
        yield


@contextmanager
def _beside(name: str, work: Callable[[threading.Event], None], interrupt: Callable[[], None]) -> Iterator[None]:
    """A thread that works until the event that it is given is set, which is when the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        interrupt()
        thread.join(10.0)
