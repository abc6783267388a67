# /// script
# dependencies = ["pymorphy3", "wordfreq"]
# ///
"""Fit the endings by which a Russian verb says I or we ("живу", "купили") and print them for ru.toml.

    uv run tools/fit_russian_verbs.py   (or python, with both packages installed)

The words are the frequent ones of `wordfreq`; what each one is most likely, `pymorphy3` knows from OpenCorpora. A word
is judged by its longest listed ending; "_" stands for its beginning. The list is the cheapest one if each ending costs
as much as a mistake about a word that occurs once in 10 million.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import defaultdict
from typing import Any

import pymorphy3
import wordfreq

CANDIDATE = re.compile(r"[а-яё]+(?:ю|у|юсь|усь|ем|им|емся|имся|ём|ёмся|л|ла|ли|лся|лась|лись)")
WORDS = 300_000
RAREST = 2.0  # Zipf frequency
LONGEST = 7  # letters of an ending, with "_"
COST = 2.5
ALSO = "ем пеку пилю вожу гуглю деплою релизим тестим коммичу чиню"
"""Verbs that are rare or mean something else in other places than at the beginning of a statement."""


def main() -> None:
    sys.setrecursionlimit(10_000)
    weights = weights_of_words()
    of_ending: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for word, (other, own) in weights.items():
        for size in range(1, min(LONGEST, len(word)) + 1):
            of_ending[word[-size:]][own > other] += max(other, own)
    longer: dict[str, list[str]] = defaultdict(list)
    for ending in of_ending:
        longer[ending[1:]].append(ending)
    kept = [each for ending in sorted(longer[""]) for each in cheapest(ending, None, of_ending, longer)[1]]
    for name, is_own in (("own_endings", True), ("other_endings", False)):
        endings = " ".join(ending for ending, own in kept if own is is_own)
        print(f"{name} = '''\n{textwrap.fill(endings, 120, break_on_hyphens=False)}\n'''")


def weights_of_words() -> dict[str, list[float]]:
    """Return by word, with "_" before it, how much it counts as another word and as a verb that says I or we."""
    analyzer, weights = pymorphy3.MorphAnalyzer(), dict[str, list[float]]()
    for word in wordfreq.top_n_list("ru", WORDS):
        frequency = wordfreq.zipf_frequency(word, "ru")
        if frequency < RAREST or not CANDIDATE.fullmatch(word):
            continue
        parses = analyzer.parse(word)
        own = sum(parse.score for parse in parses if says_i_or_we(parse.tag))
        is_own = own > sum(parse.score for parse in parses) - own
        counted = weights.setdefault("_" + word.replace("ё", "е"), [0.0, 0.0])
        # people write such verbs about themselves far more often than others do
        counted[is_own] = max(counted[is_own], 1.6 * (frequency - 0.5) if is_own else frequency - 1)
    return weights | {f"_{word}": [0.0, 2 * COST] for word in ALSO.split()}


def says_i_or_we(tag: Any) -> bool:
    return tag.POS == "VERB" and ("1per" in tag or ("past" in tag and "neut" not in tag))


def cheapest(
    ending: str, inherited: bool | None, of_ending: dict[str, list[float]], longer: dict[str, list[str]]
) -> tuple[float, list[tuple[str, bool]]]:
    """Return the cost of the best endings for words with an ending, and these, if shorter ones say `inherited`."""
    found = []
    for own in (False, True):
        cost, kept = (0.0, []) if own is inherited else (COST, [(ending, own)])
        rest = of_ending[ending][not own]
        for each in longer[ending]:
            more, also = cheapest(each, own, of_ending, longer)
            cost, kept, rest = cost + more, kept + also, rest - of_ending[each][not own]
        found.append((cost + rest, kept))
    return min(found, key=lambda each: each[0])


if __name__ == "__main__":
    main()
