"""Find candidates, rank them, and cut the list: one read snapshot, no model, no writes.

The store is queried three times: for the entities that the question names, for candidates, and for the details of the
best candidates. Everything else is computed from these values. Work that misses the deadline is skipped, and the answer
reports it.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain, combinations, islice, takewhile
from math import inf, log
from typing import NamedTuple, TypeGuard
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ricordo.clock import from_ms, to_ms
from ricordo.model import DOCUMENT, UPDATED_AT, Absence, Hit, Newer, Node, Results, Scope, Share, Trace
from ricordo.retrieval.hits import (
    as_shown,
    hit_of,
    newer_by_older,
    only_asks,
    says_the_same,
    told_by,
    warnings_of,
    without_withheld,
    writers,
)
from ricordo.retrieval.query import (
    KNOWLEDGE,
    Plan,
    Query,
    asks_for_a_past,
    asks_for_tasks,
    asks_for_the_present,
    asks_what_was,
    filter_of,
    is_nod,
    namings,
)
from ricordo.retrieval.ranking import (
    APART,
    COMPARED_WITH_BEST,
    INSTEAD_LEAST,
    Meaning,
    Ranked,
    Ranking,
    fuse,
    in_succession,
    instead_of_best,
    may_answer_instead,
    newest_of_equal,
    rank,
    rank_by_seeds,
    reranked,
    totals_of,
    weigh,
)
from ricordo.retrieval.relevance import MEASURES, NEARLY, Judged, asks_for_any_event, evidence_of, judge, topic_terms
from ricordo.retrieval.signals import (
    WEIGHTS,
    Pool,
    asks_for_a_list,
    best_passages,
    is_message,
    like_best,
    likeness,
    measure,
    pool_of,
    session,
    weigh_by_origin,
)
from ricordo.retrieval.times import TimeQuestion, time_question
from ricordo.storage import PastSnapshot, Snapshot
from ricordo.storage.authors import Author
from ricordo.storage.candidates import (
    FINDERS,
    FOLLOWERS,
    MOST_REPLACED,
    CandidateQuery,
    CandidateSet,
    DayTerms,
    Naming,
    Shortlist,
    inverse_frequency,
    is_statement,
)
from ricordo.storage.protocol import by_owner, names_of_owner_alone
from ricordo.storage.values import Filter
from ricordo.text.analyzer import index_terms, raw_words
from ricordo.text.canonical import canonical
from ricordo.text.change import (
    are_of_one_text,
    are_of_two_people,
    asks_for,
    begins,
    by_meaning,
    has_begun,
    has_doubts,
    in_full,
    names_another_thing,
    of_another,
    of_another_name,
    outdated,
    says_change,
    share_topic,
    succession,
    tells_change,
    things_said,
    topics,
)
from ricordo.text.dates import DATES
from ricordo.text.dates.grammar import mentions_time
from ricordo.text.dates.resolution import Span, coming_days, day_named_in, day_words, weekly_day_in
from ricordo.text.headed import HEADING, are_of_two_notes
from ricordo.text.languages import languages_of
from ricordo.text.occasions import are_of_two_days
from ricordo.text.relations import stated_own_names
from ricordo.text.relatives import stated_relations, tells_another_holder
from ricordo.text.statement import compare
from ricordo.text.tasks import is_done_task, is_open_task
from ricordo.trust import UNAPPROVED

# This multiple of the limit, and at least this many, are read in detail, because expired and merged ones are dropped.
_WEIGHED = 2
_WEIGHED_LEAST = 30
# For a calibration prompt, which no caller waits for.
_PATIENCE_S = 30.0
_REPLACED_LEAST = 0.4
"""A replaced fact leads to its successor if it holds so much of what the words of the question are worth."""
# The estimates below which a fact near an older one in meaning does not pass it: of one that only tells something, and
# of one that says that something has changed. Among the links of all pairs with their questions, these keep 23 of 103
# older facts that answer first, and cost 12 of 227 changes.
_LEAST_OF_PLAIN, _LEAST_IF_TOLD = 0.25, 0.1
_COMPARED = 6  # number of top results whose facts are compared with each other
_ALIKE = 0.3  # cosine from which a newer fact is shown with an older one that a context shows
_COMPARED_MESSAGES = 10  # the same for the messages of one conversation
# Number of top results, and the least share of the best message's score, for questions about the present.
_COMPARED_FOR_PRESENT, _ABOUT_AS_GOOD = 10, 0.7
# From this share of the score of the best statement, a statement ranks above a message that only repeats the question.
_AS_AN_ANSWER = 0.5
# Number of omitted memories that a receipt names.
_LEFT_OUT = 10
_SHORT_STATEMENT = 120  # characters
_BRIEF_QUESTION = 0.5  # of `is_message`
# Longer spans have too many days to look for.
_COMING_MOST = 92
# What "lately" means, and how many facts of that time are looked through for changes.
_LATELY_MS, _DAY_MS = 30 * 86_400_000, 86_400_000
_CHANGES_READ = 200
# Replaced facts of the time that a question names.
_FORMER = 40
# Maximum number of causal steps to follow, by the complexity of the question.
_DEPTHS = {"simple": 2, "complex": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of one snapshot: the best hits, their keys in the same order (`shown`), how they were found, and what
    was skipped. For a receipt also the last commit visible to the caller, and (id, reason) of the best omitted
    memories.
    """

    best: tuple[Hit, ...]
    candidates: Mapping[str, int]
    timings_ms: Mapping[str, float]
    degraded: tuple[str, ...]
    absence: Absence | None = None
    shown: tuple[int, ...] = ()
    under_floor: tuple[tuple[str, float, str], ...] = ()
    seen: int | None = None
    next_best: tuple[tuple[str, str], ...] = ()


NOTHING = Found(best=(), candidates={}, timings_ms={}, degraded=())
"""The result for a text without a question."""


def find(
    snapshot: Snapshot,
    plan: Plan,
    *,
    scope: Scope,
    zone: ZoneInfo,
    until: float,
    traced: bool,
    reasons: bool = False,
    receipt: bool = False,
) -> Found:
    """Run a search plan on one snapshot.

    Args:
        until: deadline on the clock of `time.monotonic`, seconds.
        traced: also report omitted memories.
        reasons: report why each hit was found.
        receipt: report the last commit visible to the caller, and the best omitted memories.

    Raises:
        NotFoundError: the question is limited to an entity that does not exist.
    """
    query, degraded = plan.query, list[str]()
    filter_ = filter_of(snapshot, scope, query)
    missing = None if query.why_not is None else snapshot.nodes.get(scope, query.why_not)
    started = time.perf_counter()
    try:
        named = snapshot.until(until, lambda: namings(snapshot, scope, query.text))
    except TimeoutError:
        named = ()
        degraded.append("names: no time left")
    timings_ms = {"names": (time.perf_counter() - started) * 1_000}
    probe = None if missing is None else missing.key
    found = snapshot.candidates(_candidate_query(plan, scope, filter_=filter_, named=named, until=until, probe=probe))
    degraded += found.degraded
    started = time.perf_counter()
    pool = pool_of(found, plan, named)
    short, ranking = _ranked(found, pool, plan)
    short = _with_asked(short, found, pool, ranking, plan)
    replaced = _replaced_by_words(snapshot, plan, scope=scope, until=until)
    keys, model = [*(each.key for each in short), *(newest for _, newest in replaced)], next(iter(plan.vectors), 0)
    told = _as_own(snapshot.shortlist(scope, keys, archived=filter_.archived, now=plan.now, model=model), scope.owner)
    known = _by_owner(told, snapshot, scope.owner)
    weighed, links = _weighed(short, known, plan, zone=zone, named=named)
    weighed, held_before = _with_successors(weighed, known, found, plan, replaced=replaced)
    dated = _days_named(weighed, known, plan, zone)
    habits: dict[int, date] = {}
    if pool is not None and plan.days and plan.days[0][0] >= _today(plan, zone):
        habits = {key: day for key, day in _habits_of_the_days(weighed, known, pool, plan).items() if key not in dated}
    persons = () if pool is None else pool.persons
    weighed = _latest_first(_arranged(weighed, known, query, first=dated, habits=habits), known, plan, persons=persons)
    dated |= habits
    weighed, known, held = _of_the_time(snapshot, scope, weighed, known, pool, plan, zone, links=links, dated=dated)
    weighed = _answers_first(weighed, known, plan)
    if plan.is_of_changes and KNOWLEDGE in filter_.shelves and not filter_.archived:
        weighed, known, held = _of_changes(snapshot, scope, weighed, known, plan, filter_)
    if not dated:
        weighed = _nods_last(_repeats_last(weighed, known, plan), known, plan)
    is_told = bool(weighed) and weighed[0].key in held  # the rules for a home, a job and the like know it
    if not (filter_.archived or plan.is_of_changes or is_told):
        weighed, instead = _present_answer_first(weighed, known, plan)
        links += instead
    doubts = _doubts(known, plan, zone)
    weighed = _newer_in_doubt_first(weighed, doubts)
    known, judged = replace(known, nodes={**known.nodes, **told.nodes}), None
    if query.only_relevant or query.judge:
        links += _told(weighed, known)
        if query.with_leading:
            links += _nearest_newer(weighed[:_COMPARED], known, plan)
        judged = _judged(pool, weighed, known, plan, links=links, doubts=doubts, sure=dated.keys() | held | held_before)
        if weighed and not judged.kept and (pool is None or plan.floor is None):
            degraded.append("relevance: no time left")
    left_out = judged if query.only_relevant else None
    best = (weighed if left_out is None else list(left_out.kept))[: query.limit]
    wrote = writers(snapshot, (known.nodes[each.key] for each in best if each.key in known.nodes))
    hits = _hits(best, known, ranking if traced or reasons else None, pool, plan, zone=zone, wrote=wrote)
    if judged is not None and pool is not None and plan.floor is not None:
        relevant = {known.nodes[each.key].id for each in judged.kept}
        hits = tuple(replace(hit, is_relevant=hit.id in relevant) for hit in hits)
    key_of = {known.nodes[each.key].id: each.key for each in best if each.key in known.nodes}
    absence = None
    if query.why_not is not None:
        absence = absence_of(snapshot, scope, plan, missing, found, pool, ranking, weighed, left_out)
    timings_ms |= found.timings_ms
    timings_ms["ranking"] = (time.perf_counter() - started) * 1_000
    counts = {name: len(keys) for name, keys in found.found.items()} | {"in all": pool.size if pool else 0}
    return Found(
        best=hits,
        candidates=counts,
        timings_ms=timings_ms,
        degraded=tuple(degraded),
        absence=absence,
        shown=tuple(key_of[hit.id] for hit in hits),
        under_floor=_under_floor(known, left_out) if traced else (),
        seen=snapshot.history.seen(scope) if receipt else None,
        next_best=_next_best(weighed, left_out, known, limit=query.limit) if receipt else (),
    )


def measured(snapshot: Snapshot, plan: Plan, *, scope: Scope) -> NDArray[np.float32]:
    """Return the relevance measures of all candidates, float32[measures, candidates], with at least one column."""
    until = time.monotonic() + _PATIENCE_S
    named = namings(snapshot, scope, plan.query.text)
    query = _candidate_query(plan, scope, filter_=plan.query.filter, named=named, until=until, strategies=FINDERS)
    pool = pool_of(snapshot.candidates(query), plan, named)
    return np.zeros((len(MEASURES), 1), np.float32) if pool is None else evidence_of(pool, plan).values


def _candidate_query(
    plan: Plan,
    scope: Scope,
    *,
    filter_: Filter,
    named: tuple[Naming, ...],
    until: float,
    probe: int | None = None,
    strategies: tuple[str, ...] = FINDERS + FOLLOWERS,
) -> CandidateQuery:
    word_model, worded = plan.worded
    return CandidateQuery(
        scope=scope,
        filter=filter_,
        terms=plan.looked_up,
        vectors=plan.question_vectors,
        word_model=word_model,
        word_width=0 if worded is None or worded.words is None else worded.words.shape[1],
        namings=named,
        interval=plan.span,
        depth=_DEPTHS[plan.complexity],
        strategies=strategies,
        directions=asks_for_a_list(plan.query.text),
        tasks=asks_for_tasks(plan.query.text),
        days=_day_terms(plan.days),
        states=plan.states if plan.is_of_now else (),
        probe=probe,
        until=until,
    )


def _day_terms(spans: Sequence[Span]) -> DayTerms | None:
    """Return how texts name some days; None if there are too many, or none."""
    if not spans or any((last - first).days > _COMING_MOST for first, last in spans):
        return None
    months, numbers, weekdays = (sorted({*chain.from_iterable(map(index_terms, each))}) for each in day_words(spans))
    return DayTerms(tuple(months), tuple(numbers), tuple(weekdays))


def _ranked(found: CandidateSet, pool: Pool | None, plan: Plan) -> tuple[list[Ranked], Ranking]:
    """Rank by all signals or, if there was no time to compute them, by the results of the strategies."""
    most = max(_WEIGHED_LEAST, _WEIGHED * plan.query.limit)
    rows = found.rows
    if pool is None or rows is None:
        return rank_by_seeds(found.found, most=most)
    alike = (lambda places: likeness(rows, places)) if asks_for_a_list(plan.query.text) else None
    values = measure(pool, plan)
    shares = weigh_by_origin(pool, fuse(values, WEIGHTS, fusion=plan.weighing.fusion))
    totals = totals_of(shares, pool.size)
    if "alike" not in plan.weighing.without and (second := like_best(pool, plan, totals)):
        values["alike"], shares["alike"] = second
        totals += shares["alike"]
    places = best_passages(pool, totals)
    if alike is None and "session" not in plan.weighing.without:
        values["session"], shares["session"] = session(pool, totals, places)
        totals += shares["session"]
    if plan.ratings:
        values["reranker"], shares["reranker"] = reranked(
            pool, totals, places, plan.ratings, weight=plan.weighing.reranker
        )
        totals += shares["reranker"]
    repeats = _may_ask_for_repeats(plan)
    return rank(pool, values, shares, totals, places, most=most, alike=alike, repeats=repeats)


def _as_own(known: Shortlist, owner: str) -> Shortlist:
    """Return memories as their owner reads them: what they told a chat is what they say of themselves."""
    own = {key: told_by(node, owner) for key, node in known.nodes.items() if owner and node.chat}
    return replace(known, nodes={**known.nodes, **own}) if own else known


def _by_owner(known: Shortlist, snapshot: Snapshot, owner: str) -> Shortlist:
    """Return facts that call the owner by a name that another one of them gives as the owner would state them, unless
    somebody else has the name, too.
    """
    identity = (node for node in known.nodes.values() if node.category == "identity" and node.speaker is None)
    named = tuple(dict.fromkeys(name for node in identity for name in stated_own_names(node.content)))
    names = names_of_owner_alone(snapshot, owner, named) if named else ()
    facts = {key: by_owner(node, names) for key, node in known.nodes.items() if names and node.type != "episodic"}
    return replace(known, nodes={**known.nodes, **facts}) if facts else known


def _with_asked(
    short: Sequence[Ranked], found: CandidateSet, pool: Pool | None, ranking: Ranking, plan: Plan
) -> list[Ranked]:
    """Return the best candidates, and what the question asks for however low it ranks: open tasks, what may name a
    coming day, the latest statements about a state, and what happened in a time.
    """
    present = {each.key for each in short}
    is_of_time = len(found.found.get("time", ())) > 0 and pool is not None and asks_for_any_event(pool, plan)
    asked_by = ("tasks", "days", "states", *(["time"] if is_of_time else []))
    asked = dict.fromkeys(chain.from_iterable(found.found.get(name, ()) for name in asked_by))
    missing = [key for key in asked if key not in present and pool is not None]
    places = [] if pool is None else pool.turns.keys[: pool.size].searchsorted(missing).tolist()
    added = (
        Ranked(key=key, place=place, score=float(ranking.totals[place]))
        for key, place in zip(missing, places, strict=True)
    )
    return [*short, *added]


def _weighed(
    short: Sequence[Ranked], known: Shortlist, plan: Plan, *, zone: ZoneInfo, named: Sequence[Naming]
) -> tuple[list[Ranked], list[tuple[int, int]]]:
    """Return the best memories that are in force, by score and by the properties of each memory, best first; and pairs
    of which the first says that the second has changed.
    """
    alive = [each for each in short if each.key in known.weights]
    weights = [known.weights[each.key] for each in alive]
    if any(each.trust in UNAPPROVED for each in weights):
        weights = [
            weight._replace(reads_like_an_order=True)
            if weight.trust in UNAPPROVED and each.key in known.nodes and warnings_of(known.nodes[each.key])
            else weight
            for each, weight in zip(alive, weights, strict=True)
        ]
    others = set() if named else _of_another(alive[:_COMPARED], known, plan)
    others |= _said_of_themselves(alive[:_COMPARED], known, plan, names_entities=bool(named))
    mentioning = _only_mentioning(alive[:_COMPARED], known, plan, named)
    weighed = weigh(alive, weights, now=plan.now, of_another=others, only_mentioning=mentioning)
    coming = _coming_day(plan, zone)
    if plan.query.filter.archived or (plan.is_of_past and coming is None):
        return weighed, []
    weighed = _with_changes(weighed, known, plan.query)
    changed, told = _outdated(weighed[:_COMPARED], known, plan, zone=zone)
    across = _across_spaces(weighed[:_COMPARED], known)
    told += across
    links = [
        (newer, older)
        for newer, older in (*known.versions, *changed, *_said_anew(weighed, known, plan), *across)
        if not _names_another(known, older, newer, plan)
        and (newer not in others or older in others or not _are_of_two_people(known, older, newer))
    ]
    if day := coming or (_today(plan, zone) if asks_for_the_present(plan.query.text) else None):
        to_come = {newer for newer, _ in links if _is_to_come(known.nodes.get(newer), day=day, zone=zone)}
        links = [(older, newer) if newer in to_come else (newer, older) for newer, older in links]
    if coming:
        links += _in_their_time(weighed[:_COMPARED], known, plan, day=coming, zone=zone)
    links += _with_sources(links, known)
    if links or known.successors:
        weighed = in_succession(weighed, links=links, successors=known.successors)
    present = {each.key for each in weighed}
    said = {
        key: ("|".join((about, line, *_dates_of(known.nodes[key]))), since)
        for key, (about, line, since) in known.statements.items()
        if key in present and key in known.nodes
    }
    if KNOWLEDGE in plan.query.filter.shelves and not plan.query.filter.types:
        said |= _learnt_word_for_word(weighed, known, said)
    return newest_of_equal(weighed, said=said) if said else weighed, told


def _learnt_word_for_word(
    hits: Sequence[Ranked], known: Shortlist, said: Mapping[int, tuple[str, int]]
) -> dict[int, tuple[str, int]]:
    """Return facts whose text is that of a message they were learnt from, and these messages, as equal statements of
    which the facts are the newest.
    """
    found: dict[int, tuple[str, int]] = {}
    if not known.evidence:
        return found
    keys = {node.id: hit.key for hit in hits if (node := known.nodes.get(hit.key)) is not None}
    for hit in hits:
        fact = known.nodes.get(hit.key)
        for key in (keys[id] for id in known.evidence.get(hit.key, ()) if id in keys):
            if fact is not None and says_the_same(fact.content, known.shown.get(key, known.nodes[key].content)):
                found[hit.key] = said.get(hit.key, (f"learnt {hit.key}", 0))
                found[key] = (found[hit.key][0], _BEFORE_ALL)
    return found


_BEFORE_ALL = -(1 << 62)


def _with_changes(hits: Sequence[Ranked], known: Shortlist, query: Query) -> list[Ranked]:
    """Return hits with the facts that were not found although they say that a hit has changed: each right above it."""
    if query.is_narrowed:
        return list(hits)
    present = {hit.key for hit in hits}
    types = query.filter.types
    changes: dict[int, int] = {}
    for newer, older in known.versions:
        node = known.nodes.get(newer) if newer not in present else None
        if node is not None and (not types or node.type in types) and says_change(in_full(node.content)):
            changes[older] = max(newer, changes.get(older, newer))
    found = list[Ranked]()
    for hit in hits:
        if (newest := changes.get(hit.key)) is not None and newest not in present:
            present.add(newest)
            found.append(hit._replace(key=newest))
        found.append(hit)
    return found


def _doubts(known: Shortlist, plan: Plan, zone: ZoneInfo) -> dict[int, list[int]]:
    """Return the newer facts of open conflicts that tell a change, the latest first, by the key of the older one. They
    hold in the time of the question, and are of what it asks for.
    """
    query = plan.query
    if query.is_narrowed or query.filter.archived or (plan.is_of_past and _coming_day(plan, zone) is None):
        return {}
    day = _coming_day(plan, zone) or _today(plan, zone)
    found: dict[int, list[int]] = {}
    for older, newer, _ in known.conflicts:
        node = known.nodes.get(newer)
        if node is None or not _tells_change_of(known.nodes.get(older), node):
            continue
        is_asked = not query.filter.types or node.type in query.filter.types
        if is_asked and not _is_to_come(node, day=day, zone=zone) and not _names_another(known, older, newer, plan):
            found.setdefault(older, []).append(newer)
    for keys in found.values():
        keys.sort(key=lambda key: (_stated_at(known.nodes[key]), key), reverse=True)
    return found


def _tells_change_of(older: Node | None, newer: Node) -> bool:
    if not says_change(in_full(newer.content)):
        return False
    return older is None or not (has_doubts(older.content, newer.content) or _is_of_a_relative_only(older, newer))


def _newer_in_doubt_first(hits: Sequence[Ranked], doubts: Mapping[int, Sequence[int]]) -> list[Ranked]:
    """Return hits with each newer fact of an open conflict right above the older one or higher, found or not."""
    if not doubts:
        return list(hits)
    own = {hit.key: hit for hit in hits}
    ordered: dict[int, Ranked] = {}
    for hit in hits:
        above, chain = [hit.key], dict[int, None]()
        while above:
            key = above.pop()
            if key not in chain and key not in ordered:
                chain[key] = None
                above += doubts.get(key, ())
        for key in reversed(chain):
            moved = own.get(key) or hit._replace(key=key)
            score = max(moved.score, hit.score)
            ordered[key] = moved._replace(score=score, moved=moved.moved + score - moved.score)
    return list(ordered.values())


def _replaced_by_words(snapshot: Snapshot, plan: Plan, *, scope: Scope, until: float) -> list[tuple[str, int]]:
    """Return the replaced facts that hold most words of the question, as (text, key of the newest version), best first:
    a newer statement such as "pelican is gone, cormorant is the new box" need not hold the words by which the older one
    was found.
    """
    is_of_now = KNOWLEDGE in plan.query.filter.shelves and not (plan.query.is_narrowed or plan.is_of_past)
    if not is_of_now or plan.is_of_changes or not plan.terms or not snapshot.graph.kinds().versions:
        return []
    try:
        return snapshot.until(until, lambda: snapshot.nodes.replaced_holding(scope, plan.terms, most=MOST_REPLACED))
    except TimeoutError:
        return []


def _with_successors(
    hits: Sequence[Ranked], known: Shortlist, found: CandidateSet, plan: Plan, *, replaced: Sequence[tuple[str, int]]
) -> tuple[list[Ranked], Set[int]]:
    """Put the newest versions of replaced facts before the hits that hold fewer words of the question than the replaced
    ones did. Return the hits, and the keys of these versions.

    Args:
        replaced: (text, key of the newest version) of each replaced fact.
    """
    idf = {term: inverse_frequency(found.frequencies.get(term, 0), found.total) for term in plan.terms}
    worths = {forms: max(map(idf.__getitem__, forms)) for forms in _forms_of_words(plan)} if replaced else {}

    def worth(text: str) -> float:
        held = {*index_terms(text)}
        return sum(each for forms, each in worths.items() if not forms.isdisjoint(held))

    put: dict[int, float] = {}
    for text, newest in replaced:
        node, of_old = known.nodes.get(newest), worth(text)
        is_asked = node is not None and (not plan.query.filter.types or node.type in plan.query.filter.types)
        if is_asked and of_old >= _REPLACED_LEAST * sum(worths.values()):
            put[newest] = max(of_old, put.get(newest, 0.0))
    ordered = list(hits)
    for newest, of_old in put.items():
        own = next((place for place, hit in enumerate(ordered) if hit.key == newest), len(ordered))
        better = (hit.key in known.nodes and worth(known.nodes[hit.key].content) >= of_old for hit in ordered)
        place = next((place for place, is_better in enumerate(better) if not is_better), own)
        if place < own or own == len(ordered):
            hit = ordered.pop(own) if own < len(ordered) else Ranked(key=newest, place=APART, score=0.0)
            beside = ordered[min(place, len(ordered) - 1)].score if ordered else of_old / sum(worths.values())
            ordered.insert(place, hit._replace(score=beside, moved=hit.moved + beside - hit.score))
    return ordered, put.keys()


def _forms_of_words(plan: Plan) -> Set[frozenset[str]]:
    """Return the index terms of each word of a question: "date" in a French one has the forms "date" and "dat"."""
    text, terms = plan.query.text, {*plan.terms}
    languages = languages_of(text)
    words = {frozenset(terms.intersection(index_terms(word, languages=languages))) for word in raw_words(text)}
    return {each for each in words if each} | {frozenset((term,)) for term in terms.difference(*words)}


def _days_named(hits: Sequence[Ranked], known: Shortlist, plan: Plan, zone: ZoneInfo) -> dict[int, date]:
    """Return the first day, of those about which the question asks, that each memory names. Tasks that are done are not
    among what is to come.
    """
    if not plan.days:
        return {}
    today = _today(plan, zone)
    is_of_past = plan.days[-1][1] < today
    found: dict[int, date] = {}
    for node in (known.nodes[hit.key] for hit in hits if hit.key in known.nodes):
        day = day_named_in(
            node.content,
            plan.days,
            said=node.event_time.astimezone(zone).date(),
            returns=min(today, plan.days[0][0]) if node.expires_at is None and node.type != "episodic" else None,
        )
        if day is not None and (is_of_past or not is_done_task(node)):
            found[node.key] = day
    return found


def _habits_of_the_days(hits: Sequence[Ranked], known: Shortlist, pool: Pool, plan: Plan) -> dict[int, date]:
    """Return the first day, of those to come about which the question asks, on which something takes place every week
    by each fact. "Is the shop open on Saturday?" is not answered by "I swim on Saturdays": no other hit may have
    more words of the question's topic.
    """
    _, _, weekdays = day_words(plan.days)
    asked = topic_terms(pool, plan).difference(*map(index_terms, weekdays))
    nodes = [known.nodes[hit.key] for hit in hits if hit.key in known.nodes]
    shared = {node.key: len(asked.intersection(index_terms(node.content))) if asked else 0 for node in nodes}
    most = max(shared.values(), default=0)
    days = {
        node.key: weekly_day_in(node.content, plan.days)
        for node in nodes
        if shared[node.key] == most and node.type != "episodic" and node.expires_at is None and not is_done_task(node)
    }
    return {key: day for key, day in days.items() if day is not None}


def _arranged(
    hits: Sequence[Ranked], known: Shortlist, query: Query, *, first: Mapping[int, date], habits: Mapping[int, date]
) -> list[Ranked]:
    """Return hits without the title pages, among those that are shown, of documents of which a passage was found. Those
    with a day come first, facts before messages, by their days, before what takes place then every week; and open tasks
    if the question asks for tasks.
    """
    if any(_is_title(known.nodes.get(hit.key)) for hit in hits[: query.limit]):
        nodes = {hit.key: known.nodes[hit.key] for hit in hits if hit.key in known.nodes}
        found = {node.session for node in nodes.values() if _is_of_a_document(node) and not _is_title(node)}
        hits = [hit for hit in hits if not (_is_title(node := nodes.get(hit.key)) and node.session in found)]
    is_of_tasks = asks_for_tasks(query.text)
    if not (is_of_tasks or first or habits):
        return list(hits)
    scores = sorted((hit.score for hit in hits), reverse=True)

    def place(hit: Ranked) -> tuple[bool, bool, date, bool, bool]:
        node, day = known.nodes.get(hit.key), first.get(hit.key, habits.get(hit.key))
        is_message = day is not None and node is not None and node.type == "episodic"
        return day is None, is_message, day or date.max, hit.key in habits, is_of_tasks and not _is_open(node)

    hits = sorted(hits, key=place)
    return [
        hit._replace(score=score, moved=hit.moved + score - hit.score) for hit, score in zip(hits, scores, strict=True)
    ]


def _latest_first(hits: Sequence[Ranked], known: Shortlist, plan: Plan, *, persons: Sequence[str]) -> list[Ranked]:
    """Return hits with the latest first among the messages that say as much about a question for the present as the
    best message: they change places, and the others stay where they are.

    Args:
        persons: the speakers that the question names; then only messages of one speaker change places.
    """
    is_of_now = plan.interval is None and plan.intent != "when" and asks_for_the_present(plan.query.text)
    if not is_of_now:
        return list(hits)
    terms, best = set(plan.terms), hits[:_COMPARED_FOR_PRESENT]
    said = [(place, node) for place, hit in enumerate(best) if (node := known.nodes.get(hit.key)) and _is_said(node)]
    if not said:
        return list(hits)
    least, first = terms.intersection(index_terms(said[0][1].content)), hits[said[0][0]].score
    alike = [
        place
        for place, node in said
        if (not persons or node.speaker == said[0][1].speaker)
        and least
        and least <= set(index_terms(node.content))
        and best[place].score >= _ABOUT_AS_GOOD * first
    ]
    newest = sorted(alike, key=lambda place: known.nodes[best[place].key].event_time, reverse=True)
    ordered = list(hits)
    for place, other in zip(alike, newest, strict=True):
        moved = hits[place].score - hits[other].score
        ordered[place] = hits[other]._replace(score=hits[place].score, moved=hits[other].moved + moved)
    return ordered


def _may_ask_for_repeats(plan: Plan) -> bool:
    """Return whether a question may ask for each of several equal messages, by their times or for how often."""
    is_simple = plan.intent != "when" and plan.complexity == "simple" and plan.interval is None
    return not is_simple or asks_for_a_list(plan.query.text)


def _repeats_last(hits: Sequence[Ranked], known: Shortlist, plan: Plan) -> list[Ranked]:
    """Return hits with a message that repeats the text of a better one of the same speaker below all others."""
    if _may_ask_for_repeats(plan) or not _repeats(_shown_first(hits, plan), known):
        return list(hits)
    repeats = _repeats(hits, known)
    return _rescored(sorted(hits, key=lambda hit: hit.key in repeats), hits)


def _nods_last(hits: Sequence[Ranked], known: Shortlist, plan: Plan) -> list[Ranked]:
    """Return hits with the messages that only nod or laugh below all others: they match by the messages around them."""
    said = (node for hit in hits if (node := known.nodes.get(hit.key)) is not None and _is_said(node))
    nods = {node.key for node in said if is_nod(node.content, plan.intent)}
    others = [hit for hit in hits if hit.key not in nods]
    lowest = min((hit.score for hit in others), default=inf)
    below = (hit for hit in hits if hit.key in nods)
    return [*others, *(_at_most(hit, lowest) for hit in below)]


def _at_most(hit: Ranked, score: float) -> Ranked:
    return hit if hit.score <= score else hit._replace(score=score, moved=hit.moved + score - hit.score)


def _repeats(hits: Sequence[Ranked], known: Shortlist) -> set[int]:
    """Return the keys of messages that repeat the text of a better one of the same speaker."""
    seen, repeats = set[tuple[str | None, str]](), set[int]()
    for node in (known.nodes[hit.key] for hit in hits if hit.key in known.nodes):
        said = node.speaker, " ".join(node.content.casefold().split())
        if _is_said(node) and said in seen:
            repeats.add(node.key)
        elif _is_said(node):
            seen.add(said)
    return repeats


def _shown_first(hits: Sequence[Ranked], plan: Plan) -> Sequence[Ranked]:
    """Return the hits that the answer begins with: any of them if it leaves out irrelevant ones."""
    return hits if plan.query.only_relevant else hits[: plan.query.limit]


def _of_the_time(
    snapshot: Snapshot,
    scope: Scope,
    hits: Sequence[Ranked],
    known: Shortlist,
    pool: Pool | None,
    plan: Plan,
    zone: ZoneInfo,
    *,
    links: Sequence[tuple[int, int]],
    dated: Mapping[int, date],
) -> tuple[list[Ranked], Shortlist, Set[int]]:
    """Return hits in the order in which they answer a question about a time: what held in it comes first. For a past
    time, with the facts that were replaced since. Also return the keys of those that answer it for sure.

    Args:
        links: pairs of which the first says that the second has changed.
        dated: the days that memories name, of those asked about.
    """
    is_any = pool is not None and not pool.names_entities and not pool.persons and asks_for_any_event(pool, plan)
    is_past = asks_for_a_past(plan.query.text, plan.interval, now=plan.now)
    is_arranged = bool(plan.days) or plan.is_of_changes or asks_for_tasks(plan.query.text)
    is_brief = is_message(plan) <= _BRIEF_QUESTION
    is_archived = plan.query.filter.archived
    if plan.days and plan.days[0][0] <= _today(plan, zone) and is_any and plan.is_of_past:
        question = time_question(plan, zone)
        shares = _shares_within(hits, known.nodes, question)
        named = dict.fromkeys(dated.keys() - shares.keys(), 1.0)
        return _by_time(hits, known.nodes, shares | named, question, plan), known, shares.keys()
    if is_arranged or not (is_brief or is_any) or not (plan.states if is_archived else is_past or plan.is_of_now):
        return list(hits), known, set()
    question = time_question(plan, zone, names_somebody=pool is not None and pool.names_entities)
    if is_archived:  # no value is the present one: of a time that is not named, each answers the question
        past = question.spells(known.nodes[hit.key] for hit in hits if hit.key in known.nodes)
        return list(hits), known, set(question.in_force(past) if plan.interval else (spell.key for spell in past))
    former = _former(snapshot, scope, hits, known, plan) if is_past and not plan.query.is_narrowed else {}
    nodes = {**{hit.key: known.nodes[hit.key] for hit in hits if hit.key in known.nodes}, **former}
    names_entities = pool is not None and pool.names_entities
    of_others = _said_of_themselves(hits, known, plan, names_entities=names_entities)
    spells, within = question.spells(node for key, node in nodes.items() if key not in of_others), set[int]()
    if plan.is_of_now:
        changed = _changed_since(nodes, known, plan, links)
        spells = [spell for spell in spells if spell.key not in changed]
    held = {key: place for place, key in enumerate(question.in_force(spells))}
    if is_past:
        hits, within = _of_the_days(hits, nodes, former, question, plan, held=held)
    last, names_person = set[int](), pool is not None and bool(pool.persons)
    if plan.is_of_now and (names_person or question.asks_for_own_work):  # what is said of others, or of nobody, is last
        last = {key for key, node in nodes.items() if not question.is_about_asked(node)}
        last -= {
            newer for older, newer, _ in known.conflicts if older in nodes.keys() - last and _is_named(nodes, newer)
        }
    first = sorted(hits, key=lambda hit: held.get(hit.key, len(held) + (hit.key in last)))
    arranged = _rescored(first, hits)
    if is_any and is_past:
        shares = dict.fromkeys(within | held.keys(), 1.0) | _shares_within(arranged, nodes, question)
        arranged = _by_time(arranged, nodes, shares, question, plan)
    elif is_past and pool is not None and not held:
        arranged = _before_others(arranged, _on_topic(within, nodes, pool, plan))
    return arranged, replace(known, nodes={**known.nodes, **former}), held.keys() | (within if is_any else set())


def _is_named(nodes: Mapping[int, Node], key: int) -> bool:
    """Return whether a memory begins with the name of the person it is about. If it may change what the user said of
    themselves, that name is theirs.
    """
    node = nodes.get(key)
    return node is not None and node.content.startswith(node.about[:1] or ("\n",))


def _shares_within(hits: Sequence[Ranked], nodes: Mapping[int, Node], question: TimeQuestion) -> dict[int, float]:
    """Return how much each hit is of the days asked about, without those that are not; see `share_within`."""
    shares = {hit.key: question.share_within(nodes[hit.key]) for hit in hits if hit.key in nodes}
    return {key: share for key, share in shares.items() if share}


def _by_time(
    hits: Sequence[Ranked], nodes: Mapping[int, Node], shares: Mapping[int, float], question: TimeQuestion, plan: Plan
) -> list[Ranked]:
    """Return hits with those of the days asked about first: as many as the answer holds in order of time.

    Args:
        shares: how much hits are of these days; those that tell a longer time come after the others.
    """
    then = sorted((hit for hit in hits if hit.key in shares), key=lambda hit: -shares[hit.key])
    first = sorted(
        then[: plan.query.limit], key=lambda hit: (-shares[hit.key], *question.begins_within(nodes[hit.key]), hit.key)
    )
    others = [hit for hit in hits if hit.key not in shares]
    return _rescored([*first, *then[plan.query.limit :], *others], hits)


def _on_topic(keys: Set[int], nodes: Mapping[int, Node], pool: Pool, plan: Plan) -> set[int]:
    """Return those keys of memories that have all words of a question that state its topic, and all its names."""
    asked = topic_terms(pool, plan) | pool.name_terms
    said = {key: " ".join((nodes[key].content, nodes[key].speaker or "", *nodes[key].about)) for key in keys}
    return {key for key, text in said.items() if asked and asked.issubset(index_terms(text))}


def _before_others(hits: Sequence[Ranked], keys: Set[int]) -> list[Ranked]:
    """Return hits with some of them first."""
    return _rescored(sorted(hits, key=lambda hit: hit.key not in keys), hits)


def _rescored(ordered: Sequence[Ranked], hits: Sequence[Ranked]) -> list[Ranked]:
    """Return hits in a new order, with the scores of the places that they take."""
    return [
        hit._replace(score=score, moved=hit.moved + score - hit.score)
        for hit, score in zip(ordered, [hit.score for hit in hits], strict=True)
    ]


def _answers_first(hits: Sequence[Ranked], known: Shortlist, plan: Plan) -> list[Ranked]:
    """Return hits with the messages that only ask what the question asks below the statements that may answer it."""
    shown, question = _shown_first(hits, plan), plan.query.text
    if not (asked := _asking(shown, known, question)):
        return list(hits)
    asked |= _asking(hits[len(shown) :], known, question)
    others = [hit for hit in hits if hit.key not in asked]
    if not others:
        return list(hits)
    least = _AS_AN_ANSWER * max(hit.score for hit in others)
    first = list(takewhile(lambda hit: hit.score >= least, others))
    lowest = min((hit.score for hit in first), default=inf)
    repeated = [_at_most(hit, lowest) for hit in hits if hit.key in asked]
    return [*first, *repeated, *others[len(first) :]]


def _present_answer_first(
    hits: Sequence[Ranked], known: Shortlist, plan: Plan
) -> tuple[list[Ranked], list[tuple[int, int]]]:
    """Return hits with a newer fact first that probably answers instead of the best one, which is older; and the keys
    of the two, as a pair (newer, older).
    """
    top = [hit for hit in hits[:COMPARED_WITH_BEST] if hit.key in known.nodes and _stands_alone(known.nodes[hit.key])]
    facts = [known.nodes[hit.key] for hit in top]
    if (
        len(top) < 2
        or top[0] is not hits[0]
        or plan.is_of_past
        or asks_for_a_past(plan.query.text, plan.interval, now=plan.now)
        or asks_what_was(plan.query.text)
    ):
        return list(hits), []
    newer = [
        place
        for place, fact in enumerate(facts)
        if _stated_at(fact) > _stated_at(facts[0])
        and _may_be_outdated(facts[0], fact)
        and not _is_of_another_number(facts[0], fact, plan)
        and {fact.key, facts[0].key} not in known.decided
        and may_answer_instead(plan.query.text, facts[0].content, fact.content)
    ]
    if not newer:
        return list(hits), []
    texts, scores = [fact.content for fact in facts], [hit.score for hit in top]
    found = instead_of_best(plan.query.text, texts, scores, newer, _meaning(facts, known, plan))
    likeliest = max(newer, key=lambda place: found.get(place, 0.0))
    if found.get(likeliest, 0.0) < INSTEAD_LEAST:
        return list(hits), []
    first = top[likeliest]
    return _rescored([first, *(hit for hit in hits if hit is not first)], hits), [(first.key, hits[0].key)]


def _asking(hits: Sequence[Ranked], known: Shortlist, question: str) -> set[int]:
    """Return the keys of messages that only ask what a question asks."""
    nodes = (known.nodes[hit.key] for hit in hits if hit.key in known.nodes)
    return {node.key for node in nodes if _is_said(node) and only_asks(node.content, question)}


def _changed_since(
    nodes: Mapping[int, Node], known: Shortlist, plan: Plan, links: Sequence[tuple[int, int]]
) -> set[int]:
    """Return the keys of memories that no longer answer a question for the present: another one says that they have
    changed, even if not to what, such as "I quit"; or they are about another name.
    """
    pairs = [
        (newer, older)
        for newer, older in (
            *links,
            *_replaced_sources(known),
            *((newer, older) for older, newer, _ in known.conflicts),
        )
        if newer in nodes and older in nodes and not _is_of_a_relative_only(nodes[older], nodes[newer])
    ]
    changed = {older for _, older in (*pairs, *_with_sources(pairs, known))}
    return changed | of_another_name(plan.query.text, {key: node.content for key, node in nodes.items()})


def _of_the_days(
    hits: Sequence[Ranked],
    nodes: Mapping[int, Node],
    former: Mapping[int, Node],
    question: TimeQuestion,
    plan: Plan,
    *,
    held: Mapping[int, int],
) -> tuple[list[Ranked], set[int]]:
    """Return hits, and facts replaced since, by the days that they tell rather than those on which they were said; and
    the keys of those that tell a day asked about.
    """
    dated = set(plan.dated)
    named = {key for key, node in nodes.items() if dated and dated.issubset(index_terms(node.content))}
    counted = named | {key for key, node in nodes.items() if _is_within(node, plan)}
    present = {hit.key for hit in hits}
    added = [Ranked(key=key, place=APART, score=0.0) for key in former if key not in present]
    found, within = list[Ranked](), set[int]()
    for hit in (*hits, *added):
        share = question.share_within(nodes[hit.key]) if hit.key in nodes else 0.0
        if not share and hit.key in named and not question.days_told(nodes[hit.key]):
            share = 1.0  # it names the year in other words
        if share:
            within.add(hit.key)
        change = WEIGHTS["date"] * (share - (hit.key in counted))
        if hit.key not in former or share or hit.key in held:
            found.append(hit._replace(score=hit.score + change, moved=hit.moved + change))
    return sorted(found, key=lambda hit: -hit.score), within


def _of_changes(
    snapshot: Snapshot, scope: Scope, hits: Sequence[Ranked], known: Shortlist, plan: Plan, filter_: Filter
) -> tuple[list[Ranked], Shortlist, Set[int]]:
    """Return the facts of the time of a question, by default of late, that replaced others or may have, before other
    hits, the latest first; and their keys.
    """
    start, end = plan.span or (plan.now - _LATELY_MS, plan.now + _DAY_MS)
    start = start if filter_.after is None else max(start, filter_.after)
    end = end if filter_.before is None else min(end, filter_.before)
    asked = replace(filter_, shelves=(KNOWLEDGE,))
    keys = snapshot.nodes.within(scope, asked, after=start, before=end, most=_CHANGES_READ).tolist()
    doubting = {each.newer.key for each in snapshot.reviews.listed(scope, most=_CHANGES_READ, kind="conflict")}
    changed = [key for key in keys if key in doubting or snapshot.nodes.replaced(key)]
    nodes = as_shown(snapshot, snapshot.nodes.by_key(scope, changed))
    best = max((hit.score for hit in hits), default=1.0)
    first = [Ranked(key=key, place=APART, score=best, moved=best) for key in changed if key in nodes]
    others = [hit for hit in hits if hit.key not in nodes]
    return [*first, *others], replace(known, nodes={**nodes, **known.nodes}), nodes.keys()


def _is_of_a_relative_only(older: Node, newer: Node) -> bool:
    """Return whether an older memory is about a relative, and a newer one does not name them, by role or by name."""
    relatives, said = topics(older.content).others, topics(newer.content).all_stems
    if not relatives or not relatives.isdisjoint(said):
        return False
    return all(said.isdisjoint(index_terms(each.name)) for each in stated_relations(older.content))


def _is_within(node: Node, plan: Plan) -> bool:
    return plan.span is not None and plan.span[0] <= to_ms(node.event_time) < plan.span[1]


def _former(snapshot: Snapshot, scope: Scope, hits: Sequence[Ranked], known: Shortlist, plan: Plan) -> dict[int, Node]:
    """Return the facts that were replaced since: those of the time of a question, and those that hits replaced."""
    asked = replace(plan.query.filter, shelves=(KNOWLEDGE,), archived=True)
    if KNOWLEDGE not in plan.query.filter.shelves or not snapshot.graph.kinds().versions:
        return {}
    facts = [hit.key for hit in hits if (node := known.nodes.get(hit.key)) and node.type != "episodic"]
    keys = dict.fromkeys(key for fact in facts for key in snapshot.nodes.replaced(fact))
    if plan.span is not None:
        start, end = plan.span
        keys |= dict.fromkeys(snapshot.nodes.within(scope, asked, after=start, before=end, most=_FORMER).tolist())
    nodes = as_shown(snapshot, snapshot.nodes.by_key(scope, keys))
    return {key: node for key, node in nodes.items() if node.closed_reason == "superseded"}


def _is_said(node: Node) -> bool:
    return node.type == "episodic" and not _is_of_a_document(node)


def _is_of_a_document(node: Node) -> bool:
    return (node.session or "").startswith(DOCUMENT)


def _is_title(node: Node | None) -> TypeGuard[Node]:
    return node is not None and _is_of_a_document(node) and "place" not in node.attributes


def _is_open(node: Node | None) -> bool:
    return node is not None and is_open_task(node)


def _dates_of(node: Node) -> tuple[str, ...]:
    """Return the resolved dates of a fact whose text names days relative to when it was stated: "yoga today"."""
    known = node.attributes.get(DATES)
    return tuple(sorted(map(str, known.values()))) if isinstance(known, Mapping) else ()


def _told(hits: Sequence[Ranked], known: Shortlist) -> list[tuple[int, int]]:
    """Return the stored pairs of a newer and an older version whose newer one says that something has changed."""
    present = {hit.key for hit in hits}
    return [
        (newer, older)
        for newer, older in known.versions
        if newer in present and newer in known.nodes and says_change(known.nodes[newer].content)
    ]


def _said_anew(hits: Sequence[Ranked], known: Shortlist, plan: Plan) -> list[tuple[int, int]]:
    """Return pairs of top messages of which the newer one says that something has changed: one person says it in the
    same form ("My dentist is Dr. Weiss now"), or it corrects the older one in the same conversation.
    """
    best = hits[:_COMPARED_MESSAGES]
    said = [node for each in best if (node := known.nodes.get(each.key)) and _is_said(node) and node.role == "user"]
    said = [node for node in said if len(node.content) <= _SHORT_STATEMENT]
    first = {each.key for each in best[:_COMPARED]}
    said.sort(key=lambda node: (node.event_time, node.key))
    return [
        (newer.key, older.key)
        for place, newer in enumerate(said)
        if place and says_change(newer.content)
        for older in said[:place]
        if _is_corrected(older, newer, plan)
        or (
            first.issuperset((older.key, newer.key))
            and older.speaker == newer.speaker
            and (
                compare(older.content, newer.content) == "replaced"
                or tells_another_holder(older.content, newer.content)
            )
        )
    ]


def _is_corrected(older: Node, newer: Node, plan: Plan) -> bool:
    """Return whether a message gives what the question asks for another time than an earlier one of its conversation
    ("The inspection is on 3 December", "Actually the inspection moved to 10 December"), or tells a change of what it
    says: "We saw a house in Leith", "The house in Leith fell through".
    """
    if older.session is None or older.session != newer.session:
        return False
    if older.speaker != newer.speaker and (topics(older.content).is_own or topics(newer.content).is_own):
        return False
    if mentions_time(older.content) and mentions_time(newer.content):
        return share_topic(plan.query.text, older.content, newer.content)
    return any(tells_change(part, newer.content) for part in (older.content, *things_said(older.content)))


def _with_sources(links: Sequence[tuple[int, int]], known: Shortlist) -> list[tuple[int, int]]:
    """Return pairs of a newer fact and the messages that the older one was learnt from: they say what it says."""
    keys = {node.id: key for key, node in known.nodes.items()} if links else {}
    return [
        (newer, keys[id])
        for newer, older in links
        for id in known.evidence.get(older, ())
        if id in keys and id not in known.evidence.get(newer, ())
    ]


def _replaced_sources(known: Shortlist) -> list[tuple[int, int]]:
    """Return pairs of a fact and a message from which a fact was learnt that it replaced."""
    return [(newer, older) for newer, older in known.versions if (node := known.nodes.get(older)) and _is_said(node)]


def _are_of_two_people(known: Shortlist, older: int, newer: int) -> bool:
    before, after = known.nodes.get(older), known.nodes.get(newer)
    return before is not None and after is not None and are_of_two_people(before.content, after.content)


def _names_another(known: Shortlist, older: int, newer: int, plan: Plan) -> bool:
    """Return whether of two facts, the older one has the names of the question, and the newer one another name."""
    said = {key: node.content for key in (older, newer) if (node := known.nodes.get(key)) is not None}
    return newer in of_another_name(plan.query.text, said)


def _coming_day(plan: Plan, zone: ZoneInfo) -> date | None:
    """Return the last day of the coming time that a question names: "What will the rent be in May?"."""
    if plan.interval is None:
        return None
    return next((last for _, last in coming_days(plan.query.text, today=_today(plan, zone))), None)


def _today(plan: Plan, zone: ZoneInfo) -> date:
    return from_ms(plan.now).astimezone(zone).date()


def _is_to_come(node: Node | None, *, day: date, zone: ZoneInfo) -> bool:
    """Return whether a fact begins to hold after a day."""
    since = None if node is None else begins(node.content, told=_told_on(node, zone))
    return since is not None and since > day


def _told_on(node: Node, zone: ZoneInfo) -> date:
    return node.event_time.astimezone(zone).date()


def _has_begun(node: Node, plan: Plan, zone: ZoneInfo) -> bool:
    return has_begun(node.content, told=_told_on(node, zone), today=_today(plan, zone))


def _in_their_time(
    best: Sequence[Ranked], known: Shortlist, plan: Plan, *, day: date, zone: ZoneInfo
) -> list[tuple[int, int]]:
    """Return pairs of top facts about what the question asks for, of which one tells of a coming change. The first of
    each holds on that day.
    """
    facts = [node for each in best if (node := known.nodes.get(each.key)) is not None and _stands_alone(node)]
    coming = {
        each.key: since for each in facts if (since := begins(each.content, told=_told_on(each, zone))) is not None
    }
    return [
        (older.key, newer.key) if coming[newer.key] > day else (newer.key, older.key)
        for newer in facts
        for older in facts
        if newer.key in coming
        and older.key not in coming
        and older.event_time <= newer.event_time
        and share_topic(plan.query.text, older.content, newer.content)
    ]


def _of_another(best: Sequence[Ranked], known: Shortlist, plan: Plan) -> Set[int]:
    """Return the keys of facts about somebody else than the question is about. A later version of a fact that is about
    the same, such as one that calls the user by name, is not.
    """
    facts = {each.key: node.content for each in best if (node := known.nodes.get(each.key)) and _stands_alone(node)}
    others = of_another(plan.query.text, facts)
    later = {newer for newer, older in known.versions if older in facts and older not in others}
    return others - later | of_another_name(plan.query.text, facts)


def _only_mentioning(best: Sequence[Ranked], known: Shortlist, plan: Plan, named: Sequence[Naming]) -> Set[int]:
    """Return the keys of facts that mention a person in the question but are not about one: "I lent Nadine the drill"
    beside "Nadine is a florist". None if no fact is about one, or if the question is about somebody of theirs or the
    user: "What does Nadine's brother do?", "What did I lend Nadine?".
    """
    nodes = [known.nodes[each.key] for each in best if each.key in known.nodes]
    facts = [node for node in nodes if named and _stands_alone(node)]
    about = {node.key for node in facts if _names_any(node.about, named)}
    asked, names = topics(plan.query.text), frozenset[str]().union(*(naming.terms for naming in named))
    if not about or asked.others or (asked.is_own and not names.issuperset(plan.terms)):
        return set()
    return {node.key for node in facts if node.key not in about and _names_any((node.content,), named)}


def _names_any(texts: Iterable[str], named: Sequence[Naming]) -> bool:
    terms = {term for text in texts for term in index_terms(text)}
    return any(naming.terms and naming.terms <= terms for naming in named)


def _said_of_themselves(best: Sequence[Ranked], known: Shortlist, plan: Plan, *, names_entities: bool) -> Set[int]:
    """Return the keys of facts that others stated of themselves in a chat, if the question is about the user or about
    somebody else: "I moved to Yerevan and work from there", said by Dasha, does not answer "What is my wife's job?".
    """
    asked = topics(plan.query.text)
    if not (names_entities or asked.is_own or asked.others):
        return set()
    words = set(index_terms(plan.query.text))
    nodes = (known.nodes[each.key] for each in best if each.key in known.nodes)
    return {
        node.key
        for node in nodes
        if node.speaker
        and _stands_alone(node)
        and topics(node.content).is_of_self
        and words.isdisjoint(index_terms(node.speaker))
    }


def _outdated(
    best: Sequence[Ranked], known: Shortlist, plan: Plan, *, zone: ZoneInfo
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return pairs of top facts, or of top items, of which the first ranks above the second: usually a newer fact that
    outdates an older one, but the older fact if the newer one is only a wish, a quotation or about someone else; and
    those of the pairs whose newer fact says that something has changed.

    `remember` has compared the words of the facts; here their meaning is compared as well. Messages of the owner are
    compared only here, without an embedder by their words. Decisions of the user are kept: a fact that was confirmed
    or reinforced after the newer one was stated still holds.
    """
    if plan.scale is None:
        return _outdated_by_words(best, known, plan, zone=zone)
    facts, cosines = _by_meaning(best, known, plan)
    likely = list[tuple[float, int, int, bool]]()
    aside = list[tuple[int, int]]()
    over = dict[int, int]()  # the places of older versions, and of the first fact after each
    for (place, older), (later, newer) in sorted(combinations(enumerate(facts), 2), key=lambda pair: pair[1][0]):
        if not _may_be_outdated(older, newer) or _is_of_another_number(older, newer, plan):
            continue
        others = [at for at in range(len(facts)) if at not in (place, later) and over.get(at, later) >= later]
        context = by_meaning(
            float(cosines[place, later]),
            of_old=[float(cosines[place, at]) for at in others],
            of_new=[
                float(cosines[later, at])
                for at in others
                if at < later and not are_of_two_people(facts[at].content, newer.content)
            ],
        )
        said = (older.content, older.speaker), (newer.content, newer.speaker)
        change = succession(*said, context, has_begun=_has_begun(newer, plan, zone))
        if not change or {older.key, newer.key} in known.decided:
            continue
        if not change.stands_aside:
            is_headed = HEADING in older.attributes or HEADING in newer.attributes
            if is_headed and are_of_two_notes(older, newer):
                continue
            if mentions_time(newer.content) and are_of_two_days(older, newer):
                continue
            likely.append((change.likelihood, newer.key, older.key, change.says_so))
            over.setdefault(place, later)
        elif not asks_for(plan.query.text, newer.content, older.content):
            aside.append((older.key, newer.key))
    meant = [
        each
        for each in likely
        if _may_come_first(known.nodes[each[1]], known.nodes[each[2]], best, known, plan, told=each[3])
    ]
    links, told = _linked(meant, known)
    return [*links, *aside], told


def _may_come_first(
    newer: Node, older: Node, best: Sequence[Ranked], known: Shortlist, plan: Plan, *, told: bool
) -> bool:
    """Return whether a newer fact that is near an older one in meaning may answer the question instead: it does not
    name another thing than the one asked about ("my flat" for "my car"), and is not too unlikely to.

    Args:
        told: whether the newer one says that something has changed.
    """
    if not told and names_another_thing(plan.query.text, older.content, newer.content):
        return False
    others = [each for each in best if each.key in known.nodes and each.key not in (older.key, newer.key)]
    scores = {each.key: each.score for each in best}
    facts = [older, newer, *(known.nodes[each.key] for each in others[: COMPARED_WITH_BEST - 2])]
    found = instead_of_best(
        plan.query.text,
        [fact.content for fact in facts],
        [scores.get(fact.key, 0.0) for fact in facts],
        [1],
        _meaning(facts, known, plan),
    )
    return found[1] >= (_LEAST_IF_TOLD if told else _LEAST_OF_PLAIN)


def _meaning(facts: Sequence[Node], known: Shortlist, plan: Plan) -> Meaning | None:
    """Return the cosines between the question and facts, and between each two of these; None without all vectors."""
    asked = next((each.vector for each in plan.vectors.values()), None)
    if plan.scale is None or asked is None or any(fact.key not in known.vectors for fact in facts):
        return None
    matrix = np.stack([asked, *(known.vectors[fact.key] for fact in facts)])
    cosines = plan.scale.as_default(matrix @ matrix.T)
    return Meaning(cosines[0, 1:].tolist(), cosines[1:, 1:].tolist())


def _outdated_by_words(
    best: Sequence[Ranked], known: Shortlist, plan: Plan, *, zone: ZoneInfo
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the pairs of `_outdated` of which one is a message, or whose newer fact announced what has come since,
    judged by their words. `remember` has compared all others.
    """
    said = _statements(best, known)
    likely = list[tuple[float, int, int, bool]]()
    for place, newer in enumerate(said):
        is_now = _has_begun(newer, plan, zone)
        before = {
            older.key: (older.content, older.speaker)
            for older in said[:place]
            if (is_now or not (_stands_alone(older) and _stands_alone(newer)))
            and _may_be_outdated(older, newer)
            and not _is_of_another_number(older, newer, plan)
        }
        likely += [
            (change.likelihood, newer.key, older, change.says_so)
            for older, change in outdated(before, (newer.content, newer.speaker), has_begun=is_now).items()
            if {older, newer.key} not in known.decided
        ]
    return _linked(likely, known)


def _linked(
    likely: Sequence[tuple[float, int, int, bool]], known: Shortlist
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the links (newer, older) of likely changes, and those whose newer one says that something has changed.

    Args:
        likely: (likelihood, newer, older, whether the newer one says so).
    """
    links = _likeliest([each[:3] for each in sorted(likely, reverse=True)], known.versions)
    told = {(newer, older) for _, newer, older, says_so in likely if says_so}
    return links, [link for link in links if link in told]


def _statements(best: Sequence[Ranked], known: Shortlist) -> list[Node]:
    """Return the hits that state something, the oldest first."""
    nodes = (known.nodes[each.key] for each in best if each.key in known.nodes)
    stated = (
        node
        for node in nodes
        if is_statement(node.type, node.session, node.role, node.speaker, node.content)
        and not node.content.rstrip().endswith("?")
    )
    return sorted(stated, key=lambda node: (_stated_at(node), node.key))


def _by_meaning(best: Sequence[Ranked], known: Shortlist, plan: Plan) -> tuple[list[Node], NDArray[np.float32]]:
    """Return the statements among hits, the oldest first, and the cosines of their vectors, float32[n, n]."""
    facts = [node for node in _statements(best, known) if node.key in known.vectors]
    if plan.scale is None or len(facts) < 2:
        return [], np.zeros((0, 0), np.float32)
    matrix = np.stack([known.vectors[fact.key] for fact in facts])
    return facts, plan.scale.as_default(matrix @ matrix.T)


def _may_be_outdated(older: Node, newer: Node) -> bool:
    """Return whether two statements are of one memory, and the older one was not confirmed since, nor noted with it."""
    if (older.owner, older.chat) != (newer.owner, newer.chat) or not _are_alike(older, newer):
        return False
    if older.reinforced_at is not None and older.reinforced_at >= _stated_at(newer):
        return False
    return not are_of_one_text(older, newer)


def _is_of_another_number(older: Node, newer: Node, plan: Plan) -> bool:
    """Return whether a question names a thing by its number ("invoice 2026-041"), and only the older one names it."""
    asked = topics(plan.query.text).identifiers & topics(older.content).identifiers
    return bool(asked - topics(newer.content).identifiers)


def _are_alike(one: Node, other: Node) -> bool:
    """Return whether two memories are of one type, or one is a fact and the other a message of the owner."""
    return one.type == other.type or not {one.type, other.type} - {"episodic", "semantic"}


def _nearest_newer(best: Sequence[Ranked], known: Shortlist, plan: Plan) -> list[tuple[int, int]]:
    """Return (newer, older) of top facts: the later statement nearest in meaning to each, if it is near.

    A change is often told in words that no rule recognises ("I weigh 84 kilos", "The scales said 79 today"). In a
    context, the older statement alone is worse than a line too many.
    """
    facts, cosines = _by_meaning(best, known, plan)
    found = list[tuple[int, int]]()
    for place, older in enumerate(facts):
        later = [
            (float(cosines[place, at]), newer.key)
            for at, newer in enumerate(facts)
            if _stated_at(newer) > _stated_at(older)
            and _may_be_outdated(older, newer)
            and {older.key, newer.key} not in known.decided
        ]
        found += [(newer, older.key) for cosine, newer in [max(later, default=(0.0, 0))] if cosine >= _ALIKE]
    return found


def _across_spaces(best: Sequence[Ranked], known: Shortlist) -> list[tuple[int, int]]:
    """Return pairs (newer, older) of top facts in two spaces of which the newer one changes what the older one says.

    When facts are stored, only those of one space are compared with each other.
    """
    found = (known.nodes[each.key] for each in best if each.key in known.nodes)
    facts = sorted((node for node in found if _stands_alone(node)), key=lambda node: (_stated_at(node), node.key))
    if len({(fact.owner, fact.chat) for fact in facts}) < 2:
        return []
    own = next((fact.owner for fact in facts if fact.owner), "")
    said = {fact.key: (fact.content, fact.speaker) for fact in facts}
    forms = {fact.key: canonical(fact.content, speaker=fact.speaker, owner=own, about=fact.about) for fact in facts}
    own_words = {fact.key for fact in facts if topics(fact.content).is_own}

    def changes(older: int, newer: int) -> bool:
        if said[older][1] != said[newer][1] and not own_words.isdisjoint((older, newer)):
            return False
        return forms[older].verdict(forms[newer]) in ("replaced", "conflict") or bool(
            outdated({older: said[older]}, said[newer])
        )

    return [
        (newer.key, older.key)
        for older, newer in combinations(facts, 2)
        if (older.owner, older.chat) != (newer.owner, newer.chat)
        and older.type == newer.type
        and changes(older.key, newer.key)
    ]


def _likeliest(likely: Sequence[tuple[float, int, int]], stored: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the links (newer, older) of one newer fact for each older one. A newer fact has several older ones only if
    these are versions of each other: a change is of one thing. Stored links come first.

    Args:
        likely: (likelihood, newer, older), the likeliest first.
    """
    related = {frozenset(pair) for _, *pair in likely}
    changed = {older for _, older in stored}
    before: dict[int, list[int]] = {}
    for newer, older in stored:
        before.setdefault(newer, []).append(older)
    links = []
    for _, newer, older in likely:
        if older not in changed:
            changed.add(older)
            if all({older, each} in related for each in before.get(newer, ())):
                before.setdefault(newer, []).append(older)
                links.append((newer, older))
    return links


def _stands_alone(node: Node) -> bool:
    """Return whether a memory is a fact or, like the items of `ricordo.integrations`, outside any conversation."""
    return node.type != "episodic" or node.session is None


def _stated_at(node: Node) -> datetime:
    """Return since when a memory holds; for an item that was stored again under its name, when it was last stored."""
    since = node.valid_from
    said = node.attributes.get(UPDATED_AT) if node.type == "episodic" else None
    with suppress(TypeError, ValueError):  # an attribute can hold anything
        since = max(since, datetime.fromisoformat(str(said)))
    return since


def _judged(
    pool: Pool | None,
    weighed: list[Ranked],
    known: Shortlist,
    plan: Plan,
    *,
    links: Sequence[tuple[int, int]],
    doubts: Mapping[int, Sequence[int]],
    sure: Set[int],
) -> Judged:
    """Return which top results are relevant, some of them for sure; only these if there was no time to decide. Of an
    open conflict, both facts are if the older one is, or the newer one is and the older one nearly.
    """
    if pool is None or plan.floor is None or (plan.is_of_changes and sure):
        return Judged(kept=tuple(each for each in weighed if each.key in sure), relevance={}, reasons={})
    candidates = [each for each in weighed if each.place != APART]
    found = judge(candidates, evidence_of(pool, plan), plan.floor, nodes=known.nodes, query=plan.query, links=links)
    kept = sure | {each.key for each in found.kept}
    for older, newer in doubts.items():
        if older in kept or (found.relevance.get(older, -inf) >= -NEARLY and not kept.isdisjoint(newer)):
            kept = {*kept, older, *newer}
    return replace(
        found,
        kept=tuple(each for each in weighed if each.key in kept),
        reasons={key: reason for key, reason in found.reasons.items() if key not in kept},
    )


def _under_floor(known: Shortlist, judged: Judged | None) -> tuple[tuple[str, float, str], ...]:
    """Return (id, relevance, reason) of the best hits that were left out as irrelevant, in order."""
    if judged is None:
        return ()
    return tuple(
        (known.nodes[key].id, relevance, judged.reasons[key])
        for key, relevance in judged.relevance.items()
        if key in judged.reasons and key in known.nodes
    )


def _next_best(
    weighed: Sequence[Ranked], judged: Judged | None, known: Shortlist, *, limit: int
) -> tuple[tuple[str, str], ...]:
    """Return (id, reason) of the best memories that are not in the answer, best first."""
    kept = weighed if judged is None else judged.kept
    given = {each.key for each in kept[:limit]}
    beyond = {each.key: f"rank {rank}: {limit} were asked for" for rank, each in enumerate(kept, 1) if rank > limit}
    under = {} if judged is None else {key: f"not relevant: {reason}" for key, reason in judged.reasons.items()}
    reasons = under | beyond
    left = (each.key for each in weighed if each.key not in given and each.key in reasons and each.key in known.nodes)
    return tuple((known.nodes[key].id, reasons[key]) for key in islice(left, _LEFT_OUT))


def _hits(
    best: Sequence[Ranked],
    known: Shortlist,
    ranking: Ranking | None,
    pool: Pool | None,
    plan: Plan,
    *,
    zone: ZoneInfo,
    wrote: Mapping[int, Author],
) -> tuple[Hit, ...]:
    present = {each.key: known.nodes[each.key] for each in best if each.key in known.nodes}
    nodes = without_withheld(present, known.shown)
    best = [each for each in best if each.key in nodes]
    shares = ranking.explain_all(best) if ranking else [()] * len(best)
    doubted = _doubted(known) if known.conflicts else {}
    replaced = _replaced_by(known)
    return tuple(
        hit_of(
            nodes[each.key],
            score=each.score,
            shares=why,
            terms=plan.terms,
            now=plan.now,
            zone=zone,
            evidence=known.evidence.get(each.key, ()),
            passage=None if each.key in known.shown else _passage(pool, each),
            author=wrote.get(each.key),
            doubted_by=doubted.get(each.key, ()),
            notice=replaced.get(each.key, ""),
        )
        for each, why in zip(best, shares, strict=True)
    )


def _doubted(known: Shortlist) -> dict[int, tuple[Newer, ...]]:
    """Return the newer facts that may make a fact, or a message it was learnt from, outdated, latest first."""
    pairs = [(newer, older) for older, newer, _ in known.conflicts]
    nodes = {key: known.nodes[key] for key, _ in pairs if key in known.nodes}
    said = [
        (message, newer, review)
        for older, newer, review in known.conflicts
        for _, message in _with_sources([(newer, older)], known)
    ]
    return newer_by_older([*known.conflicts, *said], without_withheld(nodes, known.shown))


def _replaced_by(known: Shortlist) -> dict[int, str]:
    """Return notices, by message, that name the fact which replaced what was learnt from it."""
    pairs = _replaced_sources(known)
    nodes = without_withheld({newer: known.nodes[newer] for newer, _ in pairs if newer in known.nodes}, known.shown)
    return {
        older: f"since changed: “{nodes[newer].content[:_SHORT_STATEMENT]}”"
        for newer, older in pairs
        if newer in nodes and not warnings_of(nodes[newer])
    }


def _passage(pool: Pool | None, ranked: Ranked) -> int | None:
    """Return the number of the passage a memory ranks by; None if it has only one, or replaced another hit."""
    if (
        pool is None
        or ranked.place == APART
        or pool.turns.keys[ranked.place] != ranked.key
        or not pool.turns.several[ranked.place]
    ):
        return None
    return int(pool.turns.passages[ranked.place])


def results_of(found: Found, plan: Plan, *, embedding_ms: float, degraded: tuple[str, ...], traced: bool) -> Results:
    """Return the answer for the caller, with a trace only if requested."""
    results = Results(
        hits=found.best, intent=plan.intent, complexity=plan.complexity, degraded=degraded + found.degraded
    )
    if not traced:
        return results
    trace = Trace(
        terms=plan.terms,
        ignored_terms=plan.ignored,
        interval=plan.interval.text if plan.interval else "",
        candidates=found.candidates,
        timings_ms={"embedding": embedding_ms, **found.timings_ms},
        hits=tuple((hit.id, hit.why) for hit in found.best),
        absence=found.absence,
        under_floor=found.under_floor,
    )
    return replace(results, trace=trace)


def absence_of(
    snapshot: Snapshot,
    scope: Scope,
    plan: Plan,
    node: Node | None,
    found: CandidateSet,
    pool: Pool | None,
    ranking: Ranking,
    weighed: Sequence[Ranked],
    judged: Judged | None = None,
) -> Absence:
    """Return the rank of the memory that `why_not` names, or the stage at which it was dropped."""
    if node is None:
        return Absence(id=plan.query.why_not or "", stage="unknown", detail="there is no such memory")
    if reason := _left_out(snapshot, plan, node, matches=found.probe_matches):
        return Absence(id=node.id, stage="left out", detail=reason)
    place = _place(pool, node.key, ranking)
    if place is None:
        return Absence(id=node.id, stage="not found", detail=_not_found(plan, found, node))
    keys = [each.key for each in weighed]
    if (newer := _said_newer(snapshot, scope, node, keys)) is not None:
        return Absence(id=node.id, stage="ranked below", detail=f"{newer} says the same and is newer")
    if node.key not in keys:
        rank = 1 + int((ranking.totals > ranking.totals[place]).sum())
        detail = f"{rank} of {len(ranking.totals)} candidates by its signals; only the best {len(keys)} went further"
        shares = ranking.explain(Ranked(key=node.key, place=place, score=float(ranking.totals[place])))
        return Absence(id=node.id, stage="ranked below", detail=detail, rank=rank, shares=shares)
    rank = 1 + keys.index(node.key)
    if judged is not None and node.key in judged.reasons:
        detail = f"{rank} of {len(ranking.totals)} candidates, relevance {judged.relevance[node.key]:.1f}: "
        return Absence(
            id=node.id,
            stage="not relevant",
            rank=rank,
            shares=ranking.explain(weighed[rank - 1]),
            detail=detail + judged.reasons[node.key],
        )
    shown = rank <= plan.query.limit
    beaten = "" if rank == 1 else f", {weighed[rank - 2].score - weighed[rank - 1].score:.3f} behind the one before it"
    return Absence(
        id=node.id,
        stage="found" if shown else "ranked below",
        rank=rank,
        shares=ranking.explain(weighed[rank - 1]),
        detail=f"{rank} of {len(ranking.totals)} candidates{beaten}"
        + ("" if shown else f"; only {plan.query.limit} were asked for"),
    )


def _left_out(snapshot: Snapshot, plan: Plan, node: Node, *, matches: bool) -> str:
    """Return why the search cannot return a memory, whatever its words; "" if it can."""
    asked = plan.query.filter
    if not node.is_live and not asked.archived:
        return f"it is closed ({node.closed_reason}); --archived searches closed memories"
    if node.is_live and asked.archived:
        return "it is alive, and only the archive was searched"
    if node.expires_at is not None and plan.now >= node.expires_at.timestamp() * 1_000:
        return "it has expired"
    if not matches:
        return "a condition of the question leaves it out (type, category, entity, tag, session, time or attributes)"
    shelf = snapshot.nodes.shelf(node.key)
    if shelf not in asked.shelves:
        return "it is a turn whose conversation has become knowledge; type=any searches such turns"
    return ""


def _said_newer(snapshot: Snapshot, scope: Scope, node: Node, keys: Sequence[int]) -> str | None:
    """Return the id of a newer hit with the same statement as a fact, or None."""
    if node.key in keys:
        return None
    said = {key: (about, line) for key, about, line, _ in snapshot.graph.lines([node.key, *keys])}
    alike = [key for key in keys if key in said and said[key] == said.get(node.key)]
    found = snapshot.nodes.by_key(scope, alike)
    dates = _dates_of(node)
    return next((found[key].id for key in alike if key in found and _dates_of(found[key]) == dates), None)


def _place(pool: Pool | None, key: int, ranking: Ranking) -> int | None:
    """Return the position of a memory's best passage in the pool."""
    if pool is None:
        return None
    found = np.flatnonzero(pool.turns.keys[: pool.size] == key)
    return int(found[ranking.totals[found].argmax()]) if len(found) else None


def _not_found(plan: Plan, found: CandidateSet, node: Node) -> str:
    """Return what a memory shares with the question, and the minimum score of each strategy's candidates."""
    terms = set(index_terms(node.content))
    held = [term for term in plan.terms if term in terms]
    least = {name: min(keys.values()) for name, keys in found.found.items() if keys}
    said = []
    if not held:
        said.append("it holds no word of the question")
    elif "words" in least:
        known = found.frequencies
        weight = sum(inverse_frequency(known[term], found.total) for term in held if term in known)
        said.append(
            f"it holds {', '.join(held)}, worth {weight:.2f} (the {len(found.found['words'])} found by words: "
            f"{least['words']:.2f} and more)"
        )
    if plan.question_vectors:
        mine = found.probe_similarity
        if mine is None:
            said.append("it has no vector yet")
        elif "meaning" in least:
            said.append(
                f"its meaning scores {mine:.2f} (the {len(found.found['meaning'])} found by meaning: "
                f"{least['meaning']:.2f} and more)"
            )
    if (span := plan.interval) is not None:
        is_within = span.start <= to_ms(node.event_time) < span.end
        said.append("only the latest of its time were found by time" if is_within else "it is of another time")
    return "; ".join(said)


# ---- search in a past state of the store

_NEAREST = 80
_IN_TIME = 40


def find_past(snapshot: PastSnapshot, plan: Plan, *, scope: Scope, zone: ZoneInfo) -> Found:
    """Run a search plan on a past state of the store.

    Raises:
        NotFoundError: the question is limited to an entity that was unknown then.
    """
    started = time.perf_counter()
    asked = filter_of(snapshot, scope, plan.query)
    allowed = snapshot.nodes.matching(scope, asked)
    within = set(allowed.tolist())
    work: dict[str, Callable[[], dict[int, float]]] = {
        "words": lambda: _share_of_words(snapshot, scope, plan, within),
        "meaning": lambda: snapshot.similar(
            scope, plan.question_vectors, among=allowed, shelves=asked.shelves, most=_NEAREST
        ),
        "date": lambda: _within_period(snapshot, scope, plan, within),
    }
    signals = {name: measure() for name, measure in work.items() if name not in plan.weighing.without}
    ranked = _rank_past(snapshot, signals, plan, scope=scope)
    first = ranked[: plan.query.limit]
    wrote = writers(snapshot, (each.node for each in first))
    best = tuple(
        hit_of(
            each.node,
            score=each.score,
            shares=each.shares,
            terms=plan.terms,
            now=plan.now,
            zone=zone,
            author=wrote.get(each.node.key),
        )
        for each in first
    )
    return Found(
        best=best,
        candidates={name: len(found) for name, found in signals.items()},
        timings_ms={"the past": (time.perf_counter() - started) * 1_000},
        degraded=(),
        absence=None if plan.query.why_not is None else _past_absence(snapshot, plan, ranked, scope, within),
        seen=snapshot.commit_number,
        next_best=tuple(
            (each.node.id, f"rank {rank}: {plan.query.limit} were asked for")
            for rank, each in enumerate(ranked[: plan.query.limit + _LEFT_OUT], 1)
            if rank > plan.query.limit
        ),
    )


def _share_of_words(snapshot: PastSnapshot, scope: Scope, plan: Plan, allowed: set[int]) -> dict[int, float]:
    """Return, for each memory, the share of the question's information in it."""
    held = {term: snapshot.holders(scope, term) & allowed for term in plan.terms}
    idf = {term: log(1 + len(allowed) / (len(keys) + 0.5)) for term, keys in held.items()}
    total = sum(idf.values())
    found: dict[int, float] = {}
    for term, keys in held.items():
        for key in keys:
            found[key] = found.get(key, 0.0) + idf[term] / total
    return found


def _within_period(snapshot: PastSnapshot, scope: Scope, plan: Plan, allowed: set[int]) -> dict[int, float]:
    """Return the memories of events in the period that the question names."""
    if plan.interval is None:
        return {}
    start, end = plan.interval.start, plan.interval.end
    within = snapshot.nodes.within(scope, plan.query.filter, after=start, before=end, most=_IN_TIME)
    return dict.fromkeys(set(within.tolist()) & allowed, 1.0)


class _PastRanked(NamedTuple):
    """A memory of that time, with its score and the parts of the score."""

    node: Node
    score: float
    shares: tuple[Share, ...]


def _rank_past(
    snapshot: PastSnapshot, signals: Mapping[str, Mapping[int, float]], plan: Plan, *, scope: Scope
) -> list[_PastRanked]:
    """Return all memories that any signal found, best first."""
    shares: dict[int, list[Share]] = {}
    for name, found in signals.items():
        order = sorted(found.values())
        for key, raw in found.items():
            place = 1 + len(order) - bisect_right(order, raw)
            shares.setdefault(key, []).append(Share(strategy=name, rank=place, raw=raw, share=WEIGHTS[name] * raw))
    nodes = snapshot.nodes.by_key(scope, shares)
    ranked = [
        _past_hit(nodes[key], shares[key])
        for key in shares
        if key in nodes and not _has_expired(nodes[key], snapshot, plan)
    ]
    return sorted(ranked, key=lambda each: (-each.score, -each.node.key))


def _past_hit(node: Node, shares: Sequence[Share]) -> _PastRanked:
    score = sum(each.share for each in shares)
    if node.confidence == 1:
        return _PastRanked(node, score, tuple(shares))
    lost = Share(strategy="confidence", rank=None, raw=node.confidence, share=score * (node.confidence - 1))
    return _PastRanked(node, score + lost.share, (*shares, lost))


def _past_absence(
    snapshot: PastSnapshot, plan: Plan, ranked: Sequence[_PastRanked], scope: Scope, within: Container[int]
) -> Absence:
    """Return the rank that the memory named by `why_not` had at that time, or why it is missing."""
    asked = plan.query.why_not or ""
    node = snapshot.nodes.get(scope, asked)
    if node is None:
        return Absence(id=asked, stage="unknown", detail="there was no such memory then")
    if node.key not in within or _has_expired(node, snapshot, plan):
        detail = "it was closed or had expired then, or a condition of the question leaves it out"
        return Absence(id=node.id, stage="left out", detail=detail)
    place = next((place for place, each in enumerate(ranked) if each.node.key == node.key), None)
    if place is None:
        return Absence(id=node.id, stage="not found", detail="it shares no word with the question, nor its meaning")
    return Absence(
        id=node.id,
        stage="found" if place < plan.query.limit else "ranked below",
        rank=place + 1,
        detail=f"{place + 1} of {len(ranked)} candidates",
        shares=ranked[place].shares,
    )


def _has_expired(node: Node, snapshot: PastSnapshot, plan: Plan) -> bool:
    """Return whether a memory had expired by then."""
    return node.expires_at is not None and to_ms(node.expires_at) <= snapshot.at and not plan.query.filter.archived
