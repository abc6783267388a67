"""Find plain statements about people ("my wife is Sarah", "Anna lives in Paris"), and who made them. Pure.

The rules are conservative: a relation is learnt only from a speaker's plain statement in the present tense. Questions,
negations, jokes, the past, conditions and quotations are ignored, and so are capitalised words that are not names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import NamedTuple

from ricordo.model import Origin, Role
from ricordo.text.analyzer import first_person_words, speaks_of_themselves
from ricordo.text.canonical import is_owner
from ricordo.text.change import Cue, cues, leaves_out_its_subject
from ricordo.text.entity_recognition import folded_words
from ricordo.text.languages import (
    NEVER,
    LanguageSet,
    Lexicon,
    all_languages,
    cached,
    fold_letters,
    languages_of,
    pattern_of,
    words_of,
)
from ricordo.text.languages.schema import Endings, Relations
from ricordo.text.names import NOT_PEOPLE, known_relation, may_name_relation, relation_pattern
from ricordo.text.sentences import content_words, without_jokes
from ricordo.trust import trust_of

MAX_CHARS = 5_000
"""How much of a text is read for relations, in characters: plain statements stand in short messages."""

_LATER_CLAUSES = 8
"""The number of later clauses of a sentence that are read for relations: with more, a list would take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A person's relation to the speaker, and the sentence that states it."""

    predicate: str
    name: str
    sentence: str


_WORD = r"[^\W\d_a-z\u0430-\u044f\u0451][^\W\d_]*(?:['’-][^\W\d_a-z\u0430-\u044f\u0451][^\W\d_]*)*"


_NAMES = rf"{_WORD}(?:\s+{_WORD}){{0,2}}"


class _Forms(Lexicon):
    """Patterns of relations to the speaker; see `Relations` of the schema."""

    label = pattern_of(lambda each: each.relations.labels, r"\s*(?:{})\s*:", flags=re.IGNORECASE)
    abstract = pattern_of(lambda each: each.relations.abstract, r"(?:{})\Z")
    titles = words_of(lambda each: each.names.titles)
    clause_start = pattern_of(lambda each: each.entities.conjunctions, r"[,;]\s+|\s+(?=(?:{})\s)", flags=re.IGNORECASE)
    unreal = pattern_of(lambda each: each.entities.unreal, r"\b(?:{})\b", flags=re.IGNORECASE)

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        titles = "|".join(self.languages.in_order(lambda each: each.names.titles)) or NEVER
        return tuple(_patterns(self.languages, titles))

    @cached_property
    def endings(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_ending_patterns(self.languages, lambda each: each.endings))

    @cached_property
    def deaths(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_ending_patterns(self.languages, lambda each: each.deaths))

    @cached_property
    def doubtful(self) -> re.Pattern[str]:
        doubt = self.languages.pattern(lambda each: each.relations.doubt, r"(?<!\w)(?:{})(?!\w)").pattern
        endings = self.languages.pattern(lambda each: each.relations.doubt_endings, r"(?:{})\b").pattern
        return re.compile(f"{doubt}|{endings}", re.IGNORECASE)

    @cached_property
    def no_names(self) -> frozenset[str]:
        not_names = map(fold_letters, self.languages.words(lambda each: each.names.not_names))
        return self.languages.words(lambda each: each.function_words).union(not_names)

    @cached_property
    def things(self) -> frozenset[str]:
        return folded_words(self.languages, lambda each: each.things)

    @cached_property
    def own_name(self) -> re.Pattern[str]:
        """The pattern of a statement of the user's own name, which is its last group."""
        named = self.languages.pattern(lambda each: each.persons.named, r"(?<!\w)(?:{})").pattern
        return re.compile(named.replace("<NAME>", f"(?-i:({_NAMES}))"), re.IGNORECASE)

    @cached_property
    def aliases(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_alias_patterns(self.languages))


_forms = cached()(_Forms)


def _patterns(languages: LanguageSet, titles: str) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of all languages. Names must be capitalised; all other words match in any case."""
    what = f"(?P<what>{relation_pattern(languages)})"
    name = rf"(?P<name>(?:(?:{titles})\.?\s+)?{_WORD}(?:\s+{_WORD}){{0,2}})"
    ends = "".join(rf"|{word}\b" for word in languages.in_order(lambda each: each.relations.name_ends))
    end = rf"(?!['’]s\b)(?=\s*(?:$|[,;)!—–]{ends}))"
    lead = rf"^(?:(?:{'|'.join(languages.in_order(lambda each: each.relations.leads)) or NEVER})[,:!]?\s+)*"
    for language in languages:
        kind = rf"(?:(?:{'|'.join(language.kinship.kinds) or NEVER})\s+)?"
        mine = rf"(?:{'|'.join(language.relations.mine) or NEVER})\s+{kind}{what}"
        for form in language.relations.forms:
            before, _, after = form.partition("<NAME>")
            filled = [
                part.replace("<LEAD>", lead)
                .replace("<MINE>", mine)
                .replace("<KIND>", kind)
                .replace("<WHAT>", what)
                .replace("<END>", end)
                for part in (before, after)
            ]
            yield re.compile(f"(?i:{filled[0]}){name}(?i:{filled[1]})")


def _ending_patterns(
    languages: LanguageSet, forms_of: Callable[[Relations], Iterable[str]]
) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of statements that a relation has ended, or that somebody died."""
    what = f"(?P<what>{relation_pattern(languages)})"
    for language in languages:
        mine = rf"(?:{'|'.join(language.relations.mine) or NEVER})\s+{what}"
        whole = [form.replace("<WHO>", who) for form in forms_of(language.relations) for who in _whos(form)]
        for form in whole:
            parts = re.split("(<NAME>)", form.replace("<MINE>", mine))
            yield re.compile(
                r"(?<!\w)"
                + "".join(f"(?P<name>{_NAMES})" if part == "<NAME>" else f"(?i:{part})" for part in parts if part)
            )


def _whos(form: str) -> tuple[str, ...]:
    return ("<MINE>", "<NAME>", r"<MINE>,?\s+<NAME>") if "<WHO>" in form else ("",)


def _alias_patterns(languages: LanguageSet) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of statements that two names belong to one person."""
    for form in languages.in_order(lambda each: each.relations.aliases):
        words = re.split(r"(<[AB]>)", form)
        yield re.compile(
            r"(?<!\w)"
            + "".join(rf"(?P<{each[1]}>{_NAMES})" if each in ("<A>", "<B>") else f"(?i:{each})" for each in words)
            + r"(?!\w)"
        )


_SENTENCE = re.compile(r"[^.!?\n…]+(?:(?<=\b(?:Dr|Mr|Ms))\.[^.!?\n…]+|(?<=\bMrs)\.[^.!?\n…]+)*[.!?…]*")
_QUOTED = re.compile(r"[\"«»“”„‟]|(?<!\w)['‘]|['’](?!\w)")
_TRANSCRIPT = re.compile(r"\s*[^\s:]+(?:\s[^\s:]+)?:\s")


def stated_relations(text: str, *, own_names: Sequence[str] = ()) -> list[Stated]:
    """Return the relations that the text states outright, in order, without repeats.

    Args:
        own_names: names of the one whose relations they are: "Katrin's husband Reto" is then "my husband Reto".

    >>> [(found.predicate, found.name) for found in stated_relations("Hi, my wife is Sarah. Is my boss Tom?")]
    [('wife', 'Sarah')]
    """
    text = text[:MAX_CHARS]
    for name in own_names:
        text = _with_own_possessive(text, name)
    if not may_name_relation(text):
        return []
    text = without_jokes(text)
    languages = languages_of(text)
    found: dict[tuple[str, str], Stated] = {}
    for sentence in _sentences(text, _forms(languages)):
        for stated in _stated_in(sentence, languages):
            found.setdefault((stated.predicate, stated.name), stated)
    return list(found.values())


def _with_own_possessive(text: str, name: str) -> str:
    """Return a text with "my" in place of the possessive of a name, in any language."""
    for pattern, (mine, *_) in all_languages().endings(lambda each: each.persons.forms):
        if "<NAME>" in pattern:
            text = re.sub(pattern.replace("<NAME>", re.escape(name)), mine, text, flags=re.IGNORECASE)
    return text


def stated_own_names(text: str) -> tuple[str, ...]:
    """Return the names that a speaker gives as their own, in full and without the surname.

    >>> stated_own_names("The user's name is Katrin Meier; she lives in Bern"), stated_own_names("My name is a secret")
    (('Katrin Meier', 'Katrin'), ())
    """
    forms = _forms(all_languages())
    found = forms.own_name.search(text[:MAX_CHARS])
    name = _name(found.group(found.lastindex), forms, cases=None) if found and found.lastindex else None
    return tuple(dict.fromkeys((name, name.split()[0]))) if name else ()


@cached()
def own_name_stems() -> frozenset[str]:
    """Return the stems by which statements of the user's own name are found, in any language."""
    phrases = all_languages().in_order(lambda each: each.persons.naming)
    return frozenset(stem for phrase in phrases for stem in content_words(phrase))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a relation to the speaker: the relations it may be, and the name of the other one, if given. After a
    death, a name without a relation ends whichever the speaker has with the dead.
    """

    predicates: tuple[str, ...]
    name: str | None
    by_death: bool = False


LASTING = frozenset(
    {"mother", "father", "parent", "son", "daughter", "child", "sister", "brother", "sibling"}
    | {"grandmother", "grandfather", "grandparent", "grandson", "granddaughter", "grandchild"}
    | {"uncle", "aunt", "cousin", "nephew", "niece"}
)
"""Relations that a death does not end: one's mother stays one's mother."""


_MARRIED = ("wife", "husband", "spouse")
_COUPLE = (*_MARRIED, "partner", "girlfriend", "boyfriend", "fiancée", "fiancé")


def ended_relations(text: str) -> list[Ended]:
    """Return the relations that the text says have ended.

    >>> ended_relations("Tom is no longer my boss.")[0].predicates, ended_relations("Have Tom and I split up?")
    (('boss',), [])
    """
    text = text[:MAX_CHARS]
    if not may_end_relation(text):
        return []
    forms = _forms(all_languages())
    ends = [
        ended
        for part in _SENTENCE.finditer(without_jokes(text))
        if _may_tell_of_an_end(sentence := part.group())
        for pattern in forms.endings
        for found in pattern.finditer(sentence)
        if (ended := _ended(found.groupdict(), forms)) is not None
    ]
    deaths = (
        _dead(found.groupdict(), forms)
        for part in _SENTENCE.finditer(text)
        if may_end_relation(sentence := part.group()) and not _is_doubtful(sentence)
        for pattern in forms.deaths
        for found in pattern.finditer(sentence)
    )
    return list(dict.fromkeys((*ends, *filter(None, deaths))))


def _may_tell_of_an_end(sentence: str) -> bool:
    is_own = may_end_relation(sentence) and speaks_of_themselves(sentence)
    return is_own and not _is_doubtful(sentence)


def _is_doubtful(sentence: str) -> bool:
    if sentence.rstrip().endswith("?") or _QUOTED.search(sentence):
        return True
    return not _DOUBTS.isdisjoint(cues(sentence, languages_of(sentence)))


_DOUBTS: frozenset[Cue] = frozenset(("unsure", "reported", "future", "asks"))


def _ended(found: dict[str, str | None], forms: _Forms) -> Ended | None:
    if not found:  # "I got divorced"
        return Ended(predicates=_MARRIED, name=None)
    predicates = _COUPLE if not (what := found.get("what")) else (known_relation(what) or "",)
    name = _name(written, forms, cases=None) if (written := found.get("name")) else None
    return Ended(predicates=predicates, name=name) if name or (what and not written) else None


def _dead(found: dict[str, str | None], forms: _Forms) -> Ended | None:
    relation = known_relation(found.get("what") or "")
    name = _name(written, forms, cases=None) if (written := found.get("name")) else None
    if not (name or relation) or relation in LASTING:
        return None
    return Ended(predicates=(relation,) if relation else (), name=name, by_death=True)


def may_end_relation(text: str) -> bool:
    """Return whether a text may say that a relation has ended. Fast, with some false positives."""
    return not _ending_cues().isdisjoint(re.findall(r"\w+", text[:MAX_CHARS].lower()))


@cached()
def _ending_cues() -> frozenset[str]:
    return all_languages().words(lambda each: each.relations.ending_cues)


def stated_aliases(text: str) -> list[tuple[str, str]]:
    """Return pairs of names that the text says belong to one person. The caller checks that both are known.

    >>> stated_aliases("Everyone calls Robert Bob. Is Anna short for Hannah?")
    [('Robert', 'Bob')]
    """
    text = text[:MAX_CHARS]
    if not may_state_alias(text):
        return []
    forms = _forms(all_languages())
    return [
        (found["A"], found["B"])
        for sentence in _sentences(without_jokes(text), forms)
        for pattern in forms.aliases
        for found in pattern.finditer(sentence)
    ]


def may_state_alias(text: str) -> bool:
    """Return whether a text may say that two names belong to one person. Fast, with some false positives."""
    return not _alias_cues().isdisjoint(re.findall(r"\w+", text[:MAX_CHARS].lower()))


@cached()
def _alias_cues() -> frozenset[str]:
    return all_languages().words(lambda each: each.relations.alias_cues)


def _sentences(text: str, forms: _Forms) -> Iterator[str]:
    for part in _SENTENCE.finditer(text):
        sentence = part.group().strip()
        is_transcript = _TRANSCRIPT.match(sentence) and not forms.label.match(sentence)
        is_doubtful = _QUOTED.search(sentence) or forms.doubtful.search(sentence)
        if not (sentence.endswith("?") or is_doubtful or is_transcript):
            yield sentence.rstrip(".!… ")


def _stated_in(sentence: str, languages: LanguageSet) -> Iterator[Stated]:
    if not may_name_relation(sentence):
        return
    forms = _forms(languages)
    for clause, pattern in product(_clauses(sentence, forms), forms.patterns):
        for found in pattern.finditer(clause):
            predicate = known_relation(found["what"])
            name = _name(found["name"], forms, cases=_cases(found.group(), languages))
            is_first = found.start("name") < found.start("what")
            if predicate and predicate not in NOT_PEOPLE and name and not (is_first and _is_thing(name, forms)):
                yield Stated(predicate=predicate, name=name, sentence=sentence)


def _clauses(sentence: str, forms: _Forms) -> Iterator[str]:
    """Yield a sentence, and the rest of it from each later clause if the speaker has told of themselves before.

    "My name is Marta and my daughter is called Mia", but not "Anna says that Tom left and my boss is Karen".
    """
    yield sentence
    if forms.unreal.search(sentence) or _is_doubtful(sentence):
        return
    first_person = first_person_words(forms.languages)
    is_own = leaves_out_its_subject(sentence, forms.languages)
    for start in islice(forms.clause_start.finditer(sentence), _LATER_CLAUSES):
        before = sentence[: start.start()]
        if ":" not in before and (is_own or not first_person.isdisjoint(re.findall(r"\w+", before.lower()))):
            yield sentence[start.end() :]


class _Cases(NamedTuple):
    """The endings of a case with those of the nominative, and an ending that several names share."""

    endings: Endings
    unclear: str


def _cases(said: str, languages: LanguageSet) -> _Cases | None:
    """Return the case endings of a name in the instrumental ("зовут Сарой"), by its gender; None for other cases."""
    words = said.lower().split()
    for language in languages:
        relations, names = language.relations, language.names
        if relations.instrumental_verb and relations.instrumental_verb in words:
            if relations.feminine_sign in words:
                return _Cases(names.feminine_instrumental, "")
            return _Cases(names.masculine_instrumental, names.masculine_unclear)
    return None


def _name(written: str, forms: _Forms, *, cases: _Cases | None) -> str | None:
    """Return the leading words that may be a name, without titles; None if there are none."""
    kept: list[str] = []
    for word in written.split():
        bare = word.rstrip(".")
        if bare in forms.titles and not kept:
            continue
        if not _is_name(bare, forms):
            break
        kept.append(bare)
    if not kept:
        return None
    return _in_nominative(kept, cases) if cases else " ".join(kept)


def _is_name(word: str, forms: _Forms) -> bool:
    lower = word.lower()
    is_shouted = len(word) > 1 and word.isupper()
    return len(word) > 1 and not is_shouted and lower not in forms.no_names and not lower.endswith("'s")


def _in_nominative(words: list[str], cases: _Cases) -> str | None:
    """Return the nominative: "Сара" for "Сарой"; None for a form that several names share."""
    done = []
    for word in words:
        if cases.unclear and word.endswith(cases.unclear):
            return None
        changed = (re.sub(ending, others[0], word) for ending, others in cases.endings if re.search(ending, word))
        done.append(next(changed, word))
    return " ".join(done)


def _is_thing(name: str, forms: _Forms) -> bool:
    """Return whether a name may be a thing that people call their boss or best friend: "Coffee is my best friend"."""
    first = name.split()[0].lower()
    return first in forms.things or bool(forms.abstract.search(first))


@cached()
def _subject() -> re.Pattern[str]:
    """Return the pattern of a statement that begins with one or two names and then another word, such as a verb."""
    joined = "|".join(all_languages().in_order(lambda each: each.entities.conjunctions)) or NEVER
    name = rf"{_WORD}(?:\s+{_WORD}){{0,2}}"
    return re.compile(rf"\s*(?P<first>{name})(?:\s+(?:{joined})\s+(?P<second>{name}))?\s+(?P<next>[^\W\d_][\w'’-]*)")


def plain_subjects(text: str) -> tuple[str, ...]:
    """Return the names that a statement begins with. They are candidates: the caller checks that they are known.

    >>> plain_subjects("Anna lives in Paris"), plain_subjects("Anna's sister lives in Rome")
    (('Anna',), ())
    """
    found = _subject().match(text[:200])
    if found is None or found["next"][0].isupper():
        return ()
    return tuple(name for name in (found["first"], found["second"]) if name)


def is_persons_word(role: Role | None, origin: Origin) -> bool:
    """Return whether a person said this, rather than an assistant, a tool or a web page. An import may quote them."""
    return role == "user" and trust_of(origin, role) in ("user", "import")


def is_owners_word(role: Role | None, origin: Origin, speaker: str | None, *, owner: str) -> bool:
    """Return whether the owner of a memory said this: a user's message or statement without another speaker.

    Args:
        owner: of the memory; "" for a group's memory, in which nobody speaks as the owner.
    """
    if not owner or not is_persons_word(role, origin):
        return False
    return speaker is None or is_owner(speaker, owner)


@cached()
def self_words() -> frozenset[str]:
    """Return the words that stand for the owner of a memory in a transcript, such as "me" and "user"."""
    return all_languages().words(lambda each: each.sentences.speakers)
