"""Check whether a model's statement is supported by the messages it cites. Pure.

A statement counts as said if it repeats a clause of its evidence, even in another grammatical person ("I live in Oslo",
"The user lives in Oslo"). Everything else is doubtful and must be verified. A new word may be a synonym or an
invention, and the same words may be about another person or time, or mean the opposite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ricordo.consolidation.prompts import own_words, speaker_label
from ricordo.model import Node
from ricordo.text.analyzer import function_words, index_terms, name_terms, raw_words
from ricordo.text.canonical import is_owner
from ricordo.text.dates.grammar import mentions_time
from ricordo.text.languages import Lexicon, all_languages, cached, languages_of, list_of, pattern_of, words_of
from ricordo.text.names import folded_relation, predicate_of, relation_words
from ricordo.text.sentences import plain_sentences

ADDS = "adds something to its evidence"
OTHER_WAY = "says it in another way than its evidence"
OPPOSITE = "may say the opposite of its evidence, or tell of another time"
NEW_VALUE = "has a name or a number that nobody said"
"""Why a statement is held back. Runs and reviews store these reasons, so they must not quote messages."""

_DATE = r"\b(?:\d{4}-\d\d(?:-\d\d)?|(?:19|20)\d\d)\b"
_QUOTES = re.compile(r"[\"«»“”„]")
_CLAUSE_ENDS = re.compile(r"[,;:()—–]|\s-\s")
_CONTRACTED = re.compile(r"['’ʼ](?:d|ll)\Z")


def doubt(statement: str, evidence: Sequence[Node]) -> str:
    """Return why a statement must be verified; "" if a clause of its evidence states it.

    >>> doubt("The user lives in Rome", [])
    'adds something to its evidence'
    """
    said = [node for node in evidence if node.role == "user"]
    if any(_says(clause, statement, node) for node in said for clause in _clauses(own_words(node))):
        return ""
    if _has_new_word(statement, evidence):
        return ADDS
    return OTHER_WAY if any(_agrees(own_words(node), statement) for node in said) else OPPOSITE


def new_values(statement: str, shown: Sequence[str]) -> list[str]:
    """Return the numbers in digits and the names in a statement that occur in none of the shown texts.

    Dates may be new if the texts mention a time, because "yesterday" is stored as a date. In languages with capitalised
    nouns, names cannot be recognised, so only numbers are checked.
    """
    known = {term for text in shown for term in (*name_terms(text), *index_terms(text))}
    languages = languages_of(statement).union(languages_of("\n".join(shown)))
    has_names = not any(language.letters.has_capital_nouns for language in languages)
    if any(map(mentions_time, shown)):
        dates = languages.words(lambda each: each.statements.dates)
        is_date = re.compile(
            rf"{_DATE}|\b(?:{'|'.join(dates)})\w*\s+\d\d?\b|\b\d\d?\w*\.?\s+(?:{'|'.join(dates)})", re.IGNORECASE
        )
        statement = is_date.sub(" ", statement)
    found = []
    for place, word in enumerate(statement.split()):
        bare = word.strip(".,;:!?()\"'«»“”„’")
        is_name = has_names and place > 0 and bare[:1].isupper() and bare.casefold() not in _user_words()
        if (is_name or any(map(str.isdigit, bare))) and not known.intersection((*name_terms(bare), *index_terms(bare))):
            found.append(bare)
    return found


def states_relation(predicate: str, evidence: Sequence[Node]) -> bool:
    """Return whether a message contains a word for a relation, in any language and form."""
    said = " ".join(folded_relation(own_words(node)) for node in evidence)
    if any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", said) for form in _forms_of(predicate)):
        return True
    terms = set(index_terms(predicate))
    return bool(terms) and terms <= set(index_terms(said))


def is_plain_relation(predicate: str, name: str, evidence: Sequence[Node]) -> bool:
    """Return whether the owner states a person's relation directly: "my wife Olga", "Olga is my wife"."""
    forms = "|".join(map(re.escape, _forms_of(predicate)))
    mine = "|".join(all_languages().in_order(lambda each: each.kinship.possessives))
    whose, who = rf"(?<!\w)(?:{mine})\s+(?:\w+\s+)?(?:{forms})(?!\w)", re.escape(folded_relation(name))
    pattern = rf"{whose}\W+(?:\w+\s+){{0,2}}{who}|(?<!\w){who}\W+(?:\w+\s+)?{whose}"
    said = [folded_relation(own_words(node)) for node in evidence if _is_owners(node)]
    return any(re.search(pattern, text) and not text.rstrip().endswith("?") for text in said)


def _forms_of(predicate: str) -> list[str]:
    label = predicate_of(predicate)
    return [form for form, name in relation_words().items() if name == label] or [folded_relation(predicate)]


def _has_new_word(statement: str, evidence: Sequence[Node]) -> bool:
    """Return whether a statement has a word, except for the user, that its evidence has in no form."""
    marks = _marks(languages_of(statement))
    said = {term for node in evidence for term in _terms(f"{speaker_label(node)} {own_words(node)}", marks)}
    return not said.issuperset(_terms(statement, marks))


def _clauses(text: str) -> Iterator[str]:
    """Yield the clauses that assert something. Questions, quotations, guesses and conditions are skipped."""
    for sentence in plain_sentences(text):
        marks = _marks(languages_of(sentence))
        if sentence.endswith("?") or _QUOTES.search(sentence) or marks.doubtful.search(sentence):
            continue
        for part in _CLAUSE_ENDS.split(sentence):
            yield from marks.conjunction.split(part)


class _Marks(Lexicon):
    """The words that mark person, negation and time, and the words that carry no meaning alone."""

    first_person = words_of(lambda each: each.sentences.first_person)
    possessive = pattern_of(lambda each: each.kinship.possessives, r"(?:{})\Z", flags=re.IGNORECASE)
    negations = words_of(lambda each: each.statements.negations)
    negated_endings = list_of(lambda each: each.statements.negated_endings)
    times = words_of(
        lambda each: (*each.dates.future, *each.dates.past, *each.statements.past, *each.statements.unsure)
    )
    time_endings = list_of(lambda each: each.dates.future_endings)
    past = words_of(lambda each: each.statements.past_verbs)
    past_form = pattern_of(lambda each: (*each.statements.past_verb, *each.statements.participle))
    doubtful = pattern_of(lambda each: each.plain.doubtful, flags=re.IGNORECASE)
    conjunction = pattern_of(
        lambda each: map(re.escape, each.entities.conjunctions), r"\s(?:{})\s", flags=re.IGNORECASE
    )

    @cached_property
    def empty(self) -> frozenset[str]:
        silent = frozenset(word for each in self.languages for word in function_words(each.code))
        return silent | self.languages.words(lambda each: each.statements.fillers)

    @cached_property
    def kin(self) -> dict[str, str]:
        return relation_words(self.languages)

    def is_denied(self, words: Sequence[str]) -> int:
        """Return the number of negating words."""
        return sum(word in self.negations or word.endswith(self.negated_endings or ("\0",)) for word in words)

    def times_in(self, words: Iterable[str]) -> frozenset[str]:
        """Return the words that place a statement in a time other than the present."""
        return frozenset(word for word in words if word in self.times or word.endswith(self.time_endings or ("\0",)))

    def is_past(self, word: str) -> bool:
        return word in self.past or self.past_form.search(word) is not None


_marks = cached()(_Marks)


@cached()
def _user_words() -> frozenset[str]:
    words = all_languages().words(lambda each: (*each.sentences.user_words, *each.sentences.self_words))
    return frozenset(word.split()[-1] for word in words)


def _terms(text: str, marks: _Marks) -> list[str]:
    """Return the terms of a text without function words and words for the user. Relations appear by name."""
    found = []
    for word in raw_words(text):
        bare = re.sub(r"['’ʼ]s?\Z", "", word)
        if bare in marks.empty or word in marks.empty or bare in _user_words():
            continue
        found += [f"kin {marks.kin[bare]}"] if bare in marks.kin else index_terms(word)
    return found


def _says(clause: str, statement: str, node: Node) -> bool:
    """Return whether a clause contains a statement: the same content words in sequence from the subject on, about the
    same person, and with the same negations and times.
    """
    marks = _marks(languages_of(clause).union(languages_of(statement)))
    told, given = raw_words(clause), raw_words(statement)
    wanted, found = _terms(statement, marks), _terms(clause, marks)
    if not wanted or any(map(_CONTRACTED.search, told)):
        return False
    if found[1 : len(wanted)] != wanted[1:] or not found or not _is_one_word(found[0], wanted[0]):
        return False
    if marks.is_denied(told) != marks.is_denied(given) or marks.times_in(told) != marks.times_in(given):
        return False
    if _past_of(told, wanted, marks) != _past_of(given, wanted, marks):
        return False
    return _subject(told, marks, is_owners=_is_owners(node)) == _subject(given, marks, is_owners=True)


def _is_one_word(term: str, other: str) -> bool:
    """Return whether two terms are forms of one word: stems may differ between persons of a verb ("живу", "живёт")."""
    if term == other:
        return True
    differing = (n for n, pair in enumerate(zip(term, other, strict=False)) if pair[0] != pair[1])
    shared = next(differing, min(len(term), len(other)))
    return term.isalpha() and shared >= max(3, 0.6 * max(len(term), len(other)))


def _agrees(text: str, statement: str) -> bool:
    """Return whether a text and a statement have the same negations and times, and the same tense of shared words."""
    marks = _marks(languages_of(text).union(languages_of(statement)))
    told, given, wanted = raw_words(text), raw_words(statement), _terms(statement, marks)
    is_alike = marks.is_denied(told) == marks.is_denied(given) and marks.times_in(told) == marks.times_in(given)
    return is_alike and _past_of(told, wanted, marks) == _past_of(given, wanted, marks)


def _past_of(words: Sequence[str], wanted: Sequence[str], marks: _Marks) -> bool:
    """Return whether one of the words with these terms is in the past tense."""
    kept = set(wanted)
    return any(marks.is_past(word) for word in words if kept.intersection(index_terms(word)))


def _subject(words: Sequence[str], marks: _Marks, *, is_owners: bool) -> str:
    """Return the first person mentioned in a clause: "the user", "of the user" ("my ..."), or "".

    Args:
        is_owners: whether the owner of the memory is speaking; if not, the first person is someone else.
    """
    for word in words:
        bare = re.sub(r"['’ʼ].*\Z", "", word)
        is_possessive = word.endswith(("'s", "’s"))
        if bare in _user_words() and bare not in marks.first_person:
            return "of the user" if is_possessive else "the user"
        if bare in marks.first_person:
            mine = "of the user" if marks.possessive.match(bare) else "the user"
            return mine if is_owners else f"the speaker, not {mine}"
        if bare not in marks.empty:
            return ""
    return ""


def _is_owners(node: Node) -> bool:
    """Return whether the owner of a memory wrote a message."""
    return node.speaker is None or (bool(node.owner) and is_owner(node.speaker, node.owner))
