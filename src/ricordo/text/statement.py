"""A sentence as a statement: its words without what changes nothing, in an order in which alike ones stand together.

The line of a statement is what the store sorts facts by: those that share a beginning ("anna lives in ...") are
neighbours, so that the few a new fact could replace are found by one look at an index.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

MAX_STATEMENT_CHARS = 400
"""What is longer tells a story rather than one fact; only its beginning is looked at."""

# Words with what joins them, a minus before a number, dashes that stand for a verb, and every sign that tells
# something: "C++" is not "C", nor is one picture another. What only divides (a comma, quotes, brackets) tells nothing.
_DIVIDES = re.escape(".,!;:'\"«»“”„()[]…—–-。、「」『』・")
_TOKEN = re.compile(
    r"(?:(?<!\S)-(?=\d))?[^\W_]+(?:[-./:@'_][^\W_]+)*|[—–]|(?<=\s)-(?=\s)|:(?=\s)"
    rf"|[^\w\s{_DIVIDES}]|_"
)
_APOSTROPHE = re.compile("[’ʼ]")

_FILLERS = frozenset(
    ("now", "currently", "presently", "actually", "already", "теперь", "сейчас", "ныне", "нынче", "уже")
)
ARTICLES = frozenset(("a", "an", "the"))
_SPELLINGS = {"favorite": "favourite", "color": "colour", "center": "centre"}
DASHES = frozenset(("—", "–", "-", ":"))
_SILENT = ARTICLES | DASHES

# "John Reed is the head of Acme" says what "the head of Acme is John Reed" says, and is read as that.
_HELD_BY_ONE = (
    "capital|ceo|cto|cfo|president|prime minister|director|head|mayor|king|queen|owner|chair|chairman|chairwoman|"
    "chairperson|captain|coach|leader|manager|author|founder|chief executive officer"
)
_VALUE_FIRST = re.compile(rf"(?P<is>is|was) (?:the )?(?:current |new )?(?:{_HELD_BY_ONE}) of ")
_VALUE_FIRST_RU = re.compile(r"(?P<is>[—–-]) (?:столица|директор|президент|глава|мэр|владелец|капитан) ")
_MOST_VALUE_WORDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The tokens of a sentence as written, and the same folded; `words` runs parallel to `tokens`.

    The line is what equal statements share: articles, punctuation and letter case tell none apart.
    """

    tokens: tuple[str, ...]
    words: tuple[str, ...]
    line: str


@lru_cache(maxsize=4_096)
def statement(text: str) -> Statement:
    """What a sentence says, fillers left out, the value of a role held by one put last.

    >>> statement("Lena Holm is now the CEO of Acme.").line
    'ceo of acme is lena holm'
    """
    begun = _APOSTROPHE.sub("'", unicodedata.normalize("NFKC", text[:MAX_STATEMENT_CHARS]))
    found = [(token, _folded(token)) for token in _TOKEN.findall(begun)]
    tokens = [token for token, word in found if word not in _FILLERS]
    words = [word for _, word in found if word not in _FILLERS]
    if start := _value_first(words):
        verb, rest = tokens[start], tokens[start + 1 :]
        tokens = [*rest, verb, *tokens[:start]]
        words = [_folded(token) for token in tokens]
    line = " ".join([word for word in words if word not in _SILENT])
    return Statement(tokens=tuple(tokens), words=tuple(words), line=line)


@lru_cache(maxsize=65_536)
def _folded(token: str) -> str:
    """Letter case and the dots of ё tell no two words apart; other accents do."""
    word = token.casefold().replace("ё", "е")
    return _SPELLINGS.get(word, word)


def _value_first(words: list[str]) -> int:
    """Where the verb of "<value> is the <role> of <something>" stands, or 0."""
    if "of" not in words and DASHES.isdisjoint(words):
        return 0
    text = " ".join(words)
    for pattern in (_VALUE_FIRST, _VALUE_FIRST_RU):
        for found in pattern.finditer(text):
            place = text[: found.start()].count(" ")
            is_whole_word = found.start() > 0 and text[found.start() - 1] == " "
            if is_whole_word and place <= _MOST_VALUE_WORDS and not _has_verb(words[:place]):
                return place
    return 0


def _has_verb(words: list[str]) -> bool:
    """Whether something before the verb makes it another sentence than "<value> is the <role> of"."""
    return not {"is", "was", "says", "thinks", "that", "if", "who", "not"}.isdisjoint(words)


def statement_line(text: str) -> str:
    """The line a text is sorted by."""
    return statement(text).line
