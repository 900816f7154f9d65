"""The labelled set: texts with the places of what has to be found in them, and how well the detectors find these.

In ``tests/labelled/*.txt`` a line is a text: ⏎ is a new line, ⟦detector|secret⟧ marks what has to be found. Nothing
that looks like a key stands in the repository: «A40» becomes 40 letters and digits (the same ones in each run), and ‖
parts what belongs together.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spanreel.detectors import DETECTORS, Finding, Kind

FOLDER = Path(__file__).parent / "labelled"
ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "x": "0123456789abcdef",
    "X": "0123456789ABCDEF",
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits,
    "w": string.ascii_letters + string.digits + "_-",
}
KINDS = {detector.name: detector.kind for detector in DETECTORS}
MARK = re.compile(r"⟦([^|⟧]+)\|([^⟧]*)⟧")


@dataclass(frozen=True)
class Label:
    """What has to be found: where, and by which detector."""

    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Sample:
    text: str
    labels: tuple[Label, ...]
    source: str


@dataclass
class Score:
    """How often a detector was right, found what it should not have, and missed what it should have found."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def samples() -> Iterator[Sample]:
    for file in sorted(FOLDER.glob("*.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("# "):
                yield parse(line, file.stem)


def parse(line: str, source: str) -> Sample:
    made = random.Random(line)
    plain = re.sub(r"«([a-z]+|[A-Za-z]\d+)»", lambda match: expand(match[1], made), line.replace("‖", ""))
    plain = plain.replace("⏎", "\n")
    text, labels, done = "", [], 0
    for match in MARK.finditer(plain):
        text += plain[done : match.start()]
        labels.append(Label(len(text), len(text) + len(match[2]), match[1]))
        text, done = text + match[2], match.end()
    return Sample(text + plain[done:], tuple(labels), source)


def expand(code: str, made: random.Random) -> str:
    if code in COMPOSED:
        return COMPOSED[code](made)
    return "".join(made.choices(ALPHABETS[code[0]], k=int(code[1:])))


def _json_web_token(made: random.Random) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": str(made.randrange(10**9)), "iat": 1793700000}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, expand("w43", made)])


def _basic(made: random.Random) -> str:
    return base64.b64encode(f"user{made.randrange(99)}:{expand('A9', made)}".encode()).decode()


def _private_key(made: random.Random) -> str:
    kind = made.choice(["", "RSA ", "EC ", "ENCRYPTED "])
    lines = [expand("b64", made) for _ in range(4)]
    return "\n".join([f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"])


COMPOSED: dict[str, Callable[[random.Random], str]] = {"jwt": _json_web_token, "basic": _basic, "pem": _private_key}


def score(find: Callable[[str], list[Finding]]) -> dict[str, Score]:
    """By detector, and overall. Right is exactly what is marked, by its name; of credentials, by any of theirs."""
    scores: dict[str, Score] = defaultdict(Score)
    for sample in samples():
        left = {(label.start, label.end): label.name for label in sample.labels}
        for finding in find(sample.text):
            wanted = left.get((finding.start, finding.end))
            name = finding.detector.name
            if wanted is not None and (wanted == name or KINDS[wanted] is finding.detector.kind is Kind.CREDENTIAL):
                del left[finding.start, finding.end]
                note(scores, wanted, "right", "")
            else:
                note(scores, name, "wrong", f"{sample.text[finding.start : finding.end]!r} in {sample.text!r}")
        for (start, end), name in left.items():
            note(scores, name, "missed", f"{sample.text[start:end]!r} in {sample.text!r}")
    return scores


def note(scores: dict[str, Score], name: str, what: str, example: str) -> None:
    for one in (scores[name], scores["overall"]):
        setattr(one, what, getattr(one, what) + 1)
    if example:
        scores[name].examples.append(f"{what}: {example}")
