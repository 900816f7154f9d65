"""The command ``redact``: a policy applied to a file of traces or of sessions, or what it would do there."""

from __future__ import annotations

import argparse
import gzip
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanreel.errors import SessionError, SettingsError, SpanreelError
from spanreel.explaining import explain
from spanreel.keyring import KEY_FILE, rotate, state_file
from spanreel.model import Json
from spanreel.policy import Policy
from spanreel.policy_file import find_policy
from spanreel.session_files import write_session
from spanreel.settings import REDACTION
from spanreel.subcommand import FAILED, OK, USAGE, Command
from spanreel_collector import json_text
from spanreel_collector.otlp.json_writing import write_json
from spanreel_collector.otlp.protobuf_form import read_message
from spanreel_collector.redaction.sessions import redact_document, redact_session
from spanreel_collector.redaction.traces import redact_request
from spanreel_collector.sources.framing import read_records

STDIN: Final = "-"
_GZIP: Final = b"\x1f\x8b"
_ABOUT: Final = """\
Apply a redaction policy to a file of traces (all that a Collector writes: JSON lines or protobuf, plain, gzip or zstd)
or of session documents, as it is applied to what is recorded; - is standard input. Traces are written as JSON lines.
The policy is that of SPANREEL_REDACTION, or of --policy: default, mask, credentials, or a TOML file. --explain says
what would be redacted: where, by which rule, in which form; never the value.
"""


@dataclass(frozen=True, slots=True)
class _Document:
    """One JSON document of a file, and where it begins; ``lines`` where each stands on a line of its own."""

    place: str
    value: Any
    lines: bool


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.description = _ABOUT
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="FILE", nargs="?", help="OTLP JSON lines, or session documents")
    parser.add_argument("-o", "--out", metavar="PATH", help="where to write; standard output by default")
    parser.add_argument("--explain", action="store_true", help="only say what would be redacted, and by which rule")
    parser.add_argument("--policy", metavar="NAME|FILE", help="the policy, in the place of SPANREEL_REDACTION")
    parser.add_argument(
        "--new-key", action="store_true", help="make a new key for digests; older ones stay, to be known again"
    )


def _run(options: argparse.Namespace) -> int:
    if options.new_key:
        return _rotate()
    if options.file is None:
        print("spanreel: no file to redact; see spanreel redact --help", file=sys.stderr)
        return USAGE
    policy = find_policy(options.policy or os.environ.get(REDACTION, "").strip() or "default")
    documents = _read(options.file)
    if options.explain:
        return _explain(documents, policy)
    text = "".join(_text(document, policy) for document in documents)
    if options.out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return OK
    path = Path(options.out)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        print(f"spanreel: cannot write to {options.out!r}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    return OK


def _rotate() -> int:
    configured = os.environ.get(KEY_FILE, "").strip()
    path = Path(configured).expanduser() if configured else state_file(os.environ)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = rotate(path)
    except OSError as error:
        raise SettingsError(f"the key file {str(path)!r} cannot be written: {error.strerror or error}") from error
    print(f"new digests have the key {key.id}, in {path}; older keys stay there")
    return OK


def _explain(documents: Iterator[_Document], policy: Policy) -> int:
    counts = Counter[tuple[str, str]]()
    for document in documents:
        apply = redact_document if _is_session(document.value) else redact_request
        for one in explain(document.value, policy, apply):
            print(f"{document.place} {one.pointer}: {one.rule} ({one.form})")
            counts[one.rule, one.form] += 1
    for (rule, form), number in sorted(counts.items()):
        print(f"{number} by {rule} ({form})", file=sys.stderr)
    print(f"{sum(counts.values())} in all, by policy {policy.name}", file=sys.stderr)
    return OK


def _text(document: _Document, policy: Policy) -> str:
    if _is_session(document.value):
        return write_session(redact_session(document.value, policy), indent=None if document.lines else 2) + "\n"
    return json_text.canonical(redact_request(document.value, policy)) + "\n"


def _is_session(document: Json) -> bool:
    return isinstance(document, dict) and str(document.get("schema", "")).startswith("spanreel.session/")


def _read(path: str) -> Iterator[_Document]:
    """The documents of a file: one, a list of them, or one a line.

    Raises:
        SpanreelError: the file cannot be read, or a line is no JSON: what is not understood cannot be redacted.
    """
    name = "standard input" if path == STDIN else path
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        data = gzip.decompress(data) if data[:2] == _GZIP else data
    except (OSError, EOFError) as error:
        raise SessionError(f"cannot read {name!r}: {error}") from error
    try:
        whole = json_text.parse(data)
    except ValueError:
        yield from _records(data, name)
        return
    for number, value in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield _Document(f"{name}:{number}", value, lines=isinstance(whole, list))


def _records(data: bytes, name: str) -> Iterator[_Document]:
    """Whatever the Collector's file exporter writes: lines of JSON, protobuf, either of them packed with zstd."""
    begun = False
    for record in read_records(io.BytesIO(data)):
        begun = True
        place = f"{name}:{record.number}"
        if record.problem is not None:
            raise SpanreelError(f"{place}: {record.problem}")
        try:
            value = _from_protobuf(record.data, place) if record.form == "protobuf" else json_text.parse(record.data)
        except ValueError as error:
            said = "no export request" if record.form == "protobuf" else "no JSON"
            raise SpanreelError(
                f"{name!r}, line {record.number} is {said}, so that it cannot be redacted: {error}"
            ) from error
        yield _Document(place, value, lines=True)
    if data.strip() and not begun:
        raise SpanreelError(f"{name!r} is cut off before the end of what it begins with")


def _from_protobuf(data: bytes, place: str) -> Json:
    """An export request as OTLP/JSON; refused where some of it would be lost on the way."""
    batch = read_message(data, place)
    if batch.faults:
        raise ValueError(batch.faults[0].reason)
    if batch.skipped:
        raise ValueError("it is of metrics")
    return write_json(data, "logs" if batch.logs else "traces")


REDACT: Final = Command(
    "redact", "redact a file of traces or sessions, or say what would be redacted", _configure, _run
)
