"""The words and patterns by which a speaker states relations, in one language. Pure.

Forms are patterns of a sentence in which each mention of a relation to the speaker ("my older brother") is replaced by
one character. Those that are punctuation only are here, those with words in the language files (`relations`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from ricordo.text.languages import (
    NEVER,
    Lexicon,
    all_languages,
    any_of,
    ascii_words,
    cached,
    fold_letters,
    pattern_of,
    words_of,
)
from ricordo.text.languages.schema import Language
from ricordo.text.names import either_letter, folded_relation, relation_forms, written_titles

MAX_CHARS = 5_000
"""How much of a text is read for relations, in characters: plain statements stand in short messages."""

ONE, MANY, BARE = "\ue000", "\ue001", "\ue002"
"""Stand for "my brother", "my brothers" and "Grandma" in a sentence. They are private characters of Unicode."""

CAPITALISED = r"[^\W\d_a-zß-öø-ÿа-яё][^\W\d_]*(?:['’-][^\W\d_a-zß-öø-ÿа-яё][^\W\d_]*)*"
"""The pattern of a word with a capital letter."""

_LOWER = r"[^\W\d_]{3,}"
"""The pattern of a name in lower case."""

_PLACE = rf"(?-i:{CAPITALISED})(?:\s+(?:&\s+)?(?-i:{CAPITALISED})){{0,3}}"
"""The pattern of a place or a firm, of which somebody is: "my boss at Fielding & Rowe"."""

Kind = Literal["behind", "before", "stated"]
"""Whether a name stands behind a mention, before it, or is stated with a verb."""

# A comma also separates the items of a list: "my sister, Tom, and Karen".
_BEHIND = (
    r"<MINE>\s+<NAME><NEXT>",
    r"<MINE>\s*\(<NAME>[),]",
    r"<BARE>\s*\(<NAME>[),]",
    r"<MINE>(?:\s+[—–-]\s+|:\s+)<NAME>(?!['’]s\b)(?=\s+[—–-]|\s*[.!,;)]|\s*$)",
    r"<MINE>,\s+<NAME>(?:(?=\s*,)<NO_LIST>|(?=$|\s*[.!)]))",
    r"<MANY>(?:,\s+|\s*:\s*|\s*\(|\s+[—–-]\s+|\s+)<NAMES>",
)
_BEFORE = (
    r"<NAME>\s*(?:,|\(|\s[—–-])\s*<LINK>\s+<MINE><END>",
    r"<NAME>\s*\(\s*<MINE>\s*[),]",
    r"<NAME>\s+[—–-]\s+<MINE>(?=\s*[—–.!,]|\s*$|\s-)",
    r"<NAME>,\s+<MINE>(?:(?=\s*(?:[.!]|$))|(?=\s*,)<NO_LIST>)",
)

_OWNER_CHARS = 50
"""A relation and its "my" stand within so many characters."""


class Kin(NamedTuple):
    """A word for a relation: the relation, and whether it means several people and a woman."""

    relation: str
    is_many: bool
    is_woman: bool


def _within(of: Callable[[Language], Iterable[str]]) -> cached_property[re.Pattern[str]]:
    return pattern_of(of, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)


class StatementForms(Lexicon):
    """What takes a statement about people back, and capitalised words that are no names."""

    @cached_property
    def doubtful(self) -> re.Pattern[str]:
        doubt = self.languages.pattern(lambda each: each.relations.doubt, r"(?<!\w)(?:{})(?!\w)").pattern
        endings = self.languages.pattern(lambda each: each.relations.doubt_endings, r"(?:{})\b").pattern
        return re.compile(f"{doubt}|{endings}", re.IGNORECASE)

    @cached_property
    def not_names(self) -> frozenset[str]:
        """Function words, days, nations, folded."""
        not_names = map(fold_letters, self.languages.words(lambda each: each.names.not_names))
        return self.languages.words(lambda each: each.function_words).union(not_names)


class RelationForms(StatementForms):
    """The words and patterns of one language; see `Relations` of the schema."""

    _own_titles = words_of(lambda each: map(str.lower, (*each.names.titles, *each.relations.titles)))
    also_friends = words_of(lambda each: each.relations.also_friends)
    fiction = _within(lambda each: each.relations.fiction)
    past = _within(lambda each: each.relations.past)
    unreal = _within(lambda each: each.relations.unreal)
    unsure = _within(lambda each: (*each.change.unsure, *each.relations.unreal))
    afterthoughts = _within(lambda each: each.relations.afterthoughts)
    others = _within(lambda each: each.relations.others)
    own_verbs = _within(lambda each: each.relations.own_verbs)
    now = pattern_of(lambda each: each.change.now, r"\s*(?:,\s*)?(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)
    new = pattern_of(lambda each: each.relations.new, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)
    ends = pattern_of(lambda each: each.change.ended, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)
    reported = _within(lambda each: each.change.reported)
    asking = pattern_of(lambda each: each.relations.asking, r"(?:{})\s*\Z", flags=re.IGNORECASE)
    asked_first = pattern_of(lambda each: each.relations.asking, r"\W*(?:{})(?!\w)", flags=re.IGNORECASE)
    joined = pattern_of(lambda each: each.entities.conjunctions, r"(?:,\s*)?\b(?:{})\s+|,\s*")
    abstract = pattern_of(lambda each: each.relations.abstract, r"(?:{})\Z", flags=re.IGNORECASE)
    no_names = pattern_of(lambda each: each.relations.no_names, r"(?:{})\Z", flags=re.IGNORECASE)
    nominative = pattern_of(lambda each: each.relations.mine, r"(?:{})\Z", flags=re.IGNORECASE)
    owner = pattern_of(lambda each: each.kinship.owner_behind, r"(?:{})\Z", flags=re.IGNORECASE)
    feminine = pattern_of(lambda each: each.relations.feminine, r"(?:{})\Z", flags=re.IGNORECASE)
    plural_possessives = words_of(lambda each: each.sentences.first_person_plural)
    labelled = pattern_of(
        lambda each: (*each.relations.labels, *each.relations.leads), r"(?:(?:{})\b[,!]?\s*)+:", flags=re.IGNORECASE
    )

    @cached_property
    def has_capital_nouns(self) -> bool:
        return any(each.letters.has_capital_nouns for each in self.languages)

    @cached_property
    def is_inflected(self) -> bool:
        return any(each.letters.inflected for each in self.languages)

    @cached_property
    def kin(self) -> dict[str, Kin]:
        """The relations by every form of the words for them, folded."""
        found: dict[str, Kin] = {}
        for each in self.languages:
            woman = re.compile("|".join(each.people.feminine) or NEVER)
            relations = each.relations
            for relation, word in _rows(each.kinship.words, relations.words):
                kin = Kin(relation, is_many=False, is_woman=woman.search(word) is not None)
                for form in relation_forms(word, each.kinship):
                    found.setdefault(folded_relation(form), kin)
            for table, is_many in ((relations.plurals, True), (relations.whole, False)):
                for relation, word in _rows(table):
                    found.setdefault(folded_relation(word), Kin(relation, is_many=is_many, is_woman=False))
        return found

    @cached_property
    def mention(self) -> re.Pattern[str]:
        """The pattern of a relation to the speaker. The word for it is in a group: "my [brother]", "I have a [dog]"."""
        words = _one_of_words(self.kin)
        counts = f"(?:{self._one_of(lambda each: each.relations.counts)})"
        have = self._one_of(lambda each: each.relations.have).replace("<COUNT>", counts)
        kinds = f"(?:(?:{counts}|{self._one_of(lambda each: each.kinship.kinds)})\\s+){{0,2}}"
        behind = self._one_of(lambda each: each.relations.kinds_behind).replace("<PLACE>", _PLACE)
        kinds_behind = rf"(?:\s+(?:{behind}))?"
        articles = rf"(?:(?:{self._one_of(lambda each: each.statements.articles)})\s+)?"
        whole = _one_of_words(self.languages.words(_whole))
        bare = _one_of_words(self.languages.words(lambda each: each.relations.bare))
        before_bare = self.languages.words(lambda each: each.relations.before_bare)
        alone = "".join(rf"|(?<=\b{re.escape(word)}\s)" for word in before_bare)
        return re.compile(
            rf"(?<![\w'’-])(?:(?P<mine>{self._one_of(_possessives)})\s+{kinds}(?P<own>{words}){kinds_behind}"
            rf"|(?:{have})\s+{kinds}(?P<had>{words})"
            rf"|{articles}{kinds}(?P<behind>{words})\s+(?P<whose>{self._one_of(_owners_behind)})"
            rf"|(?P<whole>{whole})|(?:(?<!\w\s){alone})(?P<bare>{bare}))(?![\w-])",
            re.IGNORECASE,
        )

    @cached_property
    def several(self) -> re.Pattern[str]:
        """The pattern of a word that shows several people, such as a number."""
        return re.compile(rf"(?<!\w)(?:{self._one_of(lambda each: each.relations.counts)})(?!\w)", re.IGNORECASE)

    def may_be_own(self, text: str, place: int, word: str) -> bool:
        """Return whether a word may be the end of a mention. Fast, with some false positives."""
        if word in self._bare_ends or self._owner.search(text, max(0, place - _OWNER_CHARS), place):
            return True
        return self._owner_behind.match(text, place + len(word)) is not None

    @cached_property
    def _bare_ends(self) -> frozenset[str]:
        bare = self.languages.words(lambda each: (*each.relations.bare, *_whole(each)))
        return frozenset(folded_relation(word).split()[-1] for word in bare)

    @cached_property
    def _owner(self) -> re.Pattern[str]:
        owners = self._one_of(lambda each: (*each.kinship.possessives, *each.relations.have)).replace("<COUNT>", r"\w+")
        return re.compile(rf"(?<![\w'’-])(?:{owners})\s(?:\s*\S+\s+){{0,3}}\S*\Z", re.IGNORECASE)

    @cached_property
    def _owner_behind(self) -> re.Pattern[str]:
        return re.compile(rf"\S*\s+(?:{self._one_of(_owners_behind)})\b", re.IGNORECASE)

    @cached_property
    def not_stated(self) -> tuple[re.Pattern[str], ...]:
        return tuple(self._compiled(self.languages.in_order(lambda each: each.relations.not_stated)))

    @cached_property
    def forms(self) -> tuple[tuple[re.Pattern[str], Kind], ...]:
        stated = self.languages.in_order(lambda each: each.relations.forms)
        forms: tuple[tuple[Iterable[str], Kind], ...] = ((_BEHIND, "behind"), (_BEFORE, "before"), (stated, "stated"))
        return tuple((pattern, kind) for each, kind in forms for pattern in self._compiled(each))

    @cached_property
    def pointing_back(self) -> re.Pattern[str]:
        """The pattern of a sentence about the one named before: "She is my sister"."""
        return next(self._compiled((r"^(?:<LINK>)\s+<MINE><END>",)))

    @cached_property
    def pronouns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """The patterns that name the one mentioned before ("her name is Anna"), by pronoun."""
        start = r"(?:^|[,;(—–-]\s*|[,\s](?:<JOIN>)\s+)"
        forms = [(who, form) for each in self.languages for who, form in each.relations.pronouns.items()]
        named = {"they": "<NAMES>"}
        return tuple(
            (who, next(self._compiled((rf"{start}(?:{form})\s+{named.get(who, '<CALLED><END>')}",))))
            for who, form in forms
        )

    @cached_property
    def silent(self) -> frozenset[str]:
        """Words that are capitalised without being names."""
        return self.not_names - self.languages.words(lambda each: each.relations.also_names)

    @cached_property
    def titles(self) -> frozenset[str]:
        """The titles of the language, and those that a person may bring from another one, in lower case."""
        return frozenset(self._own_titles) | frozenset(map(str.lower, written_titles(has_relatives=False)))

    def is_no_name(self, word: str) -> bool:
        """Return whether a word is a thing, place or firm rather than a person."""
        lower = fold_letters(word.lower())
        return lower in words_everywhere().no_names or self.no_names.match(lower) is not None

    def _one_of(self, of: Callable[[Language], Iterable[str]]) -> str:
        return "|".join(self.languages.in_order(of)) or NEVER

    def _compiled(self, forms: Iterable[str]) -> Iterator[re.Pattern[str]]:
        """Compile forms. Names must be capitalised; all other words match in any case."""
        for form in forms:
            for mark, part in self._parts.items():
                form = form.replace(mark, part)
            yield re.compile(f"(?i:{form})")

    @cached_property
    def _parts(self) -> dict[str, str]:
        """The parts of forms, by the marks that stand for them."""
        titles = rf"(?i:{'|'.join(map(re.escape, self._own_titles)) or NEVER})\.?\s+"
        foreign = "|".join(map(re.escape, sorted(self.titles, key=len, reverse=True)))
        joined = self._one_of(lambda each: each.entities.conjunctions)
        ends = "".join(rf"|\s+{word}\b" for word in self.languages.in_order(lambda each: each.relations.name_ends))
        leads = self._one_of(lambda each: each.relations.leads)
        following = self._one_of(_next_words)
        name = rf"(?:(?i:{foreign})\.?\s+)*+{CAPITALISED}(?:\s+{CAPITALISED}){{0,2}}|{titles}{_LOWER}"
        item = rf"{CAPITALISED}(?:\s+{CAPITALISED})?(?:\s*\([^()]{{1,20}}\))?"  # "Lotte (7) and Emil (4)"
        return {
            "<LEAD>": rf"(?:^\W*|[,;:(—–]\s+|\s(?=(?:{joined})\s))(?:(?:{leads})[,:!]?\s+){{0,4}}+",
            "<LINK>": f"(?:{self._one_of(lambda each: each.relations.links)})",
            "<JOIN>": joined,
            "<MINE>": f"(?P<what>{ONE})",
            "<MANY>": f"(?P<what>{MANY})",
            "<BARE>": f"(?P<what>{BARE})",
            "<ANY>": f"(?P<what>[{ONE}{BARE}])",
            "<END>": rf"(?!['’]s\b)(?=\s*(?:$|[,;:!?.…)]|[^\w\s'’\"/&@_-]|\s[—–-]{ends}))",
            "<NEXT>": rf"(?=$|['’]s\b(?!\s+(?:\w+\s+)?<KIN>)|\s*[^\w\s'’@/-]|\s+[—–-]|\s+(?:{following})(?!\w))",
            "<KIN>": f"(?:{_one_of_words(self.kin)})",
            "<NO_LIST>": rf"(?!\s*,\s*(?:(?:and|or)\b|[{ONE}{MANY}{BARE}]|(?-i:{CAPITALISED})(?!\s+[^\W\d_])))",
            "<NAMES>": rf"(?P<names>(?-i:{item}(?:,\s+{item})*(?:,?\s+(?i:{joined})\s+){item}))",
            "<NAME>": f"(?P<name>(?-i:{name}))",
            "<GIVEN>": f"(?P<name>(?-i:{_one_of_words(self.languages.words(lambda each: each.names.given))}))",
            "<CALLED>": f"(?P<called>(?-i:{name}|{_LOWER}))",
            "<TITLED>": rf"(?P<name>(?-i:{titles}{item}))",
        }


def _rows(*tables: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    return ((relation, word) for table in tables for relation, words in table.items() for word in words)


def _whole(each: Language) -> Iterable[str]:
    return (phrase for _, phrase in _rows(each.relations.whole))


def _possessives(each: Language) -> Iterable[str]:
    return each.kinship.possessives


def _owners_behind(each: Language) -> Iterable[str]:
    return (*each.kinship.owner_behind, *each.relations.possessives_behind)


def _next_words(each: Language) -> Iterable[str]:
    """Return the patterns of what may follow a name: any word, if the language does not list them."""
    if not each.relations.next_words:
        return (r"\w+",)
    return (*each.relations.next_words, *each.function_words, *each.entities.adverbs)


def _one_of_words(words: Iterable[str]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(either_letter(re.escape(word)).replace(r"\ ", r"\s+") for word in longest_first) or NEVER


_forms = cached()(RelationForms)


# ---- all languages


class WordsEverywhere(NamedTuple):
    """What is no name, what may be one nevertheless, and ordinary words: a text in Russian names Excel, too."""

    no_names: frozenset[str]
    also_names: frozenset[str]
    ordinary: frozenset[str]


@cached()
def words_everywhere() -> WordsEverywhere:
    """Return the words of all languages, folded."""
    no_names: list[str] = []
    also_names: list[str] = []
    for each in all_languages():
        entities, relations = each.entities, each.relations
        no_names += (*entities.places, *entities.things, *entities.acting, *entities.openings, *entities.bodies)
        no_names += relations.not_people
        also_names += (*relations.also_names, *each.names.also_words)
    ordinary = all_languages().words(lambda each: each.entities.ordinary)
    return WordsEverywhere(*(frozenset(map(fold_letters, each)) for each in (no_names, also_names, ordinary)))


@cached()
def stories() -> re.Pattern[str]:
    """Return the pattern of what shows that a text is a story, a role, a letter or a translation."""
    return all_languages().pattern(lambda each: each.relations.stories, r"(?<!\w)(?:{})(?!\w)", flags=re.IGNORECASE)


@cached()
def _ends() -> dict[str, tuple[str, ...]]:
    """Return the languages of the last word of each relation, by their codes."""
    found: dict[str, tuple[str, ...]] = {}
    for language in all_languages():
        for word in {re.split(r"[\s'’-]", phrase)[-1] for phrase in _forms(any_of((language.code,))).kin}:
            found[word] = (*found.get(word, ()), language.code)
    return found


def relation_words_in(text: str) -> set[str]:
    """Return the last words of relations in a text, folded: "friend" for "best friends"."""
    lowered = fold_letters(text.lower())
    return _ends().keys() & set(ascii_words(lowered) if lowered.isascii() else re.split(r"[\W_]+", lowered))


def may_state_relation(text: str) -> bool:
    """Return whether a text has a word for a relation. Fast, with many false positives."""
    return bool(relation_words_in(text[:MAX_CHARS]))


def languages_that_mention(text: str) -> Iterator[tuple[RelationForms, set[str]]]:
    """Yield each language in which a text may mention a relation to the speaker, with its words for relations."""
    by_code: dict[str, set[str]] = {}
    for word in relation_words_in(text):
        for code in _ends()[word]:
            by_code.setdefault(code, set()).add(word)
    lowered = fold_letters(text.lower()) if by_code else ""
    for code, words in by_code.items():
        forms = _forms(any_of((code,)))
        if any(forms.may_be_own(text, found.start(), word) for word in words for found in re.finditer(word, lowered)):
            yield forms, words
