"""Find personal data that a user may keep out of a store: email addresses, phones, cards, accounts, documents.

Numbers with check digits must pass the check. A number without them needs a word before it that names it, such as
"passport"; the words are in the language files.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from ricordo.model import PersonalData
from ricordo.text.languages import all_languages, cached
from ricordo.text.secrets.statements import table

PERSONAL: frozenset[str] = frozenset(get_args(PersonalData))
"""The names that the setting `redact` takes. In the replacement marker, blanks replace the underscores."""

Found = tuple[str, int, int]
"""Kind, start and end."""

_NOT_DIGIT = re.compile(r"\D")
_CLUSTER = re.compile(r"\d(?:[A-Za-z ()./-]{0,3}\d){4}")
"""Five digits near each other. Every number recognised here has them, and few texts do."""

_HAN = r"\u3000-\u9fff"
_CUE = rf"(?:(?<![^\W_])|(?<=[{_HAN}]))(?:{{}})(?:(?![^\W\d_])|(?=[{_HAN}]))[^\d\n+(]{{0,24}}?"
"""A word that names the number after it. At most 24 characters, none of them a digit, may stand between the two."""


def find(text: str, kinds: frozenset[str]) -> Iterator[Found]:
    """Yield the personal data of these kinds in a text, the most specific first; findings may overlap."""
    if "email" in kinds and ("@" in text or _AT.search(text)):
        yield from (("email", *each.span()) for each in _EMAIL.finditer(text))
    if _CLUSTER.search(text) is None:
        return
    if "iban" in kinds:
        yield from (("iban", *span) for span in _ibans(text))
    for form in _forms():
        if form.kind in kinds:
            at = 0
            while match := form.pattern.search(text, at):
                start, end = match.span("value")
                if form.accepts(match["value"]):
                    at = end
                    yield form.kind.replace("_", " "), start, end
                else:
                    at = max(start, match.start()) + 1


_AT = re.compile(r"[(\[](?:at|ät)[)\]]", re.IGNORECASE)
_EMAIL = re.compile(
    r"(?<![\w.+%'-])[\w.%&'+~-]{1,64}(?:@|\s?[(\[](?:at|ät)[)\]]\s?)"
    r"(?:[^\W_](?:[\w-]{0,62}[^\W_])?(?:\.|\s?[(\[](?:dot|punkt)[)\]]\s?)){1,8}[^\W\d_]{2,24}(?![\w@])",
    re.IGNORECASE,
)


# check digits


def _digits(value: str) -> list[int]:
    return [int(char) for char in _NOT_DIGIT.sub("", value)]


def _luhn(value: str) -> bool:
    """Check the check digit of a card number. Source: ISO/IEC 7812-1, annex B."""
    digits = _digits(value)
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (doubled + sum(digits[::-2])) % 10 == 0


def _weighted(digits: list[int], weights: tuple[int, ...]) -> int:
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=False))


def is_card(value: str) -> bool:
    """Return whether the digits of a value are a payment card number."""
    digits = _NOT_DIGIT.sub("", value)
    networks = table()["values"]["card_networks"]
    return re.fullmatch(networks, digits) is not None and _luhn(digits) and len(set(digits)) > 1


def _is_ssn(value: str) -> bool:
    """Check a US social security number: areas 000, 666 and 900 to 999 are never issued. Source: SSA."""
    area, group, serial = re.split(r"[- ]", value)
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def _is_cpf(value: str) -> bool:
    """Check a Brazilian CPF: two check digits modulo 11. Source: Receita Federal."""
    digits = _digits(value)
    checks = [(_weighted(digits[:size], tuple(range(size + 1, 1, -1))) * 10 % 11) % 10 for size in (9, 10)]
    return len(digits) == 11 and checks == digits[9:] and len(set(digits)) > 1


def _is_snils(value: str) -> bool:
    """Check a Russian insurance number (SNILS): a sum with the weights 9 to 1, modulo 101."""
    digits = _digits(value)
    return _weighted(digits[:9], tuple(range(9, 0, -1))) % 101 % 100 == digits[9] * 10 + digits[10]


def _is_dni(value: str) -> bool:
    """Check a Spanish DNI: the letter is the number modulo 23."""
    number = value.upper().replace("-", "").replace(" ", "").replace(".", "")
    plain = number[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(plain) % 23] == number[-1]


def _is_nir(value: str) -> bool:
    """Check a French INSEE number: 97 minus the number modulo 97. Corsica's 2A and 2B count as 19 and 18."""
    number = re.sub(r"\s", "", value).upper().replace("2A", "19").replace("2B", "18")
    return len(number) == 15 and 97 - int(number[:13]) % 97 == int(number[13:])


_ODD = {
    **dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)),
    **dict(
        zip(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
            strict=True,
        )
    ),
}


def _is_codice_fiscale(value: str) -> bool:
    """Check an Italian codice fiscale, modulo 26, with the position values of the decree of 23 December 1976."""
    number = value.upper()
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in number[1:15:2])
    return chr(65 + (sum(_ODD[char] for char in number[0:15:2]) + even) % 26) == number[15]


def _is_pesel(value: str) -> bool:
    """Check a Polish PESEL: weights 1 3 7 9, modulo 10, and a valid month and day."""
    digits = _digits(value)
    month = (digits[2] * 10 + digits[3]) % 20
    total = _weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1))
    return total % 10 == 0 and 1 <= month <= 12 and 1 <= digits[4] * 10 + digits[5] <= 31


def _is_resident_id(value: str) -> bool:
    """Check a Chinese resident id (GB 11643): modulo 11 with the weights of ISO 7064, and a date of birth."""
    body, last = _digits(value[:17]), value[17].upper()
    total = _weighted(body, (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2))
    month, day = body[10] * 10 + body[11], body[12] * 10 + body[13]
    return "10X98765432"[total % 11] == last and 1 <= month <= 12 and 1 <= day <= 31


def _is_rijksregister(value: str) -> bool:
    """Check a Belgian national number: 97 minus the number modulo 97. A 2 is prepended for births from 2000."""
    digits = _NOT_DIGIT.sub("", value)
    number, check = int(digits[:9]), int(digits[9:])
    return check in (97 - number % 97, 97 - (2_000_000_000 + number) % 97)


def _is_ahv(value: str) -> bool:
    """Check a Swiss AHV number by its EAN-13 check digit."""
    digits = _digits(value)
    return _weighted(digits, (1, 3) * 6 + (1,)) % 10 == 0


_DATE = re.compile(r"\d{1,2}[./ -]\d{1,2}[./ -](?:19|20)?\d\d(?!\d)|(?:19|20)\d\d[./ -]\d{1,2}[./ -]\d{1,2}(?!\d)")
_PAIRS = re.compile(r"0\d(?:[ .-]\d\d){4}")
_YEARS = re.compile(r"(?:19|20)\d\d\s?[-/]\s?(?:19|20)?\d\d(?!\d)")


def _is_phone(value: str) -> bool:
    """Return whether a value has 7 to 15 digits (ITU-T E.164), at least three distinct, and is not a date."""
    digits = _digits(value)
    if not 7 <= len(digits) <= 15 or len(set(digits)) < 3:
        return False
    return _PAIRS.fullmatch(value) is not None or not (_DATE.match(value) or _YEARS.match(value))


def _is_said_phone(value: str) -> bool:
    return len(_digits(value)) >= 6 and not (_DATE.match(value) or _YEARS.match(value))


def _is_said_document(value: str) -> bool:
    digits = _digits(value)
    size = len(re.sub(r"[\W_]", "", value))
    return 6 <= size <= 18 and len(digits) >= 5 and len(set(digits)) > 2 and not _DATE.match(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    kind: PersonalData
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


_START, _END = r"(?<![\w+.,:/@#-])(?<!\d )", r"(?![\w@]|[.,/:-]\d)"
_ABROAD = r"(?:\+|00)[1-9]\d{0,3}(?:[ ()./-]{0,3}\d{1,12}){1,6}"
_EUROPE = r"0\d{1,5}[ )/.-]{1,2}\d{2,9}(?:[ .-]\d{2,6}){0,4}"

# British national insurance number: prefixes in use, six digits, a letter.
_NINO = r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]"

_FORMS: tuple[tuple[PersonalData, str, Callable[[str], bool]], ...] = (
    ("card", rf"{_START}(?P<value>\d{{4}}(?:[ -]?\d{{2,6}}){{2,4}}){_END}", is_card),
    ("id_number", rf"{_START}(?P<value>\d{{3}}-\d\d-\d{{4}}){_END}", _is_ssn),
    ("id_number", rf"{_START}(?P<value>\d{{3}}\.\d{{3}}\.\d{{3}}-\d\d){_END}", _is_cpf),
    ("id_number", rf"{_START}(?P<value>\d{{3}}-\d{{3}}-\d{{3}}[ -]\d\d){_END}", _is_snils),
    ("id_number", rf"{_START}(?P<value>(?:\d{{8}}|[XYZxyz]-?\d{{7}})[- ]?[A-HJ-NP-TV-Za-hj-np-tv-z]){_END}", _is_dni),
    ("id_number", rf"{_START}(?P<value>[12] ?\d\d ?[01]\d ?(?:\d\d|2[ABab]) ?\d{{3}} ?\d{{3}} ?\d\d){_END}", _is_nir),
    (
        "id_number",
        rf"{_START}(?P<value>[A-Za-z]{{6}}\d\d[A-EHLMPR-Ta-ehlmpr-t]\d\d[A-Za-z]\d{{3}}[A-Za-z]){_END}",
        _is_codice_fiscale,
    ),
    ("id_number", rf"{_START}(?P<value>\d{{6}}(?:19|20)\d{{9}}[\dXx]){_END}", _is_resident_id),
    ("id_number", rf"{_START}(?P<value>\d\d\.\d\d\.\d\d-\d{{3}}\.\d\d){_END}", _is_rijksregister),
    ("id_number", rf"{_START}(?P<value>756\.\d{{4}}\.\d{{4}}\.\d\d){_END}", _is_ahv),
    ("id_number", rf"{_START}(?P<value>(?:19|20)?\d{{6}}[-+]\d{{4}}){_END}", lambda value: _luhn(value[-11:])),
    ("id_number", rf"{_START}(?P<value>{_NINO}){_END}", bool),
    ("id_number", rf"{_START}(?P<value>\d{{11}}){_END}", _is_pesel),
    ("phone", rf"(?<![\w+.,])(?<!\d )(?P<value>{_ABROAD}){_END}", _is_phone),
    ("phone", rf"{_START}(?P<value>(?:1[ .-])?(?:\(\d{{3}}\) ?|\d{{3}}[ .-])\d{{3}}[ .-]\d{{4}}){_END}", _is_phone),
    ("phone", rf"{_START}(?P<value>\(?{_EUROPE}){_END}", lambda value: len(_digits(value)) >= 9 and _is_phone(value)),
    ("phone", rf"{_START}(?P<value>8[ -]?\(?[3489]\d\d\)?[ -]?\d{{3}}[ -]?\d\d[ -]?\d\d){_END}", _is_phone),
    ("phone", rf"{_START}(?P<value>1[3-9]\d[ -]?\d{{4}}[ -]?\d{{4}}){_END}", _is_phone),
)


@cached()
def _forms() -> tuple[_Form, ...]:
    """Return all patterns of numbers, including those that are recognised only by a word before them."""
    phone = all_languages().pattern(
        lambda language: map(re.escape, language.personal.phone),
        rf"{_CUE}(?P<value>\+?\(?\d[\d ()./-]{{4,18}}\d)(?!\w)",
        flags=re.IGNORECASE,
    )
    document = all_languages().pattern(
        lambda language: map(re.escape, language.personal.document),
        rf"{_CUE}(?<![^\W_])(?P<value>[A-Z]{{0,3}}[ -]?\d[A-Z0-9]*(?:[ ./-][A-Z]{{0,3}}\d[A-Z0-9]*){{0,4}})(?!\w)",
        flags=re.IGNORECASE,
    )
    return (
        *(_Form(kind=kind, pattern=re.compile(pattern), accepts=accepts) for kind, pattern, accepts in _FORMS),
        _Form(kind="id_number", pattern=document, accepts=_is_said_document),
        _Form(kind="phone", pattern=phone, accepts=_is_said_phone),
    )


# bank accounts

_IBAN = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d\d(?:[ -]?[A-Za-z0-9]){11,34}")


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of IBANs (ISO 13616): the length is right for the country, and the number is 1 modulo 97."""
    lengths = table()["iban_lengths"]
    at = 0
    while match := _IBAN.search(text, at):
        start = at = match.start()
        at += 1
        size = lengths.get(text[start : start + 2].upper())
        places = [place for place in range(start, match.end()) if text[place] not in " -"]
        if size is None or len(places) < size:
            continue
        end = places[size - 1] + 1
        if _is_iban("".join(text[place] for place in places[:size])) and not text[end : end + 1].isalnum():
            yield start, end
            at = end


def _is_iban(value: str) -> bool:
    moved = value[4:] + value[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1
