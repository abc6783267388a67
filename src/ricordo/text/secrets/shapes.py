"""Credentials known by their surroundings rather than their own letters: URLs, headers, commands, word
lists, cards.

All patterns here run over the lower-cased text and have the secret as group `secret`; repeats are bounded,
so each attempt costs a constant.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ricordo.text.secrets import words
from ricordo.text.secrets.values import MAX_VALUE, is_placeholder, is_random, is_strong, passes_luhn


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A pattern over lower-cased text, the literals one of which must occur, and the decision on the value
    found."""

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


def _is_real(value: str) -> bool:
    return not is_placeholder(value)


def _is_header_value(value: str) -> bool:
    return _is_real(value) and (is_random(value, shortest=12) or is_strong(value))


def _is_bearer(value: str) -> bool:
    return _is_real(value) and is_random(value, shortest=20)


def _is_strong(value: str) -> bool:
    return _is_real(value) and is_strong(value) and not (value.isdigit() and len(value) < 6)


# English glue that no BIP-39 list holds: a run of words with one of these is a sentence about seed phrases.
_GLUE = frozenset(
    [
        "the",
        "and",
        "are",
        "was",
        "were",
        "for",
        "not",
        "your",
        "our",
        "his",
        "her",
        "has",
        "have",
        "had",
        "but",
        "from",
        "its",
        "which",
        "who",
    ]
)


def _is_word_list(value: str) -> bool:
    return _GLUE.isdisjoint(re.findall(r"[a-z]+", value.lower()))


# Prefixes and lengths of the networks that issue cards (ISO/IEC 7812-1 register, as published by them).
_NETWORKS = re.compile(
    r"4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|2720\d{12}|220[0-4]\d{12,15}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|(?:5[06-8]|6[37])\d{14,17}"
)


def _is_card(value: str) -> bool:
    digits = re.sub(r"[ -]", "", value)
    return _NETWORKS.fullmatch(digits) is not None and passes_luhn(digits) and len(set(digits)) > 1


def _shape(kind: str, starts: str, pattern: str, accepts: Callable[[str], bool] = _is_real) -> Shape:
    return Shape(kind=kind, starts=tuple(starts.split()), pattern=re.compile(pattern), accepts=accepts)


_VALUE = rf"(?P<secret>[^\s\"'`]{{3,{MAX_VALUE}}}+)"
_KEYS_BACKWARD = (
    r"(?:\s?[\w-]{1,16}){0,2}?\s?(?:passwor[dt]|passphrase|passcode|kennwort|mot de passe|contraseña|senha"
    r"|hasło|wachtwoord|пароль)"
)
_IS = r"(?:is|was|это|ist|est|es|è|é|jest|to|är|as|for)"
_ITEM = r"(?:\d{1,2}[.):]\s{0,2})?[a-z]{3,8}"

SHAPES: tuple[Shape, ...] = (
    _shape(
        "url password",
        "://",
        # The last `@` before a slash ends the password, as browsers read it; hence the greedy run.
        r"://[^\s/?#:@\[\"'<>]{0,128}:(?P<secret>[^\s/?#\"'<>]{1,256})@(?=[\w\[.-])",
    ),
    # A line of a leaked list, or how people note an account: address and password.
    _shape(
        "password",
        "@",
        rf"(?<![^\s(\"'])[\w.+-]{{1,64}}+@[\w-]{{1,63}}(?:\.[\w-]{{2,63}}){{1,3}}(?::|\s[/"
        rf"|]\s)(?P<secret>\S{{4,{MAX_VALUE}}}+)",
        _is_strong,
    ),
    _shape(
        "password",
        "passphrase",
        r"passphrase(?:\s(?:is|was)|:|=)\s{1,2}(?P<secret>[a-z]{3,12}(?:[ -][a-z]{3,12}){3,7})(?=$|[\n.,;!])",
        _is_word_list,
    ),
    _shape(
        "authorization header",
        "authoriz",
        rf"authorization[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?(?:(?:basic|bearer|token|apikey|bot"
        rf"|digest)\s{{1,3}})?{_VALUE}",
        _is_header_value,
    ),
    _shape("authorization header", "bearer", rf"(?<![^\W_])bearer\s{{1,3}}{_VALUE}", _is_bearer),
    _shape("password", "wifi:", r"wifi:(?:[a-z]:[^;\n]{0,64};){0,4}p:(?P<secret>(?:\\.|[^;\n\\]){1,128})"),
    _shape(
        "password", "curl", r"curl\s[^\n]{0,120}?(?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:(?P<secret>[^\s\"']{1,128})"
    ),
    _shape("password", "sshpass", rf"sshpass\s{{1,3}}-p\s{{0,3}}[\"']?{_VALUE}"),
    _shape("password", "mysql", r"mysql(?:dump|admin)?\s[^\n]{0,80}?\s-p(?P<secret>[^\s\"'-][^\s\"']{2,127})"),
    _shape(
        "aws secret access key",
        "secret",
        r"(?:aws[-_ ])?secret[-_ ](?:access[-_ ])?key[^\n+/=:]{0,48}[\"']?\s{0,3}(?:[:=]|is|это|ist"
        r"|—)\s{0,3}[\"']?(?P<secret>[a-z0-9+/]{40})"
        r"(?![a-z0-9+/=])",
    ),
    _shape(
        "password",
        "passw passp passc kennwort passe contraseña senha hasło wachtwoord пароль",
        rf"(?<!\S)(?P<secret>\S{{4,64}}+)\s{{1,2}}(?:[—–-]\s)?{_IS}\s(?:my|the|our|a|mein|das|mon|le"
        rf"|mi|la|minha|a|мой|наш)?{_KEYS_BACKWARD}",
        _is_strong,
    ),
    _shape(
        "seed phrase",
        "seed mnemon фраз phrase frase wiederher 助记词 ニーモニック",
        rf"(?:{words.SEED_KEYS})[^\n:=—-]{{0,60}}?(?:[:=：—-]|\s(?:is|are|ist|est|es|это))\s{{0,3}}[\"'«“]?"
        rf"(?P<secret>{_ITEM}(?:[,;]?\s{{1,3}}{_ITEM}(?![a-z])){{11,23}})",
        _is_word_list,
    ),
)
# Shapes made of digits, asked only of a text that has some.
DIGIT_SHAPES: tuple[Shape, ...] = (
    _shape(
        "one-time code",
        "code код",
        r"(?<![\w.,/-])(?P<secret>\d{4,8}|g-\d{6}|\d{3}[ -]\d{3})\s(?:is|—|-|это|ist)\s(?:your|the|my|ваш"
        r"|твой|код|ihr|dein)(?:\s[\w-]{1,16}){0,3}?"
        r"\s?(?:verification|login|security|access|authentication|confirmation|one-time|sign-in"
        r"|подтверждения|входа|bestätigungs)",
        _is_real,
    ),
    # Groups of four, American Express and Diners groups, or one run; a sign or digits around mean a phone,
    # an account, a float.
    _shape(
        "card number",
        "",
        r"(?<![\w+.,/-])(?<!\d )(?P<secret>\d{4}(?:(?P<gap>[ -])\d{4}(?:(?P=gap)\d{4}){2}(?:(?P=gap)"
        r"\d{1,3})?|[ -]\d{6}[ -]\d{4,5}|\d{10,15}))"
        r"(?![\w]|[ .,/-]\d)",
        _is_card,
    ),
)
