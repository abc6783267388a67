"""Views of memories without a question: pages, versions, profiles, timelines and explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from ricordo.clock import from_ms
from ricordo.decay import Vital, belief, fades_at, fate, remaining
from ricordo.errors import InvalidError, NotFoundError
from ricordo.model import (
    GUESSED_TYPE,
    SUMMARY_MEMORY,
    Archive,
    ClosedReason,
    Commit,
    DecayCloses,
    Entity,
    Explanation,
    Node,
    Page,
    Profile,
    Review,
    RowId,
    Scope,
    Version,
)
from ricordo.retrieval import service
from ricordo.retrieval.commit_words import image_at, in_words
from ricordo.retrieval.hits import as_shown, conflicts_of, with_doubts
from ricordo.retrieval.owner import own_entities, profile_of_owner
from ricordo.retrieval.query import Request, filter_of, query_of
from ricordo.retrieval.service import Asking
from ricordo.storage import Snapshot, entity_meant
from ricordo.storage.authors import with_proposers
from ricordo.storage.groups import Ledger
from ricordo.text.canonical import means_owner
from ricordo.text.lifetimes import ends_by, ends_why
from ricordo.text.names import likeness

_MOST_REVIEWS = 20


async def page(asking: Asking, request: Request, *, cursor: str | None) -> Page:
    """Return one page of memories, last recorded first. Without a type, all types are listed.

    Raises:
        InvalidError: an argument is invalid.
    """
    query = query_of(replace(request, type=request.type or "any"), now=asking.now, zone=asking.zone)
    before = _position(cursor)

    def read(snapshot: Snapshot) -> Page:
        wanted = filter_of(snapshot, asking.scope, query)
        nodes = snapshot.nodes.page(
            asking.scope, wanted, now=snapshot.current(asking.now), before_key=before, limit=query.limit + 1
        )
        more = len(nodes) > query.limit
        total = None if before is not None else len(nodes)
        if more and total is not None:
            total = len(snapshot.nodes.matching(asking.scope, wanted))
        cursor = str(nodes[query.limit - 1].key) if more else None
        return Page(nodes=tuple(nodes[: query.limit]), cursor=cursor, total=total)

    found = await service.read(asking, read, request.as_of)
    if request.as_of is None:
        return found
    closings = await service.closings_now(asking, [node.id for node in found.nodes])
    nodes = tuple(replace(node, notice=closings.get(node.id, "")) for node in found.nodes)
    return replace(found, nodes=nodes)


def archive(snapshot: Snapshot, scope: Scope, reason: ClosedReason | None, *, limit: int) -> Archive:
    """Return closed memories, latest first, optionally only those closed for one reason."""
    keys = snapshot.statistics.closed_keys(scope, reason, limit=limit)
    nodes = snapshot.nodes.by_key(scope, keys)
    return Archive(nodes=tuple(nodes[key] for key in keys), counts=snapshot.statistics.closed(scope))


def _position(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (isinstance(cursor, str) and cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidError("cursor was not returned by `list`", hint="leave it out to start from the first page")
    return int(cursor)


def history(snapshot: Snapshot, scope: Scope, node_id: str) -> tuple[Version, ...]:
    """Return every version of a node, oldest first, including versions of its predecessors and successors that are not
    forgotten.

    Raises:
        NotFoundError: there is no memory with this id.
    """
    node = snapshot.nodes.known(scope, node_id)
    others = [*snapshot.nodes.replaced(node.key), *snapshot.nodes.replacing(node.key)]
    found = snapshot.nodes.by_key(scope, others).values()
    chain = [node, *(each for each in found if each.closed_reason != "forgotten")]
    versions = [pair for each in chain for pair in snapshot.history.versions(each)]
    versions.sort(key=lambda pair: (pair[1].seq if pair[1] else 0, pair[0].key))
    ids = {each.id for each in chain}
    return tuple(
        Version(
            content=was.content,
            commit=commit and with_proposers(snapshot, commit, ids),
            closed_at=was.closed_at,
            closed_reason=was.closed_reason,
            node=was,
        )
        for was, commit in versions
    )


# The best facts are chosen from this many of the latest ones.
_FACTS_READ = 200
_MENTIONS_READ = 60
_RELATED = 8


def profile(snapshot: Snapshot, scope: Scope, name: str, *, own_names: Sequence[str], now: int, limit: int) -> Profile:
    """Return everything about one entity or the owner, with at most `limit` facts and mentions.

    Args:
        own_names: the names of the owner, the full one first.

    Raises:
        NotFoundError: no entity has this name.
        InvalidError: several entities have this name.
    """
    of_owner = own_entities(snapshot, scope, own_names)
    entity = None
    if not (scope.owner and means_owner(name)):
        try:
            entity = entity_meant(snapshot, scope, name)
        except NotFoundError:
            if not any(likeness(name, own) for own in own_names):
                entity = entity_meant(snapshot, scope, name, by_part=True)
    if entity is not None and entity.id not in {each.id for each in of_owner}:
        return profile_of(snapshot, scope, entity, now=now, limit=limit)
    described = [profile_of(snapshot, scope, each, now=now, limit=limit) for each in of_owner]
    return profile_of_owner(snapshot, scope, own_names, described, now=now, limit=limit)


def profile_of(snapshot: Snapshot, scope: Scope, entity: Entity, *, now: int, limit: int) -> Profile:
    """Return everything about one entity, with at most `limit` facts and mentions."""
    entities = snapshot.entities
    about, named, summary, (first, last), relations = snapshot.together(
        lambda: entities.latest(entity.key, "subject", now=now, most=max(_FACTS_READ, limit)),
        lambda: entities.latest(entity.key, "mention", now=now, most=_MENTIONS_READ),
        lambda: _summary(snapshot, scope, entity),
        lambda: entities.span(entity),
        lambda: entities.relations(entity.key),
    )
    # Sorting is stable: in a tie, the latest fact comes first.
    believed = sorted(about, key=lambda each: belief(each.confidence, each.score), reverse=True)
    rest = [sketch.key for sketch in sorted(named, key=lambda each: each.type != "episodic", reverse=True)[:limit]]
    both = [sketch.key for sketch in (*about, *named)]
    nodes, related, conflicts = snapshot.together(
        lambda: snapshot.nodes.by_key(scope, [*(sketch.key for sketch in believed), *rest]),
        lambda: entities.named_together(entity.key, both, most=_RELATED),
        lambda: conflicts_of(snapshot, both),
    )
    facts = [each.key for each in believed if each.key in nodes and nodes[each.key].category != "summary"]
    best = facts[:limit]
    nodes = as_shown(snapshot, {key: nodes[key] for key in (*best, *rest) if key in nodes})
    nodes = with_doubts(snapshot, scope, nodes, now=now, conflicts=conflicts)
    return Profile(
        id=entity.id,
        type=entity.type,
        name=entity.name,
        aliases=entity.aliases,
        relation=entity.relation,
        relations=relations,
        summary=summary,
        protected=entity.protected,
        attributes=entity.attributes,
        first_seen=first,
        last_seen=last,
        mention_count=entity.mention_count,
        facts=tuple(nodes[key] for key in best if key in nodes),
        fact_count=len(facts),
        mentions=tuple(nodes[key] for key in rest if key in nodes),
        related=related,
    )


def _summary(snapshot: Snapshot, scope: Scope, entity: Entity) -> str | None:
    """Return an entity's summary; of one by a model, the corrected version, or None if it is no longer valid."""
    made = entity.attributes.get(SUMMARY_MEMORY)
    node = snapshot.nodes.get(scope, made) if made else None
    if node is None:
        return entity.summary
    latest = snapshot.nodes.successor(node.key)
    node = None if latest is None else snapshot.nodes.by_key(scope, [latest]).get(latest)
    if node is None or (node.id == made and snapshot.nodes.lost_a_source(node.key)):
        return None
    return node.content


def known_people(snapshot: Snapshot, scope: Scope, *, most: int) -> tuple[Entity, ...]:
    """Return people other than the owner, most frequently mentioned first."""
    found = snapshot.entities.people(scope, most=most)
    return tuple(each for each in found if not (scope.owner and means_owner(each.name)))


def present_people(snapshot: Snapshot, scope: Scope, *, most: int) -> tuple[Entity, ...]:
    """Return known people that memories still name, and those that were added by hand."""
    return tuple(each for each in known_people(snapshot, scope, most=most) if not _is_corrected_away(snapshot, each))


def _is_corrected_away(snapshot: Snapshot, person: Entity) -> bool:
    """Return whether a person became known by memories of which none names them any more."""
    is_named = person.mention_count or person.relation or not person.attributes.get(GUESSED_TYPE)
    return not is_named and snapshot.entities.was_named(person.key)


async def timeline(asking: Asking, request: Request) -> tuple[Node, ...]:
    """Return the latest events of a period, in order of event time.

    Raises:
        InvalidError: an argument is invalid.
        NotFoundError: no entity has the name given as `entity`.
    """
    query = query_of(replace(request, type="any"), now=asking.now, zone=asking.zone)

    def read(snapshot: Snapshot) -> tuple[Node, ...]:
        wanted = filter_of(snapshot, asking.scope, query)
        found = snapshot.nodes.latest(asking.scope, wanted, now=snapshot.current(asking.now), limit=query.limit)
        return tuple(as_shown(snapshot, {node.key: node for node in reversed(found)}).values())

    return await service.read(asking, read, request.as_of)


def explain(
    snapshot: Snapshot, scope: Scope, node_id: str, *, now: int, zone: ZoneInfo, closes: DecayCloses, often: int
) -> Explanation:
    """Return why a memory exists and when it ends.

    Args:
        closes, often: the settings `decay_closes` and `protect_mentions`.

    Raises:
        NotFoundError: there is no memory with this id.
    """
    node = snapshot.nodes.known(scope, node_id)
    versions = history(snapshot, scope, node_id)
    own = [version for version in versions if version.node.id == node.id]
    edges = snapshot.nodes.edges(scope, node)
    sources = [edge.target for edge in edges if edge.type == "derived_from" and edge.source == node.id]
    sources += [proof for edge in edges if edge.source == node.id for proof in edge.evidence if proof != node.id]
    vital = _vital(snapshot, scope, node, often=often)
    fades = fades_at(vital)
    read = (snapshot.nodes.get(scope, each) for each in dict.fromkeys(sources))
    return Explanation(
        node=node,
        made=own[0].commit,
        versions=versions,
        sources=tuple(source for source in read if source is not None),
        supersedes=_in_order(snapshot, scope, snapshot.nodes.replaced(node.key)),
        superseded_by=_in_order(snapshot, scope, snapshot.nodes.replacing(node.key)),
        edges=tuple(edges),
        mentions=tuple(snapshot.nodes.names(node.key)),
        retention=remaining(vital, now=now),
        fades_at=None if fades is None else from_ms(fades),
        fading=fate(vital, closes),
        ends_at=node.expires_at,
        ends_by=ends_by(node, zone=zone),
        ends_why=ends_why(node, zone=zone),
        reviews=() if snapshot.is_past else _undecided(snapshot, scope, node),
    )


def _undecided(snapshot: Snapshot, scope: Scope, node: Node) -> tuple[Review, ...]:
    found = snapshot.reviews.listed(scope, most=_MOST_REVIEWS, node=node.key)
    return tuple(each for each in found if each.kind in ("conflict", "several", "same"))


def _in_order(snapshot: Snapshot, scope: Scope, keys: Sequence[int]) -> tuple[Node, ...]:
    found = snapshot.nodes.by_key(scope, keys)
    return tuple(found[key] for key in keys if key in found and found[key].closed_reason != "forgotten")


def _vital(snapshot: Snapshot, scope: Scope, node: Node, *, often: int) -> Vital:
    """Return the values that decide how long a memory is kept. Past states do not record how often it was shown."""
    (vital,) = snapshot.lifecycle.vitals(scope, [node.key], often=often)
    return vital._replace(shown=0, last_access=None) if snapshot.is_past else vital


_CHANGED_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The changes made by a commit: at most 200 memories, and as many entities.

    Attributes:
        nodes: each memory before and after; None if it did not exist yet, or was withdrawn.
        removed: the texts of memories that the commit removed completely, as undo does.
        entities: the entities touched, in their current state.
        rows: the number of rows touched in each table.
    """

    commit: Commit
    nodes: tuple[tuple[Node | None, Node | None], ...]
    entities: tuple[Entity, ...]
    rows: Mapping[str, int]
    removed: tuple[str, ...] = ()


def changed_by(snapshot: Snapshot, scope: Scope, seq: int) -> Difference:
    """Return the changes made by a commit, as far as the scope may see them.

    Raises:
        NotFoundError: the scope sees no such commit.
    """
    ledger = snapshot.history.ledger()
    commit = snapshot.history.get(seq) if ledger.visible(scope, [seq]) else None
    if commit is None:
        raise NotFoundError(f"there is no change {seq}", hint="`log` lists them")
    touched = ledger.touched(seq)
    ids = {
        table: [_id_in(ledger, row, seq) for row in [each for each in touched if each.table == table][:_CHANGED_MOST]]
        for table in ("nodes", "entities")
    }
    nodes = (snapshot.nodes.get(scope, id) for id in ids["nodes"] if id)
    entities = (snapshot.entities.by_id(scope, id) for id in ids["entities"] if id)
    return Difference(
        commit=in_words(snapshot, scope, [commit])[0],
        nodes=tuple(_before_and_after(snapshot, node, seq) for node in nodes if node is not None),
        entities=tuple(entity for entity in entities if entity is not None),
        rows=Counter(row.table for row in touched),
        removed=tuple(_removed(ledger, touched, seq, spaces=snapshot.visible(scope))),
    )


def _removed(ledger: Ledger, touched: Sequence[RowId], seq: int, *, spaces: Collection[int | None]) -> Iterator[str]:
    """Yield the texts of memories that a commit touched and that no longer exist, in some spaces."""
    for row in [each for each in touched if each.table == "nodes"][:_CHANGED_MOST]:
        before = ledger.state(row, seq - 1)
        if before is not None and before["space"] in spaces and ledger.current(row) is None:
            yield str(before["content"])


def _id_in(ledger: Ledger, row: RowId, seq: int) -> str | None:
    image = image_at(ledger, row, seq)
    return None if image is None else str(image["id"])


def _before_and_after(snapshot: Snapshot, node: Node, seq: int) -> tuple[Node | None, Node | None]:
    before = after = None
    for version, commit in snapshot.history.versions(node):
        if commit is not None and commit.seq < seq:
            before = version
        elif commit is not None and commit.seq == seq:
            after = version
    return before, after
