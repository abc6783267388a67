"""Write `src/ricordo/text/confusables.txt` from the table of the package `confusable-homoglyphs` and Unicode's names.

Usage: python tools/generate_confusables.py confusables.json (the file of that name in the package's wheel).
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src" / "ricordo" / "text" / "confusables.txt"
NAMED = (
    "LATIN LETTER SMALL CAPITAL {}",
    "NEGATIVE CIRCLED LATIN CAPITAL LETTER {}",
    "NEGATIVE SQUARED LATIN CAPITAL LETTER {}",
    "REGIONAL INDICATOR SYMBOL LETTER {}",
    "LATIN SMALL LETTER TURNED {}",
)
SIGNS = "<>[]/-:"
HEAD = """\
# Characters that look like a lower-case ASCII letter, or like a symbol that our markup uses. One line each: the
# character, and its look-alikes. Those that NFKC and lower-casing already convert are omitted.
# Source: confusables.txt of Unicode (Unicode License V3) as packaged in confusable-homoglyphs 3.3.1 (MIT), and letters
# that Unicode's names call small capitals, negative circled or squared, or regional indicators.
# Written by tools/generate_confusables.py.
"""


def main() -> None:
    table = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    like: dict[str, set[str]] = defaultdict(set)
    for char, others in table.items():
        for other in (each["c"] for each in others):
            if len(char) == len(other) == 1:
                like[char].add(other)
                like[other].add(char)
    lines = []
    for wanted in [*map(chr, range(ord("a"), ord("z") + 1)), *SIGNS]:
        found = like[wanted] | (like[wanted.upper()] if wanted.isalpha() else set())
        for name in NAMED:
            try:
                found.add(unicodedata.lookup(name.format(wanted.upper())))
            except KeyError:
                continue
        kept = {
            folded for each in found if (folded := unicodedata.normalize("NFKC", each).lower()) and not folded.isascii()
        }
        lines.append(wanted + " " + "".join(sorted(char for char in kept if len(char) == 1)))
    TARGET.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
