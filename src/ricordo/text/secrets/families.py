"""The sorts of credentials said in words, and when a word after `password`, `token` or `PIN` is one.

The decision weighs how the value is led to against how it looks: after `my password:` a plain word will do,
after `password for` some words and no sign it must mix letters and digits, after `token is` it must look
generated.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ricordo.text.secrets import words
from ricordo.text.secrets.values import (
    EAST_ASIAN,
    MAX_VALUE,
    is_code,
    is_passphrase,
    is_placeholder,
    is_plain_password,
    is_random,
    is_strong,
)

Sign = Literal["=", "is", "to", " "]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A value and how the sentence leads to it.

    `sign` is what stands before it: `=` for `:` and its like, `is` for a copula, `to` for one that is common
    elsewhere, a space for nothing. `between` is the text from the key to the sign, `lead` up to 24
    characters before the key. `is_bare_key`: the key word is `key`, and not `api key` or the like.
    """

    value: str
    sign: Sign
    is_quoted: bool
    between: str
    lead: str
    is_bare_key: bool
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One sort of statement: the words that announce it, the shape of its value and the decision.

    One of `starts` occurs in every text that holds a key. `may_be_quoted`: the value may
    be anything between quotes, spaces included.
    """

    kind: str
    keys: re.Pattern[str]
    value: re.Pattern[str]
    accepts: Callable[[Said], bool]
    starts: tuple[str, ...]
    may_be_quoted: bool


_ENDS_CLAUSE = re.compile(
    r"[\"'»”“’`*]*(?:\s*(?:$|[\n.,;:!?)—–|])|\s+(?:and|but|or|user|login|und|et|y|e|и|а|или|oraz|en|och)\s)"
)
_UNITS = re.compile(words.UNITS)
_PRODUCT = re.compile(rf"{words.PRODUCTS}$", re.IGNORECASE)
_CAMEL_CASE = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+$")


def _accepts_password(said: Said) -> bool:
    value = said.value
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


def _is_plainly_said(said: Said) -> bool:
    """`password: sunshine` and `my password is sunshine`, but not `a password is mandatory`."""
    if not is_plain_password(said.value) or not _ENDS_CLAUSE.match(said.after):
        return False
    return said.sign == "=" or not words.OWNERS.isdisjoint(said.lead.split()[-2:]) or bool(said.between.strip())


def _mixes(said: Said) -> bool:
    """With no sign between, only letters next to digits or symbols tell a password from the next word."""
    if said.value.isdigit():
        return len(said.value) >= 6
    return not _PRODUCT.match(said.value) and not _CAMEL_CASE.match(said.value)


def _accepts_key(said: Said) -> bool:
    if said.is_bare_key and (said.sign != "=" or said.between.strip()):
        return False
    is_assigned = said.sign == "=" and _is_target(said.between)
    shortest = 24 if said.is_bare_key else 8 if is_assigned else 16
    return is_random(said.value, shortest=shortest) and not is_placeholder(said.value) and not is_code(said.value)


def _accepts_digits(said: Said) -> bool:
    if _UNITS.match(said.after):
        return False
    return _is_target(said.between) or said.sign != " "


def _is_target(between: str) -> bool:
    """Nothing between key and value, or whose it is: `for the NAS`, `от почты`."""
    first, _, rest = between.strip(" \t*_\"'").partition(" ")
    return not first or (first in words.PREPOSITIONS and bool(rest.strip())) or first.startswith(("d'", "l'"))


def _family(kind: str, starts: str, keys: str, value: str, accepts: Callable[[Said], bool]) -> Family:
    return Family(
        kind=kind,
        starts=tuple(starts.split()),
        keys=re.compile(keys),
        value=re.compile(value),
        accepts=accepts,
        may_be_quoted=value == _VALUE,
    )


_VALUE = rf"(?P<secret>\S{{3,{MAX_VALUE}}}+)"
_KEY_VALUE = rf"(?:(?:basic|bearer|token|apikey|bot)\s+)?(?P<secret>[^\s\"'`<>,;&]{{8,{MAX_VALUE}}}+)"
_NOT_LONGER = r"(?![\w]|[.,:/-]\d)"

WORD_FAMILIES = (
    _family("password", " ".join(words.PASSWORD_STEMS), words.PASSWORD_KEYS, _VALUE, _accepts_password),
    _family("api key", " ".join(words.KEY_STEMS), words.API_KEYS, _KEY_VALUE, _accepts_key),
)
DIGIT_FAMILIES = (
    _family(
        "one-time code",
        "otp 2fa mfa time code код смс одноразов bestät codice código kod kodu 验证码 驗證碼 認証 인증",
        words.ONE_TIME_KEYS,
        rf"(?P<secret>g-\d{{6}}|\d{{3}}[ -]\d{{3}}|\d{{4,8}}){_NOT_LONGER}",
        _accepts_digits,
    ),
    _family(
        "card code",
        "cvv cvc cvn csc code код prüf",
        words.CARD_CODE_KEYS,
        rf"(?P<secret>\d{{3,4}}){_NOT_LONGER}",
        _accepts_digits,
    ),
    _family(
        "pin",
        "pin пин nip geheimzahl 暗証 비밀번호",
        words.PIN_KEYS,
        rf"(?P<secret>\d{{4,8}}){_NOT_LONGER}",
        _accepts_digits,
    ),
    _family(
        "access code",
        "code код combination codice código",
        words.ACCESS_CODE_KEYS,
        rf"(?P<secret>\d{{1,2}}(?:-\d{{1,2}}){{2,3}}|[#*]?\d{{3,8}}[#*]?"
        rf"|\d{{1,4}}[кk*#]\d{{2,6}}[#*]?){_NOT_LONGER}",
        _accepts_digits,
    ),
)
