"""Credentials said in words: `my password is hunter2`, `пароль от почты X1y2`, `api_key=...`, `the PIN is
4821`.

A key word is found, then the words after it are tried: what follows `:`, `=` or `is`, and, where no such
sign stands there, what follows the key itself or `for the router`. Everything looks at a window of fixed
length after the key, so the time is linear in the text whatever stands in it.
"""

import re
from collections.abc import Iterator
from itertools import islice

from ricordo.text.secrets import words
from ricordo.text.secrets.families import Family, Said, Sign
from ricordo.text.secrets.values import EAST_ASIAN, MAX_VALUE, end_of_run

# Six words reach "the password that I use for the router is"; a longer way is rarely about the same thing.
_WINDOW = 64
_MARK = r"[\"'`*_”»)]{0,3}\s{0,3}(?P<mark>:=|=>|->|[:：=→]|[—–]|-(?=\s))\s{0,3}[*_]{0,2}\s{0,3}"
_COPULA = rf"(?:\s{{1,3}}(?P<copula>{words.COPULAS})(?:\s{{0,2}}[:—–-])?|['’]s)\s{{1,3}}"
_CJK = r"\s?(?:是|为|為|は|이|가|은|는)\s?[:：]?\s?"
_SIGNS = re.compile(f"{_MARK}|{_COPULA}|{_CJK}")
_NEW_SENTENCE = re.compile(r"[.!?;]\s|\n|[。！？]")
_OPENING = frozenset("\"'«“„‘`")
# To the closing quote: one that ends a word, for a quote may stand inside as an apostrophe.
_QUOTED = re.compile(r"(?P<secret>[^\n]{3,128}?)[\"'»”“’`](?!\w)")
_TRAILING = ".,;:?)]}>»”’\"'`。，！？、；）」"
_BEFORE_EAST_ASIAN = re.compile(rf"([!-~]{{4,}})(?={EAST_ASIAN.pattern})")
# `password-reset`, `token.py`, `key/value`: another word that only begins like a key.
_OTHER_WORD = re.compile(r"[-/.&?]\w")
_GAP = re.compile(r"[\"'*_]{0,2}[ \t]{1,3}")
_PREPOSITION = re.compile(r"[dl]'|\w{1,12}")
_KEY_HEADS = re.compile(words.KEY_HEADS)
# Room for two words before the key.
_LEAD = 24


def find_said(family: Family, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Spans of the values that `family` accepts in `text`, in order and apart.

    Args:
        lowered: `text` in lower case and of the same length.
    """
    keys = family.keys.finditer(lowered)
    key = next(keys, None)
    done = 0
    while key is not None:
        following = next(keys, None)
        # A window ends where the next key begins: windows never overlap, however dense the keys.
        end = min(key.end() + _WINDOW, following.start() if following else len(lowered))
        if key.start() >= done and not _OTHER_WORD.match(lowered, key.end()):
            for at, sign, between in _places(lowered, key.end(), end):
                span = _judge(family, text, lowered, key=key, at=at, sign=sign, between=between)
                if span is not None:
                    yield span
                    done = span[1]
                    break
        key = following


def _places(lowered: str, start: int, end: int) -> Iterator[tuple[int, Sign, str]]:
    """Where a value could stand after a key that ends at `start`: after each sign, then after bare words."""
    stop = _NEW_SENTENCE.search(lowered, start, end)
    # Only the sign must stand in this sentence: the value may be on the next line ("Password:\nhunter2").
    limit = stop.start() if stop else end
    for sign in _SIGNS.finditer(lowered, start, end):
        if sign.start() > limit:
            break
        kind: Sign = "=" if sign["mark"] else "to" if sign["copula"] == "to" else "is"
        yield sign.end(), kind, lowered[start : sign.start()]
    gap = _GAP.match(lowered, start, limit)
    if gap is None:
        return
    yield gap.end(), " ", ""
    preposition = _PREPOSITION.match(lowered, gap.end(), limit)
    if preposition and preposition.group() in words.PREPOSITIONS:
        for space in islice(_GAP.finditer(lowered, preposition.end(), limit), 1, 5):
            yield space.end(), " ", lowered[start : space.start()]


def _judge(
    family: Family, text: str, lowered: str, *, key: re.Match[str], at: int, sign: Sign, between: str
) -> tuple[int, int] | None:
    is_quoted = text[at : at + 1] in _OPENING
    found = (_QUOTED.match(lowered, at + 1) if is_quoted and family.may_be_quoted else None) or family.value.match(
        lowered, at + is_quoted
    )
    if found is None:
        return None
    start, end = found.span("secret")
    value = _trim(text[start:end])
    lead = lowered[max(0, key.start() - _LEAD) : key.start()]
    said = Said(
        value=value,
        sign=sign,
        is_quoted=is_quoted,
        between=between,
        lead=lead,
        is_bare_key=key.group() == "key" and _KEY_HEADS.search(lead) is None,
        after=lowered[start + len(value) : start + len(value) + 24],
    )
    if not family.accepts(said):
        return None
    return start, start + len(value) if end - start < MAX_VALUE else end_of_run(text, start, end)


def _trim(value: str) -> str:
    """Without the punctuation of the sentence, and without the Chinese or Japanese that follows with no
    space."""
    tail = _BEFORE_EAST_ASIAN.match(value)
    return (tail[1] if tail else value).rstrip(_TRAILING)
