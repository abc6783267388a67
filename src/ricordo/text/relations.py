"""Find who made a statement and its subjects, the speaker's own name, aliases, and relations that have ended. Pure.

The relations that a statement gives to people are found in `relatives.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ricordo.model import Origin, Role
from ricordo.text.analyzer import speaks_of_themselves
from ricordo.text.canonical import is_owner
from ricordo.text.change import Cue, cues
from ricordo.text.languages import NEVER, LanguageSet, all_languages, cached, languages_of, pattern_of, words_of
from ricordo.text.languages.schema import Relations
from ricordo.text.names import relation_at, with_name_capitals
from ricordo.text.relation_forms import CAPITALISED, MAX_CHARS, ONE, StatementForms
from ricordo.text.sentences import content_words, without_jokes, without_quotes
from ricordo.trust import trust_of

_NAMES = rf"{CAPITALISED}(?:\s+{CAPITALISED}){{0,2}}"
_KNOWN = rf"{_NAMES}|[^\W\d_]{{3,}}"
"""Names, of which one in lower case has to be known."""


class _Forms(StatementForms):
    """Patterns of relations to the speaker; see `Relations` of the schema."""

    label = pattern_of(lambda each: each.relations.labels, r"\s*(?:{})\s*:", flags=re.IGNORECASE)
    titles = words_of(lambda each: each.names.titles)

    mine = pattern_of(lambda each: each.relations.mine, r"(?<!\w)(?:{})\s+", flags=re.IGNORECASE)

    @cached_property
    def endings(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_ending_patterns(self.languages, lambda each: each.endings))

    @cached_property
    def deaths(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_ending_patterns(self.languages, lambda each: each.deaths))

    @cached_property
    def own_name(self) -> re.Pattern[str]:
        """The pattern of a statement of the user's own name, which is its last group."""
        named = "|".join(self.languages.in_order(lambda each: each.persons.named)) or NEVER
        return re.compile(rf"(?<!\w)(?:{named.replace('<NAME>', f'(?-i:({_NAMES}))')})", re.IGNORECASE)

    @cached_property
    def aliases(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_alias_patterns(self.languages))


_forms = cached()(_Forms)


def _ending_patterns(
    languages: LanguageSet, forms_of: Callable[[Relations], Iterable[str]]
) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of statements that a relation has ended, or that somebody died. Those of sentences in which
    mentions are replaced have a group `what`.
    """
    for language in languages:
        whole = [form.replace("<WHO>", who) for form in forms_of(language.relations) for who in _whos(form)]
        for form in whole:
            parts = re.split("(<NAME>)", form.replace("<MINE>", f"(?P<what>{ONE})"))
            yield re.compile(
                r"(?<!\w)"
                + "".join(f"(?P<name>{_KNOWN})" if part == "<NAME>" else f"(?i:{part})" for part in parts if part)
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


def stated_own_names(text: str) -> tuple[str, ...]:
    """Return the names that a speaker gives as their own, in full and without the surname.

    >>> stated_own_names("The user's name is Katrin Meier; she lives in Bern"), stated_own_names("My name is a secret")
    (('Katrin Meier', 'Katrin'), ())
    """
    forms = _forms(all_languages())
    found = forms.own_name.search(with_name_capitals(text[:MAX_CHARS]))
    name = _name(found.group(found.lastindex), forms) if found and found.lastindex else None
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
COUPLE = (*_MARRIED, "partner", "girlfriend", "boyfriend", "fiancée", "fiancé")

_OF_A_COUPLE = frozenset((*COUPLE, "ex-wife", "ex-husband"))
_IN_GENERAL = {
    "parent": ("mother", "father"),
    "child": ("son", "daughter"),
    "sibling": ("sister", "brother"),
    "grandparent": ("grandmother", "grandfather"),
    "grandchild": ("grandson", "granddaughter"),
}
_BY_MARRIAGE = re.compile("step|.+-in-law$")


def are_alike(one: str, other: str) -> bool:
    """Return whether two relations are the same, one may become the other, or one is a more general word for it.

    >>> are_alike("girlfriend", "wife"), are_alike("child", "stepson"), are_alike("son", "boss")
    (True, True, False)
    """
    one, other = one.removeprefix("step"), other.removeprefix("step")
    is_general = other in _IN_GENERAL.get(one, ()) or one in _IN_GENERAL.get(other, ())
    return one == other or is_general or {one, other} <= _OF_A_COUPLE


def are_of_two(one: str, other: str) -> bool:
    """Return whether two relations are hardly those of one person, because one of them is a relative.

    >>> are_of_two("sister", "colleague"), are_of_two("friend", "colleague"), are_of_two("friend", "wife")
    (True, False, False)
    """
    is_family = any(each in LASTING or _BY_MARRIAGE.match(each) for each in (one, other))
    return is_family and not are_alike(one, other)


def ended_relations(text: str) -> list[Ended]:
    """Return the relations that the text says have ended.

    >>> ended_relations("Tom is no longer my boss.")[0].predicates, ended_relations("Have Tom and I split up?")
    (('boss',), [])
    """
    text = without_quotes(text[:MAX_CHARS])
    if not may_end_relation(text):
        return []
    text = with_name_capitals(text)
    forms = _forms(all_languages())
    ends = (
        _ended(found, forms)
        for part in _SENTENCE.finditer(without_jokes(text))
        if may_end_relation(sentence := part.group().strip()) and not _is_doubtful(sentence)
        for found in _found(sentence, forms.endings, forms, is_own=speaks_of_themselves(sentence))
    )
    deaths = (
        _dead(found, forms)
        for part in _SENTENCE.finditer(text)
        if may_end_relation(sentence := part.group()) and not _is_doubtful(sentence)
        for found in _found(sentence, forms.deaths, forms)
    )
    return list(dict.fromkeys(filter(None, (*ends, *deaths))))


_Groups = dict[str, str | None]
"""The relation (`what`) and the `name` of a match."""


def _found(
    sentence: str, patterns: Iterable[re.Pattern[str]], forms: _Forms, *, is_own: bool = True
) -> Iterator[_Groups]:
    """Yield the groups of matches; only at the beginning if the speaker is not named: "He roto con Iker"."""
    marked, relations = _marked(sentence, forms)
    for pattern in patterns:
        has_mention = "what" in pattern.groupindex
        for found in pattern.finditer(marked if has_mention else sentence):
            what = {"what": relations[marked.count(ONE, 0, found.start("what"))]} if has_mention else {}
            if is_own or not found.start():
                yield found.groupdict() | what


def _marked(sentence: str, forms: _Forms) -> tuple[str, list[str]]:
    """Replace each mention of a relation, such as "my brother", by one character. Return the relations, too."""
    parts: list[str] = []
    relations: list[str] = []
    start = 0
    sentence = sentence.replace(ONE, " ")  # a text can hold any character
    for found in forms.mine.finditer(sentence):
        if relation := relation_at(sentence, found.end()):
            parts += (sentence[start : found.start()], ONE)
            relations.append(relation.name)
            start = relation.end
    return "".join((*parts, sentence[start:])), relations


def _is_doubtful(sentence: str) -> bool:
    if sentence.rstrip().endswith("?") or _QUOTED.search(sentence):
        return True
    return not _DOUBTS.isdisjoint(cues(sentence, languages_of(sentence)))


_DOUBTS: frozenset[Cue] = frozenset(("unsure", "reported", "future", "asks"))


def _ended(found: _Groups, forms: _Forms) -> Ended | None:
    if not found:  # "I got divorced"
        return Ended(predicates=_MARRIED, name=None)
    predicates = (what,) if (what := found.get("what")) else COUPLE
    name = _name(written, forms) if (written := found.get("name")) else None
    return Ended(predicates=predicates, name=name) if name or (what and not written) else None


def _dead(found: _Groups, forms: _Forms) -> Ended | None:
    relation = found.get("what")
    name = _name(written, forms) if (written := found.get("name")) else None
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
    text = without_quotes(text[:MAX_CHARS])
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


def _name(written: str, forms: _Forms) -> str | None:
    """Return the leading words that may be a name, without titles; None if there are none."""
    kept: list[str] = []
    for word in written.split():
        bare = word.rstrip(".")
        if bare in forms.titles and not kept:
            continue
        if not _is_name(bare, forms):
            break
        kept.append(bare)
    return " ".join(kept) or None


def _is_name(word: str, forms: _Forms) -> bool:
    lower = word.lower()
    is_shouted = len(word) > 1 and word.isupper()
    return len(word) > 1 and not is_shouted and lower not in forms.not_names and not lower.endswith("'s")


@cached()
def _subject() -> re.Pattern[str]:
    """Return the pattern of a statement that begins with one or two names and then another word, such as a verb."""
    joined = "|".join(all_languages().in_order(lambda each: each.entities.conjunctions)) or NEVER
    titles = "|".join(all_languages().in_order(lambda each: each.names.titles)) or NEVER
    name = rf"(?:(?:{titles})\.\s+)*{CAPITALISED}(?:\s+{CAPITALISED}){{0,2}}"
    return re.compile(rf"\s*(?P<first>{name})(?:\s+(?:{joined})\s+(?P<second>{name}))?\s+(?P<next>[^\W\d_][\w'’-]*)")


@cached()
def _reporting() -> re.Pattern[str]:
    return all_languages().pattern(lambda each: each.relations.reporting, flags=re.IGNORECASE)


def plain_subjects(text: str) -> tuple[str, ...]:
    """Return the names that a statement begins with. They are candidates: the caller checks that they are known.

    >>> plain_subjects("Anna lives in Paris"), plain_subjects("Anna's sister lives in Rome")
    (('Anna',), ())
    >>> plain_subjects("Anna wrote that the boiler is leaking"), plain_subjects("Anna wrote that she moved")
    ((), ('Anna',))
    """
    found = _subject().match(text := with_name_capitals(text[:200]).replace("’", "'"))
    if found is None or found["next"][0].isupper() or _reporting().match(text, found.start("next")):
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
