"""The candidates of a search: what a store is asked for, and what ranking receives. Plain values, for any backend.

A store finds candidates by nine strategies, reads the turns around them, and returns numbers. Its caller computes
weights, scores and order. Every backend must return the same values for the same rows; each field says how.

A "visible" memory belongs to a space that the scope sees. A "live" memory is not closed. A query for the archive asks
for closed memories instead of live ones. Shelves are "k" (knowledge), "e" (turns) and "c" (consolidated turns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ricordo.model import Node, NodeType, Role, Scope
from ricordo.storage.values import Filter, Weights
from ricordo.text.passages import ASKS_ONLY, ASSISTANT, MARK_LENGTH, MARKS_BELOW, TERM_CODES, TOOL

if TYPE_CHECKING:
    Floats = NDArray[np.float32]
    Keys = NDArray[np.int64]

FINDERS = ("words", "meaning", "time", "entity", "tasks", "days", "states")
"""Strategies that find candidates from the question alone."""
FOLLOWERS = ("causal", "associates")
"""Strategies that start from candidates of the others."""

MOST_REPLACED = 8
"""So many replaced facts that hold words of the question are read, to find what replaced them."""
COMMON_SHARE, COMMON_LEAST = 0.01, 1_000
"""A word is common if more than this share of all memories contain it, and at least this many. Common words tell little
and cost much: with a million memories, a query took 46 ms at a share of 5 %, 11 ms at 1 %."""

BY_WORDS, BY_MEANING, BY_TIME, BY_ENTITY, BY_TASKS, BY_DAYS, BY_STATES, BY_LINKS = 50, 80, 40, 40, 40, 40, 60, 24
"""Upper bounds for the candidates of each strategy (`BY_LINKS`: of each follower)."""
OF_A_TIME = 10_000
"""So many of the latest memories of a time are compared with the words of a question: a chat has as many in a year."""

REACH = 2
"""How many turns on either side belong to the context of a turn."""
EXPANDED = 40
"""The neighbours of this many of the best by words are candidates, too: one turn may ask, and the next one answer."""

ENTITY_WALK = 100
"""How many of the latest memories about an entity, and of those that mention it, are considered."""
STARTS = 6
"""Followers start from this many of the best of each earlier strategy, in the order of FINDERS and FOLLOWERS. The
memory at place p (from 0) has the strength 1 - p / STARTS; if it has several places, the best one counts."""
CAUSAL_EDGES, CAUSAL_NODES, CAUSAL_FADE = 200, 150, 0.5
"""Causal edges read per step and direction; nodes after which no further step is taken; strength kept per step."""
ASSOCIATES_EACH = 5
"""How many associates of each start are considered."""


ALWAYS = (-(1 << 62), 1 << 62)
"""A span that contains every time, in Unix milliseconds."""


def spread_over(count: int) -> NDArray[np.int64]:
    """Return ranks for places in a row, int64[count], so that the first of any number are spread evenly over the row:
    the bits of each place, reversed (van der Corput).

    >>> spread_over(8).argsort().tolist()
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    places, bits = np.arange(count), max(1, (count - 1).bit_length())
    return sum(((places >> bit) & 1) << (bits - 1 - bit) for bit in range(bits)) + np.zeros(count, np.int64)


def open_tasks(filter_: Filter) -> Filter:
    """Return the conditions by which the open tasks are found, with those of a filter that are cheap to check."""
    return replace(filter_, entity=None, categories=("task",), where={"not": {"done": True}})


def inverse_frequency(count: int, total: int) -> float:
    """Return a term's inverse document frequency: log(1 + max(total, count, 1) / (count + 0.5))."""
    return log(1 + max(total, count, 1) / (count + 0.5))


class Naming(NamedTuple):
    """How a question names entities: the index terms of the words it uses, and the entities they may mean, by key.

    `names` are the folded names of merged entities, under any of which their messages may be.
    """

    terms: frozenset[str]
    entities: tuple[int, ...]
    names: frozenset[str] = frozenset()


class DayTerms(NamedTuple):
    """Index terms with which texts name some days: months, the days in them (none if any day will do), and weekdays."""

    months: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    weekdays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """What a search asks of a store.

    Attributes:
        scope: the caller.
        filter: conditions on candidates. Neighbours read for context need not match it.
        terms: index terms of the question, each once.
        vectors: the question's vectors by model key, float32[d] of length 1; the preferred model first.
        word_model: key of the model whose word vectors are wanted, 0 for none.
        word_width: length of those word vectors.
        namings: how the question names entities.
        interval: the span the question names, [start, end) in Unix milliseconds.
        depth: causal steps to follow.
        strategies: which of FINDERS and FOLLOWERS to use.
        directions: whether `CandidateRows.directions` is wanted.
        tasks: whether the latest open tasks are wanted.
        days: how texts name the days that the question asks about; None if it asks about none.
        states: those of `terms` of which the latest holders are wanted.
        probe: key of a memory whose absence is to be explained.
        until: deadline on the clock of `time.monotonic`, in seconds.
    """

    scope: Scope
    filter: Filter
    terms: tuple[str, ...]
    vectors: Mapping[int, Floats] = field(default_factory=dict)
    word_model: int = 0
    word_width: int = 0
    namings: tuple[Naming, ...] = ()
    interval: tuple[int, int] | None = None
    depth: int = 2
    strategies: tuple[str, ...] = FINDERS + FOLLOWERS
    directions: bool = False
    tasks: bool = False
    days: DayTerms | None = None
    states: tuple[str, ...] = ()
    probe: int | None = None
    until: float

    @property
    def entities(self) -> tuple[int, ...]:
        """The entities the question names, each once, in order."""
        return tuple(dict.fromkeys(key for naming in self.namings for key in naming.entities))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What ranking knows of some memories: one row per passage, in parallel arrays of length n.

    The last row is a placeholder with key, session, time, flags and length 0, no speaker and no words. It stands for
    what is before the first and after the last passage of a session.

    Attributes:
        keys: int64[n]; the passages of a memory share its key, and follow each other.
        passages: int32[n], the number of a passage in its memory, from 0.
        several: bool[n], whether the memory has several passages.
        sessions: int64[n]; for a memory outside any session, its key with a minus sign.
        event_times: int64[n], Unix milliseconds.
        speakers: int32[n], indexes into `names`.
        names: names of speakers as written, each once; the first is None, for memories without a speaker.
        flags: uint32[n], as in `ricordo.text.analyzer`.
        lengths: float32[n], in characters.
        codes: uint32[m], `TERM_CODES` of words; those of row i are `codes[starts[i] : starts[i] + sizes[i]]`, repeats
            included. The array may hold words of other memories, too.
        starts: int64[n], where the words of each passage begin in `codes`.
        sizes: intp[n], how many words each passage has.
        nearby: intp[4, candidates], rows of the passages one and two before each candidate, and one and two after it.
            Turns of a session are sorted by (event time, key); only live, visible ones count. Without one, the
            placeholder.
    """

    keys: Keys
    passages: NDArray[np.int32]
    several: NDArray[np.bool_]
    sessions: Keys
    event_times: Keys
    speakers: NDArray[np.int32]
    names: Sequence[str | None]
    flags: NDArray[np.uint32]
    lengths: Floats
    codes: NDArray[np.uint32]
    starts: Keys
    sizes: NDArray[np.intp]
    nearby: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.keys)

    def counts(self, terms: Sequence[str]) -> Floats:
        """Return how often each row holds each term, float32[terms, n]."""
        asked, size = codes_of(terms), len(self)
        codes = self.codes.take(stretches(self.starts, self.sizes))
        # Search one flat row: numpy takes six times as long to search a table.
        found = (codes == asked[:, np.newaxis]).ravel().nonzero()[0]
        rows, columns = np.divmod(found, max(1, len(codes)))
        holders = (self.sizes.cumsum() - self.sizes).searchsorted(columns, side="right") - 1
        counts = np.bincount(rows * size + holders, minlength=len(asked) * size)
        return counts.reshape(len(asked), size).astype(np.float32)


def stretches(starts: NDArray[np.integer], sizes: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the indexes of all stretches [start, start + size), one stretch after the other."""
    places = (starts - sizes.cumsum() + sizes).astype(np.intp).repeat(sizes)
    return np.asarray(places + np.arange(len(places)), np.intp)


def in_passages(turns: Turns, size: int) -> tuple[Turns, int]:
    """Split turns into their passages, and return how many of the passages are candidates.

    Turns that are no candidates are represented by their first and last REACH passages: others are near none.

    Args:
        turns: one row for each turn; if it has several passages, a mark precedes each of them in its codes.
        size: number of candidates.
    """
    marked = (
        turns.codes.take(turns.starts, mode="clip") < MARKS_BELOW if len(turns.codes) else np.zeros(len(turns), bool)
    )
    many = (marked & (turns.sizes > 0)).nonzero()[0]
    if not len(many):
        return turns, size
    places = stretches(turns.starts[many], turns.sizes[many])
    is_mark = turns.codes.take(places) < MARKS_BELOW
    marks, whose = places[is_mark], many.repeat(turns.sizes[many])[is_mark]
    counts = np.ones(len(turns), np.intp)
    counts[many] = np.bincount(whose, minlength=len(turns))[many]
    turn = np.arange(len(turns)).repeat(counts)
    number = np.arange(len(turn)) - (counts.cumsum() - counts).repeat(counts)
    starts, ends = turns.starts.take(turn), (turns.starts + turns.sizes).take(turn)
    flags, lengths = turns.flags.take(turn), turns.lengths.take(turn)
    several = np.isin(turn, many)
    starts[several] = marks + 1
    goes_on = several & (number < counts.take(turn) - 1)
    ends[goes_on] = starts[goes_on.nonzero()[0] + 1] - 1
    of_passage, lengths[several] = np.divmod(turns.codes.take(marks), MARK_LENGTH)
    flags[several] = of_passage | (flags[several] & (ASSISTANT | ASKS_ONLY | TOOL))
    kept = ((turn < size) | (number < REACH) | (number >= counts.take(turn) - REACH)).nonzero()[0]
    found = turn.take(kept)
    is_candidate = found < size
    return replace(
        turns,
        keys=turns.keys.take(found),
        passages=number.take(kept).astype(np.int32),
        several=several.take(kept),
        sessions=turns.sessions.take(found),
        event_times=turns.event_times.take(found),
        speakers=turns.speakers.take(found),
        flags=flags.take(kept),
        lengths=lengths.take(kept),
        starts=starts.take(kept),
        sizes=(ends - starts).take(kept).astype(np.intp),
        nearby=_nearby(turns.nearby, found, number.take(kept), counts),
    ), int(is_candidate.sum())


def _nearby(
    nearby: NDArray[np.intp], turn: NDArray[np.intp], number: NDArray[np.intp], counts: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the rows one and two before and after each passage of a candidate, intp[2 * REACH, passages].

    Args:
        nearby: intp[2 * REACH, candidates], the turns before and after each candidate.
        turn, number: for each passage kept, its turn and its number in the turn.
        counts: how many passages each turn has.
    """
    mine = np.arange(int((turn < nearby.shape[1]).sum()))
    turn_of, first = turn.take(mine), turn.searchsorted(np.arange(len(counts)))
    last = turn.searchsorted(np.arange(len(counts)), "right") - 1
    left = counts.take(turn_of) - 1 - number.take(mine)
    found = []
    for before, inside, edge, step in ((True, number.take(mine), last, -1), (False, left, first, 1)):
        next_turn, further = nearby[:REACH, turn_of] if before else nearby[REACH:, turn_of]
        outside = edge.take(next_turn)
        beyond = np.where(counts.take(next_turn) > 1, outside + step, edge.take(further))
        found.append(np.where(inside >= 1, mine + step, outside))
        found.append(np.where(inside >= REACH, mine + REACH * step, np.where(inside == 1, outside, beyond)))
    return np.array(found, np.intp)


def codes_of(terms: Sequence[str]) -> NDArray[np.uint32]:
    """Return the codes of index terms, uint32[n]."""
    return np.frombuffer(b"".join(map(TERM_CODES.__getitem__, terms)), "<u4")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordVectors:
    """Word vectors of some passages, as the rows of one array.

    Attributes:
        places: intp[k], rows of `Turns` whose passages have word vectors, in any order.
        starts: intp[k], the first row of each of these passages in `codes`.
        codes: int8[rows, width]; 127 stands for 1.
    """

    places: NDArray[np.intp]
    starts: NDArray[np.intp]
    codes: NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRows:
    """The candidates and the turns around them, in parallel arrays.

    Attributes:
        turns: the candidates by ascending key, then the turns around them by ascending key, then the placeholder.
            Candidates are everything in `CandidateSet.found`. So are the neighbours, up to REACH turns away, of the
            first EXPANDED found by words, if they are live and visible, match the filter and lie on its shelves.
        size: number of candidates.
        counts: float32[terms, n], how often each row holds each term, in the order of `CandidateSet.frequencies`.
        cosines: float32[n], cosine of each row's vector and the question's, after the mean vector of the scope is
            subtracted from both; 0 without a vector. If there are several models, the first cosine other than 0 counts.
        about: bool[namings, size], whether a candidate is about one of a naming's entities, or mentions one.
        words: word vectors of all rows by `word_model`; None if not wanted.
        directions: for each model of `vectors`, float32[size, d]: each candidate's vector minus the mean vector of the
            scope, scaled to length 1; 0 without a vector. Empty unless wanted.
    """

    turns: Turns
    size: int
    counts: Floats
    cosines: Floats
    about: NDArray[np.bool_]
    words: WordVectors | None = None
    directions: tuple[Floats, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """What a store found for a query.

    Attributes:
        total: number of visible live memories on the shelves of the filter.
        characters: their length in characters, added up.
        frequencies: by term, how many visible memories on these shelves hold it: live ones, or closed ones in the
            archive. Counting stops one above max(COMMON_LEAST, COMMON_SHARE of total), rounded down. Empty if time ran
            out.
        found: by strategy, the scores of its candidates by key, best first. All of them match the filter.
            words: the sum of the `inverse_frequency` of the terms a memory holds that are not common (of all terms if
                all are common); greater keys first among equals.
            meaning: dot product of the vectors, quantised to int8; smaller keys first among equals. With several
                models the better score counts. Empty in the archive.
            time: 1.0 for each. The latest OF_A_TIME that happened in `interval` and match the filter without its
                entity and times are read. Of those that match all of it, the BY_TIME whose words, as in `words`, are
                worth most are returned, and among equals those that are spread over the span (`spread_over`).
            entity: confidence x exp(0.2 x score) of the latest memories near each entity (ENTITY_WALK); greater keys
                first among equals. Empty in the archive.
            tasks: 1.0 for each, the latest first. The latest BY_TASKS of the category "task" without the attribute
                `done` are read; those that match the filter are returned.
            days: 1.0 for each, the latest first: BY_DAYS of those that hold one of the months and, if there are
                numbers, one of these, or one of the weekdays. Of each term, OF_A_TIME holders are read. Empty in the
                archive.
            states: 1.0 for each, the latest first. The latest OF_A_TIME memories are read; of those that hold one of
                the states, BY_STATES are returned. Empty in the archive.
            causal: strength x edge weight x CAUSAL_FADE, along causal edges in either direction, for `depth` steps; the
                best path counts; greater keys first among equals.
            associates: strength x weight of the strongest associates of each start; the best start counts; greater keys
                first among equals.
        rows: what ranking needs; None if nothing was found or time ran out.
        probe_matches: whether the memory `probe` matches the filter.
        probe_similarity: dot product of its vector and the question's by the first model that has both, else None.
        timings_ms: how long each stage took.
        degraded: stages for which time ran out: "<stage>: no time left".
    """

    total: int
    characters: int
    frequencies: Mapping[str, int]
    found: Mapping[str, Mapping[int, float]]
    rows: CandidateRows | None
    probe_matches: bool = True
    probe_similarity: float | None = None
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()


MOST_STATED = 300
"""A message with more characters tells a story, which is not compared with others."""


def is_statement(type: NodeType, session: str | None, role: Role | None, speaker: str | None, content: str) -> bool:
    """Return whether a memory states what a later one may change: a fact, an item outside any conversation such as
    those of `ricordo.integrations`, or a short message of the owner. What people with names tell each other is not
    compared.
    """
    if type != "episodic" or session is None:
        return True
    return role == "user" and not speaker and len(content) <= MOST_STATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortlist:
    """Details of the best candidates, read for a few dozen after ranking.

    Memories that are not visible are left out; so are expired ones, unless the archive is asked.

    Attributes:
        nodes: the memories by key, the live successors of those that were replaced, and the live newer ones of
            `versions`.
        weights: each candidate's properties other than its words.
        shown: texts of memories with withheld sentences, without these; "" if nothing is left.
        statements: for facts that are one canonical statement: (subjects, statement, since when in Unix milliseconds).
        successors: the live newest version of each closed candidate that has one.
        versions: pairs (newer, older) that contain these memories or their successors; the older one may be a message
            from which an earlier version was learnt.
        decided: pairs of these memories that the user has decided on.
        conflicts: (older, newer, id of the review) of the open conflicts in which one of these memories is the older.
        evidence: ids of the messages that knowledge was derived from.
        vectors: vectors of the nodes for which `is_statement` holds by the model asked for, float32[d] of length 1.
    """

    nodes: Mapping[int, Node]
    weights: Mapping[int, Weights]
    shown: Mapping[int, str]
    statements: Mapping[int, tuple[str, str, int]]
    successors: Mapping[int, int]
    versions: Sequence[tuple[int, int]]
    evidence: Mapping[int, tuple[str, ...]]
    decided: Set[frozenset[int]] = frozenset()
    conflicts: Sequence[tuple[int, int, str]] = ()
    vectors: Mapping[int, Floats] = field(default_factory=dict)
