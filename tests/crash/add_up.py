"""Add up the results of parts of a long run, each with a seed of its own.

python -m tests.crash.add_up part1.json part2.json --out benchmarks/results/kills.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

SAME = frozenset(("machine", "store", "steps_each", "bytes_of_the_commit", "backends"))
"""Fields that must be equal in all parts."""


def added(one: Any, other: Any, *, name: str = "") -> Any:
    """Add numbers, join lists, add objects field by field, and collect seeds in a list.

    Raises:
        ValueError: the parts are of different kinds.
    """
    if name == "seed":
        return [*(one if isinstance(one, list) else [one]), *(other if isinstance(other, list) else [other])]
    if name in SAME or type(one) is not type(other):
        if one != other:
            raise ValueError(f"{name}: {one!r} and {other!r} are not parts of one run")
        return one
    if isinstance(one, dict):
        empty = {key: type(value)() for key, value in (one | other).items()}
        return {
            key: added(one[key], other[key], name=key)
            if key in one and key in other
            else one.get(key, other.get(key, kind))
            for key, kind in empty.items()
        }
    return one if isinstance(one, str) and one == other else one + other


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("parts", nargs="+", type=Path)
    options.add_argument("--out", type=Path, required=True)
    given = options.parse_args()
    first, *others = (json.loads(part.read_text("utf-8")) for part in given.parts)
    for other in others:
        first = added(first, other)
    given.out.write_text(json.dumps(first, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(given.out.read_text("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
