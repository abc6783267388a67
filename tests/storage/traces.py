"""Unique words, and a search for them in every byte of a folder."""

from __future__ import annotations

import base64
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ricordo.text.analyzer import index_terms

_LETTERS = {"latin": ("bcdfghklmnprstvz", "aeiou"), "cyrillic": ("бвгдзклмнпрстф", "аеиоу")}


def canaries(count: int, *, seed: int) -> list[str]:
    """Return invented capitalised words, half of them Cyrillic."""
    dice = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        hard, soft = _LETTERS["latin" if len(found) % 2 else "cyrillic"]
        word = "".join(dice.choice(hard) + dice.choice(soft) for _ in range(4)) + dice.choice(hard)
        found[word.capitalize()] = None
    return list(found)


def forms(word: str) -> set[bytes]:
    """Return a word and its index terms in every written form."""
    written = {word, word.lower(), *index_terms(word)}
    found: set[bytes] = set()
    for text in written:
        found |= {text.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be", "utf-7")}
        found.add(json.dumps(text)[1:-1].encode())
        found.add(text.encode().hex().encode())
        found.add(text.encode().hex().upper().encode())
        for shift in range(3):  # base64 differs for each of three offsets; its ends depend on the neighbours
            coded = base64.b64encode(b"\0" * shift + text.encode())
            piece = coded[4 if shift else 0 : len(coded) // 4 * 4 - 4]
            if len(piece) >= 8:  # four characters of base64 occur by chance in every few megabytes of hashes
                found.add(piece)
    return found


def traces(folder: Path, words: Iterable[str]) -> list[str]:
    """Return the places where any of the words still is."""
    words_of = defaultdict(set)
    for word in words:
        for form in forms(word):
            words_of[form].add(word)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [f"{word} in {path.name}" for path in files for word in sorted(_found(path.read_bytes(), words_of))]


def _found(data: bytes, words_of: Mapping[bytes, set[str]]) -> set[str]:
    """Return the words with a form in the data. Compared only at matches of a form's first three bytes."""
    begun = defaultdict(list)
    for form in words_of:
        begun[int.from_bytes(form[:3])].append(form)
    begins = np.zeros(1 << 24, dtype=bool)
    begins[list(begun)] = True
    row = np.frombuffer(data, dtype=np.uint8).astype(np.int32)
    threes = row[:-2] << 16 | row[1:-1] << 8 | row[2:]
    found: set[str] = set()
    for at in np.flatnonzero(begins[threes]).tolist():
        for form in begun[int(threes[at])]:
            if data.startswith(form, at):
                found |= words_of[form]
    return found
