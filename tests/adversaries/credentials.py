"""Made-up credentials in the forms of today, and ordinary sentences with identifiers: what is kept and what is touched.

`data/credentials.toml` and `data/identifiers.toml` were written before their author had read the rules. The rules were
tuned on the forms of the half "dev" only. `python -m tests.adversaries.credentials` prints the figures and writes them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import sys
import tomllib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ricordo.text.secrets import redact

DATA = Path(__file__).parent / "data"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "credentials.json"
HELD = 120
ORDINARY = 2_000

_LETTERS = {
    "x": string.ascii_letters + string.digits,
    "u": string.ascii_uppercase + "234567",
    "l": string.ascii_lowercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "-_",
    "base58_": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "base32_": string.ascii_uppercase + "234567",
}
_SLOT = re.compile(r"\{(base58_|base32_|[xulhdbs])(\d+)\}|\{(uuid)\}")


class Credential(NamedTuple):
    """A filled form: the whole text, and the part of it that must not be stored."""

    name: str
    text: str
    secret: str


def _filled(template: str, chance: random.Random) -> tuple[str, str]:
    """Return a template with random letters in it, and the longest run of them."""
    runs: list[str] = []

    def fill(slot: re.Match[str]) -> str:
        if slot[3]:
            run = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        else:
            run = "".join(chance.choice(_LETTERS[slot[1]]) for _ in range(int(slot[2])))
        runs.append(run)
        return run

    text = _SLOT.sub(fill, template)
    return text, max(runs, key=len, default="")


def credentials(half: str) -> list[Credential]:
    """Return the credentials of a half: "held" has 120 of the forms, "dev" the others."""
    forms = tomllib.loads((DATA / "credentials.toml").read_text(encoding="utf-8"))["forms"]
    names = sorted(forms)
    random.Random(22).shuffle(names)
    chosen = names[:HELD] if half == "held" else names[HELD:]
    chance = random.Random(5)
    return [Credential(name, *_filled(forms[name], chance)) for name in sorted(chosen)]


def ordinary(count: int = ORDINARY) -> list[str]:
    """Return ordinary sentences with hashes, numbers and ids, in eight languages."""
    data = tomllib.loads((DATA / "identifiers.toml").read_text(encoding="utf-8"))
    chance = random.Random(7)
    kinds = list(data["ids"].values())
    sentences = [each for group in data["sentences"].values() for each in group]
    found = []
    for number in range(count):
        forms = kinds[number % len(kinds)]
        ids = {name: _filled(chance.choice(forms), chance)[0] for name in ("id", "id2")}
        found.append(chance.choice(sentences).replace("{id2}", ids["id2"]).replace("{id}", ids["id"]))
    return found


def _cut(text: str, secret: str, mark: str) -> str:
    """Return a text with a mark in the middle of its secret."""
    at = text.index(secret) + len(secret) // 2
    return text[:at] + mark + text[at:]


FORMS: dict[str, Callable[[Credential], str]] = {
    "plain": lambda each: each.text,
    "sentence": lambda each: f"I noted this for later: {each.text} (from the call with Ben).",
    "lines": lambda each: _cut(each.text, each.secret, "\n"),
    "zero width": lambda each: _cut(each.text, each.secret, "\u200b"),
    "URL-encoded": lambda each: f"https://example.com/?q={quote(each.text, safe='')}",
    "escaped JSON": lambda each: json.dumps(json.dumps({"note": each.text})),
}
_PIECE = 10


def is_kept(each: Credential, stored: str) -> bool:
    """Return whether most of a secret can still be read: half of it, whatever stands in between."""
    plain = re.sub(r"[\s\u200b]", "", stored.replace("\\", "").replace('"', ""))
    secret = re.sub(r"\s", "", each.secret)
    left = [secret[: len(secret) // 2], secret[len(secret) // 2 :]]
    return any(piece[-_PIECE:] in plain and piece[:_PIECE] in plain for piece in left)


def kept(half: str, clean: Callable[[str], str]) -> dict[str, list[str]]:
    """Return the names of the credentials that remain, for each form of writing."""
    return {
        form: [each.name for each in credentials(half) if is_kept(each, clean(write(each)))]
        for form, write in FORMS.items()
    }


def touched(clean: Callable[[str], str]) -> list[str]:
    return [text for text in ordinary() if clean(text) != text]


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=("dev", "held"), default=None)
    parser.add_argument("--figures-only", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)

    def clean(text: str) -> str:
        return redact(text).text

    found: dict[str, Any] = {}
    for half in [given.half] if given.half else ["dev", "held"]:
        left = kept(half, clean)
        found[half] = {form: len(names) if given.figures_only else names for form, names in left.items()}
        found[half]["of"] = len(credentials(half))
    wrong = touched(clean)
    found["ordinary"] = {"of": ORDINARY, "touched": len(wrong)}
    if not given.figures_only:
        found["ordinary"]["kinds"] = Counter(redact(text).findings[0].kind for text in wrong)
        found["ordinary"]["texts"] = wrong[:40]
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
