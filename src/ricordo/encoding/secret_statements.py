"""Credentials said in words: `my password is hunter2`, `пароль от почты X1y2`, `api_key=...`, `the PIN is
4821`.

A key word is found, then the words after it are tried: what follows `:`, `=` or `is`, and, where no such
sign stands there, what follows the key itself or `for the router`. Everything looks at a window of fixed
length after the key, so the time is linear in the text whatever stands in it.
"""

import re
from collections.abc import Iterator

from ricordo.encoding import secret_words as words
from ricordo.encoding.secret_families import Family, Said, Sign
from ricordo.encoding.secret_values import EAST_ASIAN, MAX_VALUE

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
_RUN = re.compile(r"\S*+")
_WORDS_BEFORE = re.compile(r"(?:([^\s:;,.(]+)[\s\"'*_-]{1,3})?([^\s:;,.(]+)[\s\"'*_-]{1,3}$")


def find_said(family: Family, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Spans of the values that `family` accepts in `text`, in order of their keys; spans may repeat.

    Args:
        lowered: `text` in lower case and of the same length.
    """
    for key in family.keys.finditer(lowered):
        if _OTHER_WORD.match(lowered, key.end()):
            continue
        for at, sign, between in _signs_after(lowered, key.end()):
            span = _judge(family, text, lowered, key=key, at=at, sign=sign, between=between)
            if span is not None:
                yield span
                break


def _signs_after(lowered: str, start: int) -> Iterator[tuple[int, Sign, str]]:
    """Where a value could start after the key that ends at `start`: after each sign, then after the bare
    words."""
    end = start + _WINDOW
    stop = _NEW_SENTENCE.search(lowered, start, end)
    # Only the sign must stand in this sentence: the value may be on the next line ("Password:\nhunter2").
    limit = stop.start() if stop else end
    for sign in _SIGNS.finditer(lowered, start, end):
        if sign.start() > limit:
            break
        kind: Sign = "=" if sign["mark"] else "to" if sign["copula"] in ("to", "on") else "is"
        yield sign.end(), kind, lowered[start : sign.start()]
    for gap in re.finditer(r"[ \t]{1,3}", lowered[start : min(limit, len(lowered))]):
        yield start + gap.end(), " ", lowered[start : start + gap.start()]


def _judge(
    family: Family, text: str, lowered: str, *, key: re.Match[str], at: int, sign: Sign, between: str
) -> tuple[int, int] | None:
    is_quoted = text[at : at + 1] in _OPENING
    found = (
        _QUOTED.match(lowered, at + 1) if is_quoted and family.may_be_quoted else None
    ) or family.value.match(lowered, at + is_quoted)
    if found is None:
        return None
    start, end = found.span("secret")
    value = _trim(text[start:end])
    said = Said(
        value=value,
        key=key.group(),
        sign=sign,
        is_quoted=is_quoted,
        between=between,
        before=_words_before(lowered, key.start()),
        after=lowered[start + len(value) : start + len(value) + 24],
    )
    return (start, _run_end(text, start, start + len(value))) if family.accepts(said) else None


def _trim(value: str) -> str:
    """Without the punctuation of the sentence, and without the Chinese or Japanese that follows with no
    space."""
    tail = _BEFORE_EAST_ASIAN.match(value)
    return (tail[1] if tail else value).rstrip(_TRAILING)


def _run_end(text: str, start: int, end: int) -> int:
    """A value longer than `MAX_VALUE` was judged by its beginning; all of it is the secret."""
    if end - start < MAX_VALUE - len(_TRAILING):
        return end
    run = _RUN.match(text, end)
    return run.end() if run else end


def _words_before(lowered: str, start: int) -> tuple[str, ...]:
    found = _WORDS_BEFORE.search(lowered[max(0, start - 24) : start])
    return tuple(word for word in found.groups() if word) if found else ()
