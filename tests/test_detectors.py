"""What detectors find and leave, how well on the labelled set, and that text made to slow them down does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labelled_set
from spanreel.detectors import DETECTORS, MASK, PLACEHOLDER, Detector, Found, Kind, find_all, make_search, places_in

SEARCH = make_search(DETECTORS)
WITH_LIBRARY = importlib.util.find_spec("phonenumbers") is not None


def found(text: str) -> list[tuple[str, str]]:
    return [(one.detector.name, text[one.start : one.end]) for one in find_all(text, SEARCH)]


def replaced(text: str, by: str = MASK) -> str:
    parts, done = [], 0
    for one in find_all(text, SEARCH):
        parts += [text[done : one.start], by]
        done = one.end
    return "".join([*parts, text[done:]])


# -- the labelled set --------------------------------------------------------------------------------------------------


def test_the_labelled_set_is_large_and_has_both() -> None:
    samples = list(labelled_set.samples())
    assert len(samples) >= 400
    assert len({sample.text for sample in samples}) == len(samples)
    assert sum(not sample.labels for sample in samples) >= 150
    marked = Counter(label.name for sample in samples for label in sample.labels)
    assert set(marked) == {detector.name for detector in DETECTORS}


def test_of_the_labelled_set_nearly_all_is_found_and_nearly_nothing_else() -> None:
    scores = labelled_set.score(lambda text: find_all(text, SEARCH))
    overall = scores.pop("overall")
    report = {name: score.examples for name, score in scores.items() if score.examples}
    assert overall.precision >= 0.97, report
    assert overall.recall >= 0.97, report
    assert {name for name, score in scores.items() if score.precision < 0.9 or score.recall < 0.85} == set(), report


def test_finding_says_where_to_the_character_and_says_the_same_again() -> None:
    for sample in labelled_set.samples():
        first = find_all(sample.text, SEARCH)
        assert first == find_all(sample.text, SEARCH)
        places = [place for one in first for place in (one.start, one.end)]
        assert places == sorted(places)
        assert all(one.start < one.end <= len(sample.text) for one in first)
        assert bool(places_in(sample.text, SEARCH)) or not first


@pytest.mark.parametrize("by", [MASK, "[redacted:e_mail:0a1b2c3d:4bf92f3577b34da6a3ce929d0e0e4736]"])
def test_what_was_replaced_is_not_found_again(by: str) -> None:
    for sample in labelled_set.samples():
        once = replaced(sample.text, by)
        assert replaced(once, by) == once, sample.text


# -- what each is about ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4111 1111 1111 1111", ["payment card"]),
        ("4111 1111 1111 1112", []),
        ("9999 9999 9999 9995", []),  # the check digit is right, but nobody gives out such cards
        ("0.4111111111111111", []),
        ("DE89 3704 0044 0532 0130 00", ["IBAN"]),
        ("DE88 3704 0044 0532 0130 00", []),
        ("BE68 5390 0754 7034", ["IBAN"]),
        ("be7245437320660a", []),  # the check digits are right, but Belgian numbers have no letters
        ("DE89 3704 0044 0532 0130 0", []),
        ("XX89 3704 0044 0532 0130 00", []),
        ("123-45-6789", ["US SSN"]),
        ("123456789", []),
        ("ssn 123456789", ["US SSN"]),
        ("666-45-6789", []),
        ("123-00-6789", []),
        ("123-45-0000", []),
        ("203.0.113.7", ["IP address"]),
        ("203.0.113.256", []),
        ("203.0.113.07", []),
        ("203.0.113.7.1", []),
        ("203.0.113.0/24", []),
        ("203.0.113.7/24", ["IP address"]),
        ("203.0.113.7/99", ["IP address"]),
        ("v203.0.113.7", []),
        ("2001:db8::7", ["IP address"]),
        ("2001:db8::/32", []),
        ("2001:db8:::7", []),
        ("2001:db8::12345", []),
        ("127.0.0.1 0.0.0.0 255.255.255.0 169.254.1.1 224.0.0.1", []),
        ("a@b.example", ["e-mail"]),
        ("a@b", []),
        ("a@b.png", []),
        ("@b.example", []),
        ("--@b.example", []),
        ("https://a@b.example/x", []),
        ("+1 415 555 2671", ["phone"]),
        ("+1 415", []),
        ("+999 415 555 2671", []),
        ("x+14155552671", []),
    ],
)
def test_checks_decide_not_the_form_alone(text: str, expected: list[str]) -> None:
    assert [name for name, _ in found(text)] == expected
    assert [name for name, _ in found(f'{{"a": "{text}", "b": 1}}')] == expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Dr. O'Neil <o'neil+x@example.org>, (see", "Dr. O'Neil <>, (see"),
        ("write to a@b.example.", "write to ."),
        ("(+44 20 7946 0958)", "()"),
        ("ring (212) 555-0187.", "ring ."),
        ("from 203.0.113.7, 203.0.113.8.", "from , ."),
        ("[2001:db8::7]:443", "[]:443"),
        (r"\u0022a@b.example\u0022", r"\u0022\u0022"),
        ("ü 4111-1111-1111-1111 \u20ac a@b.example", "ü  \u20ac "),
        ("4111\u00a01111\u00a01111\u00a01111 and DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000", " and "),
    ],
)
def test_what_stands_around_stays(text: str, kept: str) -> None:
    assert replaced(text, "") == kept


def test_credentials_come_before_personal_data_and_overlaps_are_one() -> None:
    assert found("password=jane@example.org") == [("named credential", "jane@example.org")]
    assert found("postgres://u:jane@db.example.org/x") == [("password in a URL", "jane")]
    assert found("Authorization: Bearer " + "sk-" + "abcd1234" * 4) == [("header", "Bearer sk-" + "abcd1234" * 4)]


@pytest.mark.parametrize(
    "text",
    [
        f"{MASK} [redacted:e_mail:0a1b2c3d:12345678901234567890123456789012]",
        "[redacted:payment_card:4111111111111111:4111111111111111]",
        "password=[redacted] token: '[redacted:x]' Bearer [redacted]",
    ],
)
def test_nothing_is_found_in_placeholders(text: str) -> None:
    assert PLACEHOLDER.search(text) is not None
    assert found(text) == []


def test_placeholders_in_a_secret_go_with_it_and_those_at_its_ends_stay() -> None:
    cover = Detector("cover", Kind.CREDENTIAL, ("<",), lambda text, places: [Found(places[0], text.index(">") + 1)])
    search = make_search([cover])
    assert [(one.start, one.end) for one in find_all(f"<a {MASK} b>", search)] == [(0, 16)]
    assert find_all(f"<{MASK}>", search) == []
    half = Detector("half", Kind.CREDENTIAL, ("dacted",), lambda text, places: [Found(places[0], places[0] + 9)])
    assert [(one.start, one.end) for one in find_all(f"{MASK}tail", make_search([half]))] == [(10, 12)]
    start = Detector("start", Kind.CREDENTIAL, ("head",), lambda text, places: [Found(places[0], places[0] + 7)])
    assert [(one.start, one.end) for one in find_all(f"head{MASK}", make_search([start]))] == [(0, 4)]


def test_a_detector_of_ones_own_is_told_the_places_of_its_fragments() -> None:
    told: list[list[int]] = []

    def find(text: str, places: object) -> list[Found]:
        told.append(list(places))  # type: ignore[call-overload]  # they are numbers
        return []

    for fragments in (("acme-",), ("acme", "me-"), ("?cme-",), ("ACME-",), ()):
        find_all("x ACME-1 acme-2 Acmé-", make_search([Detector("own", Kind.PERSONAL, fragments, find)]))
    assert told == [[2, 9], [2, 4, 9, 11], [2, 9], [2], [0]]


@pytest.mark.skipif(not WITH_LIBRARY, reason="phonenumbers is not installed")
def test_with_the_library_national_numbers_are_known_by_their_plan() -> None:
    assert found("020 7946 0958 and 099 9999 9999") == [("phone", "020 7946 0958")]


@pytest.mark.slow
def test_without_the_library_telephone_numbers_are_found_by_their_form() -> None:
    program = (
        "import sys; sys.modules['phonenumbers'] = None\n"
        "from spanreel.detectors import DETECTORS, find_all, make_search\n"
        "text = '+44 20 7946 0958, +1 (415) 555-2671, 415-555-2671, tel 089/123456; 020 7946 0958, +999 123 4567'\n"
        "print([text[one.start:one.end] for one in find_all(text, make_search(DETECTORS))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['+44 20 7946 0958', '+1 (415) 555-2671', '415-555-2671', '089/123456']"


# -- whatever text there is --------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *("jane", "@", "example.org", ".", "+", "1", "415", "555", "2671", "-", " ", "(", ")", "4111", "1111", "DE89"),
        *(
            "3704",
            "0044",
            "203.0.113.7",
            ":",
            "2001:db8::",
            "password",
            "=",
            "is",
            "token",
            "key",
            '"',
            "'",
            "\\",
            "\n",
        ),
        *(MASK, "[redacted:", "]", "sk-", "abcd1234", "Bearer ", "://u:", "/", "ü", "🙂", "%40", "eyJ", "ssn", "phone"),
        *(
            "123-45-6789",
            "{",
            "}",
            "<",
            ">",
            ";",
            ",",
            "secret",
            "Authorization: ",
            "Cookie: a=b",
            "\ud800",
            "00",
            "3f",
        ),
    ]
)


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_findings_are_in_order_apart_and_the_same_again(text: str) -> None:
    first = find_all(text, SEARCH)
    assert first == find_all(text, SEARCH)
    places = [place for one in first for place in (one.start, one.end)]
    assert places == sorted(places)
    assert all(one.start < one.end <= len(text) for one in first)
    assert places_in(text, SEARCH) or not first


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_replacing_until_nothing_is_found_comes_to_an_end(text: str) -> None:
    for _ in range(8):
        following = replaced(text)
        if following == text:
            break
        text = following
    assert find_all(text, SEARCH) == []


HOSTILE = (
    *(
        "1",
        "a",
        "@",
        "-",
        "_",
        "=",
        ":",
        ".",
        "/",
        " ",
        "0 ",
        "1-",
        "1.",
        "+1",
        "a@",
        "a@b.",
        "%40",
        "(1",
        "::",
        "2001:",
    ),
    *(
        "key ",
        "key=",
        "token is ",
        "password for ",
        "password for a ",
        "sk-",
        "eyJ",
        "DE89 ",
        "4111 ",
        "4111-1111-1111-1111 ",
    ),
    *(
        "203.0.113.",
        "1.1.1.1 ",
        "phone ",
        "tel 1",
        "ssn 123",
        "Authorization: ",
        "cookie: a=",
        "[redacted",
        "[redacted]",
    ),
    *(
        "aB3/",
        "é",
        "\\u0040",
        "-us1",
        "Q~",
        ":AA",
        "-----BEGIN ",
        "://a:",
        "https://hooks.slack.com/services/",
        "call me ",
    ),
    *(
        "012 345 678 ",
        "sig=",
        "xoxb-",
        "private key ",
        "secret",
        "Bearer a",
        "://password:a@",
        "password=a&b;",
        'key",\n value',
        "fe80:",
        "1 ",
        "00",
        "x" * 63 + "@",
    ),
)


@pytest.mark.slow
def test_three_megabytes_made_to_slow_it_down_do_not() -> None:
    """In a process of its own, which ends them all; a pattern that is not linear would take hours for one."""
    program = (
        "import sys; from spanreel.detectors import DETECTORS, find_all, make_search\n"
        "search = make_search(DETECTORS)\n"
        "for piece in sys.stdin.read().split('\\0'):\n"
        "    find_all(piece * (3_000_000 // len(piece)) + 'password', search); print('.', end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="\0".join(HOSTILE),
        capture_output=True,
        text=True,
        check=True,
        timeout=3600,
    )
    assert done.stdout == "." * len(HOSTILE)
