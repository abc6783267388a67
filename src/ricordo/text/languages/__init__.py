"""Languages are data: one TOML file per language, one schema, and the detection of the languages of a text.

Language rules take a `LanguageSet` and compile their patterns and tables once per set. A text is read in the default
language of its script, unless its words point to another language. See `docs/decisions/0015-languages-are-data.md`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar
from zlib import crc32

from ricordo.text.languages.schema import Endings, Language, read_language

T = TypeVar("T")
P = ParamSpec("P")
K = TypeVar("K")

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)
_LOOKS_AROUND = re.compile(r"(?:\(\?<?[!=][^()]*\)|\^|\\A)*")
_ALWAYS_FIRST = re.compile(r"(?:[^\\.^$*+?{}\[\]()|](?![*+?{])){0,3}")
_BEGINNING = (3, 2, 1, 0)  # letters
_QUANTIFIER = re.compile(r"[*+?{]")
_FIRST_LETTER = re.compile(r"(?<!\w).", re.DOTALL)
_LONGEST = 400  # characters of what a group at the beginning may become

_SHIPPED = ("en", "ru", "de", "es", "fr", "it", "pt", "zh")
NEVER = "(?!)"
"""A pattern that matches nothing."""

_MAX_CACHED_WORDS = 65_536


class ByWord(dict[str, T]):
    """A cache of a function of a word. A conversation uses few different words.

    `map(cache.__getitem__, words)` runs in C for cached words. A full cache is cleared. Every cache is cleared when a
    language is registered.
    """

    __slots__ = ("_ask", "_longest")

    def __init__(self, ask: Callable[[str], T], *, longest: int = 64) -> None:
        """Args: ask: a pure function of the word. longest: words of more characters are not cached."""
        super().__init__()
        self._ask = ask
        self._longest = longest
        _clear_on_register.append(self.clear)

    def __missing__(self, word: str) -> T:
        answer = self._ask(word)
        if len(word) <= self._longest:
            if len(self) >= _MAX_CACHED_WORDS:
                self.clear()
            self[word] = answer
        return answer


_clear_on_register: list[Callable[[], object]] = []


def cached(maxsize: int | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache like `functools.lru_cache`, until a language is registered."""

    def wrap(function: Callable[P, T]) -> Callable[P, T]:
        kept: Any = lru_cache(maxsize=maxsize)(function)
        _clear_on_register.append(kept.cache_clear)
        return kept  # type: ignore[no-any-return]

    return wrap


class Expressions(Generic[K]):
    """Many expressions of several kinds, each of which begins where a word begins.

    `re` compiles all alternatives of a pattern, and tries them one after the other at each place. A sentence needs few
    of the 4,000 expressions about changes, in eight languages: those that begin like one of its words. Only these are
    compiled and tried.

    >>> told = Expressions({"move": ["(?:has )?moved"], "sale": ["sold|gave away"]}, followed_by=r"(?!\\w)")
    >>> told.kinds_in("he has moved"), told.kinds_in("removed"), [each.group() for each in told.find("sold", "sale")]
    ({'move'}, set(), ['sold'])
    """

    def __init__(self, patterns: Mapping[K, Iterable[str]], *, followed_by: str) -> None:
        self._patterns = patterns
        self._followed_by = followed_by
        self._compiled: dict[str, list[tuple[K, re.Pattern[str]]]] = {}

    def kinds_in(self, text: str) -> set[K]:
        """Return the kinds of the expressions in a text."""
        return {kind for letter in _FIRST_LETTER.finditer(text) for kind, _ in self.matches(text, letter.start())}

    def find(self, text: str, kind: K) -> Iterator[re.Match[str]]:
        """Yield the expressions of a kind in a text, in order; of two that overlap, the first one."""
        end = 0
        for letter in _FIRST_LETTER.finditer(text):
            if letter.start() >= end:
                for each, found in self.matches(text, letter.start()):
                    if each == kind:
                        yield found
                        end = found.end()
                        break

    def matches(self, text: str, start: int = 0) -> Iterator[tuple[K, re.Match[str]]]:
        """Yield the expressions that begin at a place of a text, where a word begins, with their kinds."""
        for length in _BEGINNING:
            beginning = text[start : start + length]
            if len(beginning) == length and beginning in self._by_beginning:
                for kind, pattern in self._compiled.get(beginning) or self._compile(beginning):
                    if (found := pattern.match(text, start)) is not None:
                        yield kind, found

    def _compile(self, beginning: str) -> list[tuple[K, re.Pattern[str]]]:
        patterns = self._by_beginning[beginning].items()
        found = [(kind, re.compile(f"(?:{'|'.join(each)}){self._followed_by}")) for kind, each in patterns]
        self._compiled[beginning] = found
        return found

    @cached_property
    def _by_beginning(self) -> dict[str, dict[K, list[str]]]:
        """The expressions of each kind by as many of their first letters as are always the same."""
        found: dict[str, dict[K, list[str]]] = {}
        for kind, patterns in self._patterns.items():
            for pattern in patterns:
                for alternative in _alternatives(pattern):
                    for spelled in _spelled(alternative):
                        found.setdefault(_beginning_of(spelled), {}).setdefault(kind, []).append(spelled)
        return found


def _beginning_of(pattern: str) -> str:
    start = _LOOKS_AROUND.match(pattern)
    letters = _ALWAYS_FIRST.match(pattern, start.end() if start else 0)
    return letters.group() if letters else ""


def _alternatives(pattern: str) -> Iterator[str]:
    depth = start = 0
    for token in _TOKEN.finditer(pattern):
        written = token.group()
        depth += (written == "(") - (written == ")")
        if written == "|" and not depth:
            yield pattern[start : token.start()]
            start = token.end()
    yield pattern[start:]


def _spelled(alternative: str) -> Iterator[str]:
    """Return what an alternative with a group at its beginning stands for: "(?:has |had )?moved" is three."""
    if not alternative.startswith("(?:"):
        yield alternative
        return
    end = _end_of_group(alternative)
    choices, rest = list(_alternatives(alternative[len("(?:") : end - 1])), alternative[end:]
    if rest.startswith("?"):
        choices, rest = [*choices, ""], rest[1:]
    if _QUANTIFIER.match(rest) or len(choices) * len(rest) > _LONGEST:
        yield alternative
        return
    for choice in choices:
        yield from _spelled(choice + rest)


def _end_of_group(pattern: str) -> int:
    """Return where the group ends with which a pattern begins."""
    depth = 0
    for token in _TOKEN.finditer(pattern):
        depth += (token.group() == "(") - (token.group() == ")")
        if not depth:
            return token.end()
    return len(pattern)


class LanguageSet(tuple[Language, ...]):
    """The languages of a text, in the order of the registry. Equal sets are the same object."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def words(self, of: Callable[[Language], Iterable[str]]) -> frozenset[str]:
        """Return the union of a word list over the languages."""
        return frozenset(word for language in self for word in of(language))

    def in_order(self, of: Callable[[Language], Iterable[str]]) -> tuple[str, ...]:
        """Return a word list of each language, the first language's words first."""
        return tuple(word for language in self for word in of(language))

    def mapping(self, of: Callable[[Language], Mapping[str, T]]) -> dict[str, T]:
        """Return the merged table of all languages. If two have the same key, the first language wins."""
        found: dict[str, T] = {}
        for language in reversed(self):
            found.update(of(language))
        return found

    def endings(self, of: Callable[[Language], Endings]) -> Endings:
        """Return a table of endings of each language, the first language's endings first."""
        return tuple(each for language in self for each in of(language))

    def pattern(
        self, of: Callable[[Language], Iterable[str]], template: str = "{}", *, flags: int = re.NOFLAG
    ) -> re.Pattern[str]:
        """Compile a pattern of all alternatives; without any, a pattern that never matches.

        Args:
            template: the pattern around the alternatives, which replace `{}` without added parentheses.
        """
        found = [each for each in self.in_order(of) if each]
        return re.compile(template.replace("{}", "|".join(found)) if found else NEVER, flags)

    def union(self, other: LanguageSet) -> LanguageSet:
        """Return the languages of both sets."""
        return self if other is self else _set_of(*self, *other)


class Lexicon:
    """The words and patterns that some rules need, in some languages. Each is computed when it is first read."""

    def __init__(self, languages: LanguageSet) -> None:
        self.languages = languages


def words_of(of: Callable[[Language], Iterable[str]]) -> cached_property[frozenset[str]]:
    """Return an attribute of a lexicon, computed by `LanguageSet.words`."""
    return cached_property(lambda lexicon: lexicon.languages.words(of))


def list_of(of: Callable[[Language], Iterable[str]]) -> cached_property[tuple[str, ...]]:
    """Return an attribute of a lexicon, computed by `LanguageSet.in_order`."""
    return cached_property(lambda lexicon: lexicon.languages.in_order(of))


def endings_of(of: Callable[[Language], Endings]) -> cached_property[Endings]:
    """Return an attribute of a lexicon, computed by `LanguageSet.endings`."""
    return cached_property(lambda lexicon: lexicon.languages.endings(of))


def pattern_of(
    of: Callable[[Language], Iterable[str]], template: str = "{}", *, flags: int = re.NOFLAG
) -> cached_property[re.Pattern[str]]:
    """Return an attribute of a lexicon, computed by `LanguageSet.pattern`."""
    return cached_property(lambda lexicon: lexicon.languages.pattern(of, template, flags=flags))


class _Registry:
    """The language records: those of the package, then the registered ones."""

    def __init__(self) -> None:
        self.records: dict[str, Language] = {}
        self.sets: dict[tuple[str, ...], LanguageSet] = {}

    def load(self) -> dict[str, Language]:
        if not self.records:
            self.records = _shipped()
        return self.records

    def replace(self, records: dict[str, Language]) -> None:
        """Replace all languages, and clear everything computed from the old ones."""
        self.records = records
        self.sets = {}
        for clear in _clear_on_register:
            clear()


_registry = _Registry()


def register(path: Path | str) -> Language:
    """Add a language for this process, or replace the one with the same code. Register before opening a store.

    Args:
        path: a TOML file as described in `docs/reference/languages.md`.

    Raises:
        InvalidError: the file cannot be read; the message names the field.
    """
    language = read_language(Path(path).expanduser())
    known = _registry.load().get(language.code)
    if known is not None and repr(known) == repr(language):
        return known
    _registry.replace({**_registry.load(), language.code: language})
    return language


def unregister(code: str) -> None:
    """Undo `register`: remove a language, or restore the package's version. An unknown code is ignored."""
    kept = {known: language for known, language in _registry.load().items() if known != code}
    _registry.replace(_shipped() | {known: each for known, each in kept.items() if known not in _SHIPPED})


_reading = Lock()


def _shipped() -> dict[str, Language]:
    """Return the languages of the package by code, the same records for every thread: they are told from registered
    ones by identity.
    """
    with _reading:
        return _read_shipped()


@cache
def _read_shipped() -> dict[str, Language]:
    """Read the languages of the package. Only tests compile all their patterns."""
    found = {}
    for code in _SHIPPED:
        with as_file(files("ricordo.text.languages") / f"{code}.toml") as path:
            found[code] = read_language(path, is_checked=False)
    return found


def _set_of(*languages: Language) -> LanguageSet:
    codes = {language.code for language in languages}
    key = tuple(code for code in _registry.load() if code in codes)
    if key not in _registry.sets:
        _registry.sets[key] = LanguageSet(_registry.records[code] for code in key)
    return _registry.sets[key]


@cached()
def all_languages() -> LanguageSet:
    """Return every language that has a language file."""
    return _set_of(*_registry.load().values())


@cached()
def default_languages() -> LanguageSet:
    """Return the default language of each script that has one."""
    return _set_of(*(language for language in all_languages() if language.is_default))


@cached()
def default_language(script: str) -> Language | None:
    """Return the language assumed for a text in this script without other evidence."""
    of_script = [language for language in all_languages() if language.script == script]
    return next((language for language in of_script if language.is_default), next(iter(of_script), None))


@cached()
def any_of(codes: tuple[str, ...]) -> LanguageSet:
    """Return the languages with these codes; unknown codes are ignored."""
    return _set_of(*(language for language in all_languages() if language.code in codes))


def analyzer_version() -> str:
    """Return the version of the text analysis. When it changes, a store rebuilds what was computed from texts."""
    if not _registry.records:  # no language was registered, so opening a store need not read the files
        return _ANALYZER
    added = sorted(set(all_languages()) - set(_shipped().values()), key=lambda each: each.code)
    codes = [f"{each.code}-{crc32(repr(each).encode()):08x}" for each in added]
    return "+".join([_ANALYZER, *codes])


_ANALYZER = "9"
"""Increase this number with every change of the text analysis that alters stored data."""


# ---- which languages a text is in

_LOOKED_AT = 2_000
_LETTERS = re.compile(r"[^\W\d_]+")
_APART = bytes(ord(chr(code).lower()) if chr(code).isalpha() else 32 for code in range(128)) * 2  # the same in ASCII
_PATTERN_WORD = re.compile(r"(?<![\\\w])[^\W\d_]{3,}(?![\w\[*+?{])")
# Weight of a word that occurs only in some languages: a sure sign (a word for the user, such as "utilisatrice", or an
# elided word), a function word, and any other word.
_SURE_SIGN, _FUNCTION_WORD, _OTHER_WORD = 6, 3, 1
# A language needs this score and two words, or one unambiguous word in a short text without default-language words.
_LEAST = 3
_SHORT_TEXT = range(2, 9)
_CLEAR_CHARS = 4
_SHORT_FORM = 4
# The default language is also read if it has this score and half the score of the other language.
_LEAST_BESIDE = 8


@cached(maxsize=4_096)
def languages_of(text: str) -> LanguageSet:
    """Return the languages whose rules apply to a text, judged by its letters and words.

    Latin text is read in the default language of the script unless more words belong to another language. Letters of
    another script add the language of that script; if most words have such letters, Latin words are ignored.

    >>> [[each.code for each in languages_of(text)] for text in ("Anna lives in Rome", "Анна живёт в Риме")]
    [['en'], ['en', 'ru']]
    """
    elided = _elided_in(text[:_LOOKED_AT])
    if text.isascii():
        return _of_words([*ascii_words(text[:_LOOKED_AT]), *elided])
    words = [*_LETTERS.findall(text[:_LOOKED_AT].lower()), *elided]
    others = [word for word in words if _script_of(word[0]) != "LATIN"]
    found = _of_words(words) if len(others) * 2 < len(words) else _defaults()
    languages = [
        language for script in {_script_of(word[0]) for word in others} if (language := _of_script(script, others))
    ]
    return _set_of(*found, *languages) if languages else found


def _elided_in(text: str) -> list[str]:
    """Return the elided words of a text, with their apostrophe, that only one language has: French "j'"."""
    if "'" not in text and "’" not in text:
        return []
    return [f"{found}'" for found in _elided().findall(text.lower())]


@cached()
def _elided() -> re.Pattern[str]:
    every = [word for each in _latin() for word in each.letters.elided]
    own = "|".join(word for word in every if every.count(word) == 1)
    return re.compile(rf"(?<![^\W_])({own or NEVER})['’](?=[^\W_])")


def ascii_words(text: str) -> list[str]:
    """Return the words of letters in an ASCII text, in lower case."""
    return text.encode().translate(_APART).decode().split()


def _of_words(words: list[str]) -> LanguageSet:
    """Return the languages of words in Latin letters and lower case."""
    default = default_language("LATIN")
    if default is None or not any(map(_IS_OF_ANOTHER.__getitem__, words)):
        return _defaults()
    distinct = set(words)
    evidence = {word: found for word in distinct if (found := _EVIDENCE[word])}
    scores: dict[Language, int] = {}
    for found in evidence.values():
        for language, weight in found.items():
            scores[language] = scores.get(language, 0) + weight
    for language in scores:  # particles also occur in names: they count only with other evidence
        scores[language] += len(distinct & _particles(language))
    of_default = scores.pop(default, 0)
    # Registry order, because set order differs between processes.
    best = max((language for language in all_languages() if language in scores), key=scores.__getitem__)
    telling = [word for word, found in evidence.items() if best in found]
    is_more_than_one = len(telling) + len(distinct & _particles(best)) > 1
    is_sure = of_default < _FUNCTION_WORD and any(evidence[word][best] == _SURE_SIGN for word in telling)
    is_clear = is_sure or (not of_default and any(_is_clear(word, best) for word in telling))
    is_clear = is_clear and len(words) in _SHORT_TEXT
    if scores[best] <= of_default or not (is_clear or (is_more_than_one and scores[best] >= _LEAST)):
        return _defaults()
    equal = [language for language in all_languages() if scores.get(language) == scores[best]]
    return _set_of(default, best) if of_default >= max(_LEAST_BESIDE, scores[best] / 2) else _set_of(*equal)


@cached()
def _defaults() -> LanguageSet:
    default = default_language("LATIN")
    return _set_of(default) if default else default_languages()


def _is_clear(word: str, language: Language) -> bool:
    """Return whether one word is enough in a short text without words of the default language."""
    return len(word) >= _CLEAR_CHARS - (_EVIDENCE[word][language] == _FUNCTION_WORD)


@cached()
def _particles(language: Language) -> frozenset[str]:
    """Return the function words that stand in names of some language: "le" tells neither French nor Spanish."""
    in_names = {word for each in _latin() for word in each.name_particles}
    return frozenset((*language.name_particles, *in_names & function_words_of(language)))


def _evidence(word: str) -> dict[Language, int]:
    """Return the Latin languages that a lower-case word is evidence of, with the weight of the evidence.

    A function word of the default language is evidence of that language only, or of none if another language shares it.
    Another word of the default language that is a function word elsewhere is weak evidence of the other languages. A
    single letter is evidence only if it has an accent: "à", "è".
    """
    if len(word) < 2 and word.isascii():
        return {}
    found = {language: weight for language in _latin() if (weight := _weight(word, language))}
    default = default_language("LATIN")
    if default in found and len(found) > 1:
        if found[default] == _FUNCTION_WORD:
            return {}
        return {language: _OTHER_WORD for language, weight in found.items() if weight == _FUNCTION_WORD}
    return found


@cached()
def _latin() -> tuple[Language, ...]:
    return tuple(language for language in all_languages() if language.script == "LATIN")


def _weight(word: str, language: Language) -> int:
    if word in _particles(language):
        return 0
    if word in _user_words(language) or (word[-1] == "'" and word[:-1] in language.letters.elided):
        return _SURE_SIGN
    if word in function_words_of(language):
        return _FUNCTION_WORD
    if (
        word in _ordinary(language)
        or word in _everyday(language)
        or not {word, word.casefold()}.isdisjoint(_characteristic_words(language))
    ):
        return _OTHER_WORD
    # An inflected form of a short word is more often a word of another language.
    is_form = len(word) > _SHORT_FORM and language.entities.word_forms and is_ordinary(word, language)
    return _OTHER_WORD if is_form else 0


_EVIDENCE = ByWord(_evidence)
_IS_OF_ANOTHER = ByWord(lambda word: any(language is not default_language("LATIN") for language in _EVIDENCE[word]))


@cached()
def function_words_of(language: Language) -> frozenset[str]:
    """Return the function words of a language as they are written, in lower case."""
    return frozenset(word.lower() for word in language.function_words)


@cached()
def _characteristic_words(language: Language) -> frozenset[str]:
    """Return the words in a record that are likely in a text in the language, besides function words."""
    statements, dates = language.statements, language.dates
    patterns = (*statements.strict, *statements.usual, *statements.value_first, *statements.favourite)
    lists = (
        language.sentences.first_person,
        language.sentences.number_words,
        (word for line in dates.table.splitlines() for word in line.split()[2:]),
        *language.kinship.words.values(),
        *language.change.same.values(),  # "moved" alone may tell the language of "Inés se mudó a Valencia"
        *(statements.plain_verbs, statements.past_verbs, statements.negations, statements.unsure, statements.also),
        *(statements.fillers, statements.copulas, statements.determiners, statements.countries),
        *(language.entities.deeds, language.change.common, language.change.kin),
        (word for pattern in patterns for word in _PATTERN_WORD.findall(pattern)),
        language.spoken,
    )
    shared = {word for word in language.spoken if any(word in each.function_words for each in all_languages())}
    return frozenset(word.lower() for each in lists for word in each) - shared  # German "is"


@cached()
def _user_words(language: Language) -> frozenset[str]:
    """Return the words for the user that tell a language: not those of the default language, as "user" labels any
    text.
    """
    return frozenset(() if language is default_language("LATIN") else language.sentences.self_words)


@cached(maxsize=16_384)
def is_ordinary(word: str, language: Language) -> bool:
    """Return whether a folded word is an ordinary word of the language, or a form of one."""
    ordinary = _ordinary(language)
    return word in ordinary or any(base in ordinary for base in bases_of(word, language.entities.word_forms))


@cached()
def _ordinary(language: Language) -> frozenset[str]:
    return frozenset(language.entities.ordinary)


@cached()
def _everyday(language: Language) -> frozenset[str]:
    return frozenset(language.everyday)


def bases_of(word: str, endings: Endings) -> list[str]:
    """Return the possible base forms of a word, by a table of endings."""
    found: list[str] = []
    for ending, others in endings:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1:
            found += [stem + other for other in others]
            found += [stem[:-1]] if len(stem) > 3 and stem[-1] == stem[-2] else []
    return found


def _of_script(script: str, words: list[str]) -> Language | None:
    """Return the language of a script that contains most of the words; the default language if unclear."""
    of_script = [language for language in all_languages() if language.script == script]
    if len(of_script) < 2:
        return of_script[0] if of_script else None
    distinct = set(words)
    ranked = {each.code: len(distinct & (_characteristic_words(each) | function_words_of(each))) for each in of_script}
    default = default_language(script)
    best = max(of_script, key=lambda each: ranked[each.code])
    return default if default and ranked[default.code] >= ranked[best.code] else best


@cache
def _script_of(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name, as in LATIN or CYRILLIC."""
    return unicodedata.name(letter, "").partition(" ")[0]


# ---- letters


@cached()
def _folds() -> dict[int, str]:
    pairs = all_languages().mapping(lambda each: each.letters.folds)
    return {ord(letter): other for letter, other in pairs.items()}


def fold_letters(text: str) -> str:
    """Replace letters with optional spellings: Russian ё becomes е."""
    return text if text.isascii() else text.translate(_folds())
