"""From text to index terms. The same function serves what is stored and what is asked, so they always meet.

A word is folded (compatibility form, case, accents of Latin and Greek) and stemmed by the Snowball algorithm
of its script. The language of a Latin word is not guessed: one stemmer for all Latin words is a little
rough on French, and the same on both sides. Chinese, Japanese and Korean have no spaces and are cut into pairs.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from ricordo.text.word_cache import ByWord

MAX_WORD_CHARS = 64
"""A longer run of letters is a key, a hash or a data URL: it is cut, so that it cannot bloat the index."""

_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")
_PLAIN_WORD = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")  # the same within ASCII
# ASCII in lower case with nothing between words but blanks; apostrophes stay, for some stand inside words.
_APART = bytes(ord(chr(code).lower()) if chr(code).isalnum() or chr(code) == "'" else 32 for code in range(128)) * 2
_ASCII = re.compile(r"[a-z0-9]+\Z")
_PARTS = ByWord(_PLAIN_WORD.findall)
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fa1f]+")
_POSSESSIVE = re.compile(r"['’ʼ]s?\Z|['’ʼ]s(?=['’ʼ])")
_APOSTROPHES = re.compile(r"['’ʼ]")

_STEMMERS = {
    "LATIN": "english",
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "ARMENIAN": "armenian",
    "DEVANAGARI": "hindi",
    "TAMIL": "tamil",
}
_UNEVEN_NAMES = {"павел": "павл", "лев": "льв", "льва": "льв", "льву": "льв", "львом": "льв"}
_local = threading.local()


def raw_words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and figures, also around an apostrophe."""
    if not text.isascii():
        return _WORD.findall(text.lower())
    words = text.encode().translate(_APART).decode().split()
    if "'" not in text:
        return words
    found: list[str] = []
    for word in words:
        if "'" in word:
            found += _PARTS[word]
        else:
            found.append(word)
    return found


def index_terms(text: str, words: list[str] | None = None) -> list[str]:
    """The terms of `text` in order, repeats included. Any string is accepted; unpaired surrogates are dropped.

    Args:
        words: its `raw_words`, where they are known already.

    >>> index_terms("Sarah's peanuts, Ёлки")
    ['sarah', 'peanut', 'елк']
    """
    words = raw_words(text) if words is None else words
    if text.isascii():
        return list(map(_TERMS.__getitem__, words))
    terms: list[str] = []
    for word in words:
        if word.isascii():
            terms.append(_TERMS[word])
        else:
            terms.extend(_foreign_terms(word))
    return terms


def _foreign_terms(word: str) -> list[str]:
    """A word outside ASCII: folded first, then cut into pairs where it is CJK."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    terms: list[str] = []
    end = 0
    for run in _CJK.finditer(folded):
        terms.extend(_TERMS[part] for part in _WORD.findall(folded[end : run.start()]))
        terms.extend(_pairs(run.group()))
        end = run.end()
    terms.extend(_TERMS[part] for part in _WORD.findall(folded[end:]))
    return [term for term in terms if term]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _term(word: str) -> str:
    """One folded and stemmed word."""
    word = _POSSESSIVE.sub("", word[:MAX_WORD_CHARS])
    word = _APOSTROPHES.sub("", word)
    if _ASCII.match(word):
        return _stem("english", word) if not word.isdigit() else word
    script = _script(word)
    return _stem(_STEMMERS.get(script, ""), _without_accents(word, script))


_TERMS = ByWord(_term)


def _script(word: str) -> str:
    """The first word of a letter's Unicode name is its script: LATIN, CYRILLIC, ..."""
    for char in word:
        if char.isalpha():
            return unicodedata.name(char, "").partition(" ")[0]
    return ""


def _without_accents(word: str, script: str) -> str:
    """Accents are optional in Latin and Greek spelling; in Cyrillic only ё is (й is a letter of its own)."""
    if script == "CYRILLIC":
        return word.replace("ё", "е")
    if script not in ("LATIN", "GREEK"):
        return word
    bare = "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
    return bare.replace("ß", "ss").replace("ø", "o").replace("ł", "l").replace("æ", "ae")


def _stem(algorithm: str, word: str) -> str:
    """A stemmer object is not thread-safe, so each thread has its own."""
    if not algorithm:
        return word
    stemmers: dict[str, Stemmer.Stemmer] | None = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    if algorithm not in stemmers:
        stemmers[algorithm] = Stemmer.Stemmer(algorithm)
    stem = stemmers[algorithm].stemWord(word)
    return stem or word


def name_terms(text: str) -> list[str]:
    """Like `index_terms`, but Latin words are folded only: the alias "Express" is not the word "expression".

    Cyrillic and other inflected scripts stay stemmed, so that "Сашу" is Саша.
    """
    terms: list[str] = []
    for word in _WORD.findall(text.lower()):
        bare = word[:MAX_WORD_CHARS]
        if not bare.isalnum():  # it has an apostrophe
            bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", bare))
        if bare.isascii():
            terms.append(bare)
        elif (script := _script(bare)) == "LATIN":
            terms.append(_without_accents(bare, script))
        else:
            terms.extend(map(_name_stem, _foreign_terms(word)))
    return terms


def _name_stem(stem: str) -> str:
    """The stemmer leaves Андрея and Андрей apart, and knows nothing of the vowel that comes and goes in Павел."""
    if len(stem) > 3 and stem.endswith("е"):
        return stem[:-1]
    return _UNEVEN_NAMES.get(stem, stem)


class Token(NamedTuple):
    """A word of a text as names are looked for: its term, and itself folded but not stemmed.

    `follows` is whether it goes on in a sentence, so that a capital letter means something.
    """

    term: str
    written: str
    is_capital: bool
    follows: bool


_ENDS = re.compile(r"[.!?:\n…。！？]")


def name_tokens(text: str) -> list[Token]:
    """The words of a text in order. Chinese, Japanese and Korean come in pairs of characters, as in `name_terms`."""
    tokens: list[Token] = []
    end = 0
    for found in _WORD.finditer(text):
        word = found.group()
        is_capital = word[0].isupper()
        follows = end > 0 and not _ENDS.search(text, end, found.start())
        end = found.end()
        bare = fold_word(word.lower())
        if bare.isascii():
            tokens.append(Token(bare, bare, is_capital, follows))
            continue
        terms = name_terms(word)
        whole = len(terms) == 1
        tokens.extend(Token(term, bare if whole else term, is_capital, follows) for term in terms)
    return tokens


@lru_cache(maxsize=16_384)
def fold_word(word: str) -> str:
    """One lower-case word without its accents, possessive ending and apostrophes."""
    bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", word[:MAX_WORD_CHARS]))
    if bare.isascii():
        return bare
    bare = unicodedata.normalize("NFKC", bare).casefold()
    return _without_accents(bare, _script(bare))


@lru_cache(maxsize=4_096)
def name_key(name: str) -> str:
    """A name folded to one string: what aliases are looked up by."""
    return " ".join(name_terms(name))
