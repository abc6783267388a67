"""The values every room shares. Plain and frozen: they hold data and know nothing of stores or models.

Instants are aware `datetime`s here, Unix milliseconds in the store and ISO 8601 in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

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
RunKind = Literal["consolidation", "replay", "extraction", "reflection", "enrichment", "causes"]
RunState = Literal["done", "failed", "proposed", "dry"]
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
ContextName = Literal["facts", "people", "timeline", "evidence"]
DecayCloses = Literal["ephemeral", "all"]
EndsBy = Literal["expiry", "lifetime"]
SecretsPolicy = Literal["redact", "refuse", "keep"]
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
    "entity",
    "linked",
    "session",
]

Json = Mapping[str, Any]
"""A JSON object the caller brought and gets back as it was. Ricordo reads only the keys it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory: a person's own (`owner`), seen together with the group memory of the present `chat`.

    `trust` is the most a caller is believed, whatever they say of the origin of their words; a door that a language
    model speaks through binds "agent".
    """

    owner: str = "me"
    chat: str | None = None
    trust: Trust = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation as it arrives."""

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
    """One piece of knowledge to remember; the fields are those of `Memory.remember`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory: an episode (something said) or a piece of knowledge (fact, procedure, opinion).

    `valid_from`/`valid_until` say when it holds in the world; `created_at`/`closed_at` when it was believed.
    `score` is the reinforcement score, within -10 and 10, `reinforced_at` when it was last raised. `key` is the store's
    own and means nothing outside.
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
    key: int = 0

    @property
    def is_live(self) -> bool:
        return self.closed_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An asserted link from one node to another. What follows from a session's order is not stored as edges."""

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

    `relation` is what it is to the owner ("wife"); `mention_count` how many live memories name it; `merged_into` the id
    of the entity that took its names and memories over.
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
    """What somebody is to somebody: `target` is the `predicate` of `source`, both by id; no source is the owner.

    `valid_from` is None where it was so as far back as is known; `evidence` holds the ids of memories that say so. The
    names are filled in where it is read.
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
    """Another entity that is named together with one, and in how many of the memories looked at."""

    name: str
    type: EntityType
    together: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of an entity. `facts` are knowledge about it and `mentions` what merely names it, best first;
    `first_seen` and `last_seen` span all that ever named it.
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
    """A name, and the memories about those who were called it, pass from one entity to another; ids."""

    alias: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation, from its first message on. `ended_at` is set when it is over."""

    id: str
    first_seen_at: datetime
    owner: str = ""
    chat: str = ""
    ended_at: datetime | None = None
    consolidated_at: datetime | None = None
    summary: str | None = None
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The end of a node's life, and why."""

    id: str
    at: datetime
    reason: ClosedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What waits for somebody's word: two facts of which `newer` came after `older` and may not hold beside it, or one
    that is held back.

    `kind` says what a rule made of them: "replaced" (it closed the older one), "conflict" (both are live, the newer
    one stands first in answers), "several" (values that often hold together), "same" (said twice, under two ids),
    "quarantine" (`newer` is in no answer until it is approved, for these `reasons`; `about` are the names it came
    with), "session" (`newer` is the first message of a conversation that could not be consolidated, for these
    `reasons`).
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
    """Somebody or something that became known: its names, what it is to the owner, and the memories that say so."""

    name: str
    type: EntityType = "person"
    aliases: tuple[str, ...] = ()
    relation: str | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """What somebody is said to be to another, by name: `target` is the `predicate` of `source`."""

    source: str
    predicate: str
    target: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """One thing a run did or would not do. `id` is of the memory it made or touched, `other` of the one that took its
    place, or that it stands beside; `text` is what it says, empty once it is gone; `evidence` holds the ids of the
    messages it rests on. What is "left" is a conversation that somebody else is just taking in; what is "kept"
    was not found again, and had been touched since. "looked" says how far a run has come, or what it was shown: what
    it need not be shown again.
    """

    what: RunItemKind
    id: str | None = None
    other: str | None = None
    text: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()


SUMMARY_MEMORY = "summary_memory"
"""Among an entity's attributes, the id of the memory that is its summary, where a model made it."""

BY_RULE = "rules"
"""What stands in a run where a model's name would, when there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a model, or the rules, made of conversations or of memories, as one unit: what it did, by which model and
    prompt, and what that took.

    `sessions` are the conversations it took in; `cost` is in the currency of the prices that are set, None without.
    A run of state "dry" or "failed" left nothing behind.
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
class RowId:
    """A row of one of the store's truth tables."""

    table: str
    key: tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowState:
    """A row as it shall be, column by column; None: it shall not be there. What an undo consists of."""

    row: RowId
    values: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One logical change: a plain value that can be printed, applied whole as one commit, and inverted.

    `put` holds nodes as they shall be, `sessions`, `reviews`, `put_entities` and `put_relations` likewise; `unlink`
    closes edges; `subjects` pairs a node's id with an entity it is about, `subject_names` adds the name that was used;
    `withhold` holds ids of memories that are not to be learnt again, `withheld_spans` pieces of added ones that answers
    leave out (id, start, length, by what they are withheld), `said_anew` what is withheld no more, by its number.
    `moved_subjects` holds (node, from, to), `associates` pairs of nodes' ids that proved useful together.
    `consolidated` are ids of episodes that have become knowledge, `runs` what is to be kept of runs.
    `rows` takes rows back to what they were, whatever they hold.
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

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Who makes a change and why. It is kept for ever and shown in `log`, so it holds no content."""

    actor: str
    origin: str
    reason: str
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A change that happened. `seq` orders everything in a store; clocks do not. `run_id`: the run it was part of."""

    seq: int
    at: datetime
    actor: str
    origin: str
    reason: str
    hash: str
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a memory was, up to the commit that changed it. The newest version is the present one."""

    content: str
    commit: Commit | None
    closed_at: datetime | None
    closed_reason: ClosedReason | None
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a memory came from, what became of it, and what will.

    `made` is the change that first recorded it (with its run), `sources` what it rests on; `supersedes` is what it took
    the place of, the latest first, `superseded_by` what took its, the first first. `retention` is what is left of it,
    from 0 to 1; once that is small, at `fades_at`, it sinks in rank or is closed, as `fading` says. At `ends_at` its
    time is over: somebody said how long to keep it, or its category does (`ends_by`); upkeep then closes it.
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
    """What one signal or factor gave one hit.

    Attributes:
        strategy: the signal's name.
        rank: the hit's place among all candidates by this signal alone, 1 for the best; None where the signal does not
            speak for it, and for what is no signal.
        raw: what the signal measured, or the factor.
        share: what that added to the score; the shares of a hit add up to its score.
    """

    strategy: str
    rank: int | None
    raw: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that answers a question. `score` is comparable within one search only.

    `evidence` holds the ids of the messages a derived memory rests on; `get` brings them.
    `trust` says whose word it is; `warnings` name what in it, where it is not the user's, reads like an order.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Where a memory stands in a search, or at which step it fell out of it.

    Attributes:
        stage: `unknown` (no such memory), `left out` (a condition, closed, expired), `not found` (no strategy gave it),
            `ranked below`, `not relevant` (where only what is relevant was asked for), or `found`.
        rank: among the candidates, 1 for the best, as far as it came.
    """

    id: str
    stage: Literal["unknown", "left out", "not found", "ranked below", "not relevant", "found"]
    detail: str
    rank: int | None = None
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Why a search answered as it did, built from the very numbers of the score.

    Attributes:
        under_floor: where only what is relevant was asked for: (id, relevance, reason) of the best that fell out; a
            relevance of 0 is what chance seldom reaches.
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
    """Hits, best first. `degraded` names each part that could not take its share in the answer."""

    hits: tuple[Hit, ...]
    intent: str = "general"
    complexity: str = "simple"
    degraded: tuple[str, ...] = ()
    trace: Trace | None = None

    @property
    def ids(self) -> list[str]:
        return [hit.id for hit in self.hits]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a listing, newest first; `cursor` asks for the next part and is None at the end."""

    nodes: tuple[Node, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What ended, the latest first, and how much did for which reason in all."""

    nodes: tuple[Node, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What a scope's memory holds, and how the store is doing. While it changes its embedder, `next_embedder` is
    the one that comes and `next_embedded` how many memories it has. `orphans` are memories that nothing links to
    anything: no conversation, nobody, no other memory.
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
    """Something `doctor` looked at: how it is, and what to do where it is not well."""

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
    """A file of a backup: how many bytes it has, and their hash in hexadecimal digits."""

    bytes: int
    blake2b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What a backup holds, as its manifest says: the moment, the schema, how many commits and rows, and its files.

    `head` is the hash of the last commit in hexadecimal digits; it stands for all before. `rows` counts each table.
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
        """In bytes."""
        return sum(file.bytes for file in self.files.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was brought back from a backup: where to, how it was found to be, and where lies what was there before."""

    location: str
    report: Report
    kept: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What of one kind an erasure removes: a type of memory, or "entity", "relation" or "session". Of very many only
    the first thousand are named.
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
        is_done: whether no byte of it is left in the store's files; never so for a dry run.
        out_of_reach: where it may still be, since no program can reach it from here.
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
        """How many memories, entities, relations and sessions."""
        return sum(each.count for each in self.erased)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weak:
    """A memory that is low in confidence, or has faded or will soon, or whose time is soon over.

    The fields are those of `Explanation`; `leaves_at` is when upkeep will close it, None where it stays; `why` says in
    words why it is listed.
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
    """A memory that upkeep closes, for which reason, and why in words."""

    node: Node
    reason: ClosedReason
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What upkeep took to the archive, or would with `dry_run`.

    `archived` counts by reason; `items` tells of the first 1,000. `live` is how much knowledge is left, `live_bytes`
    how long its texts are in UTF-8; `fits` says whether that is within `max_entries` and `max_size`. Each of `runs` can
    be undone as one, each of `commits` by itself.
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
    """A part of a night's work: what came of it, in words, and its report where it gave one."""

    name: str
    ok: bool
    detail: str
    report: ArchiveReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceReport:
    """What `maintain` did, step by step, in order. A step that failed does not keep the next from being done."""

    steps: tuple[Step, ...] = ()
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import found: memories read, added and known already, and what it could not use, with places.

    `messages` and `facts` are the two kinds of what was added; `people`, `relations` and `links` came with them;
    `sessions` counts the conversations in the file.
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
    """A line of a context: `id` is that of the memory or entity it tells of, `at` when that was, ISO 8601."""

    text: str
    id: str | None = None
    at: str = ""


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
        text: all of it as markdown, fenced; None where nothing in the memory concerns the prompt.
        tokens: how long it is, estimated; at most `budget`.
        complexity: of the prompt, `simple` or `complex`.
    """

    text: str | None
    tokens: int
    budget: int
    complexity: str
    sections: tuple[ContextSection, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all memories and entities it tells of."""
        return frozenset(line.id for section in self.sections for line in section.lines if line.id is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an export holds, and where it lies. `messages`, `closed` and `commits` are of a complete one alone."""

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
