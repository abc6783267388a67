"""Words that stand nowhere else, and a search for them in every byte of a folder."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable
from pathlib import Path

from ricordo.words import index_terms

_LETTERS = {"latin": ("bcdfghklmnprstvz", "aeiou"), "cyrillic": ("бвгдзклмнпрстф", "аеиоу")}


def canaries(count: int, *, seed: int) -> list[str]:
    """Capitalised words that nobody says, half of them in Cyrillic."""
    dice = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        hard, soft = _LETTERS["latin" if len(found) % 2 else "cyrillic"]
        word = "".join(dice.choice(hard) + dice.choice(soft) for _ in range(4)) + dice.choice(hard)
        found[word.capitalize()] = None
    return list(found)


def forms(word: str) -> set[bytes]:
    """A word and its index terms, as anything might have written them."""
    written = {word, word.lower(), *index_terms(word)}
    found: set[bytes] = set()
    for text in written:
        found |= {text.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be", "utf-7")}
        found.add(json.dumps(text)[1:-1].encode())
        found.add(text.encode().hex().encode())
        found.add(text.encode().hex().upper().encode())
        for shift in range(3):  # base64 is another text at each of three places; its ends depend on the neighbours
            coded = base64.b64encode(b"\0" * shift + text.encode())
            found.add(coded[4 if shift else 0 : len(coded) // 4 * 4 - 4])
    return found


def traces(folder: Path, words: Iterable[str]) -> list[str]:
    """Where any of the words still is."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [
        f"{word} in {path.name}"
        for word in words
        for path, data in files.items()
        if any(form in data for form in forms(word))
    ]
