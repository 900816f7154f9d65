"""Texts that came in pieces, beside the answer that holds them whole: in the record of a stream, and as likely tokens.

Pieces that stand at one place, but for positions in lists, are redacted as the text that they spell together. What is
redacted of it is a function's to say, which is given.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from spanreel import json_text
from spanreel.detectors import MASK
from spanreel.model import Json
from spanreel.record_pieces import Gathered, copies, recorded
from spanreel.text_pieces import Found, Path, TextPiece, differ, names_likelihoods, rebuilt, texts_in

Redact = Callable[[str], object]
"""The text as it may leave; anything else than a text where nothing of it may."""

_PARTIAL: Final = "partialArgs"
_LISTED: Final = frozenset({_PARTIAL, "executed_tools"})
"""What stands in answers as a list of the pieces in which it came: of Gemini's, and of Groq's."""
GLANCE: Final = r'og_?[pP]rob[A-Za-z]*\\*"\s*:\s*(?:[\[{]\s*[^\]}\s]|-?\d)|"(?:executed_tools|partialArgs)\\*"\s*:'
"""Matches wherever JSON text has texts in pieces, but for records of streams."""
_SIGNS: Final = ("ogprob", "og_prob", "ogProb", *_LISTED)
_PIECES: Final = re.compile(GLANCE)
_RECORD: Final = re.compile(r"\[\[\d+(?:\.\d+)?,(?:\{|\"[\w.]+\"[,\]])")
_MASKED: Final = json_text.encode(MASK)
_SHORT: Final = 4
"""Characters of a secret that are none."""
_TIMES: Final = frozenset({int, float})
_EVENTS: Final = frozenset({dict, str})
"""A chunk begins with its time, and then what its event says, or of what type that is."""


@functools.lru_cache(4096)
def may_spell(name: object) -> bool:
    """Whether a member of this name may hold a text in pieces."""
    return name == "parts" or name in _LISTED or names_likelihoods(name)


def spells(text: str, redact: Redact) -> bool:
    """Whether something may not leave that texts in a JSON text spell together, or may be so: examine it whole."""
    if any(sign in text for sign in _SIGNS) and _PIECES.search(text) is not None:
        return True
    if text[:2] != "[[" or _RECORD.match(text) is None:
        return False
    try:
        record: list[Json] = json_text.decode(text)
    except ValueError:
        return False
    gathered = Gathered()
    if gathered.read(record):
        return any(redact(whole) != whole for whole in gathered.wholes())
    return without_pieces(record, redact) is not record


def spelling(text: str, redact: Redact) -> frozenset[str] | None:
    """The texts in the JSON text of a record that spell together what may not leave; None where none do.

    The shortest of them, which tell nothing, are not given.
    """
    if text[:2] != "[[" or not spells(text, redact):
        return None
    record: list[Json] = json_text.decode(text)
    pieces = list(recorded(record, count()))
    altered = _altered(pieces, redact)
    return frozenset(piece.text for piece in pieces if piece.number in altered and len(piece.text) > _SHORT)


def without_told(value: str, texts: frozenset[str]) -> str:
    """An attribute without these texts, of which it may be one, or JSON in which some stand."""
    if value in texts:
        return MASK
    clean = value
    for text in texts:
        clean = clean.replace(json_text.encode(text), _MASKED)
    return value if clean == value else clean


def without_pieces(value: list[Json], redact: Redact) -> list[Json]:
    """A list without what its texts spell and may not leave; the very same where that is nothing, or it has no pieces.

    Such lists are the record of how a stream was cut, as protocols write it, and tokens with their likelihoods.
    """
    first = value[0] if value else None
    if type(first) is dict and any(map(names_likelihoods, first)):
        told: list[Json] = without_likely(value, redact)
        return told
    if type(first) is not list or len(first) < 2 or type(first[0]) not in _TIMES or type(first[1]) not in _EVENTS:
        return value
    clean: list[Json] = _without(value, recorded(value, count()), redact, told=False)
    return clean


def without_spelled(name: object, value: Json, redact: Redact) -> Json:
    """What stands under a name, without what its texts spell and may not leave.

    These are values that say how likely tokens are, and what stands in answers in the pieces in which it came.
    """
    if names_likelihoods(name):
        return without_likely(value, redact)
    if type(value) is not list or not (name in _LISTED or (name == "parts" and any(map(_is_partial, value)))):
        return value
    texts = (found for found in texts_in(value, (), count(), told=False) if name in _LISTED or _PARTIAL in found[2])
    return _without(value, map(_alone, texts), redact, told=False)


def _is_partial(part: Json) -> bool:
    """Whether a part of a message is a piece of a call, as Gemini streams the arguments of functions."""
    fields = part.get("provider_fields", part) if type(part) is dict else None
    call = fields.get("functionCall") if type(fields) is dict else None
    return type(call) is dict and _PARTIAL in call


def without_likely(value: Json, redact: Redact) -> Json:
    """A value that says how likely tokens are, without what those spell and may not leave."""
    return _without(value, map(_alone, texts_in(value, ("logprobs",), count(), told=True)), redact, told=True)


def _alone(found: Found) -> TextPiece:
    """A text that is in no event."""
    number, text, path, _ = found
    return TextPiece(number, text, path, (), 0)


def _without(value: Json, pieces: Iterable[TextPiece], redact: Redact, *, told: bool) -> Json:
    """A value without those of the pieces in it that spell what may not leave; the very same where none do."""
    altered = _altered(pieces, redact)
    return rebuilt(value, altered, count(), told=told) if altered else value


def _altered(pieces: Iterable[TextPiece], redact: Redact) -> set[int]:
    """The numbers of the pieces of texts that may not leave."""
    return set().union(*(_spelled(group, redact) for group in _together(pieces)))


def _together(pieces: Iterable[TextPiece]) -> Iterator[list[TextPiece]]:
    """The pieces that may be of one text: all of a place, those with the same indexes, as often as they came."""
    texts: dict[Path, list[TextPiece]] = {}
    for piece in pieces:
        texts.setdefault(tuple("" if type(step) is int else step for step in piece.path), []).append(piece)
    for together in texts.values():
        if not differ([piece.text for piece in together]) and not _is_likely(together[0]):
            continue
        yield together
        apart: dict[Path, list[TextPiece]] = {}
        for piece in together:
            apart.setdefault(piece.among, []).append(piece)
        if len(apart) > 1:
            yield from apart.values()
        often = copies([piece.event for piece in together])
        if any(number > 1 for number in often):
            yield [piece._replace(text=piece.text * number) for piece, number in zip(together, often, strict=True)]


def _spelled(pieces: Sequence[TextPiece], redact: Redact) -> set[int]:
    """The numbers of the pieces in which something of their whole is redacted, from the first to the last."""
    whole = "".join([piece.text for piece in pieces])
    clean = redact(whole)
    if clean == whole or (not _is_likely(pieces[0]) and clean == _each(pieces, redact)):
        return set()
    if not isinstance(clean, str):
        return {piece.number for piece in pieces}
    begun = _same(whole, clean)
    ended = len(whole) - _same(whole[begun:][::-1], clean[begun:][::-1])
    altered, end = set(), 0
    for piece in pieces:
        start, end = end, end + len(piece.text)
        if end > begun and start < ended:
            altered.add(piece.number)
    return altered


def _is_likely(piece: TextPiece) -> bool:
    """Whether a text is a token, which is told beside its text, too."""
    return any(map(names_likelihoods, piece.path))


def _each(pieces: Sequence[TextPiece], redact: Redact) -> str | None:
    """The pieces, each redacted by itself; None where one is left out."""
    left = [redact(piece.text) for piece in pieces]
    return "".join(map(str, left)) if all(isinstance(one, str) for one in left) else None


def _same(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    length = min(len(one), len(other))
    return next((place for place in range(length) if one[place] != other[place]), length)
