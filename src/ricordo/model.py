"""The values all packages share. Plain and frozen: they hold data and know nothing of stores or models.

Instants are aware `datetime`s here, Unix milliseconds in the store and ISO 8601 in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, overload

NodeType = Literal["episodic", "semantic", "procedural", "opinion"]
Category = Literal[
    "preference",
    "identity",
    "relationship",
    "knowledge",
    "reflection",
    "summary",  # long-lived
    "context",
    "event",
    "task",
    "observation",  # ephemeral
]
Role = Literal["user", "assistant", "system", "tool"]
Origin = Literal[
    "conversation", "tool_result", "extraction", "consolidation", "import", "user", "agent", "web", "cli", "rpc"
]
EntityType = Literal["person", "project", "organization", "place", "concept", "tool"]
EdgeType = Literal["temporal", "causal", "entity", "derived_from", "supersedes"]
ClosedReason = Literal[
    "superseded", "retracted", "expired", "decayed", "pruned", "evicted", "merged", "forgotten", "quarantined"
]
ReviewKind = Literal["replaced", "conflict", "several", "same", "quarantine", "session"]
Decision = Literal["replace", "keep both", "keep old", "approve", "refuse"]
Trust = Literal["user", "agent", "import", "tool", "web"]
RunKind = Literal[
    "consolidation",
    "replay",
    "extraction",
    "reflection",
    "enrichment",
    "causes",
    "summary",
    "search",
    "answer",
    "briefing",
]
RunState = Literal["done", "failed", "proposed", "dry", "undone"]
RunItemKind = Literal[
    "added",
    "repeated",
    "replaced",
    "held",
    "in doubt",
    "entity",
    "relation",
    "cause",
    "summary",
    "missing",
    "refused",
    "failed",
    "left",
    "kept",
    "looked",
]
Durability = Literal["disk", "process"]
Fading = Literal["never", "sinks", "closes"]
ContextName = Literal[
    "facts", "people", "timeline", "documents", "evidence", "under_way", "decisions", "open", "how", "changed", "who"
]
DecayCloses = Literal["ephemeral", "all"]
EndsBy = Literal["expiry", "lifetime"]
SecretsPolicy = Literal["redact", "refuse", "keep"]
PersonalData = Literal["email", "phone", "card", "iban", "id_number"]
ReceiptsPolicy = Literal["off", "answers", "reads"]
UntrustedPolicy = Literal["hold", "label"]
Fusion = Literal["score", "rrf"]
SignalName = Literal[
    "words in context",
    "words",
    "keywords",
    "meaning",
    "person",
    "kind of answer",
    "date",
    "replies",
    "own experience",
    "asks",
    "name",
    "length",
    "assistant",
    "alike",
    "entity",
    "linked",
    "session",
]

Json = Mapping[str, Any]
"""A JSON object of the caller, returned as it was given. Ricordo reads only the keys it documents."""

AGENT = "coding_agent"
"""The attribute of a message that was said to or by a coding agent; its value is the name of the agent."""

DOCUMENT = "document:"
"""What the session of a document's passages begins with; the id of the document follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A caller: a person's own memory (`owner`), together with the group memory of the present `chat`.

    `trust` limits how much this caller's words are believed, whatever origin they claim. An interface that a language
    model speaks through binds "agent". A caller that only `proposes` changes nothing by itself: what it remembers,
    corrects, updates or forgets waits in `review`, in nobody's answers, until the user decides.
    """

    owner: str = "me"
    chat: str | None = None
    trust: Trust = "user"
    proposes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation, to be added."""

    text: str
    role: Role = "user"
    speaker: str | None = None
    session: str | None = None
    at: datetime | str | None = None
    id: str | None = None
    origin: Origin = "conversation"
    attributes: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact to remember; the fields are those of `Memory.remember`."""

    content: str
    type: NodeType = "semantic"
    category: Category | None = None
    about: Sequence[str] = ()
    tags: Sequence[str] = ()
    attributes: Json | None = None
    expires: datetime | str | None = None
    confidence: float = 1.0
    valid_from: datetime | str | None = None
    session: str | None = None
    origin: Origin = "user"
    id: str | None = None
    shared: bool = False
    keep_secrets: bool = False
    at: datetime | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """An older fact that a new one replaced, or may make out of date.

    Attributes:
        is_closed: whether a rule replaced it; otherwise both stay until the user decides.
        review: the id of the review that asks about it, or can take the replacement back.
    """

    id: str
    content: str
    is_closed: bool
    review: str


_REPR_CHARS = 60


def _short(text: str) -> str:
    """Return the beginning of a text in quotes."""
    return repr(text if len(text) <= _REPR_CHARS else f"{text[: _REPR_CHARS - 1]}…")


def _html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table; a memory may hold markup, so every value is escaped."""
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory: an episode (a message) or knowledge (a fact, procedure or opinion).

    Attributes:
        attributes: the caller's own; `dates` holds the dates that relative phrases of the text mean, by phrase.
        valid_from, valid_until: when it holds in the world.
        expires_at: until when it is kept; None for good.
        created_at, closed_at: when it was believed.
        score: the reinforcement score, from -10 to 10.
        reinforced_at: when the score was last raised.
        outdates: in the answer that stores it: the older facts that it replaced or may make out of date.
        key: internal to the store.
    """

    id: str
    type: NodeType
    content: str
    event_time: datetime
    created_at: datetime
    valid_from: datetime
    owner: str = ""
    chat: str = ""
    category: Category | None = None
    role: Role | None = None
    speaker: str | None = None
    session: str | None = None
    origin: Origin = "user"
    about: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Json = field(default_factory=dict)
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    closed_at: datetime | None = None
    closed_reason: ClosedReason | None = None
    confidence: float = 1.0
    decay_rate: float = 0.1
    score: float = 0.0
    reinforced_at: datetime | None = None
    outdates: tuple[Outdated, ...] = ()
    key: int = 0

    @property
    def is_live(self) -> bool:
        return self.closed_at is None

    @property
    def place(self) -> str:
        """Where in a document it stands, such as "handbook.pdf, page 12"; "" if it is no passage of a document."""
        if self.session is None or not self.session.startswith(DOCUMENT):
            return ""
        parts = self.attributes.get("title") or self.session.removeprefix(DOCUMENT), self.attributes.get("place")
        return ", ".join(str(part) for part in parts if part)

    def __repr__(self) -> str:
        """Return one line; `dataclasses.asdict` has all fields."""
        closed = f" {self.closed_reason or 'closed'}" if self.closed_at else ""
        return f"<Node {self.id[-8:]} {self.category or self.type}{closed} {_short(self.content)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An asserted link between two nodes. The order of a session is not stored as edges."""

    source: str
    target: str
    type: EdgeType
    predicate: str | None = None
    weight: float = 1.0
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A person, project, place or other thing with a name.

    Attributes:
        relation: what it is to the owner, for example "wife".
        mention_count: how many live memories name it.
        merged_into: id of the entity that took over its names and memories.
    """

    id: str
    type: EntityType
    name: str
    first_seen: datetime
    last_updated: datetime
    owner: str = ""
    chat: str = ""
    aliases: tuple[str, ...] = ()
    relation: str | None = None
    summary: str | None = None
    protected: bool = False
    mention_count: int = 0
    attributes: Json = field(default_factory=dict)
    closed_at: datetime | None = None
    merged_into: str | None = None
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation between entities: `target` is the `predicate` of `source`, both ids; no source means the owner.

    Attributes:
        valid_from: None if it always held as far as is known.
        evidence: ids of the memories that say so.
        source_name, target_name: filled in when the relation is read.
    """

    id: str
    predicate: str
    target: str
    source: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    evidence: tuple[str, ...] = ()
    created_at: datetime
    owner: str = ""
    chat: str = ""
    source_name: str | None = None
    target_name: str = ""
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """An entity that is named together with another, and in how many of the memories looked at."""

    name: str
    type: EntityType
    together: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of an entity.

    Attributes:
        facts: knowledge about it, best first.
        mentions: memories that merely name it, best first.
        first_seen, last_seen: the period of all memories that name it.
    """

    id: str
    type: EntityType
    name: str
    aliases: tuple[str, ...]
    relation: str | None
    relations: tuple[Relation, ...]
    summary: str | None
    protected: bool
    attributes: Json
    first_seen: datetime
    last_seen: datetime
    mention_count: int
    facts: tuple[Node, ...]
    mentions: tuple[Node, ...]
    related: tuple[Related, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMove:
    """A name moves from one entity to another, with the memories that used it. `source` and `target` are ids."""

    alias: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation. `ended_at` is set when it is finished."""

    id: str
    first_seen_at: datetime
    owner: str = ""
    chat: str = ""
    ended_at: datetime | None = None
    consolidated_at: datetime | None = None
    summary: str | None = None
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session with what was said in it.

    Attributes:
        messages: how many live messages it has; `turns` are those messages in order, where one conversation is read.
        begun_at, last_at: when the first and the last of them was said.
        summary: of a finished conversation, or of one that was summarised.
    """

    id: str
    messages: int
    begun_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    consolidated_at: datetime | None = None
    summary: str | None = None
    owner: str = ""
    chat: str = ""
    turns: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document whose passages are remembered.

    Attributes:
        version: the caller's own name of this version; None if it was given none.
        format: "pdf", "docx", "html", "markdown", "code", "mail" or "text".
        pages: how many pages it has; None for formats without pages.
        digest: SHA-256 of the file or text, in hexadecimal.
        source: where it was read from: for a watched folder the path in it, else the name of the file.
        passages: how many passages it has; `text` holds them in order where one document is read.
        changed_at: when the file was last changed, or the text was given.
    """

    id: str
    title: str
    format: str
    digest: str
    passages: int
    changed_at: datetime
    version: str | None = None
    pages: int | None = None
    source: str | None = None
    owner: str = ""
    chat: str = ""
    text: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport:
    """What adding or removing a document changed.

    Attributes:
        added: passages that are new, and embedded next.
        kept: passages that were there already, with their embeddings; `moved` is how many of them have another place.
        removed: passages that went to the archive.
        knowledge: memories that were learnt from the removed passages alone, and went with them.
        left_out: what of the file could not be read, such as attachments of mail.
    """

    document: Document
    added: int = 0
    kept: int = 0
    moved: int = 0
    removed: int = 0
    knowledge: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The end of a node's life, and why."""

    id: str
    at: datetime
    reason: ClosedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A question for the user: two facts that may conflict, or something that is held back.

    Attributes:
        kind: what a rule made of it. "replaced": it closed the older fact. "conflict": both are live, the newer one
            ranks first. "several": values that often hold together. "same": stored twice, under two ids. "quarantine":
            `newer` is in no answer until it is approved. "session": `newer` is the first message of a conversation that
            could not be consolidated.
        reasons: why it is quarantined, or why consolidation failed.
        about: for quarantined facts, the names they came with.
    """

    id: str
    kind: ReviewKind
    newer: Node
    older: Node | None
    created_at: datetime
    owner: str = ""
    chat: str = ""
    decided_at: datetime | None = None
    decision: Decision | None = None
    reasons: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """A new entity: its names, what it is to the owner, and the memories that say so."""

    name: str
    type: EntityType = "person"
    aliases: tuple[str, ...] = ()
    relation: str | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A relation by name: `target` is the `predicate` of `source`."""

    source: str
    predicate: str
    target: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """One thing a run did or refused to do.

    Attributes:
        what: "left": another process is consolidating the conversation. "kept": a memory the replay did not find again,
            but which was changed since. "looked": how far a run has come, or what it was shown and need not be shown
            again.
        id: the memory it made or touched.
        other: the memory that replaced it, or that it conflicts with.
        text: what the memory says; empty once it is gone.
        evidence: ids of the messages it rests on.
    """

    what: RunItemKind
    id: str | None = None
    other: str | None = None
    text: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()


GUESSED_TYPE = "guessed_type"
"""The attribute of an entity whose type was guessed: later evidence, or a type that is stated, corrects it."""

SUMMARY_MEMORY = "summary_memory"
"""The attribute of an entity that holds the id of the memory with its summary, if a model wrote one."""

BY_RULE = "rules"
"""The `model` of a run that used no model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a model, or of the rules, on conversations or memories, as one unit.

    Attributes:
        sessions: the conversations it consolidated.
        cost: in the currency of the configured prices; None without prices.
        state: "dry" and "failed" runs changed nothing; what an "undone" one did was taken back.
    """

    id: str
    kind: RunKind
    state: RunState
    model: str
    prompt: str
    started_at: datetime
    ended_at: datetime
    sessions: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    reason: str = ""
    items: tuple[RunItem, ...] = ()
    owner: str = ""
    chat: str = ""
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """What a language model used on one day for one owner or chat, also for runs that failed or were undone.

    Attributes:
        day: of the user's time zone, ISO 8601.
        owner: "" with a chat; both are "" for days before calls were recorded by owner.
        tokens_in, tokens_out: of prompts and answers. A call that was interrupted counts with its prompt, estimated.
        cost: in the currency of the configured prices; None without prices.
        runs: how many runs asked the model.
    """

    day: str
    owner: str
    chat: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowId:
    """A row of a truth table of the store."""

    table: str
    key: tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowState:
    """A row as an undo leaves it, column by column; None removes it."""

    row: RowId
    values: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One logical change: a plain value that can be printed, applied whole as one commit, and inverted.

    Attributes:
        put: nodes as they will be; likewise `put_entities`, `put_relations`, `sessions`, `reviews`, `runs`.
        unlink: edges to close.
        subjects: (node id, id of an entity it is about).
        subject_names: (node id, entity id, name that was used).
        moved_subjects: (node id, from entity, to entity).
        associates: pairs of node ids that proved useful together.
        withhold: ids of memories that must not be learnt again.
        withheld_spans: parts of added texts that answers leave out: (id, start, length, number of the suppression).
        said_anew: numbers of suppressions that are lifted.
        consolidated: ids of episodes that became knowledge.
        rows: rows that an undo takes back, whatever they hold.
        kept_secrets: ids of added nodes whose credentials the owner keeps on purpose.
    """

    add: tuple[Node, ...] = ()
    put: tuple[Node, ...] = ()
    close: tuple[Closing, ...] = ()
    link: tuple[Edge, ...] = ()
    entities: tuple[Entity, ...] = ()
    put_entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    put_relations: tuple[Relation, ...] = ()
    moved_names: tuple[NameMove, ...] = ()
    moved_subjects: tuple[tuple[str, str, str], ...] = ()
    subjects: tuple[tuple[str, str], ...] = ()
    subject_names: tuple[tuple[str, str, str], ...] = ()
    sessions: tuple[Session, ...] = ()
    unlink: tuple[Edge, ...] = ()
    reviews: tuple[Review, ...] = ()
    associates: tuple[tuple[str, str], ...] = ()
    withhold: tuple[str, ...] = ()
    withheld_spans: tuple[tuple[str, int, int, int], ...] = ()
    said_anew: tuple[int, ...] = ()
    consolidated: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    rows: tuple[RowState, ...] = ()
    kept_secrets: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, each.name) for each in fields(self))

    def joined(self, other: Change) -> Change:
        """Return both changes as one, this one's rows first."""
        return Change(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Who makes a change and why. It is kept forever and shown in `log`, so it holds no content."""

    actor: str
    origin: str
    reason: str
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A change that happened. `seq` orders everything in a store; clocks do not. `run_id` is the run it belongs to.
    `words`, in a log and in the answer of `undo`, says which memories it touched.
    """

    seq: int
    at: datetime
    actor: str
    origin: str
    reason: str
    hash: str
    run_id: str | None = None
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A memory as it was until the commit that changed it. The newest version is the present one."""

    content: str
    commit: Commit | None
    closed_at: datetime | None
    closed_reason: ClosedReason | None
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a memory came from and what becomes of it.

    Attributes:
        made: the commit that first recorded it, with its run.
        sources: what it was derived from.
        supersedes: what it replaced, latest first.
        superseded_by: what replaced it, earliest first.
        retention: what is left of it, from 0 to 1.
        fades_at: when little is left; then it ranks lower or is closed, as `fading` says.
        ends_at: when it expires, because of a stated expiry or the lifetime that its text has (`ends_by`).
    """

    node: Node
    made: Commit | None
    versions: tuple[Version, ...]
    sources: tuple[Node, ...]
    supersedes: tuple[Node, ...]
    superseded_by: tuple[Node, ...]
    edges: tuple[Edge, ...]
    mentions: tuple[str, ...]
    retention: float
    fades_at: datetime | None
    fading: Fading
    ends_at: datetime | None = None
    ends_by: EndsBy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one signal or factor contributed to a hit.

    Attributes:
        strategy: the signal's name.
        rank: the hit's rank among all candidates by this signal alone, 1 for the best; None if the signal does not
            apply.
        raw: what the signal measured, or the factor.
        share: what that added to the score; the shares of a hit add up to its score.
    """

    strategy: str
    rank: int | None
    raw: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that answers a question.

    Attributes:
        why: the parts of its score; `search(trace=True)` explains the whole search.
        score: comparable within one search only.
        excerpt: of a long memory the passage that matched best, at most 1,000 characters.
        excerpt_at: where the excerpt begins in `content`, in characters.
        evidence: ids of the messages a derived memory rests on; `get` returns them.
        trust: how much its source is believed.
        warnings: what in it reads like an instruction, if it does not come from the user.
        place: where in a document it stands, such as "handbook.pdf, page 12"; "" if it is no passage of a document.
    """

    id: str
    content: str
    type: NodeType
    category: Category | None
    score: float
    confidence: float
    about: tuple[str, ...]
    speaker: str | None
    role: Role | None
    session: str | None
    origin: Origin
    trust: Trust
    tags: tuple[str, ...]
    handle: str
    excerpt: str
    event_time: datetime | None
    event_time_iso: str
    event_time_local: str
    event_time_tz: str
    event_time_relative: str
    why: tuple[Share, ...] = ()
    evidence: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    excerpt_at: int = 0
    place: str = ""

    def __repr__(self) -> str:
        """Return one line: the fields are many, and a list of hits should be readable."""
        return f"<Hit {self.handle} {self.score:.3f} {_short(self.content)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Where a memory ranks in a search, or at which step it dropped out.

    Attributes:
        stage: `unknown` (no such memory), `left out` (a filter, closed, expired), `not found` (no strategy returned
            it), `ranked below`, `not relevant` (below the relevance floor), or `found`.
        rank: among the candidates, 1 for the best, as far as it got.
    """

    id: str
    stage: Literal["unknown", "left out", "not found", "ranked below", "not relevant", "found"]
    detail: str
    rank: int | None = None
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Why a search answered as it did, built from the numbers of the score.

    Attributes:
        under_floor: with `only_relevant`, (id, relevance, reason) of the best hits that were left out. A relevance of 0
            is what unrelated questions seldom reach.
    """

    terms: tuple[str, ...]
    ignored_terms: tuple[str, ...]
    interval: str
    candidates: Mapping[str, int]
    timings_ms: Mapping[str, float]
    hits: tuple[tuple[str, tuple[Share, ...]], ...]
    absence: Absence | None = None
    under_floor: tuple[tuple[str, float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Hits, best first. `degraded` names each part that could not contribute to the answer; `receipt` is the id of the
    receipt, if the search left one.
    """

    hits: tuple[Hit, ...]
    intent: str = "general"
    complexity: str = "simple"
    degraded: tuple[str, ...] = ()
    trace: Trace | None = None
    receipt: str | None = None

    @property
    def ids(self) -> list[str]:
        return [hit.id for hit in self.hits]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __reversed__(self) -> Iterator[Hit]:
        return reversed(self.hits)

    def __contains__(self, hit: object) -> bool:
        return hit in self.hits

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        """Return a hit, or those of a slice."""
        return self.hits[place]

    def __repr__(self) -> str:
        """Return one line for each hit."""
        lines = "".join(f"\n  {hit!r}" for hit in self.hits)
        return f"<Results, {len(self.hits)} hit{'' if len(self.hits) == 1 else 's'}{':' if lines else ''}{lines}>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return _html_table(
            ("score", "memory", "kind", "about", "when", "id"),
            [
                (
                    f"{hit.score:.3f}",
                    f"{hit.speaker}: {hit.excerpt}" if hit.speaker else hit.excerpt,
                    hit.category or hit.type,
                    ", ".join(hit.about),
                    hit.event_time_relative,
                    hit.handle,
                )
                for hit in self.hits
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a listing, newest first. `cursor` asks for the next part and is None at the end."""

    nodes: tuple[Node, ...]
    cursor: str | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __repr__(self) -> str:
        """Return one line for each memory."""
        lines = "".join(f"\n  {node!r}" for node in self.nodes)
        return f"<Page, {len(self.nodes)} memor{'y' if len(self.nodes) == 1 else 'ies'}{':' if lines else ''}{lines}>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = [
            (f"{node.event_time:%Y-%m-%d %H:%M}", node.content, node.category or node.type, ", ".join(node.about))
            for node in self.nodes
        ]
        return _html_table(("when (UTC)", "memory", "kind", "about"), rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Closed memories, latest first, with counts by reason."""

    nodes: tuple[Node, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Figures of a scope's memory and of the store.

    Attributes:
        orphans: memories linked to nothing: no session, no entity, no other memory.
        next_embedder, next_embedded: while the store changes its embedder, the new one and how many memories it has.
    """

    nodes: Mapping[str, int]
    categories: Mapping[str, int]
    closed: int
    edges: Mapping[str, int]
    edges_per_node: float
    orphans: int
    entities: int
    sessions: int
    sessions_waiting: int
    last_consolidation: datetime | None
    last_decay: datetime | None
    embedder: str | None
    embedded: int
    embedding_missing: int
    next_embedder: str | None
    next_embedded: int
    commits: int
    size_mb: float
    oldest: datetime | None
    newest: datetime | None
    quarantined: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check of `doctor`: its result, and what to do if it failed."""

    check: str
    ok: bool
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an upkeep task found or did."""

    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFile:
    """A file of a backup: its size in bytes and its hash in hexadecimal digits."""

    bytes: int
    blake2b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The contents of a backup, from its manifest.

    Attributes:
        head: hash of the last commit in hexadecimal digits; it covers all earlier commits.
        rows: rows per table.
    """

    made_at: datetime
    kind: Literal["file", "folder"]
    schema: int
    commits: int
    head: str
    rows: Mapping[str, int]
    files: Mapping[str, BackupFile]

    @property
    def size(self) -> int:
        """Size in bytes."""
        return sum(file.bytes for file in self.files.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A restored backup: its location, the report of the check, and where the replaced store was kept."""

    location: str
    report: Report
    kept: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """A store whose key was changed. `left` are files beside it that are as they were: old copies, lines set aside."""

    location: str
    is_encrypted: bool
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure removes of one kind: a type of memory, "entity", "relation" or "session". Only the first 1,000
    ids are listed.
    """

    kind: str
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBack:
    """What an erasure leaves, and why."""

    why: str
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReport:
    """What an erasure removed, or would remove.

    Attributes:
        is_done: whether no byte of it is left in the store's files; never true for a dry run.
        out_of_reach: where copies may remain that no program can reach from here.
        bytes_before, bytes_after: the size of the store's file.
    """

    dry_run: bool
    erased: tuple[Erased, ...]
    kept: tuple[KeptBack, ...]
    out_of_reach: tuple[str, ...]
    is_done: bool = False
    bytes_before: int = 0
    bytes_after: int = 0

    @property
    def count(self) -> int:
        """The number of memories, entities, relations and sessions."""
        return sum(each.count for each in self.erased)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkReport:
    """What a change of many memories did, or would do.

    Attributes:
        count: how many memories it changes; the real run can be bound to this number (`expect`).
        sample: the latest of them, at most 10: as they were if they are forgotten, as they will be if they are updated.
        protected: how many stay because they are about a protected person or thing.
        unchanged: how many are so already.
        concluded: how many reflections and summaries end because they rest on what is forgotten.
        commit: the number of the change, for `undo`; None if nothing was changed.
    """

    count: int
    sample: tuple[Node, ...] = ()
    protected: int = 0
    unchanged: int = 0
    concluded: int = 0
    commit: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What an exchange with another device did.

    Attributes:
        sent: commits that the other side did not know.
        received: commits of other devices that were not known here.
        to_review: open decisions that came of it.
        erased: rows that another device had erased and that were erased here.
        left_out: files that could not be used, and why; they are tried again next time.
    """

    dry_run: bool
    sent: int
    received: int
    to_review: int = 0
    erased: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Weak:
    """A memory that is uncertain, fading, or about to expire. The fields are those of `Explanation`.

    Attributes:
        leaves_at: when upkeep will close it; None if it stays.
        why: why it is listed, in words.
    """

    node: Node
    retention: float
    fades_at: datetime | None
    fading: Fading
    ends_at: datetime | None
    ends_by: EndsBy | None
    leaves_at: datetime | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A memory that upkeep closes, and why in words."""

    node: Node
    reason: ClosedReason
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What upkeep archived, or with `dry_run` would archive.

    Attributes:
        archived: counts by reason.
        items: the first 1,000.
        live, live_bytes: how much knowledge is left, and the size of its texts in UTF-8.
        fits: whether that is within `max_entries` and `max_size`.
        runs, commits: each run, and each commit, can be undone.
    """

    archived: Mapping[str, int] = field(default_factory=dict)
    items: tuple[Leaving, ...] = ()
    live: int = 0
    live_bytes: int = 0
    fits: bool = True
    commits: tuple[int, ...] = ()
    runs: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of maintenance: its result in words, and its report if it has one."""

    name: str
    ok: bool
    detail: str
    report: ArchiveReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceReport:
    """What `maintain` did, step by step. A failed step does not stop the next."""

    steps: tuple[Step, ...] = ()
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import read, added, and knew already, and what it refused, with places in the file.

    Attributes:
        messages, facts: the two kinds of what was added.
        people, relations, links: what came with them.
        sessions: conversations in the file.
    """

    format: str = ""
    read: int = 0
    added: int = 0
    known: int = 0
    messages: int = 0
    facts: int = 0
    people: int = 0
    relations: int = 0
    links: int = 0
    refused: tuple[str, ...] = ()
    refused_count: int = 0
    sessions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLine:
    """A line of a context: the id of its memory or entity, and its time in ISO 8601."""

    text: str
    id: str | None = None
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSentence:
    """A sentence of an answer.

    Attributes:
        ids: of the memories it rests on.
        support: `stated` if a memory says just that; `drawn` if it is in other words, so that only the memories
            themselves can tell.
    """

    text: str
    ids: tuple[str, ...]
    support: Literal["stated", "drawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Ids of two memories that contradict each other, while nobody has decided which of them holds."""

    newer: str
    older: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the memories say to a question.

    Attributes:
        text: its sentences; "" if the memories do not answer.
        known: whether the memories answer.
        hits: the memories that were looked at, best first.
        contradictions: among these memories.
        model: the language model that wrote it; None if the sentences are the best passages, word for word.
        cut: how many sentences of the model were left out, because no memory supports them.
        degraded: why the model did not take part, if it failed.
        receipt: the id of the receipt of its search, if it left one.
    """

    text: str = ""
    known: bool = False
    sentences: tuple[AnswerSentence, ...] = ()
    hits: tuple[Hit, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    model: str | None = None
    cut: int = 0
    degraded: tuple[str, ...] = ()
    receipt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSection:
    """Lines of one kind under their title."""

    name: ContextName
    title: str
    lines: tuple[ContextLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an agent should know before it answers a prompt.

    Attributes:
        text: all of it as fenced markdown; None if nothing in the memory concerns the prompt.
        tokens: its estimated length; at most `budget`.
        complexity: of the prompt, `simple` or `complex`.
        receipt: the id of its receipt, if it left one.
    """

    text: str | None
    tokens: int
    budget: int
    complexity: str
    sections: tuple[ContextSection, ...] = ()
    receipt: str | None = None

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all memories and entities in it."""
        return frozenset(line.id for section in self.sections for line in section.lines if line.id is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A memory that an answer gave, by its id: a receipt copies no text.

    Attributes:
        score: its score in that answer; None for what a context shows beside its hits.
        why: the parts of the score.
        section: the section of the context it stands in; "" in a search.
    """

    id: str
    score: float | None = None
    why: tuple[Share, ...] = ()
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A memory that came near an answer and is not in it, and the reason."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an answer gave, to which caller, and why.

    Attributes:
        verb: "search", "query", "context" or "ask".
        question: the text that was asked; None once it was erased, because it led to something erased.
        asked: the other arguments, as far as they differ from the defaults.
        owner, chat, trust: the caller.
        commit: the last commit that the caller saw; 0 before the first.
        setup: what ranking depended on besides the memories: version, embedder, reranker, settings; and what could not
            take part.
        given: best first.
        left_out: the best of the rest, at most 10.
    """

    id: str
    at: datetime
    verb: str
    question: str | None
    owner: str
    chat: str
    trust: Trust
    commit: int
    asked: Json = field(default_factory=dict)
    setup: Json = field(default_factory=dict)
    given: tuple[Given, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """What to know at the beginning of a session.

    Attributes:
        text: all of it as fenced markdown; None if nothing is remembered.
        tokens: its estimated length; at most `budget`.
        seq: the number of the latest change; given as `since`, it makes the next briefing begin here.
        model: the language model that wrote it; None if the lines are the memories themselves.
        cut: how many lines of the model were left out, because no memory supports them.
        degraded: why the model did not take part, if it failed.
    """

    text: str | None
    tokens: int
    budget: int
    seq: int
    sections: tuple[ContextSection, ...] = ()
    model: str | None = None
    cut: int = 0
    degraded: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all memories and entities in it."""
        return frozenset(line.id for section in self.sections for line in section.lines if line.id is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDifference:
    """How one memory stands in two answers to one question.

    Attributes:
        what: "gone", "new", "moved" to another rank or section, or "scored" by other shares at the same rank.
        shares: the signals that gave another share.
    """

    id: str
    what: Literal["gone", "new", "moved", "scored"]
    rank_before: int | None = None
    rank_after: int | None = None
    score_before: float | None = None
    score_after: float | None = None
    shares: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptReplay:
    """The question of a receipt, answered again: as of its commit, and today. Both at the time of day of the receipt.

    Attributes:
        then: the answer as of the receipt's commit; equal to what the receipt says if nothing outside the commits has
            changed.
        today: the answer by today's memories.
        differs_from_receipt: how `then` differs from the receipt.
        differs_today: how `today` differs from `then`.
        commits: the commits that make the difference between `then` and `today`, oldest first.
        reasons: what is in no commit and may explain a difference from the receipt: another version or embedder,
            vectors that were missing then, erased memories.
    """

    receipt: Receipt
    then: tuple[Given, ...] = ()
    today: tuple[Given, ...] = ()
    differs_from_receipt: tuple[AnswerDifference, ...] = ()
    differs_today: tuple[AnswerDifference, ...] = ()
    commits: tuple[Commit, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an export holds and where it is. `messages`, `closed` and `commits` are of a complete export only."""

    format: str
    path: str
    facts: int = 0
    messages: int = 0
    closed: int = 0
    people: int = 0
    relations: int = 0
    commits: int = 0
    files: int = 1
    bytes: int = 0
