"""Compare new facts with existing facts: a new fact can repeat, replace or contradict another one.

A fact that the user forgot stays forgotten: it is not learnt again from messages older than that.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TypeVar

from ricordo.clock import from_ms, handle_of, new_id, to_ms
from ricordo.consolidation.evolution import superseded, supersedes
from ricordo.consolidation.plain_rules import states_liking
from ricordo.model import Change, Edge, Node, Outdated, Review, ReviewKind, Scope
from ricordo.storage import Snapshot, names_of_owner_alone, owner_names
from ricordo.storage.protocol import by_owner, possible_voices
from ricordo.text.analyzer import index_terms
from ricordo.text.canonical import (
    Canonical,
    canonical,
    in_owners_words,
    is_much_the_same,
    is_of_one_speaker,
    slot_words,
)
from ricordo.text.change import (
    Said,
    Succession,
    are_dates_of_two,
    are_of_one_text,
    has_begun,
    have_common_topic,
    in_full,
    is_quotation,
    likelihood,
    outdated,
    tells_change,
    topics,
)
from ricordo.text.clauses import changes_a_clause, words_to_look_for
from ricordo.text.headed import are_of_two_notes, beside, changes_value, is_of_author, without_headings
from ricordo.text.lifetimes import expiring, lasting
from ricordo.text.names import folded_name
from ricordo.text.occasions import are_of_two_days
from ricordo.text.relations import are_alike, ended_relations, plain_subjects, stated_own_names
from ricordo.text.relatives import stated_relations, tells_another_holder
from ricordo.text.sentences import is_redacted
from ricordo.text.statement import Verdict, compare, statement_line
from ricordo.trust import lower, may_override, trust_of

K = TypeVar("K", int, str)

SLOT = "slot"
"""The attribute of a derived memory that names its slot."""

_REPEATED = 1.0
"""How much a repetition adds to the score of a fact: less than `reinforce`, which the user calls on purpose."""

_CERTAIN_ENOUGH = 0.5
# With more values than this, a slot clearly has several at a time, and the user need not be asked.
_MAX_SEVERAL = 2
_NEIGHBOURS = 3
LATEST = 8
"""For each significant word of a new fact, this many of the latest facts are compared."""

_ABOUT_AS_LIKELY = 0.2
_MOST_OUTDATED = 3
_SUBJECT_WORDS = 4
_OF_THE_DEAD = Succession(likelihood=0.6, says_so=True)
_CARRIED: tuple[ReviewKind, ...] = ("conflict", "several", "same")
_MOST_OTHERS = 100
_LIKELY = 0.1  # minimum likelihood of being outdated for asking a model


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """The change that stores new facts, and the stored node of each fact, by the id it arrived with.

    A fact that repeats an existing one is represented by the existing one.
    """

    change: Change
    kept: Mapping[str, Node]


def arrive(
    snapshot: Snapshot,
    change: Change,
    *,
    scope: Scope,
    now: int,
    claimed: Collection[str],
    may_close: bool = True,
    twins: Mapping[str, str] | None = None,
    updates: Collection[str] = (),
    dated: Collection[str] = (),
) -> Arrived:
    """Compare each fact in a change with earlier facts, including those of the same change.

    Args:
        now: Unix milliseconds, UTC; the closing time of replaced facts.
        claimed: ids given by the caller. Such a fact keeps its id even if it repeats another.
        may_close: whether a rule may close a fact; otherwise the user is asked.
        twins: by the id of a new fact, its text with the credentials replaced that it keeps, or its text with those
            that were replaced in it. Of a fact and its twin, only the one with credentials stays.
        updates: ids of facts that are kept only if they make an earlier fact out of date, or may.
        dated: ids of facts whose expiry the caller gave.
    """
    arriving = _Arriving(snapshot, scope, now, may_close=may_close, twins=twins or {}, updates=updates, dated=dated)
    arriving.note_own_names(change.add)
    subjects: dict[str, tuple[str, ...]] = {}
    for node_id, entity_id in change.subjects:
        subjects[node_id] = (*subjects.get(node_id, ()), entity_id)
    for node in change.add:
        if not node.is_live:  # quarantined facts are not compared
            arriving.added[node.id] = node
            continue
        about = tuple(sorted(subjects.get(node.id, ())))
        arriving.take(node, about, may_merge=node.id not in claimed)
    kept = tuple(pair for pair in change.subjects if pair[0] in arriving.added)
    return Arrived(
        change=replace(
            change,
            add=tuple(arriving.added.values()),
            put=(*change.put, *arriving.put.values()),
            link=(*change.link, *arriving.links),
            reviews=(*change.reviews, *arriving.reviews),
            subjects=kept,
        ),
        kept={node.id: arriving.kept(node.id) for node in change.add if node.id not in arriving.dropped},
    )


class _Arriving:
    """The facts of one change, processed one after the other."""

    def __init__(
        self,
        snapshot: Snapshot,
        scope: Scope,
        now: int,
        *,
        may_close: bool,
        twins: Mapping[str, str],
        updates: Collection[str],
        dated: Collection[str] = (),
    ) -> None:
        self._twins = twins
        self._dated = dated
        self._updates = updates
        self._may_close = may_close
        self._snapshot = snapshot
        self._scope = scope
        self._now = now
        self._at: datetime = from_ms(now)
        self._own_names: dict[str, tuple[str, ...]] = {}
        self._lines: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self._by_stem: dict[tuple[str, ...], list[str]] = {}
        self._order: dict[str, int] = {}
        self.added: dict[str, Node] = {}
        self.put: dict[str, Node] = {}
        self.links: list[Edge] = []
        self.reviews: list[Review] = []
        self.instead: dict[str, str] = {}
        self.dropped: set[str] = set()
        self._about: dict[str, tuple[str, ...]] = {}

    def note_own_names(self, facts: Sequence[Node]) -> None:
        """Note the names that facts of this change give the owner, whatever the order of the facts."""
        for node in facts:
            is_owners = node.owner and node.is_live and node.speaker is None
            if is_owners and (named := stated_own_names(node.content)):
                alone = names_of_owner_alone(self._snapshot, node.owner, named)
                self._own_names[node.owner] = tuple(dict.fromkeys((*self._names(node.owner), *alone)))

    def _names(self, owner: str) -> tuple[str, ...]:
        if owner not in self._own_names:
            self._own_names[owner] = names_of_owner_alone(self._snapshot, owner)
        return self._own_names[owner]

    def _by_owner(self, node: Node) -> Node:
        return by_owner(_in_full(node), self._names(node.owner))

    def _said_by_owner(self, facts: Mapping[int, Said], owner: str) -> dict[int, Said]:
        names = self._names(owner)
        return {
            key: (in_full(content) if speaker else in_owners_words(in_full(content), names), speaker)
            for key, (content, speaker) in facts.items()
        }

    def kept(self, given: str) -> Node:
        """Return the node that represents a new fact after this change."""
        node_id = self.instead.get(given, given)
        return self.added.get(node_id) or self.put[node_id]

    def take(self, node: Node, about: tuple[str, ...], *, may_merge: bool) -> None:
        line = statement_line(without_headings(node).content)
        self._about[node.id] = about
        found = self.related(node, about, line) if line else []
        if node.id in self._updates and not self._is_update(node, found):
            self.dropped.add(node.id)
            return
        if (twin := self._twin(node, about)) is not None:
            if may_merge and is_redacted(node.content):
                self._alter(repeated(twin, node, at=self._at))
                self.instead[node.id] = twin.id
                return
            if is_redacted(twin.content):
                self._alter(superseded(twin, by=None, at=self._at))
                self.links.append(supersedes(node, twin))
                self._carry_doubts(twin, node)
                found = [pair for pair in found if pair[1].id != twin.id]
        if may_merge and (same := next((old for verdict, old in found if verdict == "same"), None)):
            self._alter(repeated(same, node, at=self._at) if _may_override(node, same) else same)
            self.instead[node.id] = same.id
            return
        self._order[node.id] = len(self._order)
        self.added[node.id] = node
        insort(self._lines.setdefault(about, []), (line, node.id))
        for stem in topics(node.content).stems:
            self._by_stem.setdefault(stem, []).append(node.id)
        self._settle(node, found)

    def _is_update(self, node: Node, found: Sequence[tuple[Verdict, Node]]) -> bool:
        """Return whether a sentence of a conversation clearly changes one of the facts it is related to."""
        earlier = [(verdict, old) for verdict, old in found if comes_after(node, old)]
        if any(verdict == "same" for verdict, _ in earlier):
            return False
        new = self._by_owner(node)
        olds = (self._by_owner(old) for verdict, old in earlier if verdict in ("replaced", "conflict"))
        return any(_changes(old, new) for old in olds)

    def _twin(self, node: Node, about: tuple[str, ...]) -> Node | None:
        """Return the live fact that differs from a new one only in credentials that were replaced in one of both."""
        text = self._twins.get(node.id)
        if text is None:
            return None
        near = self._snapshot.nodes.near_statements(node.owner, node.chat, about, statement_line(text))
        keys = [key for key, content in near if content == text]
        stored = self._snapshot.nodes.by_key(self._scope, keys).values()
        known = [*(self.put.get(old.id, old) for old in stored), *self.added.values()]
        same = (old for old in known if old.content == text and is_rival(old, node, now=self._at))
        return next((old for old in same if (old.owner, old.chat) == (node.owner, node.chat)), None)

    def related(self, node: Node, about: tuple[str, ...], line: str) -> list[tuple[Verdict, Node]]:
        """Return the live facts related to a new one, the latest first."""
        look, told, node = self._snapshot.nodes.near_statements, node, _in_full(node)
        subjects = _subjects(node, about)
        _, sharing, of_slots, *lines = self._snapshot.together(
            partial(self._names, node.owner),
            partial(self._sharing, node, topics(node.content).stems),
            partial(self._sharing, node, words_to_look_for(form_of(node))),
            *(partial(look, node.owner, node.chat, each, line) for each in subjects),
        )
        node = self._by_owner(node)
        near = self._said_by_owner({key: (content, None) for each in lines for key, content in each}, node.owner)
        sharing = self._said_by_owner(self._without_headings(sharing, node), node.owner)
        verdicts = {key: verdict for key, (content, _) in near.items() if (verdict := compare(content, node.content))}
        if len(verdicts) > _MAX_SEVERAL and all(verdict == "several" for verdict in verdicts.values()):
            verdicts = {}  # normal for such a slot, so they need not be read
        verdicts |= _in_one_form(sharing, node)
        changed = _changed(
            sharing, node, of_slots=self._said_by_owner(self._without_headings(of_slots, node), node.owner)
        )
        keys = verdicts.keys() | changed.keys()
        stored = self._snapshot.nodes.by_key(self._scope, keys) if keys else {}
        found = {
            old.id: (_stronger(verdicts.get(key), changed.get(key)), old)
            for key, old in ((key, self.put.get(old.id, old)) for key, old in stored.items())
            if (key in near or not are_apart(self._by_owner(old), node)) and not are_of_one_text(old, node)
        }
        found |= self._told_here(node, {fact.id: fact for each in subjects for fact in self._beside(each, line)})
        live = [
            (self._with_namesakes(verdict, old, told), old)
            for verdict, old in found.values()
            if verdict and is_rival(old, node, now=self._at) and not _are_both_true(verdict, self._by_owner(old), node)
            if not self._are_namesakes(old, told, about)
            if not (stated_own_names(old.content) and self._may_mean_several(told))
        ]
        # A new value of a slot changes the latest one; a change in other words the likeliest one.
        ranks = {stored[key].id: -place for place, key in enumerate(changed) if key in stored and key not in verdicts}
        return sorted(live, key=lambda pair: (ranks.get(pair[1].id, 0), self._recency(pair[1])), reverse=True)

    def _are_namesakes(self, old: Node, new: Node, about: tuple[str, ...]) -> bool:
        """Return whether two facts are about different people of one name, one of them in `about`."""
        if not about or set(old.about).isdisjoint(new.about):
            return False
        before = self._subjects_of(old)
        return bool(before) and before.isdisjoint(self._merged(about))

    def _subjects_of(self, node: Node) -> set[str]:
        return self._merged(self._about[node.id] if node.id in self._about else self._snapshot.nodes.subjects(node.key))

    def _merged(self, entities: Iterable[str]) -> set[str]:
        """Return the ids of entities; instead of a merged one, that of the entity it was merged into."""
        found = ((each, self._snapshot.entities.by_id(self._scope, each)) for each in entities)
        return {each if entity is None else entity.id for each, entity in found}

    def _with_namesakes(self, verdict: Verdict, old: Node, new: Node) -> Verdict:
        """Return a verdict; nothing is replaced if the two facts may be about different people of one name."""
        if verdict != "replaced":
            return verdict
        are_two = _relate_otherwise(old.content, new.content) or any(map(self._may_mean_several, (old, new)))
        return "conflict" if are_two else verdict

    def _may_mean_several(self, node: Node) -> bool:
        """Return whether a fact only begins with a name that several people have, the owner included."""
        if node.speaker is not None or not (names := plain_subjects(node.content)):
            return False
        place = Scope.of(node.owner, "" if node.owner else node.chat)
        if not self._subjects_of(node):
            found = (self._snapshot.entities.named(place, name) for name in names)
            if any(each.by == "same" and not each.is_clear for each in found):
                return True
        own = owner_names(self._snapshot, node.owner)
        called = [name for name in own if folded_name(name) in map(folded_name, names)]
        return len(names_of_owner_alone(self._snapshot, node.owner, called)) < len(called)

    def _told_here(self, node: Node, begun: dict[str, Node]) -> dict[str, tuple[Verdict | None, Node]]:
        """Return the verdicts on earlier facts of this change, by id. What is stated together closes nothing by itself.

        Args:
            begun: those with the same subject and the same beginning.
        """
        sharing = {each.id: each for each in self._sharing_here(node) if not are_apart(self._by_owner(each), node)}
        told = {key: each for key, each in (sharing | begun).items() if not are_of_one_text(each, node)}
        said = {key: self._by_owner(beside(each, node)) for key, each in told.items()}
        changed = _changed({key: (each.content, each.speaker) for key, each in said.items()}, node)
        found: dict[str, tuple[Verdict | None, Node]] = {}
        for key, each in told.items():
            aligned = form_of(said[key]).verdict(form_of(node))
            if key not in begun and aligned not in ("same", "replaced", "conflict"):
                aligned = None
            is_together = each.valid_from == node.valid_from
            found[key] = _stronger(aligned, "conflict" if key in changed and is_together else changed.get(key)), each
        return found

    def _sharing(self, node: Node, words: Collection[tuple[str, ...]]) -> dict[int, tuple[str, str | None]]:
        """Return (content, speaker) of the latest stored facts with one of some words, by key."""
        return self._snapshot.nodes.facts_with(node.owner, node.chat, words, most=LATEST) if words else {}

    def _without_headings(self, facts: dict[int, Said], node: Node) -> dict[int, Said]:
        """Return stored facts without the headings of their notes, where these do not tell them from a new fact."""
        below = ((key, content.partition(": ")[2]) for key, (content, _) in facts.items())
        headed = [key for key, said in below if said and (is_of_author(said) or changes_value(said, node.content))]
        stored = self._snapshot.nodes.by_key(self._scope, headed) if headed else {}
        return facts | {key: (beside(old, node).content, old.speaker) for key, old in stored.items()}

    def _sharing_here(self, node: Node) -> list[Node]:
        """Return the earlier facts of this change that share a significant word."""
        found = {each for stem in topics(node.content).stems for each in self._by_stem.get(stem, ())[-LATEST:]}
        return [self.added[each] for each in sorted(found)]

    def _recency(self, node: Node) -> tuple[datetime, int, int]:
        """Order facts by start of validity, then by order of arrival."""
        return node.valid_from, self._order.get(node.id, -1), node.key

    def _beside(self, about: tuple[str, ...], line: str) -> list[Node]:
        """Return the earlier facts of this change about the same subjects whose lines are next to a given line."""
        lines = self._lines.get(about, [])
        place = bisect_left(lines, (line, ""))
        return [self.added[each] for _, each in lines[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]]

    def _settle(self, node: Node, found: list[tuple[Verdict, Node]]) -> None:
        replaced = [
            old for verdict, old in found if verdict == "replaced" and self._may_close and may_replace(node, old)
        ]
        lines = {statement_line(old.content) for old in replaced}  # of a change in other words, only one is replaced
        replaced += [
            old
            for verdict, old in found
            if verdict == "conflict" and statement_line(old.content) in lines and may_replace(node, old)
        ]
        node = self._lasting(node, replaced)
        for old in replaced:
            self._alter(superseded(old, by=node, at=self._at))
            self.links.append(supersedes(node, old))
            self._ask("replaced", node, old)
            self._carry_doubts(old, node)
        if replaced:
            return
        rivals = [
            old for verdict, old in found if verdict in ("conflict", "replaced") and not _is_imported_task(node, old)
        ]
        if rivals:
            self._ask("conflict", self._lasting(node, rivals[:1]), rivals[0])
        elif same := [old for verdict, old in found if verdict == "same"]:
            self._ask("same", node, same[0])
        elif node.origin != "import":  # about an import, the user would be asked too much
            several = [old for verdict, old in found if verdict == "several"]
            if 0 < len(several) <= _MAX_SEVERAL:
                self._ask("several", node, several[0])

    def _carry_doubts(self, old: Node, node: Node) -> None:
        """Ask about a new fact which older ones the one that it closes had made doubtful, if they are still live."""
        told = [*(reviews_of(self._snapshot, old) if old.key else ()), *self.reviews]
        sides = [(each, [side.id for side in (each.newer, each.older) if side is not None]) for each in told]
        asked = {id for _, ids in sides if node.id in ids for id in ids}
        closed = {each.id for each in (*self.put.values(), *self.added.values()) if not each.is_live}
        left = [
            each for each, ids in sides if each.newer.id == old.id and not (asked | closed).intersection(ids) - {old.id}
        ]
        self.reviews += carried(self._snapshot, left, old, node, now=self._now)

    def _lasting(self, node: Node, olds: Sequence[Node]) -> Node:
        """Return a new fact, which lasts if it may make outdated what lasts, unless its expiry was given."""
        if node.id not in self._dated and any(old.expires_at is None and comes_after(node, old) for old in olds):
            is_state = in_full(node.content) != node.content  # "first day at Bosch today" is a job
            node = expiring(node, None) if is_state and node.expires_at else lasting(node)
            self._alter(node)
        return node

    def _alter(self, node: Node) -> None:
        (self.added if node.id in self.added else self.put)[node.id] = node

    def _ask(self, kind: ReviewKind, node: Node, old: Node) -> None:
        self.reviews.append(review_of_two(kind, node, old, now=self._now))


def _changes(old: Node, new: Node) -> bool:
    """Return whether a sentence of a conversation gives a fact another value, tells its change, or a death."""
    if form_of(old).verdict(form_of(new)) in ("replaced", "conflict"):
        return True
    if _about_the_dead({old.id: (old.content, old.speaker)}, new):
        return True
    return tells_change(old.content, new.content, is_liking=states_liking(old.content))


def rivals_of(snapshot: Snapshot, place: tuple[str, str], form: Canonical) -> list[Node]:
    """Return the few live facts that a statement may repeat or contradict, by slot or topic."""
    words = topics(form.said).stems | slot_words(form.slot, form.said)
    found, beside = snapshot.together(
        lambda: snapshot.nodes.facts_with(*place, words, most=LATEST),
        lambda: snapshot.nodes.near_statements(*place, (), statement_line(form.said)),
    )
    near = dict(beside)
    likely = {key: likelihood(content, form.text) for key, (content, _) in found.items()}
    likely |= {key: _LIKELY for key, content in near.items() if _begin_alike(content, form.said)}
    stored = snapshot.nodes.by_key(Scope.of(*place), likely)
    of_slot = {key for key, old in stored.items() if form.slot and form_of(old).slot == form.slot}
    ranked = sorted(stored, key=lambda key: (key in of_slot, likely[key], key), reverse=True)
    return [stored[key] for key in ranked if key in of_slot or likely[key] >= _LIKELY][:_MOST_OUTDATED]


def _begin_alike(one: str, other: str) -> bool:
    """Return whether two statements begin with the same words, as in "I am a ..."."""
    words = statement_line(one).split(), statement_line(other).split()
    return words[0][:2] == words[1][:2] != []


def _in_full(node: Node) -> Node:
    node = without_headings(node)
    full = in_full(node.content)
    return node if full == node.content else replace(node, content=full)


def in_owners_person(snapshot: Snapshot, *nodes: Node) -> list[Node]:
    """Return the facts of one space; those that call the owner by name as the owner would state them."""
    names = names_of_owner_alone(snapshot, nodes[0].owner) if nodes else ()
    return [by_owner(node, names) for node in nodes]


def form_of(node: Node, *, beside: Node | None = None) -> Canonical:
    """Return the canonical form of a fact. If it has no subject, it may mention that of `beside`."""
    slot = str(node.attributes.get(SLOT, ""))
    about = node.about or [name for name in (beside.about if beside else ()) if name in node.content]
    return canonical(node.content, speaker=node.speaker, owner=node.owner, about=about, slot=slot)


def _in_one_form(facts: Mapping[int, tuple[str, str | None]], node: Node) -> dict[int, Verdict]:
    """Compare facts in another grammatical person ("Anna works", "I work") or order ("My boss is Anna", "Anna is my
    boss") with a new one; return verdicts by key.
    """
    new = form_of(node)
    found = {key: _form_beside(said, node).verdict(new) for key, said in facts.items()}
    verdicts: dict[int, Verdict] = {
        key: verdict for key, verdict in found.items() if verdict in ("same", "replaced", "conflict")
    }
    return verdicts


def _changed(facts: Mapping[K, Said], node: Node, *, of_slots: Mapping[K, Said] | None = None) -> dict[K, Verdict]:
    """Return the facts that a new one may change, in any wording or in a clause, by key: the likeliest first.

    Args:
        of_slots: facts of slots that the new one fills, of which only clauses are compared.
    """
    found, new = _outdated(facts, node), form_of(node)
    others = (key for key, said in facts.items() if key not in found and said[1] == node.speaker)
    found |= {key: "conflict" for key in others if tells_another_holder(facts[key][0], node.content)}
    in_clauses = (
        key for key, said in {**(of_slots or {}), **facts}.items() if changes_a_clause(_form_beside(said, node), new)
    )
    return found | {key: "conflict" for key in in_clauses if key not in found}


def _outdated(facts: Mapping[K, Said], node: Node) -> dict[K, Verdict]:
    """Return the facts that a new one may make outdated, in any wording, by key: the likeliest first, and the latest of
    those that are about as likely.

    At most one is replaced. The user decides on the others.
    """
    new = form_of(node)
    told = node.event_time.date()
    is_now = has_begun(node.content, told=told, today=node.created_at.date())
    found = outdated(dict(sorted(facts.items())), (node.content, node.speaker), has_begun=is_now)
    found |= {key: _OF_THE_DEAD for key in _about_the_dead(facts, node) if key not in found}
    forms = {key: _form_beside(facts[key], node) for key in found}
    found = {
        key: each
        for key, each in found.items()
        if not forms[key].has_value_of(new) and not (each.is_plain and forms[key].may_both_hold(new))
    }
    likeliest = sorted(found, key=lambda key: found[key].likelihood, reverse=True)[:_MOST_OUTDATED]
    best = likeliest[0] if likeliest and found[likeliest[0]].is_certain else None
    least = found[likeliest[0]].likelihood - _ABOUT_AS_LIKELY if likeliest else 0.0
    ordered = sorted(likeliest, key=lambda key: (found[key].likelihood >= least, key), reverse=True)
    return {key: "replaced" if key == best else "conflict" for key in ordered}


def _about_the_dead(facts: Mapping[K, Said], node: Node) -> list[K]:
    """Return the facts that begin or end with somebody who has died, as a new one says: "Our cat Minka is 15"."""
    dead = [
        ended.name
        for ended in ended_relations(node.content)
        if ended.by_death and ended.name and ended.name[0].isupper()
    ]
    return [key for key, (content, _) in facts.items() if any(_begins_or_ends_with(name, content) for name in dead)]


def _begins_or_ends_with(name: str, content: str) -> bool:
    words, terms = content.split(), set(index_terms(name))
    sides = (words[:_SUBJECT_WORDS], words[-len(name.split()) :])
    return any(terms <= set(index_terms(" ".join(side))) for side in sides)


def _relate_otherwise(old: str, new: str) -> bool:
    """Return whether two statements call somebody of one name by relations to the speaker that are not alike: "my
    friend Sarah", "my colleague Sarah".
    """
    before, after = (stated_relations(each, own_names=()) for each in (old, new))
    pairs = [(a, b) for a in before for b in after if folded_name(a.name) == folded_name(b.name)]
    return bool(pairs) and not any(are_alike(a.predicate, b.predicate) for a, b in pairs)


def _form_beside(said: Said, node: Node) -> Canonical:
    """Return the canonical form of a fact, which may be about the entities of another one."""
    content, speaker = said
    about = [each for each in node.about if each in content]
    return canonical(content, speaker=speaker, owner=node.owner, about=about)


def _is_imported_task(new: Node, old: Node) -> bool:
    """Return whether the later of two facts is an imported task, which says nothing about what is true."""
    return new.origin == "import" and (new if comes_after(new, old) else old).category == "task"


def _are_both_true(verdict: Verdict, old: Node, new: Node) -> bool:
    if is_quotation(old.content) != is_quotation(new.content):  # somebody else said one of them
        return True
    are_apart = are_of_two_notes(old, new) or are_dates_of_two(old.content, new.content)
    return are_of_two_days(old, new) or (verdict != "same" and (are_apart or _are_imported_names(old, new)))


def _are_imported_names(old: Node, new: Node) -> bool:
    """Return whether two facts are names that an import was given as the owner's own."""
    return old.origin == new.origin == "import" and all(stated_own_names(each.content) for each in (old, new))


def are_apart(old: Node, new: Node) -> bool:
    """Return whether two facts are about other entities, which their texts do not name: "Lives in Rome", about Bob."""
    return bool(_named_beside(old) - set(new.about) or _named_beside(new) - set(old.about))


def are_of_one(old: Node, new: Node) -> bool:
    """Return whether two facts have the same subjects. The owner counts as a subject."""
    if set(old.about) == set(new.about):
        return True
    before, after = form_of(old, beside=new).subject, form_of(new, beside=old).subject
    return before is not None and before == after and not are_apart(old, new)


def _named_beside(node: Node) -> set[str]:
    said = node.content.casefold()
    return {name for name in node.about if name.casefold() not in said}


def _stronger(aligned: Verdict | None, changed: Verdict | None) -> Verdict | None:
    """Return the stronger of two verdicts. A verdict from aligned words takes precedence."""
    return changed if changed and aligned not in ("same", "replaced", "conflict") else aligned


def _subjects(node: Node, about: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the subjects of the facts to compare with: the fact's own and, if its text names them, none.

    A fact learnt before the person it begins with was known has no subject.
    """
    text = node.content.lower()
    is_named = bool(about) and all(name.lower() in text for name in node.about)
    return [about, ()] if is_named else [about]


def with_outdated(node: Node, reviews: Sequence[Review]) -> Node:
    """Return a new fact with the older facts that it replaces or may make outdated, according to some reviews."""
    found = tuple(
        Outdated(id=each.older.id, content=each.older.content, is_closed=each.kind == "replaced", review=each.id)
        for each in reviews
        if each.kind in ("replaced", "conflict") and each.newer.id == node.id and each.older is not None
    )
    return replace(node, outdates=found) if found else node


def with_outdated_elsewhere(snapshot: Snapshot, node: Node, *, scope: Scope, spaces: Sequence[str], now: int) -> Node:
    """Return a new fact with the facts of other spaces that it may make out of date. No rule closes these, and no
    review asks about them, since the members of one space must not learn of the other.

    Args:
        scope: the caller, who reads all the spaces.
        spaces: the spaces to look in. "" is the owner's own memory.
    """
    if not node.is_live:
        return node
    found = list[Outdated]()
    for space in spaces:
        speaker = scope.owner if space and is_of_one_speaker(node.content) else None
        about = tuple(dict.fromkeys((*(name for name in node.about if name != scope.owner), *filter(None, [speaker]))))
        there = replace(node, owner="" if space else scope.owner, chat=space, speaker=speaker, about=about)
        arriving = _Arriving(snapshot, scope, now, may_close=False, twins={}, updates=())
        arriving.take(there, (), may_merge=False)
        olds = [each.older for each in arriving.reviews if each.kind == "conflict" and each.newer is there]
        found += [
            Outdated(id=old.id, content=old.content, is_closed=False, review=None, space=space) for old in olds if old
        ]
    return replace(node, outdates=(*node.outdates, *found)) if found else node


def review_of_two(kind: ReviewKind, new: Node, old: Node, *, now: int) -> Review:
    """Return a review of two facts. The fact expected to stay comes first; it need not be the one that arrived last."""
    newer, older = (new, old) if comes_after(new, old) else (old, new)
    return Review(
        id=new_id(now), kind=kind, newer=newer, older=older, created_at=from_ms(now), owner=new.owner, chat=new.chat
    )


def saying_the_same(snapshot: Snapshot, node: Node, *, now: int) -> list[Node]:
    """Return the other live facts that say the same as a stored one, the latest first. `remember` keeps one of them,
    but a caller may choose ids, and `undo` brings back exactly what was.
    """
    line = statement_line(node.content)
    if node.type == "episodic" or not line:
        return []
    arriving = _Arriving(snapshot, Scope.of(node.owner, node.chat), now, may_close=False, twins={}, updates=())
    found = arriving.related(node, tuple(sorted(snapshot.nodes.subjects(node.key))), line)
    return [old for verdict, old in found if verdict == "same" and old.id != node.id]


def restored(snapshot: Snapshot, node: Node, *, now: int) -> tuple[Change, Node] | None:
    """Return the change for a restored fact that another one repeats: that one is kept, as if this were said again, and
    returned. None if no live fact says the same.
    """
    same = next(iter(saying_the_same(snapshot, node, now=now)), None)
    if same is None:
        return None
    kept = repeated(same, node, at=from_ms(now)) if _may_override(node, same) else same
    notice = f"The same is remembered already, and was kept instead of {handle_of(node.id)}."
    return Change(put=(kept,) if kept is not same else ()), replace(kept, notice=notice)


def reviews_of(snapshot: Snapshot, node: Node) -> list[Review]:
    """Return the open reviews of two facts, of which one is the given one."""
    found = snapshot.reviews.listed(Scope.of(node.owner, node.chat), most=_MOST_OTHERS, node=node.key)
    return [each for each in found if each.kind != "quarantine"]


def carried(
    snapshot: Snapshot, settled: Iterable[Review], closed: Node, stays: Node, *, now: int, is_replaced: bool = True
) -> list[Review]:
    """Return what is asked about a fact that stays instead of what was asked about one that is closed.

    What a fact in the middle of a chain of conflicts was in doubt with stays in doubt, in whatever words: if c replaces
    b, and b had made a doubtful, c does. Two facts beside each other must share a topic.

    Args:
        is_replaced: whether the fact that stays is the newer one.
    """
    asked, known = {stays.id}, set[int]()
    if stays.key:
        asked |= {side.id for each in reviews_of(snapshot, stays) for side in (each.newer, each.older) if side}
        known = snapshot.reviews.decided_with(stays.key)
        known |= set(chain.from_iterable(snapshot.nodes.succession([stays.key])))  # open again if it is reopened
    opened = dict[str, Review]()
    for each in settled:
        other = each.older if each.newer.id == closed.id else each.newer
        is_chain = each.kind == "conflict" and (other is each.older) == is_replaced
        if other is None or not (is_chain or have_common_topic(stays.content, other.content)):
            continue  # it was in review for something that only the closed one said
        if each.kind in _CARRIED and other.id not in asked and other.key not in known:
            opened.setdefault(other.id, review_of_two(each.kind, stays, other, now=now))
    return list(opened.values())


def is_rival(old: Node, new: Node, *, now: datetime) -> bool:
    """Return whether a new fact can repeat or replace an older one: same type, live, and not expired."""
    is_over = old.expires_at is not None and old.expires_at <= now
    return old.type == new.type and old.is_live and not is_over


def comes_after(new: Node, old: Node) -> bool:
    """Return whether a fact may take precedence over an older one: it is neither earlier nor less trusted."""
    return new.valid_from >= old.valid_from and _may_override(new, old)


def _may_override(new: Node, old: Node) -> bool:
    return may_override(trust_of(new.origin, new.role), trust_of(old.origin, old.role))


def may_replace(new: Node, old: Node) -> bool:
    """Return whether a fact may close an older one without asking the user."""
    return comes_after(new, old) and new.confidence >= min(_CERTAIN_ENOUGH, old.confidence)


def repeated(old: Node, new: Node, *, at: datetime) -> Node:
    """Return a fact that was stated again, with a higher score and the additions of the repetition. If the repetition
    comes from a more trusted source, the fact takes that source.
    """
    tiers = trust_of(old.origin, old.role), trust_of(new.origin, new.role)
    whose = old if lower(*tiers) == tiers[1] else new
    until = max(old.expires_at, new.expires_at) if old.expires_at and new.expires_at else None
    return replace(
        old,
        score=min(10.0, old.score + _REPEATED),
        reinforced_at=at,
        confidence=max(old.confidence, new.confidence),
        tags=tuple(dict.fromkeys((*old.tags, *new.tags))),
        attributes={**old.attributes, **new.attributes},
        expires_at=until,
        origin=whose.origin,
        role=whose.role,
    )


def is_withheld(snapshot: Snapshot, fact: Node, evidence: Sequence[Node]) -> bool:
    """Return whether a fact was forgotten, erased or rejected, and its evidence is older than that.

    The same words are recognised from any source. Other words are recognised only from the same messages, if they say
    much the same. Erased or replayed facts are recognised by keyed hashes of their words.
    """
    space = snapshot.space(fact.owner, fact.chat)
    if space is None or not evidence:
        return False
    said = [to_ms(node.event_time) for node in evidence if node.role == "user" and node.origin == "conversation"]
    session, said_at = evidence[0].session, max(said, default=None)
    if snapshot.suppression.withholds(space):
        voices = possible_voices(snapshot, evidence[0])
        if snapshot.suppression.matches(space, fact.content, session=session, said_at=said_at, voices=voices):
            return True
    told_at = max(to_ms(node.created_at) for node in evidence)
    ids = [node.id for node in evidence]
    return any(
        told_at <= closed.closed_at and (closed.is_same or is_much_the_same(closed.content, fact.content))
        for closed in snapshot.evidence.dismissed(fact.owner, fact.chat, fact.type, fact.content, evidence=ids)
    )
