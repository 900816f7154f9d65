"""What stands where a credential would and is none: words of prose, code that gets one, placeholders."""

from __future__ import annotations

import re
from typing import Final

from spanreel.credential_names import is_credential_name

_WORDS: Final = frozenset(
    """
    a about above after again all already also always an and any are as ask asked asks async at auth authentication
    await based be because been before being below but by can cannot change changed changes check click could create
    did different do does done each either empty encrypted enter entered expired failed fails few first follow
    followed following follows for found from function get given go good grants had has have he her here hidden his
    how however i if in incorrect initial instead into invalid is isn't it it's its just keep kept lambda last later
    leave length less let like long longer look made make many may means method might missing more most must my
    never new next no nobody none nor not nothing now null of off on once one only optional or our out over per
    please policies policy protected provided random read refused rejected removed required requirements reset
    resets rotated rotation rules same see send set shall she short should shown simply since so some something
    still stored such than that that's the their them then there these they this those three through to too two type
    types under unknown unset until up update updated upon use used user users uses using valid via wait was we well
    were what when where whether which while who whose why will with within without won't would wrong yes yet you
    you'll your
    """.split()  # noqa: SIM905 -- a list of words reads best as words
)
"""What follows "password:" in prose and tables, and is nobody's password; a few words of the trade among them."""

_TYPES: Final = frozenset(
    """
    any bool boolean byte bytes char code decimal disabled enabled false float include inherit int integer never nil
    nonce none null number object omit optional same-origin secretstr str string text true undefined unicode uuid
    varchar void
    """.split()  # noqa: SIM905 -- as above
)
_PLACEHOLDER: Final = re.compile(
    r"(?i:bearer|basic)\s*|(?:(?i:bearer|basic|token)\s+)?(?:[A-Za-z0-9_-]{0,8}(?:\.{3}|…)|![A-Za-z][A-Za-z]+|\$\{[^}]*\}?|\$\$?[A-Z_][A-Z0-9_]*|\$\([^)]*\)?|\{\{.*|\{[A-Za-z_][\w.]*\}?|%[({]?[A-Za-z_]\w*[)}]?[sd]?%?|%s"
    r"|<[^<>]*>?|[*x•.#_-]{3,}|[*]+|(?i:your?|my|the|insert|replace|enter)[_ -][A-Za-z_ -]*"
    r"|(?i:redacted|masked|hidden|placeholder|omitted|secret_here|xxx+))"
)
_CALL: Final = re.compile(r"(?:[A-Za-z_]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)[(\[]")
_TYPE: Final = re.compile(r"(?:[A-Z][a-z]+){2,}|(?:[a-z_]\w*\.)+[A-Z]\w*")
_DOTTED: Final = re.compile(r"[a-z_]{2,}(?:\.[a-z_]{2,})+")
_FUNCTION: Final = re.compile(r"[a-z_][a-z0-9_]*\(")
_AFTER_TYPE: Final = re.compile(r" ?[,)|=\]]")
_IN_EXPRESSION: Final = re.compile(r" (?:[+%|?]|or |if |and |else )")
_MEMBER: Final = re.compile(
    r"(?:self|this|cls|os|process|config|conf|cfg|settings|env|ctx|context|request|req|args|options|opts|params|props"
    r"|state|secrets|credentials|creds|app|client|data|user|account|response|resp|session|vars?|local|module|import\.meta)"
    r"(?:\??\.[A-Za-z_]\w*)+|(?:[A-Za-z_]+\.)+(?:[a-z_]*(?:token|password|secret|key|credentials?))"
)
_PLAIN_WORD: Final = re.compile(r"[A-Za-z]+(?:['’][a-z]{1,2})?")  # noqa: RUF001 -- an apostrophe as people type it
_MORE_WORDS: Final = re.compile(r"[,.!?;:]?(?: [a-z]+(?:['’][a-z]{1,2})?){2}(?![\w=:@])")  # noqa: RUF001 -- as above


def is_prose(value: str, text: str, end: int) -> bool:
    """Whether the value that ends there is a word of a sentence: one that no password is, or with others behind it."""
    value = value.rstrip(",.;:!?")
    if _PLAIN_WORD.fullmatch(value) is None:
        return False
    return value.lower() in _WORDS or (value.islower() and _MORE_WORDS.match(text, end) is not None)


def is_plain_word(value: str) -> bool:
    """Whether the value is of letters alone, in lower case."""
    value = value.rstrip(",.;:!?")
    return value.islower() and _PLAIN_WORD.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Whether the value is a word of prose, or the name of a type."""
    return value.lower() in _WORDS or value.lower() in _TYPES


def is_type(value: str) -> bool:
    """Whether the value names a type, or says that there is none."""
    return value.lower() in _TYPES


def is_placeholder(value: str) -> bool:
    """Whether the value stands for one that is filled in elsewhere: ``${TOKEN}``, ``<your key>``, ``***``."""
    return _PLACEHOLDER.fullmatch(value) is not None


def is_code(value: str, name: str) -> bool:
    """Whether the value is an expression that gets a credential: a call, a member, a variable named like one."""
    if _CALL.match(value) is not None or _MEMBER.fullmatch(value) is not None:
        return True
    if not value.isidentifier():
        return False
    return value.lower() == name.lower() or (("_" in value or value != value.lower()) and _names_one(value))


def is_code_before(value: str, text: str, end: int) -> bool:
    """Whether what follows the value that ends there makes code of it: a type's name, a variable in an expression."""
    if _FUNCTION.match(value) is not None or _DOTTED.fullmatch(value) is not None:
        return True
    if _TYPE.fullmatch(value) is not None:
        return _AFTER_TYPE.match(text, end) is not None
    return value.isidentifier() and value.islower() and _IN_EXPRESSION.match(text, end) is not None


def _names_one(value: str) -> bool:
    return is_credential_name(value) and not any(map(str.isdigit, value))
