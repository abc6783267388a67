"""Measure what is learnt of the people and pets that statements name, in sentences by strangers to the rules.

    python benchmarks/relations.py [FILE.jsonl …] [--show] [--out benchmarks/results/relations.json]

`found` are the stated relations that are learnt; `wrong` the learnt ones that are not stated. Sentences that state
none (`traps`) are counted apart. Titles of names are ignored, words for the same relation are one, and a general word
is right for a special one: a child is a son, too. A former spouse counts neither way: that is a relation of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ricordo.text.names import predicate_of
from ricordo.text.relatives import stated_relations

DATA = Path(__file__).parent / "data" / "relations"
FILES = tuple(DATA / f"{name}.jsonl" for name in ("relations", "held_out", "passing", "passing_held_out"))
OUT = Path(__file__).parent / "results" / "relations.json"
GENERAL = {
    "spouse": {"wife", "husband"},
    "parent": {"mother", "father"},
    "grandparent": {"grandmother", "grandfather"},
    "child": {"son", "daughter"},
    "sibling": {"brother", "sister"},
    "partner": {"girlfriend", "boyfriend", "wife", "husband"},
    "friend": {"best friend"},
    "landlord": {"landlady"},
}
TITLES = re.compile(r"\b(?:dr|mrs?|ms|prof(?:essor)?|herr|frau|mm?e?|sra?|don|doña|signora?|доктор|тетя|дядя)\b\.?\s+")

Row = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[file for file in FILES if file.exists()])
    parser.add_argument("--show", action="store_true", help="print what is missed and wrong, never of held-out files")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    figures = {
        file.stem: _measured(file, is_shown=options.show and "held_out" not in file.stem) for file in options.files
    }
    print(json.dumps(figures, indent=1))
    options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _measured(file: Path, *, is_shown: bool) -> dict[str, dict[str, int]]:
    """Return the counts of a file by language, and of all languages."""
    counts: dict[str, Counter[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        told = {_relation(*each) for each in row["relations"]}
        learnt = {_relation(each.predicate, each.name) for each in stated_relations(row["text"])}
        learnt = {each for each in learnt if not each[0].startswith("ex-")}
        found = {each for each in told if any(_is_same(each, other) for other in learnt)}
        wrong = {each for each in learnt if not any(_is_same(other, each) for other in told)}
        for language in ("all", row["language"]):
            counts.setdefault(language, Counter()).update(_counts(told, found, wrong))
        if is_shown and (wrong or found != told):
            print(f"{row['text']}\n    missed {sorted(told - found)}, wrong {sorted(wrong)}", file=sys.stderr)
    return {language: dict(each) for language, each in counts.items()}


def _counts(told: set[tuple[str, str]], found: set[tuple[str, str]], wrong: set[tuple[str, str]]) -> dict[str, int]:
    is_trap = not told
    return {
        "relations": len(told),
        "found": len(found),
        "wrong": 0 if is_trap else len(wrong),
        "traps": int(is_trap),
        "wrong in traps": int(is_trap and bool(wrong)),
    }


def _relation(predicate: str, name: str) -> tuple[str, str]:
    return predicate_of(predicate), TITLES.sub("", name.lower().replace("ё", "е"))


def _is_same(told: tuple[str, str], learnt: tuple[str, str]) -> bool:
    relations = told[0], learnt[0]
    is_related = relations[0] == relations[1] or any(
        special in GENERAL.get(general, ()) for general, special in (relations, relations[::-1])
    )
    return is_related and told[1] == learnt[1]


if __name__ == "__main__":
    main()
