"""The values that all packages share. Plain and frozen: they hold data and do not depend on stores or models.

Instants are aware `datetime`s here, Unix milliseconds in the store and ISO 8601 in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
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
ReviewKind = Literal["replaced", "conflict", "several", "same", "quarantine", "session", "merge"]
Decision = Literal["replace", "keep both", "keep old", "approve", "refuse"]
Trust = Literal["user", "agent", "import", "tool", "web"]
MemberRole = Literal["reader", "writer", "keeper", "none"]
"""The role of a member in a shared space, with ascending rights; "none" after leaving it."""
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
Judging = bool | Literal["if_known"]
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
"""A JSON object of the caller, returned unchanged. Ricordo reads only the documented keys."""

AGENT = "coding_agent"
"""The attribute of a message to or from a coding agent. Its value is the name of the agent."""

BY_AGENT = " (agent)"
"""The end of an author's name in the log if the owner's agent, or another caller with less trust, made the change."""

PROPOSED = "proposed"
"""The first reason of reviews of proposals. The second one is the proposed method, if it is not a new fact."""
PROPOSES = "proposes"
"""The attribute of a proposal that holds the method, the id of the memory and the arguments."""

MERGE = "merge:"
"""The prefix of the id of a review that proposes to merge two entities."""
DOCUMENT = "document:"
"""The prefix of the session of a document's passages. The id of the document follows."""

ROOT_ENDS = "/./"
"""The separator of watched folder and relative path in the source of a document, as in rsync."""

OPEN_TASK = "open-task"
"""The tag of a passage of a note with tasks that are open."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A caller: a person's own memory (`owner`), together with the group memory of the current `chat`.

    `trust` limits how much this caller's words are believed, whatever origin they claim. An interface used by a
    language model sets "agent". With `propose`, a caller changes nothing directly: memories it adds, corrects,
    updates or forgets wait in `staged`, and are in no answer until the user decides.

    `spaces` names the shared spaces that are also read; None means all of the owner's. Writes go to the owner's own
    memory or to `chat`, which may be a shared space. With `shares`, facts go to `chat` by default. `member` is
    internal: the owner whose membership permits work on `chat` alone.
    """

    owner: str = "me"
    _: KW_ONLY
    chat: str | None = None
    trust: Trust = "user"
    propose: bool = False
    spaces: tuple[str, ...] | None = None
    shares: bool = False
    member: str = ""

    @classmethod
    def of(cls, owner: str, chat: str) -> Scope:
        """Return the scope of an owner's own memory or of a chat, for background work."""
        return cls(owner=owner, chat=None, spaces=()) if owner else cls(owner="", chat=chat or None)

    @property
    def who(self) -> str:
        """The owner whose membership counts in shared spaces."""
        return self.owner or self.member

    @property
    def actor(self) -> str:
        """The author of this caller's changes as the log names it: the owner, and whether an agent did it."""
        who = self.owner or self.chat or ""
        return f"{who}{BY_AGENT}" if who and self.trust != "user" else who

    def chat_alone(self) -> Scope:
        """Return the scope of the current chat with the caller's membership, but without the caller's own memory."""
        if self.is_chat_itself:
            return self
        return Scope(owner="", chat=self.chat, spaces=(), member=self.who)

    @property
    def is_chat_itself(self) -> bool:
        """Whether this is background work on a chat rather than a caller in it."""
        return not self.owner and self.spaces is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a shared space. After leaving it, the role is "none".

    Attributes:
        changed_at: when the member got this role.
    """

    space: str
    owner: str
    role: MemberRole
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A shared space of which the caller is a member, with all its members."""

    name: str
    role: MemberRole
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to add to a conversation."""

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
    """An older fact that a new one replaced, or may make outdated.

    Attributes:
        is_closed: whether a rule replaced it; otherwise both stay until the user decides.
        review: the id of the review that asks about it, or that can reverse the replacement. None if the older fact is
            in another space than the new one: no review decides about two spaces; `forget` or `correct` ends it.
        space: the name of that other space; "" is the owner's own memory. None if both are in one space.
    """

    id: str
    content: str
    is_closed: bool
    review: str | None
    space: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Newer:
    """A newer fact that may make an older one outdated. Both stay until the user decides.

    Attributes:
        review: the id of the review that asks about it.
    """

    id: str
    content: str
    review: str


DOUBTS_SHOWN = 2
"""How many of the newer facts that may make a memory outdated are shown with it."""

_REPR_CHARS = 60


def _short(text: str) -> str:
    """Return the beginning of a text in quotes."""
    return repr(text if len(text) <= _REPR_CHARS else f"{text[: _REPR_CHARS - 1]}…")


def _html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table. Every value is escaped, because a memory may contain markup."""
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory: an episode (a message) or knowledge (a fact, procedure or opinion).

    Attributes:
        attributes: the caller's own; `dates` maps relative phrases in the text to dates.
        valid_from, valid_until: when it is true in the world.
        expires_at: when it expires; None for never.
        created_at, closed_at: the period in which it is believed.
        score: the reinforcement score, from -10 to 10.
        reinforced_at: when the score was last raised.
        outdates: the older facts that it replaced or may make outdated; set only in the result of storing it.
        notice: what the caller of a change should know: that it waits for approval and where that is decided, or what
            was removed from the text; of a memory listed as of an earlier time, that it is closed now, why and since
            when; of a fact about an entity, the newer fact that may make it outdated. Set only in the result of the
            call.
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
    notice: str = ""
    key: int = 0

    @property
    def is_live(self) -> bool:
        return self.closed_at is None

    @property
    def is_item(self) -> bool:
        """Whether a program stored it under a name, as `ricordo.integrations` does, and nobody said it anywhere."""
        return self.type == "episodic" and self.session is None and UPDATED_AT in self.attributes

    @property
    def is_title_page(self) -> bool:
        """Whether it describes a document, rather than being a passage of one."""
        is_of_document = self.session is not None and self.session.startswith(DOCUMENT)
        return is_of_document and "digest" in self.attributes and "place" not in self.attributes

    @property
    def reviews(self) -> tuple[Outdated, ...]:
        """The older facts that it may make outdated, each with the id of the review that asks about it."""
        return tuple(each for each in self.outdates if not each.is_closed)

    @property
    def place(self) -> str:
        """Its place in a document or an imported note, such as "handbook.pdf, page 12"; "" if it is from neither."""
        title, place = self.attributes.get("title"), self.attributes.get("place")
        if self.session is not None and self.session.startswith(DOCUMENT):
            title = title or self.session.removeprefix(DOCUMENT)
        elif self.type == "episodic" or self.origin != "import" or not (title and place):
            return ""
        return ", ".join(str(part) for part in (title, place) if part)

    def __repr__(self) -> str:
        """Return one line. `dataclasses.asdict` returns all fields."""
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
        relation: its relation to the owner, for example "wife".
        mention_count: number of live memories that name it.
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
    """A relation between entities: `target` is the `predicate` of `source`. Both are ids; no source means the owner.

    Attributes:
        valid_from: None if its beginning is unknown.
        evidence: ids of the memories that state it.
        source_name, target_name: set when the relation is read.
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
    """An entity that is named together with another one; `together` counts the memories that name both."""

    name: str
    type: EntityType
    together: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The knowledge about an entity.

    Attributes:
        id: "" for the owner as long as no entity has their name.
        relation: its relation to the owner, for example "wife"; "self" for the owner.
        facts: knowledge about it, best first, up to the limit of the call.
        fact_count: number of facts about it, shown or not. At most 200 are counted, or the limit if it is greater.
        mentions: memories that only name it, best first, up to the same limit.
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
    fact_count: int = 0


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
class Chat:
    """A chat, or the project of a coding agent: its live messages and facts, and when something last changed in it."""

    name: str
    messages: int
    facts: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A time for which a person is off the record: nothing that they say is stored.

    Attributes:
        chat: the only chat or project it is about; "" for all, and for what is said outside of any.
        session: the only session it is about; "" for all.
        ended_at: None while it lasts.
    """

    chat: str
    session: str
    begun_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session with its messages.

    Attributes:
        messages: number of live messages; `turns` are these messages in order, set if a single conversation is read.
        begun_at, last_at: times of the first and the last of them.
        summary: the summary, if the conversation is finished or was summarised.
        title: the title it was imported with.
        opening: the beginning of its first message, without forgotten parts, if it has neither title nor summary.
        key: that of its first message.
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
    title: str | None = None
    opening: str | None = None
    turns: tuple[Node, ...] = ()
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document whose passages are stored as memories.

    Attributes:
        version: the caller's name for this version; None if none was given.
        format: "pdf", "docx", "html", "markdown", "code", "mail" or "text".
        pages: number of pages; None for formats without pages.
        digest: SHA-256 of the file or text, in hexadecimal.
        source: the path within a watched folder, or the name of the file.
        passages: number of passages; `text` holds them in order, set if a single document is read.
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
    """The changes made by adding or removing a document.

    Attributes:
        added: new passages, which are embedded next.
        kept: passages that already existed, with their embeddings; `moved` is how many of them have a new place.
        removed: passages that were archived.
        knowledge: memories learnt only from the removed passages, archived with them.
        left_out: parts of the file that could not be read, such as attachments of mail.
        redacted: credentials that were replaced in what was added.
        erased: passages that were not stored, because all of their text was erased before. If there are no others,
            there is no document.
    """

    document: Document
    added: int = 0
    kept: int = 0
    moved: int = 0
    removed: int = 0
    knowledge: int = 0
    left_out: tuple[str, ...] = ()
    redacted: int = 0
    erased: int = 0

    @property
    def id(self) -> str:
        """The id of the document."""
        return self.document.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The end of a node's life, with the reason."""

    id: str
    at: datetime
    reason: ClosedReason


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field of a memory before and after a change, as text. `old` and `new` are "" for nothing."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A question for the user: two facts that may conflict, or an item in quarantine.

    Attributes:
        kind: the finding of a rule. "replaced": the rule closed the older fact. "conflict": both are live, and the
            newer one ranks first. "several": values that are often true together. "same": stored twice, under two ids.
            "quarantine": `newer` is in no answer until it is approved. "session": `newer` is the first message of a
            conversation that could not be consolidated. "merge": `entities` are probably one; `newer` says so, and is
            not stored.
        reasons: why it is quarantined, why consolidation failed, or why the entities are probably one.
        about: for quarantined facts, the names of their subjects.
        entities: the two to merge, the one to keep first.
        evidence: memories that show that they are one.
        by: who proposed or wrote what is in quarantine, as the log names authors.
        changes: what a proposal would change in `older`.
        commit: in the result of `resolve`, the number of the commit that carried out the decision, for `undo`. `newer`
            and `older` are then as the decision left them.
        settled: in the result of `resolve`, other open reviews that nothing is left to decide in, because one of their
            facts is closed now.
        opened: in the result of `resolve`, new reviews, of the fact that stays and what the closed one was compared
            with.
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
    entities: tuple[Entity, ...] = ()
    evidence: tuple[Node, ...] = ()
    by: str = ""
    changes: tuple[FieldChange, ...] = ()
    commit: int | None = None
    settled: tuple[Review, ...] = ()
    opened: tuple[Review, ...] = ()
    key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """A new entity: its names, its relation to the owner, and the memories that state it."""

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
    """One thing that a run did or refused to do.

    Attributes:
        what: "left": another process is consolidating the conversation. "kept": the replay did not find the memory
            again, but it was changed since. "looked": how far a run has come, or memories that the model has seen.
        id: the memory that was added or changed.
        other: the memory that replaced it, or that it conflicts with.
        text: the text of the memory; empty once it is gone.
        evidence: ids of the messages it is based on.
    """

    what: RunItemKind
    id: str | None = None
    other: str | None = None
    text: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()


GUESSED_TYPE = "guessed_type"
"""The attribute of an entity whose type was guessed. Later evidence, or an explicit type, corrects it."""

SELF = "self"
"""The relation in the profile of the owner."""

UPDATED_AT = "updated_at"
"""The attribute of an item of `ricordo.integrations` that says when it was last stored, ISO 8601."""
SUMMARY_MEMORY = "summary_memory"
"""The attribute of an entity with the id of the memory that holds its summary, if a model wrote one."""

BY_RULE = "rules"
"""The `model` of a run that used no model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a model, or of the rules, on conversations or memories, as one unit.

    Attributes:
        sessions: the conversations it consolidated.
        cost: in the currency of the configured prices; None without prices.
        state: "dry" and "failed" runs changed nothing; the changes of an "undone" run were reversed.
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
    """The use of a language model on one day for one owner or chat, including runs that failed or were undone.

    Attributes:
        day: in the user's time zone, ISO 8601.
        owner: "" for a chat; both are "" for days before calls were recorded by owner.
        tokens_in, tokens_out: of prompts and answers. For an interrupted call, the prompt is estimated.
        cost: in the currency of the configured prices; None without prices.
        runs: number of runs that asked the model.
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
    """A row of a table with source data of the store (not an index)."""

    table: str
    key: tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowState:
    """A row in the state in which an undo leaves it, by column; None removes it."""

    row: RowId
    values: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One logical change: a plain value that can be printed, applied completely as one commit, and inverted.

    Attributes:
        put: nodes in their new state; likewise `put_entities`, `put_relations`, `sessions`, `reviews`, `runs`.
        unlink: edges to close.
        subjects: (node id, id of an entity it is about).
        subject_names: (node id, entity id, name that was used).
        moved_subjects: (node id, from entity, to entity).
        associates: pairs of node ids that proved useful together.
        withhold: ids of memories that must not be learnt again.
        withheld_spans: parts of added texts to hide in answers: (id, start, length, number of the suppression).
        said_anew: numbers of suppressions that are lifted.
        consolidated: ids of episodes that became knowledge.
        rows: rows that an undo resets, of any table.
        kept_secrets: ids of added nodes whose credentials the owner keeps on purpose.
        members: members of shared spaces in their new state.
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
    members: tuple[Member, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, each.name) for each in fields(self))

    @property
    def is_waiting(self) -> bool:
        """Whether it only stores memories in quarantine, with their reviews."""
        rest = replace(self, add=(), reviews=())
        is_held = all(each.closed_reason == "quarantined" for each in self.add)
        return rest.is_empty and is_held and all(each.decision is None for each in self.reviews)

    def joined(self, other: Change) -> Change:
        """Return both changes as one, the rows of this one first."""
        return Change(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Who makes a change, and why. It is kept forever and shown in `log`, so it must not contain memory text."""

    actor: str
    origin: str
    reason: str
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A change that was made. `seq` orders everything in a store; clocks do not. `run_id` is the run it belongs to.
    `words`, set in a log and in the result of `undo`, names the memories it touched, with the texts that they had then.
    `is_repeat`, set in a log, says that what it stated was known before. `proposed_by`, set in a log and in histories,
    names the callers whose proposals it approved; they are the authors, and `actor` is who approved.
    """

    seq: int
    at: datetime
    actor: str
    origin: str
    reason: str
    hash: str
    run_id: str | None = None
    words: str = ""
    is_repeat: bool = False
    proposed_by: tuple[str, ...] = ()

    @property
    def author(self) -> str:
        """Who made the change, and who approved it if somebody else proposed it."""
        by = ", ".join(self.proposed_by)
        return f"{by}, approved by {self.actor}" if by else self.actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A memory in its state up to the commit that changed it. The newest version is the current one."""

    content: str
    commit: Commit | None
    closed_at: datetime | None
    closed_reason: ClosedReason | None
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The origin and the future of a memory.

    Attributes:
        made: the commit that first recorded it, with its run.
        sources: the memories it was derived from.
        supersedes: the memories it replaced, latest first.
        superseded_by: the memories that replaced it, earliest first.
        reviews: what is not decided about it and another fact, at most 20; () as of a past time.
        retention: how much of it is left, from 0 to 1.
        fades_at: when little of it is left; it then ranks lower or is closed, as `fading` says.
        ends_at: when it expires, by an explicit expiry or by the lifetime that follows from its text (`ends_by`).
        ends_why: for a lifetime, the date that was read in its text, and how long it is kept after that.
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
    ends_why: str = ""
    reviews: tuple[Review, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The contribution of one signal or factor to a hit.

    Attributes:
        strategy: the signal's name.
        rank: the hit's rank among all candidates by this signal alone, 1 for the best; None if it does not apply.
        raw: the measurement of the signal, or the factor.
        share: its contribution to the score; the shares of a hit add up to its score.
    """

    strategy: str
    rank: int | None
    raw: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory found by a search.

    Attributes:
        why: the parts of its score; `search(trace=True)` explains the complete search.
        score: comparable within one search only.
        excerpt: for a long memory, the passage that matched best, at most 1,000 characters.
        passage: the span [start, end) of the excerpt in `content`, in characters.
        evidence: ids of the messages that a derived memory is based on; `get` returns them.
        trust: how much its source is trusted.
        warnings: signs that it is an instruction, if it does not come from the user.
        place: its place in a document or an imported note, such as "handbook.pdf, page 12"; "" if it is from neither.
        space: the chat or shared space that contains it; "" for the owner's own memory.
        writer: who wrote a memory of a chat or space: who recorded a message; who corrected a fact last, else its
            speaker or who wrote in their name, else who recorded it.
        is_relevant: whether it is above the relevance floor; None if the search did not decide.
        doubted_by: the newer facts that may make it, or what was learnt from it, outdated, latest first.
        notice: of a memory of an earlier time, why and since when it is closed: "forgotten since 2026-03-01"; of a
            message from which a fact was learnt, what replaced the fact: "since changed: “I live in Bristol”".
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
    passage: tuple[int, int] = (0, 0)
    place: str = ""
    space: str = ""
    writer: str = ""
    is_relevant: bool | None = None
    doubted_by: tuple[Newer, ...] = ()
    notice: str = ""

    def __repr__(self) -> str:
        """Return one line, so that a list of hits stays readable despite the many fields."""
        return f"<Hit {self.handle} {self.score:.3f} {_short(self.content)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """The rank of a memory in a search, or the stage at which it was dropped.

    Attributes:
        stage: `unknown` (no such memory), `left out` (a filter, closed, expired), `not found` (no strategy returned
            it), `ranked below`, `not relevant` (below the relevance floor), or `found`.
        rank: the rank among the candidates that it reached, 1 for the best.
    """

    id: str
    stage: Literal["unknown", "left out", "not found", "ranked below", "not relevant", "found"]
    detail: str
    rank: int | None = None
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The explanation of a search result, from the same numbers as the score.

    Attributes:
        under_floor: with `only_relevant`, (id, relevance, reason) of the best hits that were left out. Unrelated
            questions seldom reach a relevance of 0.
    """

    terms: tuple[str, ...]
    ignored_terms: tuple[str, ...]
    interval: str
    candidates: Mapping[str, int]
    timings_ms: Mapping[str, float]
    hits: tuple[tuple[str, tuple[Share, ...]], ...]
    absence: Absence | None = None
    under_floor: tuple[tuple[str, float, str], ...] = ()


class ReceiptId(str):
    """The id of a receipt: text, which is also its attribute `id`."""

    __slots__ = ()

    @property
    def id(self) -> str:
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: Callable[[object], Any]) -> Any:
        """Describe it as text in the schemas of interfaces."""
        return handler(str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Hits, best first. `degraded` names the parts that could not contribute to the answer; `receipt.id` is the id of
    the receipt, and `receipt` is None if the search left none.
    """

    hits: tuple[Hit, ...]
    intent: str = "general"
    complexity: str = "simple"
    degraded: tuple[str, ...] = ()
    trace: Trace | None = None
    receipt: ReceiptId | None = None

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
        """Return a hit, or the hits of a slice."""
        return self.hits[place]

    def __repr__(self) -> str:
        """Return one line per hit."""
        lines = "".join(f"\n  {hit!r}" for hit in self.hits)
        return f"<Results, {len(self.hits)} hit{'' if len(self.hits) == 1 else 's'}{':' if lines else ''}{lines}>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return _html_table(
            ("score", "memory", "kind", "about", "when", "id"),
            [
                (
                    f"{hit.score:.3f}",
                    f"{who}: {hit.excerpt}" if (who := hit.place or hit.speaker) else hit.excerpt,
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
    """Part of a listing, last recorded first. `cursor` is the argument for the next part; None at the end. `total` is
    the number of all; None in a later part.
    """

    nodes: tuple[Node, ...]
    cursor: str | None = None
    total: int | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __repr__(self) -> str:
        """Return one line per memory."""
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
        orphans: memories without links: no session, no entity, no other memory.
        next_embedder, next_embedded: while the embedder changes, the new one and the number of memories it has
            embedded.
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
    """One check of `doctor`: its result, and the remedy if it failed."""

    check: str
    ok: bool
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of an upkeep task."""

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
    """A restored backup: its location, the report of the check, and where the replaced store was kept.

    Attributes:
        returned: ids of memories that the replaced store had erased, and that the backup brought back; None if the
            replaced store cannot be read. Erase them again. Empty if no store was replaced.
        scopes: by each of these ids, whose memory it is.
    """

    location: str
    report: Report
    kept: str | None = None
    returned: tuple[str, ...] | None = ()
    scopes: Mapping[str, Scope] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """A store whose key was changed. `left` are files next to it that were not changed: old copies, rejected lines."""

    location: str
    is_encrypted: bool
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """The rows that an erasure removes: a type of memory, "entity", "relation" or "session", with at most 1,000 ids.
    "name" is that of an owner who has nothing but changes in groups.
    """

    kind: str
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBack:
    """Data that an erasure keeps, with the reason."""

    why: str
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReport:
    """The data that an erasure removed, or would remove.

    Attributes:
        is_done: whether no byte of the data is left in the store's files; never true for a dry run.
        out_of_reach: where copies may remain that no program can reach from here.
        document: the title of the document, if one was asked for; of a file in a watched folder, its path there.
        bytes_before, bytes_after: the size of the store's file.
    """

    dry_run: bool
    erased: tuple[Erased, ...]
    kept: tuple[KeptBack, ...]
    out_of_reach: tuple[str, ...]
    document: str | None = None
    is_done: bool = False
    bytes_before: int = 0
    bytes_after: int = 0

    @property
    def count(self) -> int:
        """The number of memories, entities, relations and sessions."""
        return sum(each.count for each in self.erased)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkReport:
    """The effect of a change of many memories, or of its dry run.

    Attributes:
        count: number of memories it changes; the real run can require this number (`expect`).
        sample: the latest of them, at most 10, before they are forgotten or after they are updated.
        protected: number of memories kept because they are about a protected entity.
        unchanged: number of memories that need no change.
        concluded: number of reflections and summaries closed because they are based on forgotten memories.
        commit: the number of the commit, for `undo`; None if nothing was changed.
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
    """The result of an exchange with another device.

    Attributes:
        sent: commits that the other device did not have.
        received: commits of other devices that were missing here.
        to_review: resulting open reviews.
        erased: rows that another device had erased and that were now erased here.
        chats: the chats that were exchanged besides the owner's own memory.
        left_out: files that could not be used, with reasons; they are tried again next time. Also shared spaces that
            only their keepers exchange.
    """

    dry_run: bool
    sent: int
    received: int
    to_review: int = 0
    erased: int = 0
    chats: tuple[str, ...] = ()
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
    """A memory that upkeep closes, with the reason, also in words."""

    node: Node
    reason: ClosedReason
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """The memories that upkeep archived or, with `dry_run`, would archive.

    Attributes:
        archived: counts by reason.
        items: the first 1,000 memories.
        live, live_bytes: number of remaining memories, and the size of their texts in UTF-8.
        fits: whether that is within `max_entries` and `max_size`.
        runs, commits: ids for `undo`; each run and each commit can be undone.
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
    """A step of maintenance: its result in words, and its report, if any."""

    name: str
    ok: bool
    detail: str
    report: ArchiveReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceReport:
    """The results of `maintain`, step by step. A failed step does not stop the next one."""

    steps: tuple[Step, ...] = ()
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPart:
    """A file of an imported folder: its name, its format, the number of memories read from it, and when the earliest
    and the latest of them were said, as far as the file dates them.
    """

    name: str
    format: str
    read: int
    first_at: datetime | None = None
    last_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSpeaker:
    """A name in imported chats, and the number of messages under it."""

    name: str
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """Counts of what an import read, added, already knew and refused, with places in the file.

    Attributes:
        messages, facts, passages: the kinds of memories added; passages are those of documents and mail.
        people, relations, links: entities and connections added with them.
        sessions: conversations in the file.
        skipped: for each file, its lines that hold nothing to import, such as summaries in the log of a coding agent.
        parts: what was read from each file of a folder of separate exports.
        speakers: the names in the file, those with most messages first, at most 100.
        me: those of them that were taken as the owner's.
        named_before: those of `me` under which an earlier import stored messages, with their number. These stay as they
            are: to take them as the owner's, undo that import and repeat it.
        earlier: the numbers of changes by which `undo` takes these imports back.
        not_found: the names given as the owner's that no speaker has.
        completed: tasks known already that are done now, as their boxes are ticked in the file.
        redacted: credentials that were replaced in what was added. The setting `secrets` can keep them.
        time_zone: the time zone in which times without one were read; "" if there were none.
        first_at, last_at: when the earliest and the latest message or fact was said, of those that the file dates.
        undecided_dates: for each file in which no date decides whether the day comes first, a date and how it is read.
        chat: the chat or space whose members can read what was added; "" if only the owner can.
        dry_run: nothing was stored: `added` and its kinds count what would be, without relations and links.
    """

    format: str = ""
    read: int = 0
    added: int = 0
    known: int = 0
    messages: int = 0
    facts: int = 0
    passages: int = 0
    people: int = 0
    relations: int = 0
    links: int = 0
    refused: tuple[str, ...] = ()
    refused_count: int = 0
    skipped: tuple[str, ...] = ()
    sessions: int = 0
    parts: tuple[ImportPart, ...] = ()
    speakers: tuple[ImportSpeaker, ...] = ()
    me: tuple[ImportSpeaker, ...] = ()
    named_before: tuple[ImportSpeaker, ...] = ()
    earlier: tuple[int, ...] = ()
    not_found: tuple[str, ...] = ()
    completed: int = 0
    redacted: int = 0
    time_zone: str = ""
    first_at: datetime | None = None
    last_at: datetime | None = None
    undecided_dates: tuple[str, ...] = ()
    chat: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLine:
    """A line of a context: its text, the id of its memory or entity, and its time in ISO 8601."""

    text: str
    id: str | None = None
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSentence:
    """A sentence of an answer.

    Attributes:
        ids: ids of the memories that support it.
        support: `stated` if a memory says exactly that; `drawn` if it is worded differently and must be compared.
    """

    text: str
    ids: tuple[str, ...]
    support: Literal["stated", "drawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Ids of two contradicting memories, if it is not decided which one is right."""

    newer: str
    older: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of the memories to a question.

    Attributes:
        text: its sentences; "" if the memories do not answer the question.
        known: whether the memories answer the question.
        hits: the memories that were read, best first.
        contradictions: contradictions among these memories.
        model: the language model that wrote it; None if the sentences are the best passages, verbatim.
        cut: number of the model's sentences dropped because no memory supports them.
        degraded: why the model was not used, if it failed.
        receipt: the receipt of its search (`receipt.id`); None if it left none.
    """

    text: str = ""
    known: bool = False
    sentences: tuple[AnswerSentence, ...] = ()
    hits: tuple[Hit, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    model: str | None = None
    cut: int = 0
    degraded: tuple[str, ...] = ()
    receipt: ReceiptId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReason:
    """Why the answer to a standing question may be outdated.

    Attributes:
        why: why the memory was closed since; or "changed"; "new" for a further memory with an answer that was added,
            corrected or restored; "hidden" if it may no longer be shown. Without a memory: "unanswered", "time" if the
            period in the question now refers to other days, "model" if a language model can now answer.
        id: the memory.
        commit: the change that made the difference.
    """

    why: ClosedReason | Literal["changed", "new", "hidden", "unanswered", "time", "model"]
    id: str | None = None
    commit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingQuestion:
    """A stored question, with its latest answer.

    Attributes:
        chat: where it was stored; "" outside any chat.
        limit: maximum number of memories read for the answer.
        answer: without `hits`; None if it is not yet answered, or something was erased since.
        answered_at: when the answer was made.
        commit: the last commit visible to the answer.
        rests_on: the ids of the memories that were read.
        stale: why the answer is stale; empty if it is fresh.
    """

    id: str
    question: str
    chat: str = ""
    limit: int = 12
    answer: Answer | None = None
    answered_at: datetime | None = None
    commit: int = 0
    rests_on: tuple[str, ...] = ()
    stale: tuple[StaleReason, ...] = ()

    @property
    def is_fresh(self) -> bool:
        return not self.stale


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
        text: the complete context as fenced Markdown; None if no memory is relevant to the prompt, or no line fits into
            the budget.
        tokens: its estimated length; at most `budget`.
        left_out: number of lines that did not fit into the budget.
        complexity: the complexity of the prompt, `simple` or `complex`.
        receipt: its receipt (`receipt.id`); None if it left none.
    """

    text: str | None
    tokens: int
    budget: int
    complexity: str
    sections: tuple[ContextSection, ...] = ()
    receipt: ReceiptId | None = None
    left_out: int = 0

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all memories and entities in it."""
        return frozenset(line.id for section in self.sections for line in section.lines if line.id is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A memory in an answer, by its id: a receipt copies no text.

    Attributes:
        score: its score in that answer; None for context lines that are not hits.
        why: the parts of the score.
        section: its section of the context; "" in a search.
    """

    id: str
    score: float | None = None
    why: tuple[Share, ...] = ()
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A memory that almost was in an answer, with the reason why it is not."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The record of an answer: its contents, its caller, and the reasons.

    Attributes:
        verb: "search", "query", "context" or "ask".
        question: the text of the question; None if it was erased, because it revealed something erased.
        asked: the other arguments, if they differ from the defaults.
        owner, chat, trust: the caller.
        commit: the last commit visible to the caller; 0 before the first.
        setup: what ranking depended on besides the memories: version, embedder, reranker, settings; and what could not
            contribute.
        given: the contents, best first.
        left_out: the best omitted memories, at most 10.
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
        text: the complete briefing as fenced Markdown; None if there are no memories, or no line fits into the budget.
        tokens: its estimated length; at most `budget`.
        left_out: number of lines that did not fit into the budget.
        seq: the number of the latest commit; pass it as `since` to start the next briefing there.
        model: the language model that wrote it; None if the lines are the memories themselves.
        cut: number of the model's lines dropped because no memory supports them.
        degraded: why the model was not used, if it failed.
    """

    text: str | None
    tokens: int
    budget: int
    seq: int
    sections: tuple[ContextSection, ...] = ()
    model: str | None = None
    cut: int = 0
    degraded: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all memories and entities in it."""
        return frozenset(line.id for section in self.sections for line in section.lines if line.id is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDifference:
    """The difference of one memory between two answers to the same question.

    Attributes:
        what: "gone", "new", "moved" to another rank or section, or "scored" by other shares at the same rank.
        shares: the signals whose share changed.
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
    """The question of a receipt, answered again as of its commit and today, both with the receipt's time as now.

    Attributes:
        then: the answer as of the receipt's commit; equal to the receipt if nothing outside the commits has changed.
        today: the answer from today's memories.
        differs_from_receipt: the differences between the receipt and `then`.
        differs_today: the differences between `then` and `today`.
        commits: the commits that cause the differences between `then` and `today`, oldest first.
        reasons: causes outside the commits that may explain a difference from the receipt: another version or embedder,
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
    """The contents and the path of an export. `messages`, `closed` and `commits` are set for a complete export only."""

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
