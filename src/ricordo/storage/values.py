"""Plain values that cross the storage port. They hold data and depend on no backend."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ricordo.errors import InvalidError
from ricordo.model import Category, EdgeType, Entity, Json, Node, NodeType, Origin, Role, Trust
from ricordo.text.analyzer import name_key
from ricordo.text.canonical import is_owner
from ricordo.text.change import denies
from ricordo.text.languages import languages_of
from ricordo.text.names import Likeness
from ricordo.text.relations import is_persons_word
from ricordo.text.reported import reporter
from ricordo.text.sentences import Sentence, sentences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STANDING = "standing"
"""The verb of receipts that are standing questions: age does not delete them, and `setup` holds the latest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The entities that a name may mean, oldest first, and how they matched: by letters, by inflection, by sound, or by
    their relation to the owner. With more than one entity, the name is ambiguous.
    """

    entities: tuple[Entity, ...] = ()
    by: Likeness | str = ""

    @property
    def is_clear(self) -> bool:
        return len(self.entities) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """The properties of a memory that are needed to choose among an entity's memories."""

    key: int
    type: str
    confidence: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A conversation with messages that are not consolidated; `session` is None for messages outside any session."""

    owner: str
    chat: str
    session: str | None
    messages: int
    last_said_at: datetime
    last_added_at: datetime
    ended_at: datetime | None

    def is_over(self, *, quiet_since: datetime) -> bool:
        """Return whether it was ended, or nothing was said in it or added to it since `quiet_since`."""
        return self.ended_at is not None or max(self.last_added_at, self.last_said_at) < quiet_since


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A conversation that could not be consolidated, the number of attempts, and the reason of the last failure."""

    owner: str
    chat: str
    session: str | None
    tries: int
    at: datetime
    reason: str


class Near(NamedTuple):
    """A memory linked to an entity."""

    key: int
    shelf: str
    confidence: float
    score: float


class Step(NamedTuple):
    """A memory one step from another (`origin`), and the strength of their link, between 0 and 1."""

    key: int
    shelf: str
    origin: int
    weight: float


class Usage(NamedTuple):
    """How often a memory was shown, and when last (Unix milliseconds)."""

    shown: int
    last_access: int


class Kinds(NamedTuple):
    """Whether a store has links of a kind: causes, associates, versions of one memory, facts with a canonical line."""

    causal: bool
    associates: bool
    versions: bool
    lines: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkText:
    """The text of a node and who said it when (`at`, Unix milliseconds), for finding mentions in it."""

    key: int
    text: str
    role: Role | None
    origin: Origin
    speaker: str | None
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationHolder:
    """An entity's relation to the owner, and its period (Unix milliseconds). `whole` is what it is merged into."""

    predicate: str
    entity: int
    whole: int
    start: int | None
    end: int | None


ModelState = Literal["active", "coming", "retiring"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """A vector space of the store. `spec` rebuilds its embedder; it is "" if the caller passed the embedder."""

    key: int
    name: str
    dimension: int
    spec: str
    state: ModelState


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """Facts, earliest first; entities by id; relations as ids: (source or None for the owner, predicate, target)."""

    facts: Sequence[Node]
    entities: Mapping[str, Entity]
    relations: Sequence[tuple[str | None, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All memories in the order they were recorded, closed ones too; all entities; relations and edges as ids."""

    nodes: Sequence[Node]
    entities: Sequence[Entity]
    relations: Sequence[tuple[str | None, str, str]]
    edges: Sequence[tuple[str, EdgeType, str]]


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "exists")
"""Operators on one attribute. All but `exists` are false if the attribute is missing."""
COMBINATIONS = ("and", "or", "not")


def has_operators(where: Json) -> bool:
    """Return whether a condition on attributes uses operators, and not only given values."""
    return any(isinstance(wanted, Mapping | list | tuple) for wanted in where.values())


def holds(attributes: Json, where: Json) -> bool:
    """Return whether attributes meet a condition. Pure. Types must match; text is compared by code points."""
    return all(_holds(attributes, name, wanted) for name, wanted in where.items())


def _holds(attributes: Json, name: str, wanted: Any) -> bool:
    if name == "not" and isinstance(wanted, Mapping):
        return not holds(attributes, wanted)
    if name in COMBINATIONS and isinstance(wanted, list | tuple):
        met = (holds(attributes, each) for each in wanted)
        return all(met) if name == "and" else any(met)
    if not isinstance(wanted, Mapping):
        return name in attributes and _is_same(attributes[name], wanted)
    if "exists" in wanted and (name in attributes) != wanted["exists"]:
        return False
    asked = [(each, value) for each, value in wanted.items() if each != "exists"]
    return not asked or (name in attributes and all(_compares(attributes[name], *each) for each in asked))


def _compares(held: Any, operator: str, value: Any) -> bool:
    match operator:
        case "eq" | "ne":
            return _is_same(held, value) == (operator == "eq")
        case "in":
            return any(_is_same(held, each) for each in value)
        case "contains" if isinstance(held, list):
            return any(_is_same(each, value) for each in held)
        case "contains":
            return isinstance(held, str) and isinstance(value, str) and value.casefold() in held.casefold()
    if not _are_ordered(held, value):
        return False
    met = {"lt": held < value, "le": held <= value, "gt": held > value, "ge": held >= value}
    return bool(met[operator])


def _is_same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _are_ordered(one: Any, other: Any) -> bool:
    """Return whether both are text, or both are numbers and not booleans."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other))


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a query will read, as far as this is known ahead. A server is asked for it as the snapshot begins.

    Attributes:
        about: a text whose names the query looks up.
        terms: the index terms that the query looks up.
        replaced: those by which it looks for replaced facts.
        interval: the span whose memories the query looks up, if it has no other conditions: [start, end) in Unix
            milliseconds.
        first: what the query reads first if something was written since, one statement each.
        names: folded names of entities that the query reads.
    """

    about: str = ""
    terms: Sequence[str] = ()
    replaced: Sequence[str] = ()
    interval: tuple[int, int] | None = None
    first: Sequence[Callable[[Any], object]] = ()
    names: Sequence[str] = ()


NOTHING_FORESEEN = Foreseen()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions that must all be met. Instants are Unix milliseconds; `after` is inclusive, `before` exclusive."""

    types: tuple[NodeType, ...] = ()
    shelves: tuple[str, ...] = ("k", "e", "c")
    categories: tuple[Category, ...] = ()
    entity: int | None = None
    tags: tuple[str, ...] = ()
    where: Json | None = None
    session: str | None = None
    after: int | None = None
    before: int | None = None
    archived: bool = False


class Weights(NamedTuple):
    """Properties of a memory other than its words. Instants are Unix milliseconds; `since` is when it was last
    confirmed or learnt; `reads_like_an_order` is set by ranking.
    """

    confidence: float
    score: float
    since: int
    expires_at: int | None
    is_live: bool
    trust: Trust = "user"
    reads_like_an_order: bool = False


ErasureKind = Literal["memory", "session", "entity", "owner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureTargets:
    """What to erase, as keys. An owner's space (0: none) is erased with its content; of `summarised` rows (table, key),
    only the summary is erased; `former` lists (row, commit that replaced it) of old versions to erase.
    """

    kind: ErasureKind
    space: int
    nodes: tuple[int, ...] = ()
    entities: tuple[int, ...] = ()
    relations: tuple[int, ...] = ()
    sessions: tuple[int, ...] = ()
    whole_space: bool = False
    owner: str = ""
    summarised: tuple[tuple[str, int], ...] = ()
    former: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneRow:
    """A row that exists only in the history, since its addition was undone.

    Attributes:
        key: that of the row. It is never given to another row.
        space: the space of the row.
        versions: its values in each version, as column to value; lists and attributes are JSON.
        linked: keys of what a memory referred to, by kind: `about` (entities), `derived_from` and the other types of
            edges (memories).
        names: all names of an entity.
        origin: the origin of the commit that made it.
    """

    key: int
    space: int
    versions: tuple[Image, ...]
    linked: Mapping[str, frozenset[int]]
    names: frozenset[str]
    origin: str

    def values(self, column: str) -> frozenset[Any]:
        """Return the values of a column in all versions."""
        return frozenset(each[column] for each in self.versions)

    @property
    def text(self) -> str:
        """All text of a memory, in all versions."""
        columns = ("content", "speaker", "tags", "attributes")
        return "\n".join(str(each[name] or "") for each in self.versions for name in columns)


Undone = Mapping[str, Sequence[UndoneRow]]
"""By table (nodes, sessions, entities and relations), the rows that exist only in the history, by ascending key."""


def undone_rows(
    images: Mapping[str, Sequence[Image]],
    links: Iterable[tuple[int, str, int]],
    names: Iterable[tuple[int, str]],
    *,
    origin: Callable[[int], str],
) -> Undone:
    """Put together what the history holds of rows that no longer exist.

    Args:
        images: by table, the versions of such rows, oldest first.
        links: (memory, kind of link, what it leads to), also of other memories.
        names: (entity, name), also of other entities.
        origin: returns the origin of a commit.
    """
    linked: dict[int, dict[str, set[int]]] = {}
    for node, kind, target in links:
        linked.setdefault(node, {}).setdefault(kind, set()).add(target)
    named: dict[int, set[str]] = {}
    for entity, name in names:
        named.setdefault(entity, set()).add(name)
    found: dict[Any, list[UndoneRow]] = {}
    for table, rows in images.items():
        versions: dict[int, list[Image]] = {}
        for image in rows:
            versions.setdefault(image["key"], []).append(image)
        found[table] = [
            UndoneRow(
                key=key,
                space=known[0]["space"],
                versions=tuple(known),
                linked={kind: frozenset(each) for kind, each in linked.get(key, {}).items()}
                if table == "nodes"
                else {},
                names=frozenset(named.get(key, ())) if table == "entities" else frozenset(),
                origin=origin(min(each["commit_seq"] for each in known)),
            )
            for key, known in sorted(versions.items())
        ]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The scores that prompts unrelated to the memory reach. Relevance is measured in these units.

    Attributes:
        model: key of the embedding model; 0 for words alone.
        count: number of memories at the time of measuring.
        middle: for each measure, the median of the best scores.
        spread: for each measure, their standard deviation.
        chance: median of the best weighted sums in these units. It is seldom 0, because the best memory by one
            measure may score nothing by another.
    """

    model: int
    count: int
    middle: tuple[float, ...]
    spread: tuple[float, ...]
    chance: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """What a commit changed, without content, for programs that keep data derived from the store.

    Args:
        commit: its number. Numbers have no gaps.
        owner, chat: the space under which `log` lists it.
        kinds: the truth tables whose rows it wrote, altered or removed ("nodes", "edges", "entities", "runs", ...),
            without rows that were erased since.
    """

    commit: int
    owner: str
    chat: str
    actor: str
    origin: str
    kinds: frozenset[str]


class When(NamedTuple):
    """A point in the past: a commit's number, or an instant in Unix milliseconds."""

    commit: int | None = None
    at: int = 0


class FormerText(NamedTuple):
    """The text of a node that a search reads."""

    content: str
    speaker: str | None
    tags: str
    space: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVectors:
    """A node's vector, those of its passages if it has several, and those of its words, all made from `content`.

    The words of each passage except the first follow a separator: a row of zeros in `words`, and a piece for it.
    """

    key: int
    content: str
    vector: NDArray[np.float32]
    passages: NDArray[np.float32] | None = None
    pieces: tuple[str, ...] = ()
    words: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The result of cleaning. It is not done while another process reads: its log then still holds erased bytes."""

    is_done: bool
    bytes_before: int
    bytes_after: int


Image = Mapping[str, Any]
"""A complete row: column to value, including its commit and its seal."""


_WRITTEN = frozenset(("commit_seq", "seal"))


def content(image: Image | None) -> Image | None:
    """Return the content of a row, without the commit that wrote it and its seal."""
    return None if image is None else {name: value for name, value in image.items() if name not in _WRITTEN}


def evidence_in(image: Image) -> tuple[str, ...]:
    """Return the ids of the memories that state a row. A database stores them as JSON."""
    found = image["evidence"]
    return tuple(json.loads(found) if isinstance(found, str) else found)


def with_evidence(image: Image, ids: Sequence[str]) -> Image:
    """Return a row stated by other memories, in the form in which it is stored."""
    is_text = isinstance(image["evidence"], str)
    return {**image, "evidence": json.dumps(ids, ensure_ascii=False, separators=(",", ":")) if is_text else tuple(ids)}


class OpenErasure(NamedTuple):
    """An erasure that is not finished: some of its rows still exist ("rows"), or only their bytes do ("bytes")."""

    number: int
    space: int
    kind: str
    at: int
    state: Literal["rows", "bytes"]


class Derived(NamedTuple):
    """A memory that was derived from others.

    Attributes:
        sources: the number of memories it was derived from.
        matching: how many of these are among the ones asked about.
        origin: the origin of the commit that made it.
    """

    key: int
    sources: int
    matching: int
    origin: str
    id: str

    @property
    def rests_alone(self) -> bool:
        """Whether it was derived only from the memories asked about. What the user stated does not depend on them."""
        return self.sources == self.matching and self.origin not in ("remember", "correct")


class Unembedded(NamedTuple):
    """A node that has no vector of some model yet."""

    key: int
    content: str
    speaker: str | None


class LearntFact(NamedTuple):
    """A memory that was learnt before, by its id."""

    id: str
    is_live: bool


class ClosedFact(NamedTuple):
    """A fact that the user forgot or rejected. `closed_at` is in Unix milliseconds; `is_same` is whether it says the
    same as the statement that was asked about.
    """

    content: str
    closed_at: int
    is_same: bool


class KnownName(NamedTuple):
    """A name, the key of the entity that has it now, and the attributes of the entity it was given to, as JSON."""

    name: str
    entity: int
    attributes: str


class SubjectUse(NamedTuple):
    """A memory about an entity (its id and content), and the folded name it used for it; "" if that is not known."""

    node_id: str
    name: str
    content: str


class MessagePairs(NamedTuple):
    """Pairs of consecutive messages (keys, the earlier first), and the key of the last message examined."""

    pairs: tuple[tuple[int, int], ...]
    through: int


MIN_GLOBAL_WORDS = 3
"""A sentence with fewer words is too general to suppress outside its own session."""


_MARK = " "
"""Begins what is no word in a set of words: how to recognise a text besides its words."""
_DENIES = f"{_MARK}not"
NOBODY = ""
"""The voice of an assistant, a tool or a page, which may repeat what anybody said."""


def words_said(sentence: Sentence) -> frozenset[str]:
    """Return how a sentence is recognised: by its content words, and by whether it denies."""
    is_denied = denies(sentence.text, languages_of(sentence.text))
    return sentence.words | {_DENIES} if is_denied else sentence.words


def in_voice(words: frozenset[str], voice: str) -> frozenset[str]:
    """Return how a sentence is recognised if it is said in a voice."""
    return words | {f"{_MARK}by {voice}"}


def in_voices(sentence: Sentence, voices: Iterable[str]) -> Iterator[frozenset[str]]:
    """Yield how a sentence is recognised if it may be said in some voices, or in any.

    Nobody's denial still tells what was said: "You are allergic to nuts, are you not?"
    """
    words = words_said(sentence)
    for said in (sentence.words, sentence.words | {_DENIES}) if NOBODY in (voices := tuple(voices)) else (words,):
        yield said
        yield from (in_voice(said, voice) for voice in voices)


def is_mark(word: str) -> bool:
    """Return whether an element of `words_said` is no word. A sentence without it is another one."""
    return word.startswith(_MARK)


def voices_of_message(speaker: str | None, role: Role | None, origin: Origin, *, owner: str) -> tuple[str, ...]:
    """Return who said a message, if that is a person with a name: what others say in the same words is not the same.

    Each word of the name is a voice, since people are called Tom in one export and Tom Krell in the next. There is none
    for the owner, who may also have spoken under a name, and for what no person said.
    """
    return _voices(speaker, owner=owner) if is_persons_word(role, origin) else ()


def voices_of(node: Node) -> tuple[str, ...]:
    """Return who said a memory, as the voices of `voices_of_message`."""
    if node.type != "episodic":
        return _voices(node.speaker, owner=node.owner)
    return voices_of_message(node.speaker, node.role, node.origin, owner=node.owner)


def _voices(speaker: str | None, *, owner: str) -> tuple[str, ...]:
    return voices_of_name(speaker) if speaker and not is_owner(speaker, owner) else ()


def voices_of_name(name: str) -> tuple[str, ...]:
    """Return the words of a name, in which letter case makes no difference. Who wrote in a member's name is one voice,
    so that what they made the member say is not withheld from that member.
    """
    said = name_key(name)
    return (said,) if reporter(name) else tuple(dict.fromkeys(said.split()))


def voices_in(image: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the voices in which the text of a row may have been withheld."""
    return NOBODY, *voices_of_name(image["speaker"] or "")


class Match(NamedTuple):
    """A suppressed sentence in a text, the number of its suppression, and whether it was erased, not forgotten."""

    sentence: Sentence
    withheld: int
    is_erased: bool


class Withhold(NamedTuple):
    """A sentence to suppress.

    Attributes:
        cause: key of the memory that was forgotten or erased.
        words: the sentence as `words_said` returns it.
        voices: `voices_of` what says it.
        session: where it was said, if anywhere.
        is_bound: whether it is suppressed in its session only.
        is_shared: whether it is suppressed only as long as the other sentences of its cause are.
        spans: (node key, start, length) of the texts that say it.
    """

    cause: int
    words: frozenset[str]
    voices: tuple[str, ...]
    session: str | None
    is_bound: bool
    is_erased: bool
    is_shared: bool
    spans: tuple[tuple[int, int, int], ...] = ()

    @property
    def readings(self) -> tuple[frozenset[str], ...]:
        """How it is recognised: in any voice, or in those of its speaker and of nobody."""
        return tuple(in_voice(self.words, each) for each in (*self.voices, NOBODY)) if self.voices else (self.words,)


def check_encodable(text: str, *, name: str) -> None:
    """Raise InvalidError if the text has an unpaired surrogate, which databases and JSON cannot store."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(
            f"{name} has an unpaired surrogate at character {error.start}",
            hint="decode the bytes it came from with errors='replace'",
        ) from error


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, such as a query: its values, and the keys of nested mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
            if isinstance(each, Mapping):
                yield from map(str, each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)


def of_text(node: Node, *, is_erased: bool, spans: bool) -> list[Withhold]:
    """Return the sentences of a memory to suppress, in every session; a short sentence of a message only in its own.

    Args:
        spans: also hide them in the memory's own text.
    """
    is_fact = node.type != "episodic"
    return [
        Withhold(
            cause=node.key,
            words=words_said(each),
            voices=voices_of(node),
            session=node.session,
            is_bound=not is_fact and len(each.words) < MIN_GLOBAL_WORDS,
            is_erased=is_erased,
            is_shared=is_fact,
            spans=((node.key, each.start, len(each.text)),) if spans else (),
        )
        for each in sentences(node.content)
    ]


def of_wordless(node: Node) -> list[Withhold]:
    """Return how to recognize an erased text without meaningful words, such as "👍": not by the text alone, since other
    messages say the same, but with its id, and with its session and time.
    """
    if next(sentences(node.content), None) is not None:
        return []
    places = f"id {node.id}", f"in {node.session} at {node.event_time.isoformat()}"
    return [
        Withhold(
            cause=node.key,
            words=frozenset((place, f"says {node.content.strip()}")),
            voices=(),
            session=node.session,
            is_bound=False,
            is_erased=True,
            is_shared=False,
        )
        for place in places
    ]


def without_parts(value: Any, parts: Sequence[str]) -> Any:
    """Return a JSON value without some sentences in its texts, since attributes may repeat what was said."""
    if isinstance(value, str):
        spans = ((found.start(), len(part)) for part in parts for found in re.finditer(re.escape(part), value))
        return without(value, cut) if (cut := list(spans)) else value
    if isinstance(value, Mapping):
        return {without_parts(name, parts) or "…": without_parts(each, parts) for name, each in value.items()}
    return [without_parts(each, parts) for each in value] if isinstance(value, list) else value


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text without some (start, length) pieces; "" if no sentence with meaning is left."""
    kept, end = [], 0
    for start, length in sorted(spans):
        kept.append(text[end : max(start, end)])
        end = max(end, start + length)
    kept.append(text[end:])
    left = " … ".join(piece.strip() for piece in kept if piece.strip())
    return left if next(sentences(left), None) else ""
