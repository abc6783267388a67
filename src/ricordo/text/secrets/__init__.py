"""Find the credentials in a message and replace them before anything is stored or leaves the machine.

Why not a library: detect-secrets 1.5.0, the best maintained one, is made for lines of source files. It took 2.3 ms for
an ordinary chat turn. Its keyword rule expects `password = "..."` and recognises neither `password is hunter2` nor
languages other than English. It needs requests and PyYAML (8 MB installed), and its last release is from May 2024.
gitleaks and trufflehog are Go programs. A table of patterns is shorter than an adapter would be.

Most messages are checked quickly: does a word stem occur, is any piece 20 characters long, is there a digit? Patterns
run only if so, each behind its own literal prefix. Backtracking is bounded by a fixed length in every pattern, so time
is linear in the text. The caller decides what to do with findings (`secrets = redact | refuse | keep`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ricordo.text.disguise import INVISIBLE
from ricordo.text.languages import ByWord, all_languages, is_ordinary
from ricordo.text.secrets import personal
from ricordo.text.secrets.statements import (
    DIGIT_FAMILIES,
    WORD_FAMILIES,
    Family,
    end_of_run,
    find_said,
    is_code,
    is_placeholder,
    is_random,
    is_real,
    is_slug,
    is_strong,
    is_uuid,
    table,
)

__all__ = ["BY_PREFIX", "KINDS", "Finding", "Redacted", "find_secrets", "redact", "redact_personal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How a credential or its surroundings look: one of `starts` must occur, and `accepts` checks the value."""

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


_GLUE = frozenset(table()["words"]["glue"].split())


def _is_vendor_token(value: str) -> bool:
    """Return whether a run of characters is a vendor's token: its prefix is neither an ordinary word nor the name of a
    public object, and its tail is random.
    """
    if is_uuid(value):
        return False
    pieces = re.split("[-_]", value)
    prefix = next((place for place, piece in enumerate(pieces) if len(piece) >= _TAIL_PIECE), len(pieces) - 1)
    heads = [piece.lower() for piece in pieces[:prefix]] or [pieces[0].lower()]
    tail = value[sum(len(piece) + 1 for piece in pieces[:prefix]) :]
    if len(tail) < _LEAST_TAIL or not is_random(tail, shortest=_LEAST_TAIL) or is_placeholder(value):
        return False
    if not _KEY_WORDS.isdisjoint(heads):
        return heads[0] not in _HALVES
    names = [head for head in heads if not _VERSION.fullmatch(head)]
    return bool(names) and _PUBLIC.isdisjoint(names) and not any(map(_is_word, names))


def _is_word(head: str) -> bool:
    return len(head) > 2 and any(is_ordinary(head, language) for language in all_languages())


_TAIL_PIECE, _LEAST_TAIL = 8, 20
BY_PREFIX = "token"
"""The kind of tokens from unknown vendors, recognised by form alone. Ids of other programs may look the same."""
_HALVES = frozenset(("pk", "pub", "public", "publishable"))
"""Prefixes of the public half of a key pair."""
_VERSION = re.compile(r"v\d{1,2}")
_KEY_WORDS = frozenset(table()["words"]["key_words"].split())
_PUBLIC = frozenset(table()["words"]["public_prefixes"].split())

_CHECKS: dict[str, Callable[[str], bool]] = {
    "key": lambda value: is_real(value) and not is_slug(value),
    "real": is_real,
    "assigned": lambda value: is_real(value) and not is_code(value),
    "vendor_token": _is_vendor_token,
    "header_value": lambda value: is_real(value) and (is_random(value, shortest=12) or is_strong(value)),
    "bearer": lambda value: is_real(value) and is_random(value, shortest=20),
    "strong": lambda value: is_real(value) and is_strong(value) and not (value.isdigit() and len(value) < 6),
    "word_list": lambda value: _GLUE.isdisjoint(re.findall(r"[a-z]+", value.lower())),
    "card": personal.is_card,
}


def _looks(name: str, *, has_digits: bool = False) -> tuple[_Look, ...]:
    return tuple(
        _Look(
            kind=each["kind"],
            starts=tuple(each["starts"].split()),
            pattern=re.compile(_whole(each["pattern"])),
            accepts=_CHECKS[each.get("accepts", "key")],
        )
        for each in table()[name]
        if each.get("has_digits", False) is has_digits
    )


def _whole(pattern: str) -> str:
    """Return a pattern with its named parts filled in."""
    for name, part in reversed(table()["parts"].items()):
        pattern = pattern.replace(f"<{name}>", part)
    return pattern


FORMS = _looks("forms")
SHAPES = _looks("shapes")
DIGIT_SHAPES = _looks("shapes", has_digits=True)
"""Shapes that consist of digits. They are only searched in texts with digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A credential of the given kind at `text[start:end]` of the input text."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """The text with each finding replaced by `[redacted: kind]`, and the findings, in order and without overlap."""

    text: str
    findings: tuple[Finding, ...]


Recognise = Callable[[str], list[Finding]]
"""A function that finds what to replace in a piece of text. Findings may overlap."""

_FAMILIES = (*WORD_FAMILIES, *DIGIT_FAMILIES)
_LOOKS = (*FORMS, *SHAPES, *DIGIT_SHAPES)
KINDS = frozenset(("credentials", *(look.kind for look in _LOOKS), *(family.kind for family in _FAMILIES)))
_MARKED = KINDS | {kind.replace("_", " ") for kind in personal.PERSONAL}

_ALL_STEMS = {
    stem for starts in (*(each.starts for each in SHAPES), *(each.starts for each in WORD_FAMILIES)) for stem in starts
}
# If `pass` occurs, looking for `passw` adds nothing.
_STEMS = sorted(stem for stem in _ALL_STEMS if not any(other != stem and other in stem for other in _ALL_STEMS))
_ASCII_STEMS = tuple(stem for stem in _STEMS if stem.isascii())
_ANY_STEM = re.compile("|".join(map(re.escape, _STEMS)))
_LONG = 19
_LONG_PIECE = re.compile(rf"\s\S{{{_LONG}}}")
_DIGIT, _ANY_DIGIT = re.compile(r"[0-9]"), re.compile(r"\d")
_MARKER = re.compile(rf"\[redacted: (?:{'|'.join(map(re.escape, sorted(_MARKED)))})\]")
# Replacing a finding can reveal another, hence several rounds. Only adversarial texts need more than this.
_MAX_ROUNDS = 6


def redact(text: str) -> Redacted:
    """Replace every credential in `text`. Pure and idempotent: the result contains nothing more to redact.

    Args:
        text: any string, of any length; lone surrogates and NUL are ordinary characters.

    Returns:
        The new text, and the findings with offsets into the old one.
    """
    return _replaced(text, find_secrets(text))


def redact_personal(text: str, kinds: frozenset[str]) -> Redacted:
    """Replace personal data of the given kinds, as `redact` replaces credentials."""
    if "@" not in text and "[" not in text and "(" not in text and _ANY_DIGIT.search(text) is None:
        return Redacted(text=text, findings=())

    def recognise(piece: str) -> list[Finding]:
        return [Finding(kind=kind, start=start, end=end) for kind, start, end in personal.find(piece, kinds)]

    return _replaced(text, _find(text, recognise))


def _replaced(text: str, findings: tuple[Finding, ...]) -> Redacted:
    if not findings:
        return Redacted(text=text, findings=())
    pieces: list[str] = []
    at = 0
    for finding in findings:
        pieces += (text[at : finding.start], f"[redacted: {finding.kind}]")
        at = finding.end
    return Redacted(text="".join((*pieces, text[at:])), findings=findings)


def find_secrets(text: str) -> tuple[Finding, ...]:
    """Return the credentials in `text`, in order and without overlap. None includes a marker of an earlier `redact`."""
    if not _may_hold_secrets(text):
        return ()
    return _find(text, _recognised)


def _find(text: str, recognise: Recognise) -> tuple[Finding, ...]:
    found: list[Finding] = []
    gaps = list(_between(0, len(text), (m.span() for m in _MARKER.finditer(text))))
    for round_number in range(_MAX_ROUNDS):
        if not gaps:
            break
        is_last = round_number == _MAX_ROUNDS - 1
        gaps = [piece for gap in gaps for piece in _scan_gap(text, gap, found, recognise, is_last=is_last)]
    return tuple(sorted(found, key=lambda f: f.start))


def _scan_gap(
    text: str, gap: tuple[int, int], found: list[Finding], recognise: Recognise, *, is_last: bool
) -> list[tuple[int, int]]:
    """Add the findings in `gap` to `found`. Return the pieces of the gap to scan again; none if nothing was found."""
    # A piece is scanned as a second `redact` would see it, which makes `redact` idempotent. A gap that still yields
    # findings in the last round is a cluster of credentials and is replaced completely.
    start, end = gap
    new = _merge(_scan(text[start:end], recognise))
    if not new:
        return []
    if is_last:
        new = [Finding(kind="credentials", start=0, end=end - start)]
    shifted = [Finding(kind=f.kind, start=f.start + start, end=f.end + start) for f in new]
    found += shifted
    return list(_between(start, end, ((f.start, f.end) for f in shifted)))


def _between(start: int, end: int, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the non-empty gaps between ordered `spans` within `start..end`."""
    for span_start, span_end in spans:
        if start < span_start:
            yield start, span_start
        start = span_end
    if start < end:
        yield start, end


def _may_hold_secrets(text: str) -> bool:
    """Return whether there is a long piece or a word that may belong to a credential. Nearly no message has any."""
    return any(map(_TELLING.__getitem__, text.split()))


def _is_telling(word: str) -> bool:
    """Return whether a word is long, or contains a stem or a digit."""
    return len(word) >= _LONG or _has_stem(_lower(word)) or _DIGIT.search(word) is not None


_TELLING = ByWord(_is_telling, longest=_LONG - 1)  # strings long enough for a credential are not cached


def _has_stem(lowered: str) -> bool:
    # Substring tests are faster than the combined pattern on ASCII, but slower on other letters.
    if lowered.isascii():
        for stem in _ASCII_STEMS:  # noqa: SIM110  `any` over a generator takes a third longer
            if stem in lowered:
                return True
        return False
    return _ANY_STEM.search(lowered) is not None


def _lower(text: str) -> str:
    """Return lower case of the same length. Only the dotted capital I would become two characters."""
    return text.replace("\u0130", "i").lower()


def _scan(text: str, recognise: Recognise) -> list[Finding]:
    """Return everything recognised, most specific first, in the text and in its decoded form."""
    found = recognise(text)
    plain, places = _undone(text)
    if plain != text:
        for each in recognise(plain):
            start, end = places[each.start], places[each.end - 1] + 1
            end = places[each.end] if each.end < len(plain) and _is_undone(text, end) else end
            found.append(Finding(kind=each.kind, start=start, end=end))
    return found


# A credential may be split by zero-width characters or a line break, or be written with escapes.
_UNDONE = re.compile(
    r"%(?P<percent>[2-7][0-9A-Fa-f])|(?<!\\)\\++(?:u00(?P<escape>[2-7][0-9A-Fa-f])|(?P<blank>[nrt])(?![A-Za-z]{2})|(?P<plain>[\"'/]))"
    r"|(?P<cut>(?<=[A-Za-z0-9+/_=.-])[ \t]*\r?\n[ \t>|]*(?=[A-Za-z0-9+/_=-]))"
    rf"|{INVISIBLE.pattern}|[\u200c\u200d]"
)
_RUN_BEFORE = re.compile(r"[A-Za-z0-9+/_=.-]{1,80}\Z")
_RUN_AFTER = re.compile(r"[A-Za-z0-9+/_=-]{1,80}")


def _undone(text: str) -> tuple[str, list[int]]:
    """Return a text without splits and escapes inside words, and the original offset of each of its characters."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for found in _UNDONE.finditer(text):
        if found["cut"] is not None and not _is_one_word(text, found.start(), found.end()):
            continue
        pieces.append(text[at : found.start()])
        places.extend(range(at, found.start()))
        if char := _stands_for(found):
            pieces.append(char)
            places.append(found.start())
        at = found.end()
    if not pieces:
        return text, []
    return "".join([*pieces, text[at:]]), [*places, *range(at, len(text))]


def _stands_for(found: re.Match[str]) -> str:
    if code := found["percent"] or found["escape"]:
        return chr(int(code, 16))
    return " " if found["blank"] else found["plain"] or ""


def _is_one_word(text: str, start: int, end: int) -> bool:
    """Return whether a line break splits a word that looks generated on both sides."""
    before, after = _RUN_BEFORE.search(text[max(0, start - 80) : start]), _RUN_AFTER.match(text, end)
    return before is not None and after is not None and _is_part(before.group()) and _is_part(after.group())


def _is_part(run: str) -> bool:
    """Return whether a run may be part of a key: long, with digits or capitals among lower-case letters."""
    return len(run) >= 4 and not (run.isdigit() or is_slug(run))


def _is_undone(text: str, at: int) -> bool:
    """Return whether an escape sequence starts here."""
    return _UNDONE.match(text, at) is not None and text[at] in "%\\"


def _recognised(text: str) -> list[Finding]:
    """Return everything recognised in the text without decoding; findings may overlap."""
    lowered = _lower(text)
    found: list[Finding] = []
    if _LONG_PIECE.search(f" {text}"):
        found += _find_forms(text)
    if _has_stem(lowered):
        found += _find_shapes(SHAPES, text, lowered)
        found += _find_families(WORD_FAMILIES, text, lowered)
    if _DIGIT.search(text):
        found += _find_shapes(DIGIT_SHAPES, text, lowered)
        found += _find_families(DIGIT_FAMILIES, text, lowered)
    return found


def _find_forms(text: str) -> Iterator[Finding]:
    for form in FORMS:
        if any(start in text for start in form.starts):
            group = "secret" if "secret" in form.pattern.groupindex else 0
            for match in form.pattern.finditer(text):
                if form.accepts(match[group]):
                    yield Finding(kind=form.kind, start=match.start(group), end=match.end(group))


def _find_shapes(shapes: tuple[_Look, ...], text: str, lowered: str) -> Iterator[Finding]:
    for shape in shapes:
        if not shape.starts or any(start in lowered for start in shape.starts):
            at = 0
            while match := shape.pattern.search(lowered, at):
                start, end = match.span("secret")
                if shape.accepts(text[start:end]):
                    at = end_of_run(text, start, end)
                    yield Finding(kind=shape.kind, start=start, end=at)
                else:  # it may contain the start of another match, so continue inside it
                    at = max(start, match.start() + 1)


def _find_families(families: tuple[Family, ...], text: str, lowered: str) -> Iterator[Finding]:
    for family in families:
        if any(stem in lowered for stem in family.starts):
            for start, end in find_said(family, text, lowered):
                yield Finding(kind=family.kind, start=start, end=end)


def _merge(found: list[Finding]) -> list[Finding]:
    """Merge overlapping findings. The first kind wins: the shape of a token is more specific than `password is`."""
    merged: list[tuple[int, Finding]] = []
    for rank, one in sorted(enumerate(found), key=lambda ranked: (ranked[1].start, ranked[1].end)):
        if merged and one.start < merged[-1][1].end:
            before_rank, before = merged.pop()
            rank, kind = min((before_rank, before.kind), (rank, one.kind))
            one = Finding(kind=kind, start=before.start, end=max(before.end, one.end))
        merged.append((rank, one))
    return [finding for _, finding in merged]
