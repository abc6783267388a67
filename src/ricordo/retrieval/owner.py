"""The owner of a memory as a person: who they are, by the facts that they and their agents state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from ricordo.decay import belief
from ricordo.errors import NotFoundError
from ricordo.model import GUESSED_TYPE, SELF, Category, Entity, Node, Profile, Relation, Scope
from ricordo.retrieval.hits import as_shown, with_doubts
from ricordo.retrieval.query import KNOWLEDGE, states_danger, states_need
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter
from ricordo.text.analyzer import leaves_out_its_subject, speaks_only_for_group
from ricordo.text.canonical import OWNER, canonical, is_of_one_speaker, names_somebody_before_slot, owner_phrases
from ricordo.text.categories import infer_category
from ricordo.text.change import names_job
from ricordo.text.dates.resolution import dated_phrases
from ricordo.text.filing import names_user
from ricordo.text.languages import all_languages, cached, languages_of
from ricordo.text.names import folded_name
from ricordo.text.statement import subject_of

_NAME, _ADDRESS, _DANGER, _NEED = "name", "address", "danger", "need"
_OF_A_PERSON: tuple[Category, ...] = ("identity", "relationship", "preference")
_JOB = "occupation"
_SLOTS = ("home", "employer", _JOB, "school", "spouse", "partner", "birthday", "age", "diet", "doctor")
_TELLING = (_NAME, _ADDRESS, _DANGER, _NEED, *_SLOTS, *_OF_A_PERSON)
"""What says who somebody is, the most telling first: slots and needs, then categories."""
_ALWAYS_USEFUL = _TELLING.index(_JOB)
"""The last rank of what is useful in every conversation."""
_FACTS_READ = 200
_LOOKED_AT = 1_000
_PEOPLE_READ = 200
_ANY_DAY = date(2000, 1, 1)


def rank(node: Node, names: Sequence[str]) -> int | None:
    """Return how early a fact belongs into a description of the owner; None if it does not say who they are.

    A need of anybody counts, such as the allergy of a child: it must not be missed.
    """
    content, is_of_owner = node.content, node.about in ((), (OWNER,))
    if is_of_owner and names_user(content) and any(name in content for name in names):
        return _TELLING.index(_NAME)
    if is_of_owner and _says_how_to_answer(content):
        return _TELLING.index(_ADDRESS)
    if states_need(content):
        return _TELLING.index(_DANGER if states_danger(content) else _NEED)
    form = canonical(content)
    if not (is_own(content) or (is_of_owner and form.slot and _is_of_unnamed_speaker(form.said))):
        return _TELLING.index("preference") if node.category == "preference" and is_of_owner else None
    if not is_of_owner:  # "My friend Anna lives in Rome" is not about the home of the owner
        return _TELLING.index("relationship")
    if form.slot in _TELLING:
        return _TELLING.index(form.slot)
    category = node.category if node.category in _OF_A_PERSON else infer_category(form.said)
    if category == "identity" and names_job(form.said):
        return _TELLING.index(_JOB)
    return _TELLING.index(category) if category in _OF_A_PERSON else None


def is_always_useful(node: Node, names: Sequence[str]) -> bool:
    """Return whether a fact is useful in every conversation: a name, home, job or need, or how to answer the owner."""
    found = rank(node, names)
    return found is not None and found <= _ALWAYS_USEFUL


def _is_of_unnamed_speaker(said: str) -> bool:
    """Return whether a statement of a slot leaves out its subject: "Moved to Rome", "Am Wochenende umgezogen"."""
    said = _without_first_time(said)
    is_of_another = names_somebody_before_slot(said) and not leaves_out_its_subject(said, languages_of(said))
    return not subject_of(said) and not speaks_only_for_group(said) and not is_of_another


def _without_first_time(said: str) -> str:
    """Return a statement without the time with which it begins."""
    phrases = dated_phrases(said[:_LOOKED_AT], today=_ANY_DAY)
    return next((said[len(each.text) :].lstrip(" ,:") for each in phrases if said.startswith(each.text)), said)


def _says_how_to_answer(text: str) -> bool:
    return _how_to_answer().search(text[:_LOOKED_AT]) is not None


@cached()
def _how_to_answer() -> re.Pattern[str]:
    return all_languages().pattern(lambda each: (*each.plain.answering, *each.persons.address), flags=re.IGNORECASE)


def is_own(text: str) -> bool:
    """Return whether the owner says something of themselves, rather than of somebody else or for a group."""
    return is_of_one_speaker(text) or names_user(text)


def most_telling(nodes: Iterable[Node], names: Sequence[str]) -> list[Node]:
    """Return the facts that say who the owner is, the most telling first, then the most believed and the latest.

    The best fact of each kind that is always useful stands before the others, so that no kind displaces another.

    Args:
        names: the owner's names.
    """
    ranked = [(found, node) for node in nodes if (found := rank(node, names)) is not None]
    ordered = sorted(
        ranked, key=lambda each: (each[0], -_belief(each[1]), -each[1].event_time.timestamp(), each[1].key)
    )
    best = {found: node for found, node in reversed(ordered) if found <= _ALWAYS_USEFUL}
    first = [best[found] for found in sorted(best)]
    return [*first, *(node for _, node in ordered if node not in first)]


def _belief(node: Node) -> float:
    return belief(node.confidence, node.score)


def own_facts(snapshot: Snapshot, scope: Scope, *, now: int) -> list[Node]:
    """Return the latest private facts of the owner, about any subject, without what others said of themselves."""
    if not scope.owner:
        return []
    private = Scope.of(scope.owner, "")
    found = snapshot.nodes.page(private, Filter(shelves=(KNOWLEDGE,)), now=now, before_key=None, limit=_FACTS_READ)
    return [node for node in found if node.owner == scope.owner and node.speaker is None and node.category != "summary"]


def own_entities(snapshot: Snapshot, scope: Scope, names: Sequence[str]) -> list[Entity]:
    """Return the people that are the owner: those with one of their names, or called "me" or "the user".

    Args:
        names: the owner's names, the full one first.
    """
    if not scope.owner:
        return []
    wanted = [*map(folded_name, names), *sorted(owner_phrases())]
    found = snapshot.entities.by_folded_names(Scope.of(scope.owner, ""), wanted)
    mine = [each for each in found if each.owner == scope.owner and each.relation is None and _may_be_person(each)]
    return sorted(mine, key=lambda each: folded_name(each.name) not in wanted[: len(names)])


def _may_be_person(entity: Entity) -> bool:
    return entity.type == "person" or bool(entity.attributes.get(GUESSED_TYPE))


def profile_of_owner(
    snapshot: Snapshot, scope: Scope, names: Sequence[str], described: Sequence[Profile], *, now: int, limit: int
) -> Profile:
    """Return what is known about the owner: their facts, relations and names.

    Args:
        described: the profiles of `own_entities`.

    Raises:
        NotFoundError: nothing is known.
    """
    private = own_facts(snapshot, scope, now=now)
    telling = [node for node in most_telling(private, names) if is_own(node.content)]
    others = [node for node in private if node not in telling and is_own(node.content)]
    facts = {node.key: node for node in (*telling, *(node for each in described for node in each.facts), *others)}
    shown = with_doubts(snapshot, scope, as_shown(snapshot, facts), now=now)
    if not (names or shown or described):
        raise NotFoundError("nothing is known about the user yet")
    mentions = {node.key: node for each in described for node in each.mentions if node.key not in facts}
    called = dict.fromkeys(
        (*names, *(each.name for each in described if folded_name(each.name) not in owner_phrases()))
    )
    name, *aliases = called or (scope.owner,)
    seen = [node.event_time for node in shown.values()]
    return Profile(
        id=described[0].id if described else "",
        type="person",
        name=name,
        aliases=tuple(dict.fromkeys((*aliases, *(each for found in described for each in found.aliases)))),
        relation=SELF,
        relations=_relations(snapshot, scope),
        summary=next((each.summary for each in described if each.summary), None),
        protected=any(each.protected for each in described),
        attributes={key: value for each in described for key, value in each.attributes.items()},
        first_seen=min((*seen, *(each.first_seen for each in described))),
        last_seen=max((*seen, *(each.last_seen for each in described))),
        mention_count=sum(each.mention_count for each in described),
        facts=tuple(shown.values())[:limit],
        fact_count=max(len(shown), *(each.fact_count for each in described), 0),
        mentions=tuple(mentions.values())[:limit],
        related=tuple(related for each in described[:1] for related in each.related),
    )


def _relations(snapshot: Snapshot, scope: Scope) -> tuple[Relation, ...]:
    """Return the open relations of people to the owner, in the order of the people most often named."""
    related = (each.relation for each in snapshot.entities.people(scope, most=_PEOPLE_READ) if each.relation)
    predicates = dict.fromkeys(predicate for several in related for predicate in several.split(", "))
    private = replace(scope, chat=None)
    return tuple(each for predicate in predicates for each in snapshot.entities.open_relations(private, predicate))
