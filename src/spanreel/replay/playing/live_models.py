"""Where in a replay the model is live, and what it is sent: from the first request that a change touches on.

Not thread-safe: the player holds the lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from spanreel.exchange import HttpRequest, ModelProtocol
from spanreel.model import Json, Request
from spanreel.protocols.paths import model_in, with_model
from spanreel.replay.changing.changes import ROOT, Changes, apply, overrides_of, url_of
from spanreel.replay.matching.casting import Role
from spanreel.replay.playing.recorded_input import recorded_input
from spanreel.session import Session


@dataclass(eq=False, slots=True)
class LiveModels:
    """``live`` are the root runs, as `Casting.root` names them, in which no answer is taken from the recording now."""

    session: Session
    changes: Changes
    live: set[str] = field(default_factory=set)

    def send(self, root: str, role: Role, protocol: ModelProtocol, request: HttpRequest, read: Request) -> Sent | None:
        """What goes to the live model in the place of a request, itself where nothing of it changes; None: not live."""
        if not self.changes.touches_models:
            return None
        path = role.path if role.run is not None else ROOT
        is_forked = self._is_forked(path, role, read)
        if self.changes.from_turn is not None and root not in self.live and not is_forked:
            return None
        overrides = overrides_of(self.changes, path, read.model, role.scope.principal)
        asked = str(request.url)
        changed, url = apply(overrides, read), url_of(overrides, asked)
        if changed.model is not None and changed.model != read.model and model_in(request.path) == read.model:
            url = with_model(url, changed.model)
        is_same = changed == read and url == asked
        if is_same and root not in self.live and not is_forked:
            return None
        self.live.add(root)
        at = urlsplit(url)
        host = at.hostname or request.host
        if is_same:
            return Sent(request, changed.model, host)
        body = request.body if changed == read else protocol.write_request(changed)
        return Sent(HttpRequest(request.method, url, host, at.path, body, at.port), changed.model, host)

    def arguments(self, role: Role, recorded: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
        """The recorded arguments of a run with the new input in the place of the recorded one, wherever that stands.

        Raises:
            LookupError: it stands nowhere.
        """
        if self.changes.input is None or role.run is None or recorded is None:
            return recorded
        before = recorded_input(self.session, role.run)
        if not isinstance(before, str):
            raise LookupError(f"the recorded input of {role.path} is no text, so that another input")
        changed = {name: _exchanged(value, before, self.changes.input) for name, value in recorded.items()}
        if changed == recorded:
            raise LookupError(
                f"the recorded input of {role.path} does not stand in its arguments, so that another input"
            )
        return changed

    def _is_forked(self, path: str, role: Role, read: Request) -> bool:
        turn = self.changes.from_turn
        forked = turn is not None and path == ROOT and read.operation.opens_turn and role.turns >= turn
        return forked or self.changes.input is not None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request to a live model, and where that is."""

    request: HttpRequest
    model: str | None
    host: str


def _exchanged(value: Json, old: str, new: str) -> Json:
    """The value with one text in the place of another, wherever that is a whole leaf."""
    if isinstance(value, dict):
        return {key: _exchanged(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_exchanged(item, old, new) for item in value]
    return new if value == old else value
