"""Render values as HTML: templates, translated labels, and the texts of memories, which are always escaped."""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound
from markupsafe import Markup, escape

from ricordo.clock import handle_of, with_handles
from ricordo.text.analyzer import index_terms
from ricordo.text.disguise import INVISIBLE, hidden_text
from ricordo.text.sentences import shortened

LANGUAGES: Mapping[str, str] = {"en": "English", "ru": "Русский", "de": "Deutsch"}
"""The languages the page is translated into, by code, each with its native name."""

_FOLDER = files("ricordo.interfaces.page")
_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")
_PART = re.compile(r"\s+|[^\W_]+|[\W_]")
_MOST_CHARS = 20_000
"""A longer text is truncated; the page shows how many characters are missing."""
_MOST_PARTS = 4_000
"""If two versions have more words, spaces and signs than this together, they are shown in full instead of compared."""

# Control characters, line and paragraph separators, private-use characters, unpaired surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ue000-\uf8ff\ud800-\udfff]")
_GHOSTS = re.compile(f"{_CONTROLS.pattern}|{INVISIBLE.pattern}")
# No language puts more than three combining marks on a letter; longer stacks cover the lines above and below.
_MARKS = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})"
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+)"
)


class _Templates(BaseLoader):
    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Any]:
        file = _FOLDER / "templates" / template
        if not file.is_file():
            raise TemplateNotFound(template)
        return file.read_text(encoding="utf-8"), str(file), lambda: True


@cache
def environment() -> Environment:
    """Return the Jinja environment, with autoescaping."""
    made = Environment(
        loader=_Templates(), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "shown": shown,
        "short": short,
        "handle": handle_of,
        "handles": with_handles,
        "number": number,
        "percent": percent,
        "undone": undone,
    }
    made.globals |= {"diff": difference, "marked": marked, "weakness": weakness, "asset": asset, "languages": LANGUAGES}
    made.globals |= {"detail": detail, "reason": reason}
    return made


# labels of the page


@cache
def texts(language: str) -> Mapping[str, str]:
    """Return the labels in a language, by "section.name"."""
    tables = tomllib.loads((_FOLDER / "texts" / f"{language}.toml").read_text(encoding="utf-8"))
    return {f"{section}.{name}": text for section, table in tables.items() for name, text in table.items()}


def language_of(accepted: str) -> str:
    """Return the language that best matches an Accept-Language header; "en" if none does."""
    wanted = []
    for place, part in enumerate(accepted[:500].split(",")):
        name, _, quality = part.partition(";q=")
        weight = float(quality) if re.fullmatch(r"[01](\.\d{1,3})?", quality.strip()) else 1.0
        wanted.append((-weight, place, name.strip()[:2].lower()))
    return next((name for _, _, name in sorted(wanted) if name in LANGUAGES), "en")


class Texts:
    """The labels in one language, as templates call them."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = texts(language)

    def __call__(self, key: str, **values: object) -> str:
        text = self._texts[key]
        return text.format_map({name: str(value) for name, value in values.items()}) if values else text

    def name(self, section: str, value: str | None) -> str:
        """Return the label of a value, such as a category; the value itself if it has no label."""
        return self._texts.get(f"{section}.{value}", value or "")


_WEAKNESS = re.compile(r"(only|expired on|expires on|faded since|faded by) (\S+)(?: sure)?")


def weakness(texts: Texts, why: str) -> str:
    """Translate the reason why a memory is weak."""
    return _WEAKNESS.sub(lambda found: texts(f"weak.{found[1].replace(' ', '_')}", value=found[2]), why)


def reason(texts: Texts, why: str) -> str:
    """Translate a reason to merge two entities, such as "both with: Acme"."""
    name, colon, what = why.partition(": ")
    return texts.name("merge", name) + colon + what


@cache
def _details() -> tuple[re.Pattern[str], Mapping[str, tuple[str, ...]]]:
    """Return a pattern with a group for each English detail, and the names of the values in each detail."""
    english = {key: text for key, text in texts("en").items() if key.startswith("detail.")}
    names = {key: tuple(re.findall(r"\{(\w+)\}", text)) for key, text in english.items()}
    parts = []
    for number, (key, held) in enumerate(names.items()):
        part = re.escape(english[key])
        for name in held:
            value = ".+?" if name == "words" else "[^ ;]+?"
            part = part.replace(re.escape(f"{{{name}}}"), f"(?P<{name}_{number}>{value})")
        parts.append(f"(?P<detail_{number}>{part})")
    return re.compile("|".join(parts)), names


def detail(texts: Texts, said: str) -> str:
    """Translate why a search did not return a memory. The English texts are the ones that a search gives."""
    pattern, names = _details()

    def own(found: re.Match[str]) -> str:
        number, (key, held) = next(each for each in enumerate(names.items()) if found[f"detail_{each[0]}"] is not None)
        values = {name: found[f"{name}_{number}"] for name in held}
        if "reason" in values:
            values["reason"] = texts.name("closed", values["reason"])
        return texts(key, **values)

    return pattern.sub(own, said)


def undone(target: str) -> str:
    """Return what an undo reverted: the number of a change, or the short id of a run."""
    first, _, rest = target.partition(" ")
    return f"{first if first.isdecimal() else handle_of(first)} {rest}".strip()


# texts of memories


def shown(text: str | None, most: int = _MOST_CHARS) -> Markup:
    """Escape a text as HTML, with each invisible character shown as its code point."""
    return Markup("").join(_safe_parts(text or "", most))


def _safe_parts(text: str, most: int = _MOST_CHARS) -> Iterator[Markup]:
    cut = text[:most]
    if spelled := hidden_text(text):
        yield Markup('<span class="ghost">U+E0000 “{}”</span>').format(spelled[:200])
    position = 0
    if not cut.isprintable() or not cut.isascii():
        for found in _GHOSTS.finditer(cut):
            yield _thinned(cut[position : found.start()])
            yield _ghost(found.group())
            position = found.end()
    yield _thinned(cut[position:])
    if len(text) > most:
        yield Markup('<span class="cut">… +{}</span>').format(f"{len(text) - most:,}")


def _ghost(char: str) -> Markup:
    """Show the code point of an invisible character. Tag characters are omitted: the caller shows their text."""
    if char in "\n\t":
        return Markup(char)
    if 0xE0020 <= ord(char) <= 0xE007E:
        return Markup("")
    name = unicodedata.name(char, "")
    return Markup('<span class="ghost" title="{}">U+{}</span>').format(name, f"{ord(char):04X}")


def _thinned(text: str) -> Markup:
    """Escape a text; keep at most three combining marks on a letter."""
    if text.isascii():
        return escape(text)
    position, parts = 0, []
    for found in _MARKS.finditer(text):
        parts += [escape(text[position : found.end(1)]), Markup('<span class="ghost">+{}</span>').format(len(found[2]))]
        position = found.end()
    return Markup("").join([*parts, escape(text[position:])])


def short(text: str | None, most: int = 240) -> Markup:
    """Return the beginning of a text, at most `most` characters, on one line."""
    joined = " ".join((text or "")[: most * 4].split())
    return shown(shortened(joined, most))


def marked(text: str, terms: Collection[str], passage: tuple[int, int] | None = None) -> Markup:
    """Return a text as HTML with the words of a question highlighted.

    Args:
        terms: The index terms that the search looked up.
        passage: Start and end, in characters, of the part that matched; None for the complete text.
    """
    start, end = passage or (0, len(text))
    parts, position = [], 0
    for found in _WORD.finditer(text[:_MOST_CHARS]):
        if start <= found.start() < end and not set(terms).isdisjoint(index_terms(found.group())):
            parts += [shown(text[position : found.start()]), Markup("<mark>{}</mark>").format(shown(found.group()))]
            position = found.end()
    return Markup("").join([*parts, shown(text[position:])])


def difference(before: str, after: str) -> Markup:
    """Return the difference between two versions of a text as HTML, with removed and added parts marked."""
    one, other = _PART.findall(before[:_MOST_CHARS]), _PART.findall(after[:_MOST_CHARS])
    if len(one) + len(other) > _MOST_PARTS:
        return _change(before, after)
    parts = []
    for kind, i, j, k, m in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        removed, added = "".join(one[i:j]), "".join(other[k:m])
        parts.append(shown(added) if kind == "equal" else _change(removed, added))
    return Markup("").join(parts)


def _change(removed: str, added: str) -> Markup:
    gone = Markup("<del>{}</del>").format(shown(removed)) if removed else Markup("")
    return gone + (Markup("<ins>{}</ins>").format(shown(added)) if added else Markup(""))


# figures


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with thin spaces between thousands."""
    return "–" if value is None else f"{value:,.{digits}f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def percent(value: float) -> str:
    """Return a fraction from 0 to 1 as a percentage."""
    return f"{value:.0%}"


def time_of(at: datetime | None, zone: ZoneInfo) -> Markup:
    """Return an instant in the user's time zone."""
    if at is None:
        return Markup("–")
    local = at.astimezone(zone)
    seconds = local.isoformat(timespec="seconds")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(seconds, seconds, f"{local:%Y-%m-%d %H:%M}")


def bars(values: Sequence[float]) -> list[float]:
    """Return each value as a percentage of the largest magnitude, from 0 to 100."""
    most = max(map(abs, values), default=0.0) or 1.0
    return [round(100 * abs(value) / most, 1) for value in values]


# files that browsers load


@cache
def assets() -> Mapping[str, tuple[bytes, str]]:
    """Return every static file by name: its content and the hash of it."""
    found = {}
    for file in _walk(_FOLDER / "static"):
        body = file[1].read_bytes()
        found[file[0]] = body, hashlib.sha256(body).hexdigest()[:16]
    return found


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _walk(each, f"{prefix}{each.name}/")
        elif each.name.endswith((".js", ".css", ".svg")):
            yield prefix + each.name, each


def asset(name: str) -> str:
    """Return the URL of a static file, which changes with its content."""
    return f"/page/static/{name}?{assets()[name][1]}"
