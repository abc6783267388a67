"""Decide which hits are relevant: a floor in units of the chance level in this store.

What counts as similar depends on the embedder and on the store. Prompts that concern no memory are searched once
(`calibration`). The spread of their best scores is the unit, and the floor is a fixed number of units above their
median. All stores use the same weights; docs/explanation/relevance.md describes the data they were fitted on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ricordo.retrieval.answerability import EVERYTHING, answer_odds, asked_for, asked_of, features
from ricordo.retrieval.query import (
    Intent,
    Plan,
    Query,
    asks_for_a_state,
    asks_for_one_value,
    asks_for_tasks,
    intent_of,
    is_nod,
    needs_asked,
    needs_of,
)
from ricordo.retrieval.ranking import Ranked
from ricordo.retrieval.signals import FITTED, Pool, around, met_in_context, says_little, terms_of
from ricordo.storage.values import Floor
from ricordo.text.analyzer import (
    begins_with_oneself,
    function_terms,
    index_terms,
    language_of_function_words,
    raw_words,
    speaks_for_group,
    speaks_of_themselves,
)
from ricordo.text.change import topics
from ricordo.text.languages import cached, languages_of
from ricordo.text.names import own_relatives, own_things, relations_asked
from ricordo.text.sentences import in_first_person
from ricordo.text.tasks import is_open_task

if TYPE_CHECKING:
    from ricordo.model import Node

    Floats = NDArray[np.float32]

MEASURES = ("words", "meaning", "known", "telling")
"""How well a candidate and its context match the question's words, 0 to 1; the centred cosine; the share of the
question's information that occurs anywhere in the store, 0 to 1; and the information, in nats, of the words that occur
letter by letter.
"""

RULE = 2
"""Increase this when a measure changes; stored floors are then measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The part "floor" of relevance.json, fitted on the sets listed in docs/explanation/relevance.md.

    Measures are in units of the spread that unrelated prompts have in a store.

    Attributes:
        weights: float64[measures], of each of `MEASURES`.
        above: distance of the floor above the chance level.
        words_weights, words_above: the same without an embedder. Then mostly words that occur letter by letter count,
            because all words of "What can you do for me?" occur in any conversation.
        least_spread: float64[measures], the minimum unit of each measure.
        within: bounds of each measure in units.
        near, near_weight: a cosine more than `near` units above chance gets a bonus, for synonyms.
        anchor: reduction of the floor for a hit that is about or by a person in the question, or has a tag in it.
        spoken_least: the minimum of the sum without `known` for the best turn of a speaker that the question names; if
            no turn of that person reaches it, only the name connects them with the question.
        slack: if one hit clears the floor, hits at most this far below it may stay.
        behind: hits this far below the best are dropped, unless they match a word that no better hit matches.
        met, unmet, worth: for such a word, its minimum match, the maximum match of better hits, and its minimum share.
        named_in_context: the minimum match of a capitalised word around a hit for it to count as named there.
        leading, leading_share: in a context, this many top turns stay if they score at least this share of the best;
            facts do not, because they say less about each other.
        fact_above, fact_slack, fact_slack_of_several, fact_behind: the same for facts, in log odds. One in three facts
            that alone clear the floor is an answer.
        fact_of_stranger: reduction of the odds of a fact if the question has a name that is not in memory.
        many, usual_chance: with fewer memories than `many`, each missing one counts as a match of `usual_chance`.
    """

    weights: NDArray[np.float64]
    above: float
    words_weights: NDArray[np.float64]
    words_above: float
    least_spread: NDArray[np.float64]
    within: tuple[float, float]
    near: float
    near_weight: float
    anchor: float
    spoken_least: float
    slack: float
    behind: float
    met: float
    unmet: float
    worth: float
    named_in_context: float
    leading: int
    leading_share: float
    fact_above: float
    fact_slack: float
    fact_slack_of_several: float
    fact_behind: float
    fact_of_stranger: float
    many: int
    usual_chance: float


_ARRAYS = ("weights", "words_weights", "least_spread")
_FLOOR: dict[str, Any] = {k: np.array(v) if k in _ARRAYS else v for k, v in FITTED["floor"].items()}
TUNING = Tuning(**_FLOOR)

_SHORT_TEXT = 8  # with marks around it

# Facts in the first person are recognised by their beginning.
_BEGINNING = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Measurements of the candidates of a pool.

    Attributes:
        values: float32[measures, size].
        met: float32[words, size], how well each candidate itself matches each word of the question.
        worth: float32[words], the share of each word in the question.
        anchored: bool[size], whether the memory is about, or by, a person that the question names.
        of_named_speaker: bool[size], whether a candidate is a turn of a person in a question that has a topic, too.
        persons: the terms by which the question names people and things.
        names_others: bool[size], whether the question names an entity that the candidate does not mention.
        said: float32[1 + parts, size], how well each candidate itself matches the question, 0 to 1, and each part of a
            question with several parts.
        beside: float32[topics, size], how well each candidate itself matches each topic that the question lists beside
            names: "Anna and the rent".
        letters: float32[size], information of the topic words that occur letter by letter, in nats.
        worded: bool[size], whether a candidate was compared word by word.
        says_little: float32[size], 1 for a nod or a word of thanks.
        is_named: the question names an entity in memory.
        asks_all: the question has no topic besides names.
        names_stranger: the question has a word that is written like a name and occurs in no memory.
        unknown_relatives: the terms of each word for a relative of the speaker that the question mentions, if
            nobody is known as that.
        in_period: bool[size], whether the memory is from the period, if the question asks for nothing else.
    """

    values: Floats
    met: Floats
    worth: Floats
    anchored: NDArray[np.bool_]
    of_named_speaker: NDArray[np.bool_]
    names_others: NDArray[np.bool_]
    said: Floats
    beside: Floats
    letters: Floats
    worded: NDArray[np.bool_]
    in_period: NDArray[np.bool_]
    says_little: Floats
    persons: frozenset[str] = frozenset()
    is_named: bool = False
    asks_all: bool = False
    names_stranger: bool = False
    unknown_relatives: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The best hits that stay, in order, the relevance of each (0 is the floor), and why others were dropped."""

    kept: tuple[Ranked, ...]
    relevance: Mapping[int, float]
    reasons: Mapping[int, str]


def floor_of(found: Sequence[Floats], *, model: int, count: int) -> Floor:
    """Return the floor from the results of the generic prompts, float32[measures, candidates] each. Pure."""
    rows = np.stack([each.max(axis=1) for each in found]) if found else np.zeros((1, len(MEASURES)), np.float32)
    spread = np.maximum(rows.std(axis=0), TUNING.least_spread)
    floor = Floor(
        model=model,
        count=count,
        middle=tuple(np.median(rows, axis=0).round(4).tolist()),
        spread=tuple(spread.round(4).tolist()),
    )
    sums = [float(_sums(each, floor)[0].max()) for each in found]
    chance = round(float(np.median(sums)), 4) if sums else 0.0
    return replace(floor, chance=chance + 0.0)  # SQLite drops the sign of -0.0, and copies are compared


def evidence_of(pool: Pool, plan: Plan) -> Evidence:
    """Measure the candidates of a pool. A candidate linked to a named entity matches the entity's name."""
    size, is_named = pool.size, pool.names_entities
    names = pool.name_terms
    held = (pool.counts > 0).astype(np.float32)
    rows = np.array([word in names for word in pool.words], np.bool_)
    held[rows, :size] = np.maximum(held[rows, :size], pool.named)
    context, held_around = met_in_context(pool, pool.strengths), around(pool, held)
    known = np.full(size, _known_share(pool, names), np.float32)
    values = np.stack([pool.worth @ context, pool.cosines[:size], known, pool.idf @ held_around])
    asked = asked_of(pool, plan, held)
    strange = _capitals(plan.query.text)
    unmet = [
        (held[row, :size] == 0) & (context[row] < TUNING.named_in_context)
        for row, word in enumerate(pool.words)
        if word in strange
    ]
    return Evidence(
        values=np.asarray(values, np.float32),
        met=pool.strengths[:, :size],
        worth=pool.worth,
        anchored=_anchored(pool),
        of_named_speaker=(pool.spoke[:size] > 0) & (pool.turns.sessions[:size] >= 0) & bool(asked.words),
        persons=names | terms_of(pool.persons),
        names_others=np.logical_or.reduce([np.full(size, is_named), *unmet]),
        said=asked.said(plan.query.text),
        beside=asked.said_beside(plan.query.text, names),
        letters=np.asarray(asked.idf @ asked.held, np.float32),
        worded=pool.worded[:size],
        in_period=_in_period(pool, plan),
        says_little=says_little(pool),
        is_named=is_named,
        asks_all=not asked.words,
        names_stranger=any(pool.frequencies.get(word) == 0 for word in strange - names),
        unknown_relatives=() if is_named else _terms_of_relatives(plan.query.text),
    )


@cached(maxsize=256)
def _terms_of_relatives(question: str) -> tuple[frozenset[str], ...]:
    words = (word for words in relations_asked(question).values() for word in words)
    return tuple({frozenset(index_terms(word)) for word in words})


def _in_period(pool: Pool, plan: Plan) -> NDArray[np.bool_]:
    """Return which memories are from the period of a question such as "What happened last month?", bool[size]. If the
    question names a person, they must also be about that person.
    """
    span = plan.interval
    if span is None or not asks_for_any_event(pool, plan):
        return np.zeros(pool.size, np.bool_)
    times = pool.turns.event_times[: pool.size]
    is_meant = _anchored(pool) | (not pool.names_entities and not pool.persons)
    return np.asarray((times >= span.start) & (times < span.end) & is_meant, np.bool_)


def asks_for_any_event(pool: Pool, plan: Plan) -> bool:
    """Return whether a question has no topic apart from a time and names: "What happened last month?"."""
    return plan.interval is not None and not topic_terms(pool, plan)


def topic_terms(pool: Pool, plan: Plan) -> frozenset[str]:
    """Return the terms that state the topic of a question: neither names nor words such as "happened"."""
    asked = asked_for(pool.words, terms=pool.frequencies, names=pool.name_terms)
    said = {word for word, is_asked in zip(pool.words, asked, strict=True) if is_asked}
    return frozenset(said - function_terms(language_of_function_words(plan.query.text)))


def _anchored(pool: Pool) -> NDArray[np.bool_]:
    return np.asarray((pool.named > 0) | (pool.spoke[: pool.size] > 0), np.bool_)


def _known_share(pool: Pool, names: frozenset[str]) -> float:
    """Return the share of the question's information that occurs in the store, without embedder-only pieces."""
    asked = [
        (worth, word in names or pool.frequencies[word] > 0)
        for word, worth in zip(pool.words, pool.idf.tolist(), strict=True)
        if word in pool.frequencies
    ]
    total = sum(worth for worth, _ in asked)
    return sum(worth for worth, is_known in asked if is_known) / total if total else 0.0


# A capital within a sentence. At the beginning of a sentence it is not significant.
_CAPITAL = re.compile(r"(?<![.?!…:]\s)(?<!^)(?<![«\"“(])\b[^\W\d_a-z\u0430-\u044f\u0451][\w'’-]+")


def _capitals(text: str) -> frozenset[str]:
    """Return the terms of words that are written like names."""
    found = (word for word in _CAPITAL.findall(text[:2_000]) if word[:1].isupper())
    if any(language.letters.has_capital_nouns for language in languages_of(text)):
        return frozenset()
    return frozenset(term for word in found for term in index_terms(word))


def relevance_of(evidence: Evidence, floor: Floor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the relevance of candidates, and the same without the bonus for a near meaning, float64[size] twice.

    The bonus of anchors is not included, because it lowers the floor of a memory instead of improving the memory.
    """
    whole, even = _sums(evidence.values, floor)
    above = floor.chance + (TUNING.above if floor.model else TUNING.words_above)
    return whole - above, even - above


def _units(values: Floats, floor: Floor) -> NDArray[np.float64]:
    """Return the measures in units of chance, float64[n, measures]."""
    units = np.clip((values.T - np.array(floor.middle)) / np.array(floor.spread), *TUNING.within)
    if not floor.model:
        units[:, 1] = 0.0
    return np.asarray(units, np.float64)


def _weights(floor: Floor) -> NDArray[np.float64]:
    return TUNING.weights if floor.model else TUNING.words_weights


_OF_STORE = MEASURES.index("known")
"""The measure of the question and the store, which is the same for all candidates."""


def _only_spoken(evidence: Evidence, floor: Floor, places: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which hits are turns of a speaker in the question, if no turn of that speaker matches enough of the
    rest of the question, by itself or with the turns around it, bool[n].
    """
    weights = _weights(floor).copy()
    weights[_OF_STORE] = 0.0
    spoke = evidence.of_named_speaker[places]
    matches = _units(evidence.values[:, places], floor) @ weights
    return spoke & bool(matches.max(initial=-np.inf, where=spoke) < TUNING.spoken_least)


def _sums(values: Floats, floor: Floor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted sums of measures in units of chance, with and without the bonus for a near meaning.

    Args:
        values: float32[measures, n].

    Returns:
        float64[n] twice.
    """
    units = _units(values, floor)
    even = units @ _weights(floor)
    return even + TUNING.near_weight * np.maximum(0.0, units[:, 1] - TUNING.near), even


NEARLY = 1.5
"""How far below the floor a fact may be that a strict list shows with a change of it, or a change with the fact."""


def judge(
    best: Sequence[Ranked],
    evidence: Evidence,
    floor: Floor,
    *,
    nodes: Mapping[int, Node],
    query: Query,
    links: Sequence[tuple[int, int]] = (),
) -> Judged:
    """Reduce a ranked list to its relevant hits. Pure.

    Args:
        best: in order, with positions in `evidence`.
        nodes: by key; hits without a node are dropped.
        links: pairs of which the first says that the second has changed: the second is not shown alone.
    """
    best = [each for each in best if each.key in nodes]
    weighed = weigh_up(best, evidence, floor, nodes=nodes, question=query.text)
    relevance = {each.key: float(value) for each, value in zip(best, weighed.relevance, strict=True)}
    others = weighed.is_of_others
    asked, intent = frozenset(raw_words(query.text)), intent_of(query.text)
    nods = (evidence.says_little[[each.place for each in best]] > 0) | np.array(
        [_is_a_letter(nodes[each.key], asked) or _is_nod(nodes[each.key], intent) for each in best], np.bool_
    )
    apart = {each.key: "it says nothing by itself" for each in compress(best, nods)}
    apart |= {each.key: "it is about someone other than the question names" for each in compress(best, others)}
    by_name = "it has nothing of the question but the name of its speaker"
    apart |= {each.key: by_name for each in compress(best, weighed.is_only_spoken)}
    unrelated = set[int]()
    if query.with_leading:
        only_named = _only_named(best, evidence, weighed, nodes=nodes, question=query.text)
        apart |= {each.key: "it has nothing of the question but a name" for each in compress(best, only_named)}
        unrelated = {each.key for each in compress(best, only_named)}
    theirs = [_is_of_another_speaker(nodes[each.key], query.text) for each in best]
    apart |= {each.key: "somebody else says it of themselves" for each in compress(best, theirs)}
    reasons = dict(apart)
    low, behind = under_floor(weighed), behind_best(weighed)
    clears = weighed.relevance >= 0
    if query.with_leading and not evidence.names_stranger:  # a missing memory costs a context more than an extra line
        clears |= (weighed.as_turns >= 0) & ~low
    if not clears[~(others | nods | weighed.is_only_spoken | np.array(theirs, np.bool_))].any():
        nothing = "nothing in the memory stands out from chance for this question"
        return Judged(kept=(), relevance=relevance, reasons={each.key: nothing for each in best} | reasons)
    kept: list[Ranked] = []
    met = np.zeros(len(evidence.worth), np.float32)
    for place, each in enumerate(best):
        mine = evidence.met[:, each.place]
        tells_more = bool(((mine >= TUNING.met) & (met <= TUNING.unmet) & (evidence.worth >= TUNING.worth)).any())
        if each.key in apart:
            continue
        if low[place]:
            reasons[each.key] = "it says no more to the question than chance would"
        elif not behind[place] or weighed.is_told[place] or (tells_more and not weighed.is_fact[place]):
            kept.append(each)
            met = np.maximum(met, mine)
        else:
            reasons[each.key] = "better hits say all of the question that it says"
    shown = {each.key for each in kept}
    if shown and query.with_leading:
        shown |= _leading(best, weighed.is_fact) - apart.keys()
    newer = _newer_versions(shown, best, links)  # a stale fact alone misleads more than an extra hit
    is_strict = not (query.with_leading or query.judge)
    shown |= {key for key in newer if not is_strict or relevance[key] >= -NEARLY} - unrelated
    return Judged(
        kept=tuple(each for each in best if each.key in shown),
        relevance=relevance,
        reasons={key: reason for key, reason in reasons.items() if key not in shown},
    )


def _only_named(
    best: Sequence[Ranked], evidence: Evidence, weighed: Weighed, *, nodes: Mapping[int, Node], question: str
) -> NDArray[np.bool_]:
    """Return which facts only the name of a person connects with a question that others answer, or that asks for a meal
    or the like, bool[n]. What the person likes or must not have may matter beside an answer that is no single value.
    """
    places = [each.place for each in best]
    anchored = evidence.anchored[places] & np.array([nodes[each.key].type != "episodic" for each in best], np.bool_)
    says_nothing = np.where(
        weighed.is_fact, weighed.relevance < -_FAR_BELOW, evidence.said[:, places].max(axis=0) < _MATCHES
    )
    only_named = anchored & says_nothing & ~weighed.is_told & (not evidence.asks_all)
    answers = anchored & ~only_named & (weighed.relevance >= 0)
    if not answers.any() and needs_of(question) is None:
        return np.zeros(len(best), np.bool_)
    of_likes = [nodes[each.key].category == "preference" for each in best]
    return np.asarray(only_named & ~(np.array(of_likes, np.bool_) & (not asks_for_one_value(question))), np.bool_)


_FAR_BELOW = 1.0
"""How far below the floor a fact is that only a name connects with a question, in log odds. With 0, contexts lose
answers on three of the sets of facts.
"""
_MATCHES = 0.05
"""The least match of a fact with a question, without an embedder."""
_ALPHABETS = "\u2e80"
"""The characters before this one are letters of alphabets; one character of Chinese may be a word."""


def _is_a_letter(node: Node, asked: Set[str]) -> bool:
    """Return whether a fact is only one or two letters, or a sign, that the question does not name. Its pieces and its
    vector are like those of anything. A message may be an answer: "no".
    """
    said = node.content.strip().lower()
    if node.type == "episodic" or len(said) > _SHORT_TEXT:
        return False
    known = [each for each in said if each.isalnum()]
    return len(known) <= 2 and all(each.isalpha() and each < _ALPHABETS for each in known) and said not in asked


def _is_of_another_speaker(node: Node, question: str) -> bool:
    """Return whether a fact tells what is somebody else's, in the first person, where a question asks for one's own:
    "My rent is 900 euros", said by Tom, for "What is my rent?".
    """
    if node.type == "episodic" or not node.speaker or speaks_for_group(question) or speaks_for_group(node.content):
        return False
    if not set(index_terms(question)).isdisjoint(index_terms(node.speaker)):
        return False
    if not own_things(question).isdisjoint(own_things(node.content)):
        return True
    is_of_asker = speaks_of_themselves(question) and (asks_for_a_state(question) or needs_asked(question) is not None)
    return is_of_asker and topics(node.content).is_of_self


def _is_nod(node: Node, intent: Intent) -> bool:
    return node.type == "episodic" and is_nod(node.content, intent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """How well the best hits answer a question. All arrays have one element per hit.

    Attributes:
        relevance: float64[n], 0 is the floor; for facts from their statements, for turns equal to `as_turns`.
        as_turns: float64[n], the relevance of all hits judged as turns, with the bonus of anchors.
        even: float64[n], the same without the bonuses of anchors and of a near meaning.
        is_of_others: bool[n], about someone other than the question names.
        is_only_spoken: bool[n], a turn that has nothing of the question but the name of its speaker.
        is_fact: bool[n], judged by its statement.
        is_told: bool[n], in the period or an open task, if the question asks for that: relevant whatever it says.
        asks_several: the question has several parts.
        found: the features of facts by name, float64[n] each; empty without facts.
    """

    relevance: NDArray[np.float64]
    as_turns: NDArray[np.float64]
    even: NDArray[np.float64]
    is_of_others: NDArray[np.bool_]
    is_only_spoken: NDArray[np.bool_]
    is_fact: NDArray[np.bool_]
    is_told: NDArray[np.bool_]
    asks_several: bool
    found: Mapping[str, NDArray[np.float64]]


def weigh_up(
    best: Sequence[Ranked], evidence: Evidence, floor: Floor, *, nodes: Mapping[int, Node], question: str
) -> Weighed:
    """Measure how well hits answer a question. Without an embedder, facts are judged like turns."""
    places = np.array([each.place for each in best], np.intp)
    whole, even = (values[places] for values in relevance_of(evidence, floor))
    asked = " ".join(raw_words(question))
    labelled = np.array([_bears_label(nodes[each.key], asked) for each in best], np.bool_)
    anchored = evidence.anchored[places] | labelled
    as_turns = whole + TUNING.anchor * anchored
    beside = evidence.beside[:, places]
    others = evidence.names_others[places] & ~evidence.anchored[places] & ~(beside >= TUNING.met).any(axis=0)
    relatives = evidence.unknown_relatives
    of_nobody_asked = np.array([_is_of_another(nodes[each.key], relatives) for each in best], np.bool_)
    is_own = speaks_of_themselves(question)
    of_somebody = [_is_about_somebody(nodes[each.key], is_own=is_own) for each in best]
    is_fact = np.array([bool(floor.model) and nodes[each.key].type != "episodic" for each in best], np.bool_)
    relevance, found = as_turns, dict[str, NDArray[np.float64]]()
    if is_fact.any():
        measured = partial(
            features,
            cosines=(evidence.values[1, places] - floor.middle[1]) / floor.spread[1],
            letters=evidence.letters[places].astype(np.float64),
            worded=evidence.worded[places],
            anchored=anchored,
            texts=[in_first_person(nodes[each.key].content[:_BEGINNING]) for each in best],
            question=question,
        )
        found = measured(said=evidence.said[:, places].astype(np.float64), by_chance=_met_by_chance(evidence.said))
        is_list = len(beside) > 0
        odds = answer_odds(found, is_named=evidence.is_named, asks_all=evidence.asks_all or is_list)
        if is_list:
            of_topics = measured(
                said=np.vstack([beside.max(axis=0), beside]).astype(np.float64),
                by_chance=np.append(0.0, _met_by_chance(evidence.beside)),
            )
            odds = np.maximum(odds, answer_odds(of_topics, is_named=False, asks_all=False))
        odds = odds - TUNING.fact_above - TUNING.fact_of_stranger * evidence.names_stranger
        relevance = np.where(is_fact, odds, as_turns)
    needs = needs_of(question)
    said = [nodes[each.key].content for each in best]
    is_needed = np.array([needs is not None and needs.are_in(text) for text in said], np.bool_)
    names_them = np.array([not evidence.persons.isdisjoint(index_terms(text)) for text in said], np.bool_)
    of_tasks = asks_for_tasks(question)
    is_asked = np.array([of_tasks and is_open_task(nodes[each.key]) for each in best], np.bool_)
    is_told = evidence.in_period[places] | is_asked
    told = np.where(is_told, EVERYTHING, -np.inf)
    return Weighed(
        relevance=np.maximum(relevance, told),
        as_turns=np.maximum(as_turns, told),
        even=even,
        is_of_others=(of_nobody_asked | (np.array(of_somebody, np.bool_) & others)) & ~is_asked,
        is_only_spoken=_only_spoken(evidence, floor, places) & ~(names_them | labelled | is_needed | is_told),
        is_fact=is_fact,
        is_told=is_told,
        asks_several=bool(found) and len(evidence.said) > 1,
        found=found,
    )


def _met_by_chance(said: Floats) -> NDArray[np.float64]:
    """Return the mean match of each row of `said`, float64[rows], which estimates the match of an arbitrary memory."""
    missing = max(0, TUNING.many - said.shape[1])
    met = said.sum(axis=1, dtype=np.float64) + missing * TUNING.usual_chance
    return np.asarray(met / (said.shape[1] + missing), np.float64)


def _is_of_another(node: Node, relatives: Sequence[frozenset[str]]) -> bool:
    """Return whether a fact is about somebody, and has none of the words for the relatives of a question, if there are
    some. What the speaker says of themselves or another relative is about those.
    """
    if not relatives or node.type == "episodic":
        return False
    text, terms = node.content[:_BEGINNING], frozenset(index_terms(node.content))
    is_of_somebody = bool(node.about) or begins_with_oneself(text) or bool(own_relatives(text))
    return is_of_somebody and not any(each <= terms for each in relatives)


def _is_about_somebody(node: Node, *, is_own: bool) -> bool:
    """Return whether a memory has a subject. A fact that begins with "I" or "my" is about the owner."""
    if node.about or node.type == "episodic" or is_own:
        return bool(node.about)
    return begins_with_oneself(node.content[:_BEGINNING])


def under_floor(weighed: Weighed) -> NDArray[np.bool_]:
    """Return which hits are too far below the floor to stay even if another hit clears it, bool[n]."""
    slack = TUNING.fact_slack_of_several if weighed.asks_several else TUNING.fact_slack
    return np.asarray(weighed.relevance < -np.where(weighed.is_fact, slack, TUNING.slack), np.bool_)


def behind_best(weighed: Weighed) -> NDArray[np.bool_]:
    """Return which hits are too far behind the best of their kind, bool[n]. A fact above the floor never is; no fact is
    if the question has several parts.
    """
    turns = ~weighed.is_of_others & ~weighed.is_fact & (weighed.relevance >= -TUNING.slack)
    facts = ~weighed.is_of_others & weighed.is_fact
    limit = weighed.even[turns].max(initial=-np.inf) - TUNING.behind
    odds = -np.inf if weighed.asks_several else weighed.relevance[facts].max(initial=-np.inf) - TUNING.fact_behind
    is_behind = np.where(weighed.is_fact, weighed.relevance < min(odds, 0.0), weighed.even < limit)
    return np.asarray(is_behind, np.bool_)


def _leading(best: Sequence[Ranked], is_fact: NDArray[np.bool_]) -> set[int]:
    """Return the keys of the top turns, except those that score much less than the best hit."""
    most = max((each.score for each in best), default=0.0)
    turns = [
        each.key
        for each, fact in zip(best, is_fact, strict=True)
        if not fact and each.score >= TUNING.leading_share * most
    ]
    return set(turns[: TUNING.leading])


def _newer_versions(shown: Set[int], best: Sequence[Ranked], links: Sequence[tuple[int, int]]) -> set[int]:
    """Return the keys of hits that may make a shown one out of date."""
    return {newer for newer, older in links if older in shown}.intersection(each.key for each in best)


def _bears_label(node: Node, asked: str) -> bool:
    """Return whether the question contains a tag of a memory, as complete words without stemming."""
    return any(f" {label} " in f" {asked} " for tag in node.tags if (label := " ".join(raw_words(tag))))
