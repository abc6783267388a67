"""Reveal text that differs from what is shown: invisible characters, look-alike letters, encodings. Pure.

An attacker writes a text in a form that a model understands, but that a rule or a person does not see or recognise.
These forms are decoded here:

- zero-width characters, direction marks, tag characters, variation selectors and combining marks between or instead of
  letters;
- letters of another script or style that look like the usual ones (`confusables.txt`);
- letters separated by blanks, and words split by line breaks, Markdown, table cells, comments or emoji;
- reversed text, and encodings: entities, percent signs, JSON escapes, base64, ROT13.

`readings` returns the text as a model that decodes them reads it. Not covered: other ciphers, other languages,
pictures, and orders that are spread over several memories.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import unquote

from ricordo.text.languages import all_languages, cached

# Tag characters repeat ASCII invisibly. After a black flag they spell a region, as in the flag of Scotland.
_TAGS = re.compile("[\U000e0020-\U000e007e]{2,}")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
_TAG_OFFSET = 0xE0000
_MOST_SHOWN = 8
"""A tag sequence with fewer letters than this is not counted as text."""

# Variation selectors encode bytes: 0 to 15 are FE00 to FE0F, the others E0100 to E01EF.
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")

# Zero-width characters without a use in joining: zero-width spaces and word joiners, direction marks, soft hyphens,
# tags, variation selectors that smuggle bytes. The joiners of Persian and of emoji (200C, 200D) and the selectors of
# emoji (FE0E, FE0F) are kept.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\ufe00-\ufe0d\U000e0000-\U000e0fff]"
)
_JOINERS = re.compile(r"(?<=[A-Za-z\u0400-\u045f])[\u200c\u200d\ufe0e\ufe0f](?=[A-Za-z\u0400-\u045f])")
_SMUGGLED = re.compile("[\u202d\u202e]|(?<=\\w)[\u00ad\u200b\u2060\ufeff](?=\\w)")
_TURNED = re.compile("\u202e([^\u202c\u202e\n]{4,400})")

_LATIN = re.compile("[a-z]")
_BLANKS = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookalikes:
    """Letters of a script that look like Latin ones, and the pattern of words that mix the two."""

    to_latin: Mapping[int, str]
    from_latin: Mapping[int, str]
    letters: re.Pattern[str]
    mixed: re.Pattern[str]

    def in_one_script(self, found: re.Match[str]) -> str:
        """Return a word of mixed scripts in the one script that can write all of it, if there is one."""
        word = found.group()
        latin = word.translate(self.to_latin)
        if latin.isascii():
            return latin
        other = word.translate(self.from_latin)
        return word if _LATIN.search(other) else other


@cached()
def _lookalikes() -> tuple[_Lookalikes, ...]:
    found = []
    for letters in (each.letters for each in all_languages() if each.letters.latin_lookalikes):
        own = f"{letters.inflected}{''.join(letters.latin_lookalikes)}"
        mixed = rf"\b(?=[^\W\d_]*[a-z])(?=[^\W\d_]*[{own}])[^\W\d_]+\b"
        usual = re.compile(f"[{letters.inflected}]") if letters.inflected else re.compile(".")
        found.append(
            _Lookalikes(
                to_latin=str.maketrans(dict(letters.latin_lookalikes)),
                from_latin=str.maketrans(
                    {latin: own for own, latin in letters.latin_lookalikes.items() if usual.match(own)}
                ),
                letters=re.compile(f"[{own}]"),
                mixed=re.compile(mixed),
            )
        )
    return tuple(found)


@cache
def confusables() -> Mapping[str, str]:
    """Map each lower-case ASCII letter, and some symbols, to the characters that look like it."""
    lines = (files("ricordo.text") / "confusables.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(" ") for line in lines if not line.startswith("#"))
    return {char: alike for char, _, alike in pairs}


@cache
def _to_ascii() -> Mapping[int, str]:
    return {ord(each): char for char, alike in confusables().items() if char.isalpha() for each in alike}


@cache
def _strange() -> re.Pattern[str]:
    """Return the pattern of look-alikes that no supported language uses: small capitals, Cherokee, squares."""
    usual = {char for each in all_languages() for char in each.letters.latin_lookalikes}
    written = {chr(code) for code in range(0x370, 0x600)}  # Greek, Cyrillic, Armenian, Hebrew
    strange = {chr(code) for code in _to_ascii()} - usual - written - set("×│〇ı")
    return re.compile(f"[{''.join(map(re.escape, sorted(strange)))}]")


def revealed(text: str) -> str:
    """Return the text as a reader perceives it, in lower case: hidden text is shown, look-alike letters are replaced,
    blanks are single. Line breaks are kept.

    >>> revealed("Ig\\u200bnore  previ\\u043eus")
    'ignore previous'
    """
    if text.isascii():
        return _BLANKS.sub(" ", text.lower())
    hidden = hidden_text(text)
    plain = _JOINERS.sub("", INVISIBLE.sub("", text))
    folded = _LOOSE_MARKS.sub("", unicodedata.normalize("NFKC", plain).lower())
    for letters in _lookalikes():
        if _LATIN.search(folded) and letters.letters.search(folded):
            folded = letters.mixed.sub(letters.in_one_script, folded)
    return _BLANKS.sub(" ", f"{folded}\n{hidden.lower()}" if hidden else folded)


# Combining marks after a letter that do not compose with it.
_LOOSE_MARKS = re.compile("(?<=[a-z\u0430-\u045f\u00df-\u00ff])[\u0300-\u036f\u20d0-\u20ff]+")


def hidden_text(text: str) -> str:
    """Return the text spelled by tag characters and variation selectors; "" if only flags and emoji use them."""
    if text.isascii():
        return ""
    found = "".join(_TAGS.findall(_FLAG.sub("", text)))
    tags = "".join(chr(ord(char) - _TAG_OFFSET) for char in found)
    return " ".join(filter(None, (tags, *map(_bytes_of, _SELECTORS.findall(text)))))


def _bytes_of(selectors: str) -> str:
    codes = ((ord(char) - 0xFE00) if char < "\U00010000" else (ord(char) - 0xE0100 + 16) for char in selectors)
    return bytes(codes).decode("utf-8", "replace")


def hides_text(text: str) -> bool:
    """Return whether words are written in invisible characters. No keyboard or editor does that by accident."""
    return len(hidden_text(text)) >= _MOST_SHOWN


def is_disguised(text: str) -> bool:
    """Return whether words are split by zero-width characters, reversed, or spelled in letters of two scripts."""
    if text.isascii():
        return False
    return _SMUGGLED.search(text) is not None or any(each.mixed.search(text.lower()) for each in _lookalikes())


class _Folds(dict[int, str]):
    """Map each character to the single ASCII letter or symbol that it looks like, in lower case."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKC", chr(code)).lower()
        plain = plain if len(plain) == 1 else chr(code)
        self[code] = _to_ascii().get(ord(plain), _SIGNS.get(plain, plain))
        return self[code]


_SIGNS = {"ː": ":", "˸": ":", "։": ":", "∶": ":", "ꓽ": ":", "꞉": ":", "᛬": ":", "⁚": ":"}
_FOLDS = _Folds()


def folded_letters(text: str) -> str:
    """Return a text of the same length in lower case, with look-alike letters replaced by ASCII."""
    if text.isascii():
        return text.lower()
    return text.translate(_FOLDS)


# ---- readings

_MOST_DECODED = 20_000
_HYPHEN = re.compile(r"[-_.+/]")
_LEAST_JOINED = 3
_MARKUP = re.compile(
    r"[*_`~|]+|^[ \t]*(?:[>#]+|[-+•]|\d{1,3}[.)])[ \t]+|<!--|-->|[\U0001f000-\U0001faff\u2600-\u27bf]\ufe0f?",
    re.MULTILINE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?:;…。！？：；])[ \t]*\n")
_SPACED = re.compile(r"(?<!\w)(?:[^\W_] ){3,}[^\W_](?!\w)")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[^%\s]{0,40}){2}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[a-zA-Z]{2,8});")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([nrt\"/]))")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{20,4000}={0,2}(?![A-Za-z0-9+/_=-])")
_EAST_ASIAN_BREAK = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\s+(?=[\u3000-\u9fff\uff00-\uffef])")


def readings(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the readings of a text, and whether decoding was needed: first the text as shown (`revealed`), then with
    wrapped lines joined and without Markdown, then each other form.
    """
    yield revealed(text), False
    seen = {text}
    for form, is_decoded in _forms(text):
        if form not in seen:
            seen.add(form)
            yield revealed(form), is_decoded


def _forms(text: str) -> Iterator[tuple[str, bool]]:
    yield _in_one_line(text), False
    if " " not in text and len(_HYPHEN.findall(text)) >= _LEAST_JOINED:
        yield _HYPHEN.sub(" ", text), False
    for form in _decodings(text):
        yield form, True
        yield _in_one_line(form), True


def _decodings(text: str) -> Iterator[str]:
    if _SPACED.search(text):
        yield _SPACED.sub(lambda found: found.group().replace(" ", ""), text)
    part = text[:_MOST_DECODED]
    if (plain := decoded(part)) != part:
        yield plain
        yield decoded(plain)
    if "rot13" in part.lower() or "rot-13" in part.lower():
        yield codecs.encode(part, "rot13")
    if text.isascii():
        return
    if turned := _TURNED.findall(text):
        yield " ".join(each[::-1] for each in turned)
    folded = unicodedata.normalize("NFKC", text).lower()
    if _strange().search(folded):
        yield folded.translate(_to_ascii())


def _in_one_line(text: str) -> str:
    """Return a text without Markdown and with wrapped lines joined. Line breaks after a sentence are kept."""
    if "\n" not in text and not _MARKUP.search(text):
        return text
    plain = _MARKUP.sub(" ", text)
    joined = " \n".join(" ".join(part.split()) for part in _SENTENCE_END.split(plain))
    return _EAST_ASIAN_BREAK.sub("", joined)


def decoded(text: str) -> str:
    """Return a text with percent signs, entities, JSON escapes and base64 decoded."""
    if "%" in text and _PERCENT.search(text):
        text = unquote(text, errors="replace")
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    return _BASE64.sub(_from_base64, text)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code and not 0xD800 <= int(code, 16) < 0xE000 else " "


def _from_base64(found: re.Match[str]) -> str:
    """Return the text that a base64 run encodes, or the run itself if it does not encode text."""
    run = found.group().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = base64.b64decode(run + "=" * (-len(run) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return found.group()
    return plain if plain.isprintable() or "\n" in plain else found.group()
