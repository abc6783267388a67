"""Convert text to index terms. Stored text and questions use the same function, so that their terms match.

A word is normalised (compatibility form, case, accents of Latin and Greek) and stemmed with the algorithm of the
default language of its script. A text in another language also gets the stems of that language. So a question in any
language matches by the default stems, and a question in the text's own language by both. Chinese, Japanese and Korean
are cut into pairs of characters.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from itertools import chain
from typing import NamedTuple

import Stemmer

from ricordo.text.languages import (
    ByWord,
    LanguageSet,
    all_languages,
    any_of,
    cached,
    default_language,
    fold_letters,
    languages_of,
)

MAX_WORD_CHARS = 64
"""A longer run of letters is a key, a hash or a data URL. It is cut so that it cannot bloat the index."""

_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")
_PLAIN_WORD = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")  # the same within ASCII
# Translation table: ASCII to lower case, every separator to a blank. Apostrophes stay, because some are inside words.
_APART = bytes(ord(chr(code).lower()) if chr(code).isalnum() or chr(code) == "'" else 32 for code in range(128)) * 2
_ASCII = re.compile(r"[a-z0-9]+\Z")
_PARTS = ByWord(_PLAIN_WORD.findall)
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fa1f]+")
_POSSESSIVE = re.compile(r"['’ʼ]s?\Z|['’ʼ]s(?=['’ʼ])")
_APOSTROPHES = re.compile(r"['’ʼ]")
# French and Italian attach short words to the next one: l'heure, qu'elle.
_ELISION = re.compile(r"^[^\W\d_]{1,2}['’ʼ](?=[^\W\d_]{2})")

# Scripts without a language file. A language file's own stemmer takes precedence.
_STEMMERS = {"GREEK": "greek", "ARABIC": "arabic", "ARMENIAN": "armenian", "DEVANAGARI": "hindi", "TAMIL": "tamil"}
_local = threading.local()


def raw_words(text: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters and digits, which may contain apostrophes."""
    if not text.isascii():
        return _WORD.findall(text.lower())
    words = text.encode().translate(_APART).decode().split()
    if "'" not in text:
        return words
    found: list[str] = []
    for word in words:
        if "'" in word:
            found += _PARTS[word]
        else:
            found.append(word)
    return found


def index_terms(text: str, words: list[str] | None = None, *, languages: LanguageSet | None = None) -> list[str]:
    """Return the index terms of a text in order, repeats included. Unpaired surrogates are dropped.

    Args:
        words: `raw_words(text)`, if already computed.
        languages: the languages of the text; detected with `languages_of` by default.

    >>> index_terms("Sarah's peanuts, Ёлки")
    ['sarah', 'peanut', 'елк']
    """
    words = raw_words(text) if words is None else words
    algorithms = _further_stemmers(languages_of(text) if languages is None else languages)
    if algorithms:
        return [term for word in words for term in _terms_by_language(word, algorithms)]
    if text.isascii():
        return list(map(_TERMS.__getitem__, words))
    terms: list[str] = []
    for word in words:
        if word.isascii():
            terms.append(_TERMS[word])
        else:
            terms.extend(_foreign_terms(word))
    return terms


@cached()
def _further_stemmers(languages: LanguageSet) -> tuple[tuple[str, str], ...]:
    """Return the script and algorithm of each language that is not the default of its script."""
    return tuple(
        (language.script, language.stemmer)
        for language in languages
        if language.stemmer and default_language(language.script) is not language
    )


@cached(maxsize=16_384)
def _terms_by_language(word: str, algorithms: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the term of a word by its script, and its stem in each further language if it differs."""
    terms = [_TERMS[word]] if word.isascii() else _foreign_terms(word)
    if len(terms) != 1 or word.isdigit():
        return tuple(terms)
    script = _script(word) or "LATIN"
    bare = unicodedata.normalize("NFKC", word[:MAX_WORD_CHARS]).casefold()
    if (noun := _ELISION.sub("", bare)) != bare:
        terms.append(_TERMS[noun])
    bare = _APOSTROPHES.sub("", noun)
    # Snowball algorithms expect the accents of their language, so accents are removed after stemming.
    stems = (_without_accents(_stem(each, bare), script) for of, each in algorithms if of == script)
    return tuple(dict.fromkeys([*terms, *filter(None, stems)]))


def _foreign_terms(word: str) -> list[str]:
    """Return the terms of a non-ASCII word. Chinese, Japanese and Korean are cut into pairs of characters."""
    folded = unicodedata.normalize("NFKC", word).casefold()
    terms: list[str] = []
    end = 0
    for run in _CJK.finditer(folded):
        terms.extend(_TERMS[part] for part in _WORD.findall(folded[end : run.start()]))
        terms.extend(_pairs(run.group()))
        end = run.end()
    terms.extend(_TERMS[part] for part in _WORD.findall(folded[end:]))
    return [term for term in terms if term]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _term(word: str) -> str:
    """Return one normalised and stemmed word."""
    word = _POSSESSIVE.sub("", word[:MAX_WORD_CHARS])
    word = _APOSTROPHES.sub("", word)
    if _ASCII.match(word):
        return _stem(_stemmer("LATIN"), word) if not word.isdigit() else word
    script = _script(word)
    return _stem(_stemmer(script), _without_accents(word, script))


@cached()
def _stemmer(script: str) -> str:
    language = default_language(script)
    return language.stemmer if language else _STEMMERS.get(script, "")


_TERMS = ByWord(_term)


def _script(word: str) -> str:
    """Return the script of the first letter: the first word of its Unicode name, as in LATIN or CYRILLIC."""
    for char in word:
        if char.isalpha():
            return unicodedata.name(char, "").partition(" ")[0]
    return ""


def _without_accents(word: str, script: str) -> str:
    """Remove accents in Latin and Greek, where they are optional; elsewhere fold letters listed in language files."""
    if script not in ("LATIN", "GREEK"):
        return fold_letters(word)
    bare = "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
    return bare.replace("ß", "ss").replace("ø", "o").replace("ł", "l").replace("æ", "ae")


def _stem(algorithm: str, word: str) -> str:
    """Stem a word. Stemmer objects are not thread-safe, so each thread has its own."""
    if not algorithm:
        return word
    stemmers: dict[str, Stemmer.Stemmer] | None = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    if algorithm not in stemmers:
        stemmers[algorithm] = Stemmer.Stemmer(algorithm)
    stem = stemmers[algorithm].stemWord(word)
    return stem or word


def name_terms(text: str) -> list[str]:
    """Return terms as `index_terms` does, but do not stem Latin words: the alias "Express" must not match "expression".

    Words in Cyrillic and other inflected scripts are stemmed, so that "Сашу" matches Саша.
    """
    terms: list[str] = []
    for word in _WORD.findall(text.lower()):
        bare = word[:MAX_WORD_CHARS]
        if not bare.isalnum():  # it has an apostrophe
            bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", bare))
        if bare.isascii():
            terms.append(bare)
        elif (script := _script(bare)) == "LATIN":
            terms.append(_without_accents(bare, script))
        else:
            terms.extend(map(_name_stem, _foreign_terms(word)))
    return terms


def _name_stem(stem: str) -> str:
    """Correct the stem of a name: the stemmer keeps Андрея and Андрей apart, and Павел and Павла."""
    uneven, endings = _name_stems()
    if len(stem) > 3 and endings and stem.endswith(endings):
        return stem[:-1]
    return uneven.get(stem, stem)


@cached()
def _name_stems() -> tuple[dict[str, str], tuple[str, ...]]:
    languages = all_languages()
    endings = tuple(each.names.stem_ending for each in languages if each.names.stem_ending)
    return languages.mapping(lambda each: each.names.uneven_stems), endings


class Token(NamedTuple):
    """A word of a text: `term` as in `name_terms`, and `written`, which is normalised but not stemmed.

    `follows` tells that the word does not start a sentence, so that a capital letter is significant.
    """

    term: str
    written: str
    is_capital: bool
    follows: bool


_ENDS = re.compile(r"[.!?:\n…。！？]")


def name_tokens(text: str) -> list[Token]:
    """Return the words of a text in order. Chinese, Japanese and Korean come in pairs of characters."""
    tokens: list[Token] = []
    end = 0
    for found in _WORD.finditer(text):
        word = found.group()
        is_capital = word[0].isupper()
        follows = end > 0 and not _ENDS.search(text, end, found.start())
        end = found.end()
        bare = fold_word(word.lower())
        if bare.isascii():
            tokens.append(Token(bare, bare, is_capital, follows))
            continue
        terms = name_terms(word)
        whole = len(terms) == 1
        tokens.extend(Token(term, bare if whole else term, is_capital, follows) for term in terms)
    return tokens


@cached(maxsize=16_384)
def fold_word(word: str) -> str:
    """Return a lower-case word without its accents, possessive ending and apostrophes."""
    bare = _APOSTROPHES.sub("", _POSSESSIVE.sub("", word[:MAX_WORD_CHARS]))
    if bare.isascii():
        return bare
    bare = unicodedata.normalize("NFKC", bare).casefold()
    return _without_accents(bare, _script(bare))


@cached(maxsize=4_096)
def name_key(name: str) -> str:
    """Return a name normalised to the string by which aliases are looked up."""
    return " ".join(name_terms(name))


# ---- questions

MAX_TERMS = 64
"""A longer question is a document. Its rarest words decide, and a full-text query of 1,000 terms takes seconds."""

MAX_QUESTION_CHARS = 20_000
_LANGUAGE_CHARS = 2_000

_URL = re.compile(r"(?:https?|ftp)://\S+|www\.\S+", re.IGNORECASE)
_RUN = re.compile(r"[^\W_]+")


def question_terms(text: str) -> list[str]:
    """Return the distinct index terms of a question without function words, in order, at most `MAX_TERMS`.

    URLs and single characters are dropped. A question that consists of function words only ("who am I?") keeps them,
    because a result from common words is better than none.
    """
    text = _URL.sub(" ", text[:MAX_QUESTION_CHARS])
    ignored = function_terms(language_of_function_words(text))
    terms = [term for term in dict.fromkeys(index_terms(text)) if len(term) > 1 or not term.isascii()]
    content = [term for term in terms if term not in ignored]
    return (content or terms)[:MAX_TERMS]


def language_of_function_words(text: str) -> str:
    """Return the code of the language whose function words are most frequent in a text; the default if unclear.

    Precise enough only to choose a list of function words. Use `languages_of` to detect the languages of a text.
    """
    words = {word.lower() for word in _RUN.findall(text[:_LANGUAGE_CHARS])}
    scripts = {_script(word) for word in words if not word.isascii()} - {"", "LATIN"}
    for language in all_languages():
        if language.script in scripts:
            return language.code
    latin = [language.code for language in all_languages() if language.script == "LATIN"]
    return max(latin, key=lambda code: len(words & function_words(code)), default="")


@cached()
def function_words(code: str) -> frozenset[str]:
    """Return the function words of a language as they are written, also in chats.

    Only closed classes are listed: articles, pronouns, prepositions, auxiliaries, question words. Published stop word
    lists also contain "fire", "computer" and "bill", which people ask about.
    """
    return any_of((code,)).words(lambda each: (*each.function_words, *each.spoken))


@cached()
def function_terms(code: str) -> frozenset[str]:
    """Return the function words of a language as index terms."""
    languages = any_of((code,))
    return frozenset(term for word in function_words(code) for term in index_terms(word, languages=languages))


# ---- first person, questions and scripts

_LETTERS = re.compile(r"[^\W\d_]+")
_MOST_BEFORE = 3  # words before a verb that says I or we
QUESTION_MARKS = ("?", "？", "؟")


def speaks_of_themselves(text: str) -> bool:
    """Return whether a text has a first-person word in its first 2,000 characters."""
    return not first_person_words(languages_of(text)).isdisjoint(_LETTERS.findall(text[:2_000].lower()))


@cached()
def first_person_words(languages: LanguageSet) -> frozenset[str]:
    return languages.words(lambda each: each.sentences.first_person)


def asks_for_oneself(text: str) -> bool:
    """Return whether a question has a first-person word, or begins with a verb that leaves it out or ends in it.

    >>> [asks_for_oneself(text) for text in ("Can I take aspirin?", "¿Puedo tomar aspirina?", "Is aspirin safe?")]
    [True, True, False]
    """
    if speaks_of_themselves(text):
        return True
    languages = languages_of(text)
    if _to_oneself(languages).search(text[:2_000].lower()):
        return True
    denying = languages.words(lambda each: each.statements.negations)
    silent = frozenset(word for each in languages for word in function_words(each.code)) - denying
    words = _LETTERS.findall(text[:2_000].lower())
    for place, word in enumerate(words):
        begun = _begun(" ".join(words[place:]), languages)
        if begun and begun.split()[-1] not in denying:
            return True
        if word not in silent:
            return False
    return False


@cached()
def _to_oneself(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.sentences.to_oneself, r"(?<!\w)(?:{})(?!\w)")


def speaks_only_for_group(text: str) -> bool:
    """Return whether the first-person words in a text are all plural: we, our, us."""
    languages = languages_of(text)
    said = first_person_words(languages).intersection(_LETTERS.findall(text[:2_000].lower()))
    return bool(said) and said <= languages.words(lambda each: each.sentences.first_person_plural)


def speaks_for_group(text: str) -> bool:
    """Return whether a text speaks for a group as `speaks_only_for_group` finds, also by verbs alone.

    >>> [speaks_for_group(text) for text in ("We meet at ten", "Não temos seguro", "Решили ждать", "Решил ждать")]
    [True, True, True, False]
    """
    languages = languages_of(text)
    said = first_person_words(languages).intersection(_LETTERS.findall(text[:2_000].lower()))
    if not said and (begun := _own_beginning(text, languages)):
        said = frozenset((begun.split()[-1],))
    plural = languages.words(lambda each: each.sentences.first_person_plural)
    return bool(said) and all(word in plural or _we_verbs(languages).fullmatch(word) for word in said)


def says_we(text: str) -> bool:
    """Return whether a text has a word for "we" of its language that may also mean anybody.

    >>> says_we("On déménage à Nantes en août"), says_we("Il déménage à Nantes")
    (True, False)
    """
    words = languages_of(text).words(lambda each: each.sentences.we_words)
    return not words.isdisjoint(_LETTERS.findall(text[:2_000].lower()))


@cached()
def _we_verbs(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.sentences.we_verbs)


def begins_with_oneself(text: str) -> bool:
    """Return whether one of the first two words of a text is a first-person word: "My brother repairs motorbikes"."""
    return speaks_of_themselves(" ".join(text.split(None, 2)[:2]))


def leaves_out_its_subject(text: str, languages: LanguageSet) -> bool:
    """Return whether a statement omits its subject, which is the speaker: "Sold the car", "Живу в Перми".

    >>> [leaves_out_its_subject(text, languages_of(text)) for text in ("Машину продал", "Почту носят")]
    [True, False]
    """
    return _own_beginning(text, languages) != ""


def shows_no_person(text: str) -> bool:
    """Return whether a statement omits its subject, and neither its verb nor another word shows that it is the speaker.

    >>> shows_no_person("Sold the car"), shows_no_person("Sold my car"), shows_no_person("Живу в Перми")
    (True, False, False)
    """
    languages = languages_of(text)
    beginning = _own_beginning(text, languages)
    return _of_anybody(languages).fullmatch(beginning) is not None and not speaks_of_themselves(text)


@cached()
def _of_anybody(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.anybodys_beginnings)


def _own_beginning(text: str, languages: LanguageSet) -> str:
    """Return the beginning of a statement that omits its subject, up to the verb; "" if it does not omit it."""
    low = text.lower()
    said = _begun(low, languages) or _begun_later(low, languages)
    is_of_anybody = any(said in function_words(each.code) for each in languages)
    return "" if is_of_anybody and said not in _own_verbs(languages) else said


def _begun(low: str, languages: LanguageSet) -> str:
    """Return the beginning of a text in lower case, up to a verb of the speaker: "i moved", "переехала"; "" if it has
    none, or its subject follows: "приехала мама".
    """
    found = _own_beginnings(languages).match(low)
    said = found.group().strip() if found else ""
    if found is None or not _is_of_speaker(said.split()[-1], languages):
        return ""
    following = _LETTERS.search(low, found.end())
    return "" if following and following.group() in _subjects(languages) else said


def _begun_later(low: str, languages: LanguageSet) -> str:
    """Return a verb of the speaker behind up to three other words: "машину продал"; "" if there is none."""
    for _ in range(_MOST_BEFORE):
        found = _before_own_verbs(languages).match(low)
        if found is None:
            break
        low = low[found.end() :]
        if said := _begun(low, languages):
            return said
    return ""


def _is_of_speaker(verb: str, languages: LanguageSet) -> bool:
    """Return whether a word of `own_beginnings` is a verb of the speaker by its longest known ending."""
    endings = _verb_endings(languages)
    word = "_" + verb.replace("ё", "е")
    return next((endings[word[at:]] for at in range(len(word)) if word[at:] in endings), True)


@cached()
def _verb_endings(languages: LanguageSet) -> dict[str, bool]:
    """Return by ending whether words that end in it are verbs of the speaker."""
    own = languages.words(lambda each: each.change.own_endings)
    return dict.fromkeys(languages.words(lambda each: each.change.other_endings), False) | dict.fromkeys(own, True)


@cached()
def _before_own_verbs(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.before_own_verbs, r"\W*(?:{})\s+")


@cached()
def _subjects(languages: LanguageSet) -> frozenset[str]:
    """Return the given names and words for relatives of languages in which a subject may stand behind its verb."""
    return frozenset(
        word.lower()
        for each in languages
        if each.change.before_own_verbs
        for word in (*each.names.given, *chain.from_iterable(each.kinship.words.values()))
    )


@cached()
def _own_verbs(languages: LanguageSet) -> frozenset[str]:
    """Return the verbs that only the speaker uses of themselves: "bin", but not "war"."""
    forms = languages.mapping(lambda each: each.persons.verbs)
    return frozenset(own for other, own in forms.items() if own != other)


@cached()
def _own_beginnings(languages: LanguageSet) -> re.Pattern[str]:
    return languages.pattern(lambda each: each.change.own_beginnings, r"\W*(?:{})(?!\w)")


def is_latin(text: str) -> bool:
    """Return whether at least half of the letters of a text (of its first 2,000 characters) are Latin."""
    if text.isascii():
        return True
    letters = [char for char in text[:2_000] if char.isalpha()]
    return sum(char < "\u0250" for char in letters) * 2 >= len(letters)
