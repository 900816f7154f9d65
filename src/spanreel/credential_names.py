"""Which names name a credential: ``api_key`` and ``clientSecret`` do, ``max_tokens`` and ``secretary`` do not."""

from __future__ import annotations

import functools
import itertools
import re
from typing import Final

WORDS: Final = frozenset(
    """
    apikey apikeys apisecret appkey appsecret authkey authtoken accesskey accesstoken refreshtoken idtoken sessiontoken
    bearertoken bottoken usertoken authorization bearer clientsecret connectionstring connstr credential credentials jwt
    kubeconfig passcode passphrase passwd passwds password passwords privatekey pwd secret secretkey secrets signingkey
    subscriptionkey userpass xapikey webhooksecret contrasena
    """.split()  # noqa: SIM905 -- a list of words reads best as words
)
"""Names of one word that are a credential wherever they stand in a longer name (``DB_PASSWORD_PROD``)."""

ENDS: Final = ("password", "passwd", "passphrase", "passwort", "kennwort", "apikey", "secretkey")
"""What a word that names a credential may end with (``PGPASSWORD``)."""

LAST_WORDS: Final = frozenset({"cookie", "cookies", "token"})
"""Words that name a credential only at the end of a name; ``token`` not after `BEFORE_TOKEN`."""

PHRASES: Final = frozenset(
    {
        ("access", "key"),
        ("account", "key"),
        ("api", "key"),
        ("api", "keys"),
        ("app", "key"),
        ("code", "verifier"),
        ("auth", "key"),
        ("basic", "auth"),
        ("conn", "str"),
        ("connection", "string"),
        ("deploy", "key"),
        ("encryption", "key"),
        ("functions", "key"),
        ("license", "key"),
        ("master", "key"),
        ("private", "key"),
        ("service", "key"),
        ("shared", "key"),
        ("signing", "key"),
        ("ssh", "key"),
        ("storage", "key"),
        ("subscription", "key"),
        ("token", "secret"),
        ("token", "value"),
        ("auth", "tokens"),
        ("access", "tokens"),
        ("refresh", "tokens"),
        ("amz", "signature"),
        ("goog", "signature"),
        ("access", "signature"),
    }
)
"""Names of two words that are a credential wherever they stand in a longer name."""

BEFORE_TOKEN: Final = frozenset(
    """
    page paging pagination continuation continue cursor sync resume watermark delta start stop end eos bos pad unk mask
    sep cls special first last per max min each output input prompt completion new text image audio top total cached
    reasoning thinking next previous prev
    """.split()  # noqa: SIM905 -- as above
)
"""What a token is not a credential after: places in a list, and the tokens of language models."""

BEFORE_PASS: Final = frozenset(
    """
    admin auth basic become db email ftp imap ldap mail mongo mysql pg postgres proxy redis root smtp ssh sudo user
    """.split()  # noqa: SIM905 -- as above
)
"""What makes a ``pass`` a password; one that stands alone is one too, a boarding pass is not."""

HARMLESS_ENDS: Final = frozenset(
    """
    allowed arn at attempts category change changed class cost count created cost_usd description details enabled
    endpoint env exists expired expires expiration expiry field file filename fingerprint format hint host id ids
    in index kind label length level limit link location manager method min max mode model name names needed number
    path policy port present price prompt provider ref region required requirements reset rotated rotation rule rules
    scheme scope scopes section set size source state status strength strategy style title ttl type types uri url usage
    valid validity version
    """.split()  # noqa: SIM905 -- as above
)
"""Last words of names that tell something about a credential rather than hold it (``secret_name``, ``token_type``)."""

_HARMLESS_WHOLE: Final = frozenset({("bearer", "format"), ("credentials", "mode")})
_SECRET_WHOLE: Final = frozenset({("secret", "id"), ("password", "hash")})

_SPLIT: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST: Final = 160


@functools.lru_cache(4096)
def is_credential_name(name: str) -> bool:
    """Whether what stands under this name (a key, header, variable, attribute) is a credential; by its words."""
    words = words_of(name)
    if not words or words in _HARMLESS_WHOLE:
        return False
    if words in _SECRET_WHOLE:
        return True
    last = words[-1]
    if last in HARMLESS_ENDS:
        return False
    if last == "token":
        return len(words) < 2 or words[-2] not in BEFORE_TOKEN
    if last == "pass":
        return len(words) < 2 or words[-2] in BEFORE_PASS
    return last in LAST_WORDS or any(word in WORDS or word.endswith(ENDS) for word in words) or _has_phrase(words)


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case, however it is spelled, without a number at its end."""
    words = [word.lower() for word in _SPLIT.findall(name[-_LONGEST:].replace("ñ", "n"))]
    while len(words) > 1 and words[-1].isdigit():  # password2, API_KEY_1
        words.pop()
    return tuple(words)


def _has_phrase(words: tuple[str, ...]) -> bool:
    return any(pair in PHRASES for pair in itertools.pairwise(words))
