"""Find credentials stated in words: `my password is hunter2`, `пароль от почты X1y2`, `api_key=...`, `the PIN is 4821`.

First a key word is found, then the words after it are tried: the words after `:`, `=` or `is`, and, without such a
sign, those after the key itself or after `for the router`. Each step reads a window of fixed length after the key, so
the time is linear for every text. The decision combines the form of the sentence with the look of the value: after `my
password:` an ordinary word is enough, after `password for` some words and no sign it must mix letters and digits, after
`token is` it must look generated. The words are in `secrets.toml`.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise
from typing import Any, Literal

from ricordo.text.languages import all_languages, cached


@cache
def table() -> dict[str, Any]:
    """Return the contents of `secrets.toml`."""
    return tomllib.loads((files("ricordo.text.secrets") / "secrets.toml").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(table()["words"][name].split())


def _pattern(name: str) -> str:
    found = table()["patterns"][name]
    return found if isinstance(found, str) else "|".join(found)


_OWNERS, _PREPOSITIONS, _ORDINARY = _words("owners"), _words("prepositions"), _words("ordinary")
_ACCOUNTS = _words("accounts")
_ORDINARY_ENDINGS = tuple(_words("ordinary_endings"))

# ---- values: is this piece of text a credential, or only something in its place? Each check reads a bounded piece
# (callers cut at `MAX_VALUE`), so none is slow.

# The first hundred characters show what a key is; of the rest, only the length is used.
MAX_VALUE = 96
_RUN = re.compile(r"[^\s\"'`<>]*+")
EAST_ASIAN = re.compile(r"[\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")


def _value(name: str, *more: str) -> re.Pattern[str]:
    return re.compile("|".join([*table()["values"][name], *more]), re.IGNORECASE)


_PLACEHOLDER, _CODE, _PLACE = _value("placeholder"), _value("code"), _value("place")
_QUANTITY = _value("quantity", rf"\d+(?:{_pattern('number_endings')})$")
_SYMBOLS = frozenset("!@#$%^&*+?~|=\\_§€£")
_RANDOM = re.compile(r"[A-Za-z0-9_\-+/=.~%:|]+$")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE)


def end_of_run(text: str, start: int, end: int) -> int:
    """Return the actual end of the value at `text[start:end]` if its pattern stopped at `MAX_VALUE`; else `end`."""
    run = _RUN.match(text, end) if end - start == MAX_VALUE else None
    return run.end() if run else end


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder in documentation or a template: `<YOUR_API_KEY>`, `${TOKEN}`, `xxxx`."""
    return _PLACEHOLDER.match(value) is not None or len(set(value)) < 3


def is_real(value: str) -> bool:
    return not is_placeholder(value)


def is_code(value: str) -> bool:
    """Return whether a value is an expression or a type: `input()`, `settings.DB_PASSWORD`, `str`."""
    # Names are not longer, and the pattern may read each character twice.
    return len(value) <= 64 and _CODE.match(value) is not None


def is_slug(value: str) -> bool:
    """Return whether a value is words and short numbers joined by `-._/`; random keys mix both in a piece."""
    pieces = re.split(r"[-_./:]", value)
    return all(
        (p.isalpha() and (p.islower() or p.istitle() or p.isupper())) or (p.isdigit() and len(p) < 5) or not p
        for p in pieces
    )


def is_strong(value: str) -> bool:
    """Return whether a value looks like a password in any context: 4 or more characters, not letters only."""
    if len(value) < 4 or _PLACE.match(value) or _QUANTITY.match(value):
        return value.isdigit() and len(value) >= 4
    has_digit = any(c.isdigit() for c in value)
    has_symbol = not _SYMBOLS.isdisjoint(value)
    has_hump = any(a.islower() and b.isupper() for a, b in pairwise(value))
    return has_digit or has_symbol or has_hump or value.count("-") >= 3


def is_plain_password(value: str) -> bool:
    """Return whether a value is a single word that may be a password: letters only, and neither adjective nor place."""
    word = value.lower()
    return len(word) >= 4 and word.replace("-", "").isalpha() and not _is_ordinary(word)


def _is_ordinary(word: str) -> bool:
    return word in _ORDINARY or word.endswith(_ORDINARY_ENDINGS)


def is_passphrase(value: str) -> bool:
    """Return whether a quoted value is two to eight words that do not begin like a remark ("too short", "not set")."""
    words = value.lower().split()
    return 2 <= len(words) <= 8 and words[0] not in _ORDINARY and all(w.isalnum() for w in words)


def is_bare_passphrase(value: str) -> bool:
    """Return whether unquoted words may be a passphrase: four or more, no function word, at most one ordinary."""
    words = value.lower().split()
    if len(words) < _LEAST_PHRASE_WORDS or not _silent_words().isdisjoint(words):
        return False
    return sum(map(_is_ordinary, words)) <= 1


@cached()
def _silent_words() -> frozenset[str]:
    return all_languages().words(lambda each: each.function_words)


def is_uuid(value: str) -> bool:
    return _UUID.match(value) is not None


def is_random(value: str, *, shortest: int) -> bool:
    """Return whether a value looks generated: long, characters of keys only, letters and digits well mixed."""
    if len(value) < shortest or not _RANDOM.match(value) or is_slug(value):
        return False
    if _PLACE.match(value) or _QUANTITY.match(value):
        return False
    if _UUID.match(value):
        return True
    changes = sum(_sort(a) != _sort(b) for a, b in pairwise(value))
    has_digit = any(c.isdigit() for c in value)
    if not has_digit:
        return len(value) >= 20 and changes >= len(value) // 4
    return changes >= max(2, len(value) // 8)


def _sort(char: str) -> int:
    """Return the class of a character: digit, upper, lower or other. Changes within a word are rare except in keys."""
    return 0 if char.isdigit() else 1 if char.isupper() else 2 if char.isalpha() else 3


# ---- families

Sign = Literal["=", "is", "to", " "]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mention:
    """A value, and how the sentence introduces it.

    `sign` is what precedes the value: `=` for `:` and similar, `is` for a copula, `to` for one that is also common
    elsewhere, a space for nothing. `between` is the text from the key to the sign, `lead` up to 24 characters before
    the key. `is_bare_key`: the key word is `key`, not `api key` or similar. `is_short_key`: the key word is a short one
    that also means something else: `pass`, `contra`.
    """

    value: str
    sign: Sign
    is_quoted: bool
    between: str
    lead: str
    is_bare_key: bool
    is_short_key: bool
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One kind of statement: the words that introduce it, the pattern of its value, and the check of a mention.

    Every text with a key contains one of `starts`. If `may_be_quoted`, any text between quotes may be the value.
    """

    kind: str
    keys: re.Pattern[str]
    value: re.Pattern[str]
    accepts: Callable[[_Mention], bool]
    starts: tuple[str, ...]
    may_be_quoted: bool


_ENDS_CLAUSE = re.compile(rf"[\"'»”“’`*]*(?:\s*(?:$|[\n.,;:!?)—–|])|\s+(?:{_pattern('ends_clause')})\s)")
_UNITS = re.compile(_pattern("units"))
_PRODUCT = re.compile(rf"{_pattern('products')}$", re.IGNORECASE)
_CAMEL_CASE = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+$")


def _is_elsewhere(said: _Mention) -> bool:
    """Return whether a comma starts another clause between key and value: the value then belongs elsewhere."""
    return said.between.count(",") == 1 and not said.between.rstrip().endswith(",")


def _accepts_password(said: _Mention) -> bool:
    value = said.value
    if _is_elsewhere(said) or (said.is_short_key and not _is_of_account(said)):
        return False
    if is_placeholder(value) or EAST_ASIAN.search(value) or _UNITS.match(said.after):
        return False
    if said.sign in ("=", " ") and is_code(value):
        return False
    is_near = _is_target(said.between)
    if said.is_quoted and " " in value:
        return is_near and said.sign in ("=", "is") and is_passphrase(value)
    if said.is_quoted and is_near:
        return is_strong(value) or (is_plain_password(value) and _ENDS_CLAUSE.match(said.after) is not None)
    if is_strong(value):
        return is_near and _mixes(said) if said.sign == " " else is_near or not value.isdigit()
    return is_near and said.sign in ("=", "is") and _is_plainly_said(said)


def _is_of_account(said: _Mention) -> bool:
    """Return whether a short word for a password says what it opens, and the value mixes letters with others."""
    words = {*said.lead.split()[-1:], *said.between.split()}
    return not _ACCOUNTS.isdisjoint(words) and is_strong(said.value) and not said.value.isdigit()


def _is_plainly_said(said: _Mention) -> bool:
    """Return whether the sentence states a password: `my password is sunshine`, but not `a password is mandatory`."""
    if not is_plain_password(said.value) or not _ENDS_CLAUSE.match(said.after):
        return False
    return said.sign == "=" or not _OWNERS.isdisjoint(said.lead.split()[-2:]) or bool(said.between.strip())


def _mixes(said: _Mention) -> bool:
    """Return whether a value mixes letters with digits or symbols: without a sign, only that marks a password."""
    if said.value.isdigit():
        return len(said.value) >= 6
    return not _PRODUCT.match(said.value) and not _CAMEL_CASE.match(said.value)


# `the parcel sha256:...`: the words introduce a hash or an address, not a credential.
_NAMES_VALUE = re.compile(r"(?:sha-?\d+|md5|crc\d*|uuid|hash|digest|checksum|fingerprint|commit|[\da-f]{1,4})\W*$")


def _accepts_key(said: _Mention) -> bool:
    if said.between.strip() and (_is_elsewhere(said) or _NAMES_VALUE.search(said.between)):
        return False
    if said.is_bare_key and (said.sign != "=" or said.between.strip()):
        return False
    is_assigned = said.sign == "=" and _is_target(said.between)
    shortest = 24 if said.is_bare_key else 8 if is_assigned else 16
    return is_random(said.value, shortest=shortest) and not is_placeholder(said.value) and not is_code(said.value)


def _accepts_digits(said: _Mention) -> bool:
    if _UNITS.match(said.after):
        return False
    return _is_target(said.between) or said.sign != " "


def _is_target(between: str) -> bool:
    """Return whether the text between key and value is empty or names the target: `for the NAS`, `от почты`."""
    first, _, rest = between.strip(" \t*_\"'").partition(" ")
    return not first or (first in _PREPOSITIONS and bool(rest.strip())) or first.startswith(("d'", "l'"))


def _family(kind: str, name: str, value: str, accepts: Callable[[_Mention], bool]) -> Family:
    return Family(
        kind=kind,
        starts=tuple(table()["words"][f"{name}_stems"].split()),
        keys=re.compile(_pattern(f"{name}_keys")),
        value=re.compile(value),
        accepts=accepts,
        may_be_quoted=value == _VALUE,
    )


_VALUE = rf"(?P<secret>\S{{3,{MAX_VALUE}}}+)"
_KEY_VALUE = rf"(?:(?:basic|bearer|token|apikey|bot)\s+)?(?P<secret>[^\s\"'`<>,;&]{{8,{MAX_VALUE}}}+)"
_DOOR_CODE = (
    r"\d{1,2}(?:-\d{1,2}){2,3}|[#*]?\d{3,8}[#*]?|[^\W\d_]{1,2}\d{3,6}[#*]?|\d{3,6}[^\W\d_]{1,2}[#*]?"
    rf"|\d{{1,4}}(?:[{_pattern('keypad')}]|[^\W\d_]{{1,2}})\d{{1,6}}[#*]?"
)


def _digits(pattern: str) -> str:
    return rf"(?P<secret>{pattern})(?![\w]|[.,:/-]\d)"


WORD_FAMILIES = (
    _family("password", "password", _VALUE, _accepts_password),
    _family("api key", "api", _KEY_VALUE, _accepts_key),
)
DIGIT_FAMILIES = (
    _family("one-time code", "one_time", _digits(r"g-\d{6}|\d{3}[ -]\d{3}|\d{4,8}"), _accepts_digits),
    _family("card code", "card_code", _digits(r"\d{3,4}"), _accepts_digits),
    _family("pin", "pin", _digits(r"\d{4,8}"), _accepts_digits),
    _family("access code", "access_code", _digits(_DOOR_CODE), _accepts_digits),
)

# ---- statements

# Six words reach "the password that I use for the router is"; a longer gap rarely belongs to the key.
_WINDOW = 64
_MARK = r"[\"'`*_”»)]{0,3}\s{0,3}(?P<mark>:=|=>|->|[:：=→]|[—–]|-(?=\s))\s{0,3}[*_]{0,2}\s{0,3}"
_COPULA = rf"(?:\s{{1,3}}(?P<copula>{_pattern('copulas')})(?:\s{{0,2}}[:—–-])?|['’]s)\s{{1,3}}"
_CJK = r"\s?(?:是|为|為|は|이|가|은|는)\s?[:：]?\s?"
_SIGNS = re.compile(f"{_MARK}|{_COPULA}|{_CJK}")
_NEW_SENTENCE = re.compile(r"[.!?;]\s|\n|[。！？]")
_OPENING = frozenset("\"'«“„‘`")
# Up to the closing quote. It must end a word, because an apostrophe inside a word is the same character.
_QUOTED = re.compile(r"(?P<secret>[^\n]{3,128}?)[\"'»”“’`](?!\w)")
_TRAILING = ".,;:?)]}>»”’\"'`。，！？、；）」"
# Lower-case words to the end of the clause; a window is cut after `MAX_VALUE` characters.
_BARE_PHRASE = re.compile(r"(?P<secret>[^\W\d_]{3,12}(?: [^\W\d_]{3,12}){3,7})(?=\s*(?:$|[\n.,;:!?)]))")
_LEAST_PHRASE_WORDS = 4
_BEFORE_EAST_ASIAN = re.compile(rf"([!-~]{{4,}})(?={EAST_ASIAN.pattern})")
# `password-reset`, `token.py`, `key/value`: another word that begins like a key.
_OTHER_WORD = re.compile(r"[-/.&?]\w")
_GAP = re.compile(r"[\"'*_]{0,2}[ \t]{1,3}")
_PREPOSITION = re.compile(r"[dl]'|\w{1,12}")
_KEY_HEADS = re.compile(_pattern("key_heads"))
# Room for two words before the key.
_LEAD = 24


def find_said(family: Family, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the values that `family` accepts in `text`, in order and without overlap.

    Args:
        lowered: `text` in lower case and of the same length.
    """
    keys = family.keys.finditer(lowered)
    key = next(keys, None)
    done = 0
    while key is not None:
        following = next(keys, None)
        # A window ends where the next key begins, so windows never overlap.
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
    """Yield where a value could start after a key that ends at `start`: after each sign, then after bare words."""
    stop = _NEW_SENTENCE.search(lowered, start, end)
    # Only the sign must be in this sentence. The value may be on the next line ("Password:\nhunter2").
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
    if preposition and preposition.group() in _PREPOSITIONS:
        for space in islice(_GAP.finditer(lowered, preposition.end(), limit), 1, 5):
            yield space.end(), " ", lowered[start : space.start()]


def _judge(
    family: Family, text: str, lowered: str, *, key: re.Match[str], at: int, sign: Sign, between: str
) -> tuple[int, int] | None:
    is_quoted = text[at : at + 1] in _OPENING
    if family.may_be_quoted and sign in ("=", "is") and not is_quoted and _is_target(between):
        phrase = _BARE_PHRASE.match(text, at, min(len(text), at + MAX_VALUE))
        if phrase and phrase["secret"].islower() and is_bare_passphrase(phrase["secret"]):
            return phrase.span("secret")
    found = (_QUOTED.match(lowered, at + 1) if is_quoted and family.may_be_quoted else None) or family.value.match(
        lowered, at + is_quoted
    )
    if found is None:
        return None
    start, end = found.span("secret")
    value = _trim(text[start:end])
    lead = lowered[max(0, key.start() - _LEAD) : key.start()]
    said = _Mention(
        value=value,
        sign=sign,
        is_quoted=is_quoted,
        between=between,
        lead=lead,
        is_bare_key=key.group() == "key" and _KEY_HEADS.search(lead) is None,
        is_short_key=key.groupdict().get("short") is not None,
        after=lowered[start + len(value) : start + len(value) + 24],
    )
    if not family.accepts(said):
        return None
    return start, start + len(value) if end - start < MAX_VALUE else end_of_run(text, start, end)


def _trim(value: str) -> str:
    """Remove the punctuation of the sentence, and Chinese or Japanese text that follows without a space."""
    tail = _BEFORE_EAST_ASIAN.match(value)
    return (tail[1] if tail else value).rstrip(_TRAILING)
