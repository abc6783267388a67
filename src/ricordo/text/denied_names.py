"""Find the names that a statement denies beside the right ones: "with Nora, not Norma", "not Norma but Nora". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ricordo.text.languages import NEVER, LanguageSet, cached, languages_of
from ricordo.text.relation_forms import CAPITALISED


def without_denied_names(text: str) -> str:
    """Return a text without the names that it puts right, and the words that deny them.

    >>> without_denied_names("I climb with Nora, not with Norma."), without_denied_names("I met not Ida but Ada")
    ('I climb with Nora.', 'I met Ada')
    >>> without_denied_names("I went without Norma. Ida is not here")
    'I went without Norma. Ida is not here'
    """
    return _denied(languages_of(text)).sub("", text)


@cached()
def _denied(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of a denied name: behind a comma or a dash up to the end of a clause, or before "but"."""
    statements = [each.statements for each in languages]
    # "Without Norma" tells of Norma.
    denying = {word for each in statements for word in each.negations if word not in each.prepositions}
    endings = [f"(?<={re.escape(end)})" for each in statements for end in each.negated_endings] or [NEVER]
    between = {word for each in statements for word in (*each.prepositions, *each.articles, *each.determiners)}
    blanks = r"(?:(?<!\s)\s++)?"  # all of them or none, so that many blanks take no time
    denial = rf"(?i:(?:{blanks}(?<!\w)(?:{_one_of(denying)})|{'|'.join(endings)})\s++)"
    name = rf"{CAPITALISED}(?:\.?\s+{CAPITALISED}){{0,2}}(?![\w'’-])"
    joined = _one_of(languages.words(lambda each: each.entities.conjunctions))
    names = rf"(?i:(?:{_one_of(between)})\s+){{0,3}}+{name}(?:\s+(?i:{joined})\s+{name})*"
    contrast = _one_of(languages.words(lambda each: each.statements.contrasts))
    forms = (
        rf"{denial}{names},?\s+(?i:{contrast})(?=\s)",
        rf"[,;—–-]\s*+(?i:(?:{joined}|{contrast})\s+)?{denial}{names}(?=\s*(?:$|[.,;:!?)…—–]))",
        rf"(?<!\s)\s++(?i:{joined})\s{denial}{names}",
        rf"{blanks}\({denial}{names}\)",
    )
    return re.compile("|".join(forms), re.MULTILINE)


def _one_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or NEVER
