"""Split a text into sentences, reduce them to meaningful words, and categorise simple statements. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ricordo.text.analyzer import function_terms, index_terms
from ricordo.text.languages import (
    NEVER,
    LanguageSet,
    all_languages,
    cached,
    default_languages,
    fold_letters,
    languages_of,
)
from ricordo.text.languages.schema import Language

MAX_CHARS = 200_000
"""A longer text is a book, so only its beginning is read."""

MAX_PLAIN_CHARS = 5_000
"""Simple statements are searched only in the beginning of a document."""

# A full stop inside a number or an address does not end a sentence. A run of marks is tried at its first one only:
# trying it at each takes the square of its length.
_SENTENCE = re.compile(r"[.!?…;]{2,}(?=\s|$)|[^\n]+?(?:(?<![.!?…;])[.!?…;]+(?=\s|$)|[。！？]+|(?=\n)|$)")


class Sentence(NamedTuple):
    """A sentence: its offset in the text, its text, and its meaningful words."""

    start: int
    text: str
    words: frozenset[str]


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text in order, except those without meaningful words.

    "The user lives in Lyon" and "J'habite à Lyon" have the words of what the user would say.
    """
    for found in _SENTENCE.finditer(text[:MAX_CHARS]):
        said = in_first_person(found.group())
        words = content_words(without_elisions(said, languages_of(said)))
        if words:
            yield Sentence(found.start(), found.group(), words)


def content_words(text: str) -> frozenset[str]:
    """Return the folded and stemmed words of a sentence without function words.

    Letter case, word order, punctuation and the subject ("I", "the user") make no difference.

    >>> sorted(content_words("I am allergic to peanuts!")) == sorted(content_words("User: allergic to the peanut"))
    True
    """
    languages = languages_of(text)
    lead = _lead(languages).match(text)
    terms = frozenset(index_terms(text[lead.end() :] if lead else text))
    return terms - _silent(languages.union(default_languages())) or terms


def without_elisions(text: str, languages: LanguageSet) -> str:
    """Return a text with its elided words apart: "qu'on habite" becomes "qu on habite"."""
    return _elided(languages).sub(lambda found: f"{found[1]} ", text)


@cached()
def _elided(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.letters.elided, r"(?i)(?<![^\W_])({})['’](?=[^\W_])")


@cached()
def _lead(languages: LanguageSet) -> re.Pattern[str]:
    """Return the pattern of an opening that adds nothing to the statement."""
    return languages.pattern(lambda each: each.sentences.leads, r"\s*(?:(?:{})\b[,:!]?\s+)+", flags=re.IGNORECASE)


@cached()
def _silent(languages: LanguageSet) -> frozenset[str]:
    selves = languages.words(lambda each: each.sentences.self_words)
    function_words = frozenset(term for language in languages for term in function_terms(language.code))
    return function_words | frozenset(term for word in selves for term in index_terms(word))


def plain_sentences(text: str) -> Iterator[str]:
    """Yield the sentences at the beginning of a text that its author wrote, see `without_quotes`. Full stops in
    abbreviations and numbers do not end a sentence.
    """
    for found in _plain_sentence().finditer(without_quotes(text[:MAX_PLAIN_CHARS])):
        yield found.group().strip()


def without_quotes(text: str) -> str:
    """Return a text without the lines that its author did not write: quotes and placeholders of a program.

    >>> without_quotes("[forwarded from Erna]\\n> I smoke. I'm a nurse.\\nI don't")
    "\\n\\nI don't"
    """
    return _NOT_WRITTEN.sub("", text)


_NOT_WRITTEN = re.compile(r"^[ \t]*(?:>.*|\[[^\[\]\n]*\][ \t]*)$", re.MULTILINE)


@cached()
def _plain_sentence() -> re.Pattern[str]:
    by_length: dict[int, list[str]] = {}
    for abbreviation in all_languages().in_order(lambda each: each.sentences.abbreviations):
        by_length.setdefault(len(abbreviation), []).append(re.escape(abbreviation))
    # A look-behind must have a fixed length, so there is one for each length.
    behind = "".join(rf"|(?<=\b(?:{'|'.join(words)}))\." for words in by_length.values())
    after_ordinals = "|".join(all_languages().in_order(lambda each: each.sentences.after_ordinals)) or NEVER
    ordinal = rf"|(?<=\d)\.(?=\s(?:{after_ordinals})\b)"
    return re.compile(rf"(?:[^.!?\n…]|\.(?=\w)|(?<=\b[A-Z\u0410-\u042f])\.{behind}{ordinal})+[.!?…]*")


# ---- jokes

_LEFT_OF_A_MARK = 2
"""A sentence with at most so many words around its mark is about the one before it: "I'm just kidding"."""


def with_apostrophes(text: str, languages: LanguageSet) -> str:
    """Return a text with the apostrophes that people often leave out: "im a nurse, i dont cook" gets two.

    A word that names the speaker counts only at the beginning of a clause: "im" inside one is German.
    """
    speaking, others, written = _unmarked(languages)
    text = speaking.sub(lambda found: found[1] + written[found[2].lower()], text)
    return others.sub(lambda found: written[found[0].lower()], text)


@cached()
def _unmarked(languages: LanguageSet) -> tuple[re.Pattern[str], re.Pattern[str], dict[str, str]]:
    contractions = sorted(languages.words(lambda each: each.letters.contractions))
    written = {each.replace("'", ""): each for each in contractions if "'" in each}
    own = languages.words(lambda each: each.sentences.first_person)
    speaking = [bare for bare, each in written.items() if each.partition("'")[0] in own]
    others = [bare for bare in written if bare not in speaking]
    joins = "|".join(sorted(languages.words(lambda each: each.entities.conjunctions))) or NEVER
    begins = rf"(^\W*|[.,;:!?(]\s*|\b(?:{joins}|but|so)\s+)"
    return (
        re.compile(rf"{begins}({'|'.join(speaking) or NEVER})(?!\w)", re.IGNORECASE),
        re.compile(rf"(?<!\w)(?:{'|'.join(others) or NEVER})(?!\w)", re.IGNORECASE),
        written,
    )


def without_jokes(text: str, *, with_laughs: bool = False) -> str:
    """Return a text without the sentences at its beginning that are marked as jokes.

    Args:
        with_laughs: whether to keep sentences with nothing but a laugh: "my cat Tom ate it lol" may well be true.

    >>> without_jokes("I'm the queen of England lol. I live in Leeds."), without_jokes("Haha, I live in Leeds")
    (' I live in Leeds.', 'Haha, I live in Leeds')
    """
    start = without_quotes(text[:MAX_PLAIN_CHARS])  # its lines are joined below
    languages = languages_of(start).union(default_languages())
    jokes, laughs = _jokes(languages), _NOTHING if with_laughs else _laughs(languages)
    if not (jokes.search(start) or laughs.search(start)):
        return text
    kept: list[str] = []
    for found in _plain_sentence().finditer(start):
        said = found.group()
        marked = jokes.search(said) or laughs.search(said)
        if marked is None:
            kept.append(said)
        elif kept and len(_JOKE_WORD.findall(said[: marked.start()] + said[marked.end() :])) <= _LEFT_OF_A_MARK:
            kept.pop()
    return "".join(kept) + text[MAX_PLAIN_CHARS:]


_NOTHING = re.compile(NEVER)
_JOKE_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@cached()
def _jokes(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.sentences.jokes, flags=re.IGNORECASE)


@cached()
def _laughs(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(
        lambda each: each.sentences.laughs, r"(?<!\w)(?:{})(?=[^\w]*(?:[.!?…\n]|$))", flags=re.IGNORECASE
    )


# ---- a statement in the first person


@cached(maxsize=4_096)
def in_first_person(text: str, name: str = "") -> str:
    """Return a statement about the user, or about the named person, as that person would make it. Others are unchanged.

    >>> in_first_person("The user works at Globex"), in_first_person("Anna lives with her sister", "Anna")
    ('I work at Globex', 'I live with my sister')
    """
    start, rest = text[:MAX_PLAIN_CHARS], text[MAX_PLAIN_CHARS:]
    languages = languages_of(start)
    if found := _subject_of(languages, name).match(start):
        language = next(each for each in languages if found.lastgroup == f"{_IN}{each.code}")
        said = f"{language.persons.i} {_own_words(start[found.end() :], language)}{rest}".lstrip()
        return said[:1].upper() + said[1:]
    if not (name or _speaks_of_user(languages).search(start)):
        return text
    said = start[:1].lower() + start[1:]
    for pattern, (mine, *_) in languages.endings(lambda each: each.persons.forms):
        said = re.sub(pattern.replace("<NAME>", re.escape(name) or NEVER), mine, said, flags=re.IGNORECASE)
    return said[:1].upper() + said[1:] + rest if said[1:] != start[1:] else text


def with_own_subjects(text: str, name: str = "") -> str:
    """Return a text with the user, or the named person, as the speaker: as the subject of its sentences, and as the
    owner of things in the languages whose forms for it have a name. Pronouns stay as they are.

    >>> with_own_subjects("The user lives in Rome. The user met Ida and her son")
    'I live in Rome. I met Ida and her son'
    """
    text = _plain_sentence().sub(lambda found: _with_own_subject(found.group(), name), text)
    for pattern, (mine, *_) in all_languages().endings(lambda each: each.persons.forms):
        if "<NAME>" in pattern:
            text = re.sub(pattern.replace("<NAME>", re.escape(name) or NEVER), mine, text, flags=re.IGNORECASE)
    return text


def _with_own_subject(sentence: str, name: str) -> str:
    start = sentence.lstrip()
    languages = languages_of(start)
    if (found := _subject_of(languages, name).match(start)) is None:
        return sentence
    language = next(each for each in languages if found.lastgroup == f"{_IN}{each.code}")
    said = f"{language.persons.i} {_with_own_verb(start[found.end() :], language)}".lstrip()
    return sentence[: len(sentence) - len(start)] + said


_IN = "in_"


@cached(maxsize=1_024)
def _subject_of(languages: LanguageSet, name: str) -> re.Pattern[str]:
    """Return the pattern of a subject at the beginning that is followed by a verb or an adverb."""
    whose = ((each.code, re.escape(name) or f"(?i:{'|'.join(each.persons.subject)})") for each in reversed(languages))
    has_persons = {each.code for each in languages if each.persons.subject}
    found = [rf"(?P<{_IN}{code}>\W*{who}) +(?=[^\W\dA-ZÄÖÜА-ЯЁ])" for code, who in whose if code in has_persons]
    return re.compile("|".join(found) or NEVER)


@cached()
def _speaks_of_user(languages: LanguageSet) -> re.Pattern[str]:
    words = languages.words(lambda each: each.sentences.self_words)
    return re.compile(rf"\b(?:{'|'.join(sorted(words)) or NEVER})", re.IGNORECASE)


def _own_words(rest: str, language: Language) -> str:
    """Return the text after a subject, with its verb and pronouns in the first person."""
    rest = _with_own_verb(rest, language)
    for pattern, (mine, *_) in language.persons.own:
        rest = re.sub(pattern, mine, rest)
    return rest


def _with_own_verb(rest: str, language: Language) -> str:
    words = rest.split(" ")
    place = next((place for place, word in enumerate(words) if word.lower() not in language.persons.between), 0)
    words[place] = _first_person_verb(words[place], language)
    return " ".join(words)


def _first_person_verb(word: str, language: Language) -> str:
    verb = word.rstrip(_MARKS)
    folded, marks = fold_letters(verb), word[len(verb) :]
    if folded in language.persons.verbs:
        return language.persons.verbs[folded] + marks
    for ending, (mine, *_) in language.persons.endings:
        if folded.endswith(ending) and len(folded) > len(ending) + 1:
            return folded.removesuffix(ending) + mine + marks
    return word


_MARKS = ".,;:!?…"


def has_parts(text: str) -> bool:
    """Return whether a text makes several statements, or seems to: it has a conjunction, a comma, brackets, two
    sentences or many words.
    """
    text = text.strip()
    return _joint(languages_of(text)).search(text) is not None or len(content_words(text)) > _MOST_OF_ONE


_MOST_OF_ONE = 4
"""A statement with more meaningful words than this probably says several things."""


@cached()
def _joint(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(
        lambda each: map(re.escape, each.entities.conjunctions),
        r"\s(?:{})\s|[.,;:!?…]\s|\s[(&+/–—-]|\n",
        flags=re.IGNORECASE,
    )


_REDACTED = re.compile(r"\[redacted: [^\]]{1,40}\]")
_MOST_AROUND = 3


def is_bare_credential(text: str) -> bool:
    """Return whether hardly anything is left of a statement without the credentials that were removed from it.

    >>> is_bare_credential("The user's API key is [redacted: anthropic key]")
    True
    """
    rest = _REDACTED.sub(" ", text)
    return rest != text and len(content_words(rest)) <= _MOST_AROUND


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text, at most `most` characters. It ends between two words, with a mark.

    >>> shortened("Anna is a nurse in Oslo", 18)
    'Anna is a nurse…'
    """
    if len(text) <= most:
        return text
    begun = text[: most - 1]
    end = begun.rfind(" ") if not text[most - 1].isspace() else len(begun)
    return begun[: end if end > most // 2 else None].rstrip(" ,;:–-") + "…"


def is_redacted(text: str) -> bool:
    """Return whether credentials or personal data were replaced in a text."""
    return _REDACTED.search(text) is not None


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: "1 row", "2 rows"."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
