"""How well detectors find what is marked in the labelled set, and what looking costs in prose, JSON and code.

detectors.py [--examples] [--cost]
"""

from __future__ import annotations

import argparse
import functools
import sys
import timeit
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import labelled_set  # noqa: E402 -- it stands with the tests
from spanreel.detectors import DETECTORS, find_all, make_search, places_in  # noqa: E402 -- as above

SIZE = 100_000


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", action="store_true", help="what was missed, and what was found and should not be")
    parser.add_argument("--cost", action="store_true", help="microseconds a kilobyte")
    given = parser.parse_args()
    show_scores(examples=given.examples)
    if given.cost:
        show_cost()


def show_scores(*, examples: bool) -> None:
    search = make_search(DETECTORS)
    scores = labelled_set.score(lambda text: find_all(text, search))
    texts = list(labelled_set.samples())
    empty = sum(not sample.labels for sample in texts)
    print(f"{len(texts)} texts, {empty} of them with nothing in them")
    print(f"{'':24}{'marked':>8}{'wrong':>7}{'missed':>8}{'precision':>11}{'recall':>8}")
    for name, score in sorted(scores.items(), key=lambda item: (item[0] == "overall", item[0])):
        marked = score.right + score.missed
        row = f"{marked:8}{score.wrong:7}{score.missed:8}{score.precision:11.3f}{score.recall:8.3f}"
        print(f"{name:24}{row}")
        for example in score.examples if examples else ():
            print(f"    {example[:300]}")


def show_cost() -> None:
    search = make_search(DETECTORS)
    print(f"\n{'microseconds a kilobyte':24}{'clean?':>10}{'find all':>10}")
    for name, text in texts():
        gate = min(timeit.repeat(functools.partial(places_in, text, search), number=1, repeat=20))
        whole = min(timeit.repeat(functools.partial(find_all, text, search), number=1, repeat=20))
        print(f"{name:24}{gate * 1e9 / len(text):10.1f}{whole * 1e9 / len(text):10.1f}")


def texts() -> Iterator[tuple[str, str]]:
    """Of the repository's own."""
    kinds = {"prose": ["*.md", "docs/**/*.md"], "code": ["src/spanreel/**/*.py"], "JSON": ["tests/golden/*.json*"]}
    for name, patterns in kinds.items():
        files = [file for pattern in patterns for file in sorted(ROOT.glob(pattern))]
        yield name, "".join(file.read_text(encoding="utf-8") for file in files)[:SIZE]


if __name__ == "__main__":
    main()
