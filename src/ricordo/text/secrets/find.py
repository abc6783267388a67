"""Credentials in a message are found and replaced before anything is stored or leaves the machine.

Our own table rather than a library. detect-secrets 1.5.0, the best kept one, was tried: it is made for lines
of source files. It took 2.3 ms for an ordinary chat turn, its keyword rule wants `password = "..."` and knows
no `password is hunter2` nor any language but English, it needs requests and PyYAML (8 MB installed), and
its last release is of May 2024. gitleaks and trufflehog are Go programs. A table is shorter than the glue.

Speed comes from asking little of an ordinary message: does a word stem occur, is any piece 20 characters
long, is there a digit? Only a yes runs patterns, each behind its own literal beginning. No pattern can
backtrack further than a fixed length, so time is linear in the text.

What to do with findings (`secrets = redact | refuse | keep`) is the caller's decision.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ricordo.text.secrets.families import DIGIT_FAMILIES, WORD_FAMILIES, Family
from ricordo.text.secrets.patterns import FORMS
from ricordo.text.secrets.shapes import DIGIT_SHAPES, SHAPES, Shape
from ricordo.text.secrets.statements import find_said
from ricordo.text.secrets.values import end_of_run, is_placeholder, is_slug
from ricordo.text.word_cache import ByWord


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A credential of sort `kind` at `text[start:end]` of the text that was given."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """The text with every finding replaced by `[redacted: kind]`, and the findings in order, none
    overlapping."""

    text: str
    findings: tuple[Finding, ...]


KINDS: frozenset[str] = frozenset(
    {"credentials"}
    | {form.kind for form in FORMS}
    | {shape.kind for shape in (*SHAPES, *DIGIT_SHAPES)}
    | {family.kind for family in (*WORD_FAMILIES, *DIGIT_FAMILIES)}
)

_ALL_STEMS = {
    stem for starts in (*(shape.starts for shape in SHAPES), *(f.starts for f in WORD_FAMILIES)) for stem in starts
}
# Where `pass` occurs nothing is gained by asking for `passw`.
_STEMS = sorted(stem for stem in _ALL_STEMS if not any(other != stem and other in stem for other in _ALL_STEMS))
_ASCII_STEMS = tuple(stem for stem in _STEMS if stem.isascii())
_ANY_STEM = re.compile("|".join(map(re.escape, _STEMS)))
_LONG = 19
_LONG_PIECE = re.compile(rf"\s\S{{{_LONG}}}")
_DIGIT = re.compile(r"[0-9]")
_MARKER = re.compile(rf"\[redacted: (?:{'|'.join(map(re.escape, sorted(KINDS)))})\]")
# Cutting a finding out can bring another to light, hence rounds; more than this happens only on purpose.
_MAX_ROUNDS = 6


def redact(text: str) -> Redacted:
    """Replace every credential in `text`. Pure, and a fixed point: the result holds nothing more to redact.

    Args:
        text: any string, of any length; lone surrogates and NUL are ordinary characters.

    Returns:
        The new text, and the findings with offsets into the old one.
    """
    findings = find_secrets(text)
    if not findings:
        return Redacted(text=text, findings=())
    pieces: list[str] = []
    at = 0
    for finding in findings:
        pieces += (text[at : finding.start], f"[redacted: {finding.kind}]")
        at = finding.end
    return Redacted(text="".join((*pieces, text[at:])), findings=findings)


def find_secrets(text: str) -> tuple[Finding, ...]:
    """The credentials in `text`, in order and not overlapping. Markers of an earlier `redact` are never part
    of one."""
    if not _may_hold_secrets(text):
        return ()
    found: list[Finding] = []
    gaps = list(_between(0, len(text), (m.span() for m in _MARKER.finditer(text))))
    for round_number in range(_MAX_ROUNDS):
        gaps = [gap for gap in gaps for gap in _scan_gap(text, gap, found, is_last=round_number == _MAX_ROUNDS - 1)]
    return tuple(sorted(found, key=lambda f: f.start))


def _scan_gap(text: str, gap: tuple[int, int], found: list[Finding], *, is_last: bool) -> list[tuple[int, int]]:
    """Add what lies in `gap` to `found`, and return the pieces of it to scan again, none if it held nothing.

    A piece is scanned as a text of its own, exactly as a second `redact` would see it: that makes `redact` a
    fixed point. A gap that still yields something in the last round is one heap of credentials and goes as a
    whole.
    """
    start, end = gap
    new = _merge(_scan(text[start:end]))
    if not new:
        return []
    if is_last:
        new = [Finding(kind="credentials", start=0, end=end - start)]
    shifted = [Finding(kind=f.kind, start=f.start + start, end=f.end + start) for f in new]
    found += shifted
    return list(_between(start, end, ((f.start, f.end) for f in shifted)))


def _between(start: int, end: int, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The non-empty gaps that `spans`, in order, leave of `start..end`."""
    for span_start, span_end in spans:
        if start < span_start:
            yield start, span_start
        start = span_end
    if start < end:
        yield start, end


def _may_hold_secrets(text: str) -> bool:
    """The cheap question that lets nearly every message through: is there a long piece, or a word that may be part of
    one? No stem has a blank inside."""
    return any(map(_TELLING.__getitem__, text.split()))


def _is_telling(word: str) -> bool:
    """Whether a word is long, or holds a stem or a figure."""
    return len(word) >= _LONG or _has_stem(_lower(word)) or _DIGIT.search(word) is not None


_TELLING = ByWord(_is_telling, longest=_LONG - 1)  # what is long enough for a credential is not kept


def _has_stem(lowered: str) -> bool:
    # Substring tests beat the combined pattern on English, and lose on Cyrillic, where it rejects most
    # letters at once.
    if lowered.isascii():
        for stem in _ASCII_STEMS:  # noqa: SIM110  `any` over a generator takes a third longer
            if stem in lowered:
                return True
        return False
    return _ANY_STEM.search(lowered) is not None


def _lower(text: str) -> str:
    """Lower case of the same length: only the dotted capital I would become two characters."""
    return text.replace("\u0130", "i").lower()


def _scan(text: str) -> list[Finding]:
    """Everything recognised, from the most to the least telling; findings may overlap."""
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
                if not is_placeholder(match[group]) and not is_slug(match[group]):
                    yield Finding(kind=form.kind, start=match.start(group), end=match.end(group))


def _find_shapes(shapes: tuple[Shape, ...], text: str, lowered: str) -> Iterator[Finding]:
    for shape in shapes:
        if not shape.starts or any(start in lowered for start in shape.starts):
            at = 0
            while match := shape.pattern.search(lowered, at):
                start, end = match.span("secret")
                is_secret = shape.accepts(text[start:end])
                end = end_of_run(text, start, end) if is_secret else end
                if is_secret:
                    yield Finding(kind=shape.kind, start=start, end=end)
                # What was refused may hold the beginning of another: go on inside it, not after it.
                at = end if is_secret else max(start, match.start() + 1)


def _find_families(families: tuple[Family, ...], text: str, lowered: str) -> Iterator[Finding]:
    for family in families:
        if any(stem in lowered for stem in family.starts):
            for start, end in find_said(family, text, lowered):
                yield Finding(kind=family.kind, start=start, end=end)


def _merge(found: list[Finding]) -> list[Finding]:
    """Overlapping findings become one, of the kind found first: a token shape tells more than `password
    is`."""
    merged: list[tuple[int, Finding]] = []
    for ranked in sorted(enumerate(found), key=lambda ranked: (ranked[1].start, ranked[1].end)):
        if merged and ranked[1].start < merged[-1][1].end:
            merged[-1] = _join(merged[-1], ranked)
        else:
            merged.append(ranked)
    return [finding for _, finding in merged]


def _join(one: tuple[int, Finding], other: tuple[int, Finding]) -> tuple[int, Finding]:
    """Both as one finding, of the kind of the lower rank; `one` starts no later than `other`."""
    rank, kind = min((one[0], one[1].kind), (other[0], other[1].kind))
    return rank, Finding(kind=kind, start=one[1].start, end=max(one[1].end, other[1].end))
