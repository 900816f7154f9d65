"""What other recorders leave in the place of what they lost: redacted, cut or never there. One list for all readers.

Our own stand-ins are not here: what we redact or cut is said in `spanreel.fidelity`, and equal values stay equal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from spanreel import json_text
from spanreel.memory import Known
from spanreel.model import GRAVITY, Answer, Fidelity
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord, TurnRecord

DEPTH: Final = 64
MASK: Final = "[redacted]"
"""What our own policies put in the place of what they mask (`detectors.MASK`), and others put too."""


def find_loss(value: Any, *, ours: bool = False) -> Fidelity | None:
    """The gravest loss that a value of another recorder tells of, at any depth and in JSON text; None: none.

    ``ours``: a policy of ours has been applied too, so that a bare ``[redacted]`` is its mask.
    """
    return _find(value, DEPTH, ours)


def _may_tell(text: str) -> bool:
    """Whether `find_loss` could find anything in a text, or in what it holds as JSON."""
    return (
        "<" in text
        or "…" in text
        or "redact" in text
        # One letter is found much faster than a word, and most texts lack these; a pattern goes from one to the next.
        or ("." in text and _DOTS.search(text) is not None)
        or ("_" in text and _UNDERSCORES.search(text) is not None)
        or ("R" in text and "REDACT" in text)
        or ("x" in text and "xxxxxxxx" in text)
        or ("X" in text and "XXXXXXXX" in text)
        or ("*" in text and "***" in text)
        or "@@@" in text
        or "mlflow-attachment:" in text
        or ("\\" in text and "\\u2026" in text)
        or ("[" in text and _NO_LIST.search(text) is not None)
    )


def is_lost(state: Fidelity | None, value: Any, *, ours: bool) -> bool:
    """Whether a field of this state and value is neither to be compared nor to be served.

    What another redacted is equal to all else that he redacted, and is no answer; what we redacted has kept its place.
    """
    if state in (Fidelity.TRUNCATED, Fidelity.ABSENT):
        return True
    return state is Fidelity.REDACTED and find_loss(value, ours=ours) is not None


def note_losses(record: Record) -> Record:
    """The record with every field that holds another recorder's marker marked; graver marks stay."""
    if isinstance(record, TurnRecord):
        return record
    fields = _fields(record)
    texts: list[str] = []
    if not _any_may_hold(filter(None, fields.values()), texts) and not _may_tell("\n".join(texts)):
        return record  # as nearly all: to look for each marker in each value is dear
    found = {name: find_loss(value) for name, value in fields.items()}
    graver = {
        name: state for name, state in found.items() if state and _grave(state) > _grave(record.fidelity.get(name))
    }
    return replace(record, fidelity={**record.fidelity, **graver}) if graver else record


def _fields(record: RunRecord | ModelRecord | ToolRecord) -> dict[str, Any]:
    """What of a record may hold a marker."""
    if isinstance(record, ModelRecord):
        answer = record.answer or _NO_ANSWER
        return {
            "input": record.request.messages,
            "instructions": record.request.instructions,
            "tools": record.request.tools,
            "settings": record.request.settings,
            "request_fields": record.request.provider_fields,
            "output": answer.messages,
            "provider_fields": answer.provider_fields,
        }
    if isinstance(record, ToolRecord):
        return {"arguments": record.arguments, "result": record.result}
    return {
        "input": record.input,
        "output": record.output,
        "arguments": record.arguments,
        "result": record.result,
    }


def glance(read: Known, text: str) -> None:
    """Note whether an object can hold a marker, by the JSON text that it was read from, where that has no escapes."""
    if "\\u" not in text:
        read.unmarked = not _may_tell(text)


def _may_hold(value: Any, texts: list[str]) -> bool:
    """Whether a value must be looked at properly; its texts and keys, which tell too, are added to the others.

    They are looked through together: no marker goes over the end of a line.
    """
    kind = type(value)
    if kind is str:
        texts.append(value)
        return False
    if kind is Known:
        if value.unmarked is None:
            inside: list[str] = []
            value.unmarked = not (_may_hold(dict(value), inside) or _may_tell("\n".join(inside)))
        return not value.unmarked
    if kind is dict:
        texts += map(str, value)
        return _any_may_hold(value.values(), texts)
    if kind is list or kind is tuple:
        return _any_may_hold(value, texts)
    return kind not in _PLAIN


def _any_may_hold(values: Iterable[Any], texts: list[str]) -> bool:
    held = False
    for value in values:
        kind = type(value)
        if kind is str:
            texts.append(value)
        elif not (kind in _PLAIN or (kind is Known and value.unmarked)) and _may_hold(value, texts):
            held = True
    return held


def _find(value: Any, depth: int, ours: bool) -> Fidelity | None:
    if isinstance(value, str):
        # A conversation repeats its history in every call.
        return _of_known(value, depth, ours) if len(value) <= _WORTH_KNOWING else _of_text(value, depth, ours)
    if type(value) in _PLAIN:
        return None
    if depth == 0:
        return Fidelity.TRUNCATED
    gravest: Fidelity | None = None
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 -- the first is far the cheaper question
        for key, item in value.items():
            found = _find(item, depth - 1, ours) or (_of_known(key, 0, ours) if isinstance(key, str) else None)
            if found is None and key in _CUT_KEYS and item:
                found = Fidelity.TRUNCATED
            if found is not None:
                gravest = _graver(gravest, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            found = _find(item, depth - 1, ours)
            if found is not None:
                gravest = _graver(gravest, found)
    return gravest


def _of_text(text: str, depth: int, ours: bool) -> Fidelity | None:
    whole = text.strip().strip("\"'")
    if _CUT.search(text[-_END:]) or (len(whole) <= _END and _LOST.fullmatch(whole)) or _ELSEWHERE.fullmatch(whole):
        return Fidelity.TRUNCATED
    if whole[:1] in {"{", "["} and depth:
        try:
            return _find(json_text.decode(text), depth - 1, ours)
        except ValueError:
            pass  # text after all
    if any(word in text for word in _REDACTION_WORDS) and _REDACTED.search(text):
        return Fidelity.REDACTED
    if len(whole) <= _END and _REDACTED_WHOLE.fullmatch(whole) and not (ours and whole == MASK):
        return Fidelity.REDACTED
    return None


_PLAIN: Final = frozenset({int, float, bool, type(None), bytes})
_NO_ANSWER: Final = Answer()
_WORTH_KNOWING: Final = 4096
_of_known = functools.lru_cache(4096)(_of_text)


def _graver(one: Fidelity | None, other: Fidelity | None) -> Fidelity | None:
    return max(one, other, key=_grave)


def _grave(state: Fidelity | None) -> int:
    return _ORDER.index(state)


_ORDER: Final = (None, *GRAVITY)

_DOTS: Final = re.compile(r"\.\.\.")
_UNDERSCORES: Final = re.compile(r"_(?:_|truncated)")
_NO_LIST: Final = re.compile(r'\[[^ \t\n\r{"\[\]\-0-9]')
"""A bracket, and what does not come after one that begins a list of JSON."""

_END: Final = 160
_CUT: Final = re.compile(
    r"""
    (?: (?:\.\.\.|…)\s*[\[(<]\s*(?:text\s+)?truncated\b[^\])>]*[\])>]  # Mastra, Langfuse, Kitaru, ours: …[truncated]
      | (?:\.\.\.|…)\s*\[?\d[\d,]*\s+(?:more\s+)?(?:items|keys|chars|characters|bytes|elements)\b[^\]]{0,40}\]?
      | \[(?:\.\.\.|…)\s*\+?\d+\s+(?:more|items|chars)[^\]]*\]
      | \[truncated\b[^\]]*\]                                         # Claude Code: [TRUNCATED - Content exceeds ...]
      | <truncated\b[^>]*>
      | \[base64_data\ truncated:[^\]]*\]                             # LiteLLM
      | <(?:long\s+)?(?:string|text|content)\s+(?:truncated|omitted)[^>]*>
    ) [\s"'}\])]*$
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What ends in one of these was cut there. In the middle of a text they are somebody's words."""

_LOST: Final = re.compile(
    r"""
      \[(?:MaxDepth|Max\ Depth|Circular|Circular\ Reference|Function|Function:\s?[^\]]*|Object|Array|Unserializable)\]
    | \[Symbol\([^)]*\)\] | \[object\ \w+\]
    | \[(?:Array)?Buffer\ (?:length|byteLength)=\d+\]
    | <(?:not|non[- ])?\s?serializable[^>]*> | <unserializable[^>]*> | <unserialisable[^>]*>
    | <(?:max\ depth|nested|circular|recursion|too\ deep|cyclic)[^>]*> | <circular\ reference>
    | <(?:failed\ to\ serialize|serialization\ failed)[^>]*>
    | <replaced>                                                    # Strands: bytes, and all else that is no JSON
    | <Upload\ handling\ failed\ for\ LangfuseMedia\b[^>]*>
    | <truncated> | <omitted> | \[omitted\] | \[binary\ data\] | <binary(?:\ data)?>
    | \[(?:base64|image|audio|file|binary)\ (?:data\ )?(?:removed|omitted|stripped|redacted)[^\]]*\]
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What is this and nothing else stands for a value that was never written."""

_ELSEWHERE: Final = re.compile(r"@@@langfuseMedia:[^@\s]+@@@|mlflow-attachment://\S+")
"""What is this and nothing else stands for content that a recorder keeps beside its spans, of any length."""

_REDACTED: Final = re.compile(
    r"""
      __REDACTED__ | __MASKED__                                      # OpenInference
    | \[Scrubbed\ due\ to\b[^\]]{0,200}\]                           # Logfire
    | \[[A-Z0-9_ ]{0,40}REDACTED[\w:. -]{0,60}\]                # [EMAIL_REDACTED], [REDACTED:email]
    | <[A-Z0-9_ ]{0,40}REDACTED[\w:. -]{0,60}>
    | \*{3,}\s?REDACTED\s?\*{3,} | \bREDACTED_[A-Z]+\b
    | \[(?:Filtered|FILTERED)\]                                      # Sentry, Rails
    | <redacted\ due\ to\ [^>]{0,200}>                                     # Langfuse: a mask function that failed
    """,
    re.VERBOSE,
)
"""Where these stand, something was redacted by another, who says nothing of what it was."""

_REDACTION_WORDS: Final = ("REDACT", "Scrubbed", "iltered", "FILTERED", "redacted due", "__MASKED__")
"""One of these stands in what the pattern finds, which is not for every text."""

_REDACTED_WHOLE: Final = re.compile(
    r"""
      \[redacted\] | <redacted> | \(redacted\) | redacted | \[masked\] | <masked> | \[hidden\] | \[scrubbed\]
    | \*{3,} | [xX]{8,} | (?:\*{4,}\w{2,4})
    | [A-Za-z0-9_-]{3}…[A-Za-z0-9_-]{3}                              # Mastra, partly
    | \[[A-Z][A-Z_]+_\d+\]                                           # Mastra, indexed; Presidio
    """,
    re.VERBOSE,
)
"""What is this and nothing else; inside of other text these words mean themselves."""

_CUT_KEYS: Final = frozenset(
    {"__truncated", "_kitaru_truncated", "__kitaru_capture__", "__truncated__", "_truncated", "…"}
)
"""Members that say of their object that it was cut."""
