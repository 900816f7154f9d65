"""Credentials and personal data in text, found by their shape, their checks, or the name before them."""

from __future__ import annotations

from typing import Final

from spanreel.detectors.addresses import EMAIL, IPV4, IPV6
from spanreel.detectors.assignments import ASSIGNMENT
from spanreel.detectors.beside import BESIDE, IN_CALL
from spanreel.detectors.credentials import (
    ARGUMENT,
    BASIC,
    BEARER,
    HEADER,
    JWT,
    PRIVATE_KEY,
    SESSION_COOKIE,
    SIGNED_URL,
    URL_PASSWORD,
)
from spanreel.detectors.finding import MASK, PLACEHOLDER, Detector, Find, Finding, Found, Kind, Shape
from spanreel.detectors.keys import KEYS_WITHIN, PROVIDER_KEY, WEBHOOK
from spanreel.detectors.numbers import CARD, IBAN, SSN
from spanreel.detectors.phones import PHONE, has_library
from spanreel.detectors.prose import SPOKEN
from spanreel.detectors.searching import Search, find_all, make_search, may_find, places_in

DETECTORS: Final = (
    # The first that finds something names it: whole shapes before names, headers of several words before single values.
    PRIVATE_KEY,
    URL_PASSWORD,
    HEADER,
    BEARER,
    BASIC,
    JWT,
    PROVIDER_KEY,
    *KEYS_WITHIN,
    WEBHOOK,
    SIGNED_URL,
    SESSION_COOKIE,
    ARGUMENT,
    ASSIGNMENT,
    BESIDE,
    IN_CALL,
    SPOKEN,
    EMAIL,
    IBAN,
    CARD,
    SSN,
    IPV6,
    IPV4,
    # Last: other numbers look like telephone numbers too.
    PHONE,
)

__all__ = [
    "DETECTORS",
    "MASK",
    "PHONE",
    "PLACEHOLDER",
    "Detector",
    "Find",
    "Finding",
    "Found",
    "Kind",
    "Search",
    "Shape",
    "find_all",
    "has_library",
    "make_search",
    "may_find",
    "places_in",
]
