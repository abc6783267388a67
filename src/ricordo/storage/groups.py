"""The reader groups of the storage port: the questions that a snapshot answers, by subject.

The docstrings are the contract: a backend returns what they say, in the order they say. Spaces and keys are internal
numbers of a store; `now`, `at` and other instants are Unix milliseconds. "Only inside `derive`" means inside the
function passed to `Store.derive` or `Store.write`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

from ricordo.decay import Vital
from ricordo.model import (
    Chat,
    ClosedReason,
    Commit,
    Conversation,
    Edge,
    EdgeType,
    Entity,
    Member,
    MemberRole,
    ModelUse,
    Node,
    Pause,
    Receipt,
    Related,
    Relation,
    Review,
    ReviewKind,
    RowId,
    Run,
    RunKind,
    Scope,
    Session,
    Stats,
)
from ricordo.storage.values import (
    NOBODY,
    ChangeEvent,
    ClosedFact,
    Derived,
    EmbeddingModel,
    ErasureTargets,
    Everything,
    Failure,
    Filter,
    Floor,
    Holdings,
    Image,
    Kinds,
    KnownName,
    LearntFact,
    LinkText,
    Match,
    MessagePairs,
    Named,
    NewVectors,
    OpenErasure,
    RelationHolder,
    Sketch,
    Step,
    SubjectUse,
    Undone,
    Unembedded,
    Usage,
    Waiting,
    Withhold,
)
from ricordo.text.names import Bearer, NameIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]


class Ledger(Protocol):
    """The versions of rows, by table and key, for undo."""

    def commits_of_run(self, scope: Scope, run_id: str) -> list[int]:
        """Return the commits of a run, oldest first; none if the caller may not see it."""

    def visible(self, scope: Scope, commits: Iterable[int]) -> set[int]:
        """Return which of these commits the caller may see."""

    def touched(self, commit: int) -> list[RowId]:
        """Return the rows that a commit wrote, altered or removed, without rows erased since."""

    def current(self, row: RowId) -> Image | None:
        """Return the present values of a row; None if it does not exist."""

    def state(self, row: RowId, commit: int) -> Image | None:
        """Return the values of a row right after a commit; None if it did not exist."""

    def touches(self, row: RowId) -> list[int]:
        """Return the commits that wrote, altered or removed a row, ascending."""

    def children(self, row: RowId) -> list[RowId]:
        """Return the rows that refer to a row now."""

    def parents(self, row: RowId, image: Image) -> list[RowId]:
        """Return the rows that a version of a row refers to."""

    def rivals(self, row: RowId, image: Image) -> list[RowId]:
        """Return other rows that now hold a value that must be unique, such as an id."""


class Members(Protocol):
    """The members of shared spaces: always the present ones, even if a past state of the store is read."""

    def joined(self, owner: str) -> dict[str, MemberRole]:
        """Return the shared spaces that an owner is a member of, as name to role."""

    def of(self, space: str) -> list[Member]:
        """Return all present and former members of a space, by name; [] if it is not shared."""

    def place(self, space: int) -> str:
        """Return the name of a shared space or chat by its key; "" for the space of an owner."""


class Nodes(Protocol):
    """Nodes by id, by key and by condition."""

    def get(self, scope: Scope, node_id: str) -> Node | None:
        """Return a node by id, closed or not; None if the caller sees no such node."""

    def known(self, scope: Scope, node_id: str) -> Node:
        """Return a node by id, closed or not. Raises NotFoundError if the caller sees no such node."""

    def ids_with(self, scope: Scope, part: str) -> list[str]:
        """Return ids of a caller's nodes that begin or end with a text, or whose last 8 characters begin with it, all
        without dashes; at most 10.
        """

    def by_key(self, scope: Scope, keys: Iterable[int]) -> dict[int, Node]:
        """Return nodes by key, without those the caller may not see."""

    def known_ids(self, ids: Sequence[str]) -> dict[str, tuple[int, str]]:
        """Return which ids are taken: id to (space, content)."""

    def page(self, scope: Scope, filter_: Filter, *, now: int, before_key: int | None, limit: int) -> list[Node]:
        """Return matching nodes below a key, latest recorded first, without live ones that have expired by `now`."""

    def latest(self, scope: Scope, filter_: Filter, *, now: int, limit: int) -> list[Node]:
        """Return matching nodes, latest event first."""

    def edges(self, scope: Scope, node: Node) -> list[Edge]:
        """Return the edges between a node and others the caller may see; edges from the node come first."""

    def matching(self, scope: Scope, filter_: Filter) -> Keys:
        """Return the keys of all matching nodes, ascending."""

    def within(self, scope: Scope, filter_: Filter, *, after: int, before: int, most: int) -> Keys:
        """Return the keys of the latest matching nodes in a period, latest first, greater keys first among equals."""

    def successor(self, key: int) -> int | None:
        """Return the newest version of a node if it is live: the node itself, or its last successor; else None."""

    def replaced(self, key: int) -> list[int]:
        """Return the nodes that a node replaced, directly or through others, the latest first; not forgotten ones."""

    def replaced_holding(self, scope: Scope, terms: Sequence[str], *, most: int) -> list[tuple[str, int]]:
        """Return the visible facts that were replaced and hold most of some index terms, as (text, key of the live
        newest version): those with the most terms first, the latest first among equals.
        """

    def replacing(self, key: int) -> list[int]:
        """Return the nodes that replaced a node, directly or through others, the earliest first."""

    def sources(self, key: int, *, most: int) -> list[int]:
        """Return the keys of the nodes that a node was derived from, the latest first."""

    def lost_a_source(self, key: int) -> bool:
        """Return whether a node that this one was derived from has been closed."""

    def next_turns(self, keys: Iterable[int]) -> dict[int, int]:
        """Return the live turn right after each given turn in its session, by key; the last turn has no entry."""

    def shelf(self, key: int) -> str | None:
        """Return the shelf of a node: "k" for knowledge, "e" for a turn, "c" for a consolidated turn."""

    def names(self, key: int) -> list[str]:
        """Return the names of the entities that were found by rule in a node's text."""

    def succession(self, keys: Iterable[int]) -> list[tuple[int, int]]:
        """Return pairs (newer, older) that contain these nodes: one replaced the other, or ranks higher; or the older
        is a message, and the newer the live version of a fact that was learnt from it and replaced since.
        """

    def near_statements(self, owner: str, chat: str, subjects: Sequence[str], line: str) -> list[tuple[int, str]]:
        """Return (key, content) of live facts about exactly these subjects whose statements sort next to a line.

        Args:
            subjects: ids of entities; an entity that is not stored yet has no facts.
            line: the result of `statement_line`.
        """

    def facts_with(
        self, owner: str, chat: str, words: Iterable[Sequence[str]], *, most: int
    ) -> dict[int, tuple[str, str | None]]:
        """Return (content, speaker) by key of the live facts that contain any of some words.

        Args:
            words: for each word its index terms, of which one is enough.
            most: upper bound for each word; the latest facts are returned.
        """

    def subjects(self, key: int) -> list[str]:
        """Return the ids of the entities a node is about."""

    def evidence(self, scope: Scope, nodes: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """Return the ids of the messages that memories were derived from, by key; no entry for memories without any."""

    def concluded_from(self, key: int) -> list[int]:
        """Return the keys of live reflections and summaries that were derived from a node."""


class Entities(Protocol):
    """Entities by name, id and key, with their relations."""

    def named(self, scope: Scope, name: str) -> Named:
        """Return the entities that a name may mean. A looser match counts only if there is no stricter one."""

    def related_as(self, scope: Scope, predicate: str) -> tuple[Entity, ...]:
        """Return the entities that are the owner's wife (brother, boss, ...) now, oldest first."""

    def open_relations(self, scope: Scope, predicate: str) -> list[Relation]:
        """Return the owner's relations of a kind that hold now, newest first."""

    def by_key(self, scope: Scope, keys: Sequence[int] | set[int]) -> tuple[Entity, ...]:
        """Return entities by key, oldest first, without those the caller may not see."""

    def by_id(self, scope: Scope, entity_id: str) -> Entity | None:
        """Return the entity with an id, or the one it was merged into."""

    def members(self, scope: Scope, key: int) -> tuple[Entity, ...]:
        """Return an entity and those merged into it; each keeps names and memories of its own."""

    def own_names(self, key: int) -> list[str]:
        """Return the names of one entity, without those of entities merged into it."""

    def people(self, scope: Scope, *, most: int) -> list[Entity]:
        """Return people, most often mentioned first."""

    def relations(self, key: int) -> tuple[Relation, ...]:
        """Return the relations to and from an entity: present before past ones, newest first."""

    def was_named(self, key: int) -> bool:
        """Return whether a memory names or named an entity, be it live or closed."""

    def span(self, entity: Entity) -> tuple[datetime, datetime]:
        """Return the event times of the first and last memory that names an entity, or twice its first sight."""

    def latest(self, key: int, link: Literal["subject", "mention"], *, now: int, most: int) -> list[Sketch]:
        """Return the latest memories about an entity, or those that merely name it."""

    def named_together(self, key: int, nodes: Sequence[int], *, most: int) -> tuple[Related, ...]:
        """Return the other entities that these memories name, most often named first."""

    def by_folded_names(self, scope: Scope, names: Sequence[str]) -> list[Entity]:
        """Return live entities with one of the folded names, oldest first."""

    def all_names(self, scope: Scope) -> list[KnownName]:
        """Return all names of all entities, in no order."""

    def related_by(self, scope: Scope, predicates: Sequence[str]) -> list[tuple[int, int]]:
        """Return the keys of two entities, source and target, for each open relation of some kinds, in no order."""

    def begun_by(self, scope: Scope, words: Sequence[str]) -> dict[str, list[int]]:
        """Return the people with a folded name of several words that begins with one of `words`, by that word."""

    def key_of(self, entity_id: str) -> int | None:
        """Return the key of an entity by its id, even if it was closed or merged; None if it does not exist."""

    def subject_uses(self, key: int) -> list[SubjectUse]:
        """Return the memories about exactly this entity, including closed ones, in no order."""

    def to_summarise(self, owner: str, chat: str, *, least: int, most: int) -> list[int]:
        """Return the keys of live entities of an owner and chat that need a summary.

        Such an entity, together with those merged into it, is named in at least `least` memories. It has no summary; or
        a model made the summary, which was closed by its lifetime or rests on a closed memory. An entity whose summary
        a person forgot or retracted is left out. Returns the first `most`: most often named first, then ascending keys.
        """


class Graph(Protocol):
    """Links of memories: to entities, to causes and effects, and to memories that proved useful together."""

    def has_names(self, scope: Scope) -> bool:
        """Return whether the caller sees the name of any entity."""

    def kinds(self) -> Kinds:
        """Return which kinds of links exist in the store."""

    def known_names(self, scope: Scope, text: str) -> NameIndex:
        """Return the entity names in a text that the caller's memory knows."""

    def related(self, scope: Scope, predicate: str) -> list[int]:
        """Return the keys of the entities that are now in a relation to the owner: of "wife", the owner's wife."""

    def entity_keys(self, entities: Iterable[int]) -> list[int]:
        """Return the keys of entities and of all entities merged into them."""

    def is_causal_between(self, one: int, other: int) -> bool:
        """Return whether a live causal edge joins two nodes (keys), in either direction."""

    def associates(self, scope: Scope, nodes: Iterable[int], *, each: int) -> list[Step]:
        """Return the strongest associates of each node, at most `each` per node."""

    def has_edge(self, source: int, type: EdgeType, target: int) -> bool:
        """Return whether an edge of a type leads from one node to another."""

    def reinforced_with(self, owner: str, chat: str, node_id: str, *, at: int) -> list[str]:
        """Return the ids of other memories reinforced within a minute before `at` (Unix milliseconds)."""

    def put_usage(self, shown: Mapping[int, Usage]) -> None:
        """Add to the counts of how often memories were shown. Only inside `derive`."""

    def usage(self, nodes: Collection[int]) -> dict[int, Usage]:
        """Return how memories were used, by key, without those never shown."""

    def lines(self, nodes: Iterable[int]) -> list[tuple[int, str, str, int]]:
        """Return (key, ids of subjects, line, since when in Unix ms) of facts that are one canonical statement line."""


class Sessions(Protocol):
    """Sessions of a caller, and which of them are off the record."""

    def get(self, scope: Scope, session_id: str) -> Session | None:
        """Return a session by its id."""

    def listed(self, scope: Scope, *, most: int, session_id: str | None = None) -> list[Conversation]:
        """Return sessions with live messages, or only one, latest message first, without turns or documents."""

    def off_record(self, owner: str, chat: str) -> list[Pause]:
        """Return when an owner was and is off the record in a chat ("" for none), there alone or everywhere."""

    def go_off_record(self, owner: str, chat: str, session: str, *, at: int) -> None:
        """Begin a pause at `at` (Unix milliseconds); "" stands for every chat or session. Repeating changes nothing."""

    def go_on_record(self, owner: str, chat: str, session: str, *, at: int, kept: str) -> None:
        """End the pause of the same owner, chat and session. It stays, unless it is unknown when it began, with `kept`
        in place of the session.
        """

    def paused(self, owner: str) -> list[Pause]:
        """Return the pauses of an owner that last, in all chats."""


class Reviews(Protocol):
    """Questions that wait for a person's decision."""

    def listed(
        self, scope: Scope, *, most: int, kind: ReviewKind | None = None, node: int | None = None
    ) -> list[Review]:
        """Return open reviews, of one kind or about one memory if given: those about live conflicts first, then latest
        first.
        """

    def get(self, scope: Scope, review_id: str) -> Review | None:
        """Return a review by its id, decided or not; None if this caller sees none."""

    def against(self, keys: Collection[int]) -> list[tuple[int, int, str]]:
        """Return (older, newer, id of the review) of the open conflicts in which one of some memories is the older."""

    def decided_with(self, node: int) -> set[int]:
        """Return the keys of the facts that were decided on in a review together with this one."""

    def of_quarantined(self, node: Node) -> Review | None:
        """Return the latest quarantine review of the same content and type whose node is live or quarantined."""


class Runs(Protocol):
    """Conversations that wait for consolidation, runs, and the use of language models."""

    def waiting(self, scope: Scope) -> list[Waiting]:
        """Return conversations with messages that are not consolidated, oldest first. Documents never wait for it."""

    def latest_waiting(self) -> list[tuple[tuple[str, str], str | None]]:
        """Return ((owner, chat), session) of the latest messages that wait for consolidation, of all owners."""

    def waiting_episodes(self, scope: Scope, place: tuple[str, str], session: str | None) -> list[Node]:
        """Return the messages of one conversation that are not consolidated, in order; `place` is (owner, chat)."""

    def session_episodes(self, scope: Scope, place: tuple[str, str], session: str) -> list[Node]:
        """Return all live messages of one conversation, in order."""

    def listed(self, scope: Scope, *, most: int) -> list[Run]:
        """Return runs without the texts of their items, latest first: those that kept something, and those that called
        a model and failed, were interrupted or were undone.
        """

    def get(self, scope: Scope, run_id: str) -> Run | None:
        """Return one run with the present texts of its items; None if the caller sees no such run."""

    def failures(self, scope: Scope) -> list[Failure]:
        """Return conversations that could not be consolidated, latest first."""

    def note_failure(self, place: tuple[str, str], session: str | None, *, at: int, reason: str) -> None:
        """Record a failed attempt; `at` in Unix milliseconds, `reason` without content. Only inside `derive`."""

    def forget_failures(self, place: tuple[str, str], session: str | None) -> None:
        """Delete the failures of a conversation that succeeded or is to be tried again. Only inside `derive`."""

    def lease_of(self, place: tuple[str, str], session: str | None) -> str:
        """Return the name of the lease on a conversation. It is made of keys, so it reveals no text."""

    def begin_call(self, run: Run, session: str | None, *, day: str, at: int, tokens: int, most: int) -> int | None:
        """Record a language model call that is about to be made. Only inside `derive`.

        Args:
            run: the run it belongs to, for its id, kind, model, prompt, owner and chat.
            at: Unix milliseconds.
            tokens: estimate for the prompt; it counts until `end_call` records the actual use.
            most: the daily token limit of the owner; 0 means no limit.

        Returns:
            The number of the call; None, and nothing is recorded, if the day's tokens are used up.
        """

    def end_call(self, number: int, *, tokens_in: int, tokens_out: int, cost: float | None) -> None:
        """Record what a call used. Only inside `derive`."""

    def note_outcome(self, run: Run, session: str | None, *, day: str, at: int) -> None:
        """Record how a run, or one session of it, ended (its state and reason). Only inside `derive` or a write."""

    def model_use(self, scope: Scope | None, *, since: str) -> list[ModelUse]:
        """Return the model usage by day, owner and model, latest day first; of all owners if the scope is None."""

    def items_of_last(self, owner: str, chat: str, kind: RunKind) -> list[tuple[str, int | None, tuple[int, ...]]]:
        """Return (what, key of the node, keys of its evidence) of each item of the latest run of a kind, in order."""

    def extraction_of(self, place: tuple[str, str], session: str | None, *, model: str) -> str | None:
        """Return the id of the latest extraction run of a model over one conversation; `place` is (owner, chat)."""

    def read_by(self, place: tuple[str, str], session: str | None, *, model: str, among: Sequence[Node]) -> set[int]:
        """Return the keys of those messages in `among` that a model's extraction runs over a conversation have read."""

    def consecutive_messages(self, owner: str, chat: str, *, after: int, most: int) -> MessagePairs | None:
        """Return the next user messages in sessions, each paired with the previous one of the same session.

        It examines the first `most` live messages of role "user" with a key above `after`. The previous message is the
        latest live one of that role before it in the session, by event time and key. Pairs are ordered by the key of
        the later message. Returns None if there are no messages to examine.
        """

    def learnt_between(self, owner: str, chat: str, *, after: int, before: int, now: int, most: int) -> list[int]:
        """Return the keys of an owner and chat's live knowledge from a period that has not expired.

        Episodes, reflections and summaries are left out. Returns the latest `most`, by ascending event time and key.

        Args:
            after, before: Unix milliseconds; `before` is exclusive.
        """


class History(Protocol):
    """Commits, and the versions of what they changed."""

    def commits(self, scope: Scope, *, before: int | None, most: int) -> list[Commit]:
        """Return commits below a number, newest first."""

    def versions(self, node: Node) -> list[tuple[Node, Commit | None]]:
        """Return the versions of a node, oldest first, each with the commit that made it."""

    def recorded(self, nodes: Sequence[int]) -> dict[int, Commit]:
        """Return the first commit of each node, by key."""

    def get(self, seq: int) -> Commit | None:
        """Return a commit by its number."""

    def made(self, seq: int) -> Commit:
        """Return a commit that was just made. Raises UnavailableError if the folder's index cannot be updated yet."""

    def events(self, *, after: int, most: int) -> list[ChangeEvent]:
        """Return what the next commits after a number changed, in any space, oldest first."""

    def first(self, scope: Scope) -> Commit | None:
        """Return the first commit that a caller sees."""

    def seen(self, scope: Scope) -> int:
        """Return the number of the last commit that a caller sees; 0 if there is none."""

    def next_commit(self) -> int:
        """Return the number of the next commit. It is reliable only inside a write."""

    def erasures(self, commits: Iterable[int]) -> list[int]:
        """Return which of some commits erased something, ascending."""

    def ledger(self) -> Ledger:
        """Return the versions of all rows, for undo."""


class Lifecycle(Protocol):
    """Data that decides how long memories are kept."""

    def vitals(self, scope: Scope, keys: Sequence[int], *, often: int) -> list[Vital]:
        """Return vitals of memories the caller may see, by key. Over `often` mentions are frequent (0: never)."""

    def knowledge(self, scope: Scope) -> list[int]:
        """Return the keys of all live knowledge a caller may see, ascending."""

    def size(self, scope: Scope) -> tuple[int, int]:
        """Return the number of live facts, and the bytes of their texts."""

    def scopes(self) -> list[Scope]:
        """Return one scope for each space of the store, without those of erased owners."""

    def whose(self, node_id: str) -> Scope | None:
        """Return the owner of a memory, closed or not; None if there is no such memory, or it belongs to a group."""

    def last_decay(self, scope: Scope) -> int | None:
        """Return when a caller's memories were last checked for fading, in Unix milliseconds; None if never."""

    def note_decay(self, scope: Scope, *, at: int) -> None:
        """Record when a caller's memories were last checked for fading, in Unix milliseconds. Only inside `derive`."""


class Mentions(Protocol):
    """Linking names in texts to entities: finding nodes to link, and writing links."""

    def spaces_with_names(self) -> list[int]:
        """Return the spaces that have any entity name."""

    def spaces_to_link(self) -> list[int]:
        """Return the spaces with nodes that must be searched for names again."""

    def to_link(self, space: int, most: int) -> list[tuple[int, int]]:
        """Return (note, node key) of nodes to search again, in the order they were noted."""

    def texts(self, keys: Sequence[int]) -> list[LinkText]:
        """Return the texts of nodes by key, in no order."""

    def put_links_again(self, notes: Sequence[int], nodes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> None:
        """Replace the links of nodes that were searched again. Only inside `derive`."""

    def unlinked(self, space: int, most: int) -> list[LinkText]:
        """Return nodes that were never searched for names, oldest first."""

    def known_names(self, space: int, keys: Sequence[str], sounds: Sequence[str]) -> dict[str, tuple[Bearer, ...]]:
        """Return which of these folded names and sounds a space knows, with their bearers."""

    def holders_of(self, space: int) -> list[RelationHolder]:
        """Return who stands in which relation to the owner of a space, the latest statement last."""

    def owner_of(self, space: int) -> str:
        """Return the owner of a space; "" if it is a chat's."""

    def new_names(self) -> list[tuple[int, str, str, int, int]]:
        """Return names learnt since older nodes were searched: (space, folded, as written, entity, commit)."""

    def new_relations(self) -> list[tuple[int, str, int]]:
        """Return owner relations changed since texts that mention them were searched: (space, predicate, note)."""

    def texts_with(self, space: int, words: str, most: int) -> list[LinkText]:
        """Return the live nodes that contain all of the words."""

    def put_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Write mentions: (node key, entity key). Only inside `derive`."""

    def mark_linked(self, space: int, through: int) -> None:
        """Record that all nodes of a space up to a key were searched for all names. Only inside `derive`."""

    def mark_names(self, commit: int) -> None:
        """Record that older nodes were searched for all names learnt up to a commit. Only inside `derive`."""

    def mark_relations(self, note: int) -> None:
        """Record that texts were searched for all relation changes up to a note. Only inside `derive`."""

    def drop_all_links(self, nodes: Sequence[int]) -> None:
        """Delete all mentions in some nodes. Only inside `derive`."""

    def look_again(self, nodes: Sequence[int]) -> None:
        """Queue nodes to be searched for names again. Only inside `derive`."""

    def drop_links(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Delete mentions: (node key, entity key). Only inside `derive`."""

    def mentions_of(self, entity: int) -> list[tuple[int, str]]:
        """Return (node key, text with its speaker) of all nodes that name an entity."""


class Suppression(Protocol):
    """Suppressed sentences: what was forgotten or erased and must not be learnt or shown again."""

    def put(self, space: int, withhold: Iterable[Withhold], *, at: int) -> None:
        """Suppress sentences from `at` (Unix milliseconds) on. Only inside a write."""

    def withholds(self, space: int) -> bool:
        """Return whether anything is suppressed in a space; usually nothing is."""

    def matches(
        self, space: int, text: str, *, session: str | None, said_at: int | None, voices: Iterable[str] = (NOBODY,)
    ) -> list[Match]:
        """Return the suppressed sentences of a text.

        Args:
            voices: of those who may have said it. What a person with another name said is something else.
            session: the conversation that the text belongs to.
            said_at: when a person said it or a program stored it under a name, in Unix milliseconds; None if nobody
                did. A statement made after the forgetting is new, unless it is in the conversation that was
                forgotten: there it is a replay.
        """

    def is_erased(self, space: int, node: Node, *, said_at: int | None) -> bool:
        """Return whether a memory without meaningful words was erased: its id or its time in its session is known.

        Args:
            said_at: as for `matches`.
        """

    def said_anew(self, space: int, text: str, *, voices: Iterable[str] = (NOBODY,)) -> list[int]:
        """Return the numbers of suppressed sentences that a text states again at any time, in one of the voices."""

    def shown(self, nodes: Mapping[int, Node]) -> dict[int, str]:
        """Return the texts of nodes that have suppressed parts, without these parts, by key; "" if nothing is left."""

    def sources(self, node: Node, space: int) -> list[Withhold]:
        """Return the sentences a fact came from: in its sources, and in other texts that say all of the fact."""


class EmbeddingModels(Protocol):
    """The embedding models of a store, and the switch from one to another."""

    def known(self) -> list[EmbeddingModel]:
        """Return all models, oldest first."""

    def adopt(self, *, name: str, dimension: int, spec: str) -> EmbeddingModel:
        """Adopt an embedder. The first one is active at once; a later one becomes active when all its vectors exist."""

    def switch(self, coming: int) -> bool:
        """Activate a coming model if no node lacks its vector; return whether it is active."""

    def progress(self, model: int) -> tuple[int, int, tuple[int, int]]:
        """Return (node, removal, both as a pair): up to that node, as of that removal, every node had its vector."""

    def note_progress(self, model: int, after: int, removals: int) -> None:
        """Record the progress for the next opening. Only inside `derive`."""

    def lost_since(self, removal: int) -> tuple[int, int | None]:
        """Return the latest removal, and the first node that lost a vector after the given removal."""

    def drop_removals(self) -> int:
        """Delete removal notes that no open process needs any more; return how many rows were deleted."""

    def centres_due(self, model: int) -> list[tuple[int, str]]:
        """Return the (space, shelf) pairs that have grown by a third since the mean of their vectors was computed."""

    def drop_retired(self) -> bool:
        """Delete some vectors of retired models; call again while it returns True. Each call is short, so that others
        can write. A model itself is deleted in a separate call, since a folder's files name it to say which vectors
        went.
        """


class Statistics(Protocol):
    """Figures about a caller's memories: counts, sizes, and the scores that unrelated prompts reach."""

    def size(self, scope: Scope, shelves: Sequence[str]) -> tuple[int, int]:
        """Return the number of live memories on these shelves, and their length in characters."""

    def summary(self, scope: Scope, *, whole_store: bool) -> Stats:
        """Return the figures of what a caller sees, with the size of the caller's own texts or of the whole store."""

    def chats(self, scope: Scope, owner: str) -> list[Chat]:
        """Return the chats that a caller sees, and those without members in which an owner wrote, latest first."""

    def closed(self, scope: Scope) -> dict[str, int]:
        """Return how many closed memories there are, by reason."""

    def closed_keys(self, scope: Scope, reason: ClosedReason | None, *, limit: int) -> list[int]:
        """Return the keys of closed memories, latest first; of any reason if None."""

    def floor(self, scope: Scope, *, model: int, rule: int) -> Floor | None:
        """Return the scores that unrelated prompts reach for a caller, if they were measured by this method.

        Args:
            model: key of the embedding model; 0 for words alone.
            rule: version of the method.
        """

    def put_floor(self, scope: Scope, floor: Floor, *, rule: int) -> None:
        """Store the scores that unrelated prompts reach for a caller."""


class Export(Protocol):
    """What an export contains: knowledge and entities of the spaces a caller sees."""

    def holdings(self, scope: Scope, *, now: int) -> Holdings:
        """Return what the caller may see and what has not expired by `now` (Unix milliseconds)."""

    def everything(self, scope: Scope) -> Everything:
        """Return everything the caller may see, including closed memories."""


class Evidence(Protocol):
    """Sources of derived memories. A memory rests on a node if it has a `derived_from` edge to the node."""

    def learnt_from(
        self, owner: str, chat: str, content: str, *, evidence: Sequence[str], least: int
    ) -> LearntFact | None:
        """Return the memory that says the same and rests on at least `least` messages of the given evidence.

        It says the same if its content or its non-empty `statement_line` is equal. Closed memories and closed edges
        count. A live memory is preferred, then the lowest key. Returns None if there is no such memory.

        Args:
            evidence: ids of messages.
        """

    def count(self, key: int, *, among: Sequence[str]) -> int:
        """Return the number of the given nodes (ids) on which a memory rests by edges that are not closed."""

    def resting_on(self, evidence: Iterable[str], *, most: int) -> list[int]:
        """Return keys of live memories that rest on any of these nodes (ids) by open edges: the first, ascending."""

    def reflections_on(self, keys: Iterable[int]) -> list[int]:
        """Return the keys of live "reflection" memories that rest on any of the given nodes by any edge, ascending."""

    def dismissed(
        self, owner: str, chat: str, type_: str, content: str, *, evidence: Sequence[str]
    ) -> list[ClosedFact]:
        """Return the facts of a type of this owner and chat that were closed as forgotten or retracted, in no order.
        They say the same (as in `learnt_from`), or rest on one of the given messages (ids) by any edge.
        """


class Vectors(Protocol):
    """Vectors of nodes: finding missing ones, and writing them. Methods that write run in a write transaction."""

    def lacking(self, model: int, *, after: int, most: int) -> list[Unembedded]:
        """Return the first `most` live nodes above the key `after` that lack a vector of a model, by ascending key."""

    def of(self, model: int, keys: Iterable[int]) -> dict[int, NDArray[np.float32]]:
        """Return the vectors that nodes have of a model, float32[dimension] by key."""

    def put(self, model: int, dimension: int, made: Sequence[NewVectors]) -> int | None:
        """Store vectors of live nodes whose content is still the text that was embedded.

        Returns:
            The key of the first node that was left out, in the order given; None if all were stored.
        """

    def compact(self) -> bool:
        """Do some maintenance of the vectors just stored, in a write transaction; return whether to call it again."""

    def recentre(self, model: int, dimension: int) -> bool:
        """Store the mean vector of each part of the store that `models.centres_due` names; return whether any was due.

        The mean is computed from the part's first 20,000 vectors.
        """


class Upkeep(Protocol):
    """Maintenance of the backend's word index, in short steps, so that other writers wait only milliseconds."""

    def is_due(self) -> bool:
        """Return whether maintenance is worthwhile. A backend without any returns False."""

    def step(self) -> bool:
        """Do one step inside a write transaction; return whether there is more to do."""


class Leases(Protocol):
    """Leases: which process does a job that only one may do at a time. A lease expires, and no truth depends on it."""

    def take(self, name: str, holder: str, *, now: int, until: int, is_gone: Callable[[str], bool]) -> bool:
        """Take or renew a lease; return whether the holder has it.

        A lease can be taken if it is free or expired, if the holder has it already, or if its present holder is gone.

        Args:
            now, until: Unix milliseconds of the machine's clock.
            is_gone: whether a holder's process is known to have ended.
        """

    def drop(self, name: str, holder: str) -> None:
        """Release a lease, unless another holder has it by now."""


class Proposals(Protocol):
    """Replays that may be accepted. They are not truth: a lost one is made again, and any erasure deletes all."""

    def put(self, run_id: str, *, space: int, at: int, body: str) -> None:
        """Keep a proposal for 30 days; `at` in Unix milliseconds, `body` JSON. Only inside `derive`."""

    def body(self, scope: Scope, run_id: str) -> str | None:
        """Return a proposal's body by its id, or a unique beginning or end of it; None if the caller sees none."""

    def drop(self, ids: Iterable[str]) -> None:
        """Delete proposals by their ids. Only inside `derive`."""


class Receipts(Protocol):
    """Records of what callers were given. They are not truth and have no history. Only its own caller sees a receipt:
    an owner in any chat, or a chat without an owner.
    """

    def put(self, receipt: Receipt) -> None:
        """Keep a receipt; putting it again changes nothing. Only inside `derive`.

        An id in it that no row and no former version holds any more was erased meanwhile: it is left out, with the
        question that led to it.
        """

    def get(self, scope: Scope, receipt_id: str) -> Receipt | None:
        """Return a receipt by its id, or a unique beginning or end of it; None if the caller has none."""

    def listed(self, scope: Scope, *, before: str | None, most: int) -> list[Receipt]:
        """Return a caller's receipts with ids below `before`: latest id first, the first `most`."""

    def standing(self, scope: Scope) -> list[Receipt]:
        """Return a caller's standing questions, oldest first. `setup` holds the latest answer, or {} without one."""

    def answer(self, receipt: Receipt) -> bool:
        """Replace the time, commit, answer and memories of a standing question; return whether the question still
        exists. An answer with an id that was erased meanwhile is left out. Only inside `derive`.
        """

    def unanswer(self, space: int) -> None:
        """Delete the answers to standing questions of all callers who see a space. Only inside `derive`."""

    def expire(self, scope: Scope, *, before: int) -> int:
        """Delete a caller's receipts from before a time (Unix milliseconds), except standing questions; return how
        many. Only inside `derive`.
        """

    def asked(self, space: int) -> list[tuple[str, str, list[str]]]:
        """Return (receipt id, all text of the caller, ids it names) of each answer to a caller who sees a space."""

    def blank(self, ids: Iterable[str]) -> None:
        """Delete the questions of some receipts; delete a standing question with its answer. Only inside `derive`."""

    def sweep(self) -> None:
        """Remove every id that no row and no former version holds any more, with the answers to standing questions
        that depend on it. Only inside `derive`.
        """


class Erasure(Protocol):
    """Erases rows for good, in small transactions, so that another process can continue if this one is killed."""

    def begin(self, targets: ErasureTargets, *, at: int) -> int:
        """Record what is to be erased; return the erasure's number. An erased owner's memory is hidden from then on."""

    def imports(self, space: int, nodes: Sequence[int]) -> list[tuple[int, str]]:
        """Return (commit, reason) of the imports of a space, and of those that wrote some nodes."""

    def forget_files(self, erasing: int, imports: Collection[int]) -> None:
        """Remove the reasons of imports, which name files; others go with the last memory of their commit. Only inside
        `derive`.
        """

    def step(self, erasing: int, *, kind: str, at: int) -> int:
        """Erase some rows with all that refers to them; return how many, 0 if none are left. Only inside `derive`."""

    def finish(self, erasing: int, *, space: int, kind: str, at: int, actor: str) -> None:
        """Erase what history still holds of the erased rows, and commit the erasure. Only inside `derive`."""

    def unfinished(self) -> list[OpenErasure]:
        """Return erasures that were begun but not finished, oldest first."""

    def end(self, erasures: Sequence[int]) -> None:
        """Record that no byte of the erased rows is left. Only inside `derive`."""

    def older_versions(self, node: int) -> list[int]:
        """Return the keys of a node and of all nodes that it replaced, in no order."""

    def sessions(self, scope: Scope, session: str) -> list[int]:
        """Return the keys of the sessions of that id in the spaces a caller sees."""

    def nodes_in(self, sessions: Sequence[int]) -> list[int]:
        """Return the keys of all nodes of some sessions, including closed ones."""

    def members(self, entity: int) -> list[int]:
        """Return the keys of an entity and of all entities merged into it."""

    def own_names(self, entities: Sequence[int]) -> list[str]:
        """Return the names of some entities, without names that another live entity of their space also has."""

    def nodes_naming(self, entities: Sequence[int]) -> set[int]:
        """Return the keys of nodes that are about some entities or mention them."""

    def texts(self, space: int) -> Iterator[tuple[int, str]]:
        """Yield (key, all its text: content, speaker, tags and attributes) of each node of a space."""

    def summaries(self, space: int) -> list[tuple[str, int, str]]:
        """Return (table, key, summary) of the sessions and entities of a space that have one."""

    def former_texts(self, space: int) -> Iterator[tuple[str, int, str]]:
        """Yield (row, commit that replaced it, all its text) of each former version of a node of a space."""

    def undone(self, spaces: Collection[int]) -> Undone:
        """Return the rows of spaces that exist only in the history, since their addition was undone."""

    def derived(self, nodes: Sequence[int]) -> list[Derived]:
        """Return the memories that were derived from any of the given ones, by ascending key."""

    def proposed(self, nodes: Sequence[int]) -> list[int]:
        """Return the keys of quarantined nodes whose `proposes` names one of the given nodes."""

    def sources(self, nodes: Sequence[int]) -> list[str]:
        """Return the ids of the memories that the given ones were derived from, without the given ones."""

    def relations(self, nodes: Sequence[int], entities: Sequence[int]) -> list[int]:
        """Return the keys of relations of these entities, and of relations with evidence in these nodes alone."""

    def orphaned_entities(self, nodes: Sequence[int], relations: Sequence[int]) -> list[int]:
        """Return the keys of unprotected entities that only these nodes and relations refer to."""

    def emptied_sessions(self, nodes: Sequence[int]) -> list[int]:
        """Return the keys of sessions that contain nothing but these nodes."""

    def summarised(self, nodes: Sequence[int]) -> list[tuple[str, int]]:
        """Return (table, key) of sessions and entities whose summary may rest on these nodes."""

    def listed(self, targets: ErasureTargets) -> Iterator[tuple[str, str]]:
        """Yield (kind, id) of each memory, entity, relation and session that an erasure removes."""

    def said_in_chats(self, owner: str) -> int:
        """Return how many memories of chats an owner said or wrote."""

    def changes_by(self, owner: str) -> int:
        """Return how many commits name an owner or one of their agents as the one who made them."""
