"""Build the context for an agent: a block of Markdown within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any
from zoneinfo import ZoneInfo

from ricordo.clock import handle_of, to_ms
from ricordo.errors import InvalidError
from ricordo.model import (
    DOUBTS_SHOWN,
    Context,
    ContextLine,
    ContextName,
    ContextSection,
    Entity,
    Hit,
    Node,
    Profile,
    Scope,
)
from ricordo.ports import TokenCounter
from ricordo.retrieval.hits import NEWER_CHARS, as_own, as_shown, caveat, hit_of, may_be_quoted, says_the_same
from ricordo.retrieval.inspection import present_people, profile_of
from ricordo.retrieval.query import (
    ALL_EPISODES,
    KNOWLEDGE,
    Request,
    asked_in,
    asks_for_one_value,
    asks_for_people,
    asks_for_tasks,
    complexity_of,
    days_asked,
    follows_up,
    intent_of,
    is_nod,
    namings,
    needs_of,
    people_told_of,
    query_of,
    told_and_asked,
)
from ricordo.retrieval.receipts import Draft
from ricordo.retrieval.service import Asking, AsOf, answer, wants_receipt
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter, Foreseen
from ricordo.text.analyzer import QUESTION_MARKS, question_terms, raw_words
from ricordo.text.dates import format_times
from ricordo.text.names import folded_name
from ricordo.text.prompt_text import BEGIN, END, NOTE, as_label, reasons, safe_line
from ricordo.text.reported import reporter
from ricordo.text.token_estimate import estimated_tokens

SECTIONS: Mapping[ContextName, tuple[str, float]] = {
    "facts": ("Known facts", 0.40),
    "people": ("People and things", 0.25),
    "timeline": ("Said in conversation", 0.25),
    "documents": ("From documents", 0.25),
    "evidence": ("What that rests on", 0.10),
}
"""Each section's title and maximum share of the budget. Unused tokens go to the other sections, in this order."""

_SPEAKING: tuple[ContextName, ...] = ("facts", "timeline", "documents")
"""Profiles and sources are shown only together with lines of one of these sections."""

_BY_COMPLEXITY = {"simple": 0.5, "complex": 1.5}


class EstimatedTokens:
    """Counts tokens as `estimated_tokens` does."""

    def count(self, text: str) -> int:
        return estimated_tokens(text)


def budget_for(complexity: str, *, usual: int) -> int:
    """Return the budget of a block: half of the usual one for a simple prompt, one and a half for a complex one."""
    return int(usual * _BY_COMPLEXITY[complexity])


def assemble(
    drafts: Mapping[ContextName, Sequence[ContextLine]], *, budget: int, tokens: TokenCounter, complexity: str
) -> Context:
    """Return the lines that fit into a budget of tokens, best first in each section; no text without facts, turns or
    the list of known people.
    """
    room = int((budget - fence_tokens(tokens)) * SECTIONS["people"][1]) - tokens.count(f"## {SECTIONS['people'][0]}\n")
    people = [_within(each, room, tokens) for each in drafts.get("people", ())]
    sections = fitted({**drafts, "people": people}, SECTIONS, budget=budget, tokens=tokens)
    missing = left_out(drafts, sections) if any(drafts.get(name) for name in (*_SPEAKING, "people")) else 0
    is_list = any(line.id is None for section in sections for line in section.lines)
    if not (is_list or any(section.name in _SPEAKING for section in sections)):
        return Context(text=None, tokens=0, budget=budget, complexity=complexity, left_out=missing)
    text, count = fenced(sections), tokens.count
    return Context(
        text=text, tokens=count(text), budget=budget, complexity=complexity, sections=sections, left_out=missing
    )


def left_out(drafts: Mapping[ContextName, Sequence[ContextLine]], sections: Sequence[ContextSection]) -> int:
    """Return how many of the lines drafted for a block are not in its sections."""
    return sum(map(len, drafts.values())) - sum(len(each.lines) for each in sections)


def fitted(
    drafts: Mapping[ContextName, Sequence[ContextLine]],
    titles: Mapping[ContextName, tuple[str, float]],
    *,
    budget: int,
    tokens: TokenCounter,
    first: Collection[str] = (),
) -> tuple[ContextSection, ...]:
    """Return sections with the lines that fit into a budget of tokens, including the fence.

    Args:
        titles: each section's title and share of the budget. Unused tokens go to the other sections.
        first: ids of lines that may use the whole budget.
    """
    left = budget - fence_tokens(tokens)
    heads = {name: tokens.count(f"## {title}\n") for name, (title, _) in titles.items()}
    taken: dict[ContextName, list[int]] = {name: [] for name in titles}
    used = 0
    rooms = [(name, int(left * share), False) for name, (_, share) in titles.items()]
    lines = {name: list(drafts.get(name, ())) for name in titles}
    everything = [(name, left, False) for name in titles]
    # Lines that come first may take all tokens, others those of their section, then the unused ones.
    for name, room, is_first in [*((name, left, True) for name in titles if first), *rooms, *everything]:
        costs = [tokens.count(line.text) + 1 for line in lines[name]]
        mine = sum(costs[place] for place in taken[name]) + heads[name]
        for place, cost in enumerate(costs):
            more = cost if taken[name] else cost + heads[name]
            if is_first and lines[name][place].id not in first:
                continue
            if place not in taken[name] and mine + cost <= room and used + more <= left:
                taken[name].append(place)
                mine, used = mine + cost, used + more
    return tuple(
        ContextSection(name=name, title=titles[name][0], lines=_in_order(name, lines[name], places))
        for name, places in taken.items()
        if places
    )


def fence_tokens(tokens: TokenCounter) -> int:
    """Return the number of tokens of the fence around recalled text."""
    return tokens.count(f"{BEGIN}\n{NOTE}\n{END}")


def fenced(sections: Sequence[ContextSection]) -> str:
    """Return sections as Markdown inside the fence for recalled text."""
    parts = [part for each in sections for part in (f"## {each.title}", *(line.text for line in each.lines))]
    return "\n".join([BEGIN, NOTE, *parts, END])


def _within(line: ContextLine, room: int, tokens: TokenCounter) -> ContextLine:
    """Shorten a line about an entity by its last facts until it fits into the room for it."""
    while tokens.count(line.text) >= room and (cut := _LAST_FACT.sub(r"\2", line.text)) != line.text:
        line = replace(line, text=cut)
    return line


# The last or only fact in a line about an entity; and the time and handle at its end.
_LAST_FACT = re.compile(r"(; (?:(?!; ).)*|: .*?)( \[[^\[\]]*\] \[id:[^\]]*\])\Z")


def _in_order(name: ContextName, lines: Sequence[ContextLine], places: Sequence[int]) -> tuple[ContextLine, ...]:
    """Return lines in reading order: conversation by time, all else best first. Later lines have larger ids."""
    chosen = [lines[place] for place in sorted(places)]
    return tuple(sorted(chosen, key=lambda line: (line.at, line.id or "")) if name == "timeline" else chosen)


def fact_line(hit: Hit, *, before: str | None, reader: str) -> ContextLine:
    """Return the line of a fact: its text, subject or writer, previous value and time.

    Args:
        reader: the owner whose context it is.
    """
    is_own = hit.about == (hit.speaker,)  # "I moved to Halle", said by Tom
    whose = [f"about {', '.join(map(as_label, hit.about))}"] if hit.about and not is_own else []
    if hit.speaker and (is_own or (hit.space and hit.speaker not in hit.about)):
        whose.append(f"said by {as_label(hit.speaker)}")
    elif hit.space and hit.writer not in ("", reader) and not hit.speaker and not hit.about:  # "off sick today"
        whose.append(f"noted by {as_label(hit.writer)}")
    if hit.speaker and hit.writer not in ("", hit.speaker, reporter(hit.speaker)) and hit.type != "episodic":
        whose.append(f"corrected by {as_label(hit.writer)}")
    about = f" ({', '.join(whose)})" if whose else ""
    former = f" (before: “{safe_line(before)}”)" if before else ""
    return _line(f"{safe_line(hit.excerpt)}{about}{former}{doubt(hit)} [{when(hit)}]{caveat(hit)}", hit)


def doubt(hit: Hit) -> str:
    """Return the mark of a memory that may be outdated: the latest newer facts, and their reviews; "" for others."""
    return "".join(
        f" (not decided, newer: “{safe_line(each.content[:NEWER_CHARS])}” [review:{safe_line(handle_of(each.review))}])"
        for each in hit.doubted_by[:DOUBTS_SHOWN]
    )


def said_line(hit: Hit, *, also: Sequence[Hit] = ()) -> ContextLine:
    """Return a line with a quotation, its speaker and time, and the last days on which the same was said before."""
    days = sorted({each.event_time_local[:10] for each in also} - {hit.event_time_local[:10]}, reverse=True)
    more = f" and {len(days) - _DAYS} more days" if len(days) > _DAYS else ""
    before = f"; also {', '.join(days[:_DAYS])}{more}" if days else ""
    speaker = as_label(hit.place or _speaker(hit))
    return _line(f"{speaker} ({when(hit)}{before}){caveat(hit)}: “{safe_line(hit.excerpt)}”{doubt(hit)}", hit)


def said_lines(hits: Sequence[Hit]) -> list[ContextLine]:
    """Return a line for each quotation, in order. What somebody said more than once, word for word, has one line."""
    said: dict[tuple[str, ...], list[Hit]] = {}
    for hit in hits:
        said.setdefault(_words(hit), []).append(hit)
    latest = [max(each, key=_time) for each in said.values()]
    return [
        said_line(hit, also=[other for other in each if other is not hit])
        for hit, each in zip(latest, said.values(), strict=True)
    ]


def _words(hit: Hit) -> tuple[str, ...]:
    return _speaker(hit), caveat(hit), hit.excerpt


def _speaker(hit: Hit) -> str:
    return hit.speaker or hit.role or "someone"


def _time(hit: Hit) -> str:
    return hit.event_time_iso


def person_line(
    name: str, *, what: Sequence[str], facts: Sequence[tuple[str, str]], when: str, id: str, handle: str
) -> ContextLine:
    """Return a line about an entity, with further facts about it: (text, handle), "" for a text that has none."""
    said = [f"{safe_line(fact)}{f' [id:{safe_line(its)}]' if its else ''}" for fact, its in facts]
    known = f": {'; '.join(said)}" if said else ""
    described = f" ({', '.join(map(as_label, what))})" if what else ""
    return ContextLine(text=f"- {as_label(name)}{described}{known} [{when}] [id:{handle}]", id=id)


def people_line(people: Sequence[tuple[str, str | None]]) -> ContextLine:
    """Return a line that lists the known people and their relations to the owner."""
    named = (f"{as_label(name)} ({as_label(relation)})" if relation else as_label(name) for name, relation in people)
    return ContextLine(text=f"- Known people: {', '.join(named)}")


def _line(text: str, hit: Hit) -> ContextLine:
    notice = f" ({safe_line(hit.notice)})" if hit.notice else ""
    return ContextLine(text=f"- {text}{notice} [id:{safe_line(hit.handle)}]", id=hit.id, at=hit.event_time_iso)


def when(hit: Hit) -> str:
    """Return the day of a hit, and its age."""
    return f"{hit.event_time_local[:10]}, {hit.event_time_relative}"


_HITS: Mapping[str, int] = {"simple": 12, "complex": 24}
"""The number of hits in a context, by the complexity of the prompt."""
_LISTED = 40
"""The number of hits in a context for a prompt that asks for open tasks or for what names a day."""

_FACTS_LEAST = 5
# How many of the latest turns are read for a follow-up prompt, and how much of each.
_RECENT, _RECENT_CHARS = 2, 300
# An assistant's turn repeats another line if that line contains this share of its words.
_ECHO = 0.75
_PROFILES = 4
_DAYS = 3
# How many messages in which people state a need of their own are added.
_TURNS_NEEDED = 3
_FACTS_EACH = 3
_FACTS_READ = 20
_PEOPLE = 12
_SOURCES_EACH = 2
_REPLIES_READ = 3
_FACT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """Context besides the hits: earlier values of facts and replies to questions, both by the id of the hit, profiles
    of entities, all people, and sources.
    """

    before: Mapping[str, Node] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = ()
    people: tuple[Entity, ...] = ()
    sources: tuple[Node, ...] = ()
    replies: Mapping[str, Node] = field(default_factory=dict)


async def brief(
    asking: Asking,
    prompt: str,
    *,
    budget: int | None,
    session: str | None,
    as_of: AsOf = None,
    receipt: bool | None = None,
) -> Context:
    """Return the context for a prompt.

    Raises:
        InvalidError: the budget is not a positive number.
    """
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise InvalidError(f"budget: {budget!r} is not a positive number of tokens")
    asked = query_of(Request(text=prompt, only_relevant=True), now=asking.now, zone=asking.zone)
    complexity = complexity_of(asked.text)
    room = budget_for(complexity, usual=asking.context_tokens) if budget is None else budget
    is_of_people = asks_for_people(asked.text)
    text = asked.text if is_of_people else asked_in(asked.text)
    if follows_up(text):
        text = await _with_recent(asking, text, session=session, as_of=as_of)
    wanted = wants_receipt(asking, receipt)
    request = {"verb": "context", "text": prompt, "budget": budget, "session": session, "as_of": as_of}
    if not text.strip():
        block = assemble({}, budget=room, tokens=EstimatedTokens(), complexity=complexity)
        return _with_receipt(asking, request, block, found=(), left=(), seen=None) if wanted else block
    is_of_all = asks_for_tasks(text) or bool(days_asked(text, now=asking.now, zone=asking.zone))
    query = replace(asked, text=text, limit=_LISTED if is_of_all else _HITS[complexity], with_leading=True)
    ask = partial(answer, asking, traced=as_of is not None, as_of=as_of, reasons=wanted, receipt=wanted)
    question = text if as_of is not None else await _asked_of(asking, text)
    needed = await asking.needed(_needing(question, text), turns=_TURNS_NEEDED) if as_of is None else {}
    results, how = await ask(replace(query, text=question))
    if question != text and not (results.hits or needed):  # the question alone finds nothing
        question = text
        results, how = await ask(query)
    query = replace(query, text=question)
    found = list(results.hits)
    keys = dict(zip(results.ids, how.shown, strict=False))  # a search of the past names no keys
    if len(found) == query.limit and sum(hit.type != "episodic" for hit in found) < _FACTS_LEAST:
        facts, others = await ask(replace(query, filter=Filter(shelves=(KNOWLEDGE,))))
        keys |= dict(zip(facts.ids, others.shown, strict=False))
        found += [hit for hit in facts.hits if hit.id not in results.ids]
    keys |= {hit.id: key for key, hit in needed.items()}
    must = {hit.id for hit in needed.values()}
    found = [*(hit for hit in needed.values() if hit.id not in results.ids), *found]
    if results.intent != "when":
        first = must | _newer_versions(found, must)
        found.sort(key=lambda hit: hit.id not in first)
    found = _without_repetitions(found)
    hits = without_echoes([hit for hit in found if may_be_quoted(hit) and (session is None or hit.session != session)])
    extras = Extras()
    if (hits or is_of_people) and as_of is None:
        extras = await asking.read(
            lambda snapshot: _extras(
                snapshot, asking.scope, question, hits, keys, now=asking.now, is_of_people=is_of_people, needed=must
            ),
            Foreseen(about=text, names=_subjects(hit for hit in hits if hit.id not in must)),
        )
    drafts = drafted(hits, extras, session=session, now=asking.now, zone=asking.zone, owner=asking.scope.owner)
    block = assemble(drafts, budget=room, tokens=EstimatedTokens(), complexity=complexity)
    asking.told([hit for hit in hits if hit.id in block.ids])
    if not wanted:
        return block
    left = [(hit.id, _why_left(hit, hits, session)) for hit in found if hit.id not in block.ids]
    return _with_receipt(asking, request, block, found=found, left=[*left, *how.next_best], seen=how.seen)


async def _asked_of(asking: Asking, text: str) -> str:
    """Return the question of a message that first tells something, after the people that it tells of."""
    told, question = told_and_asked(text)
    if not told:
        return text
    people = await asking.read(lambda tx: people_told_of(tx, asking.scope, told, question), Foreseen(about=text))
    return ". ".join((*people, question))


def _needing(question: str, message: str) -> str:
    """Return the text whose needs count: the question, or the message around it if only that speaks of an illness."""
    told = needs_of(message) if needs_of(question) is None else None
    return message if told is not None and told.of_oneself else question


def _newer_versions(hits: Sequence[Hit], ids: Set[str]) -> set[str]:
    """Return the hits that a search has moved up to right above some others, whose score they have then."""
    found: set[str] = set()
    for hit, below in reversed(list(pairwise(hits))):
        if hit.score == below.score and (below.id in ids or below.id in found):
            found.add(hit.id)
    return found


def _without_repetitions(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits once each, without the messages that a fact among them repeats word for word."""
    once: dict[str, Hit] = {}
    for hit in hits:
        once.setdefault(hit.id, hit)
    repeated = {
        id
        for hit in once.values()
        for id in hit.evidence
        if id in once and says_the_same(hit.content, once[id].content)
    }
    return [hit for id, hit in once.items() if id not in repeated]


def _why_left(hit: Hit, hits: Sequence[Hit], session: str | None) -> str:
    """Return why a hit is not in a context."""
    if not may_be_quoted(hit):
        return "it reads like an instruction"
    if session is not None and hit.session == session:
        return "said in the present conversation"
    if hit not in hits:
        return "an assistant repeats another line"
    is_repeated = any(_words(each) == _words(hit) for each in hits if each is not hit and each.type == hit.type)
    return "said again in the same words" if is_repeated else "no room in the budget"


def _with_receipt(
    asking: Asking,
    request: Mapping[str, Any],
    block: Context,
    *,
    found: Sequence[Hit],
    left: Sequence[tuple[str, str]],
    seen: int | None,
) -> Context:
    sections = {line.id: each.name for each in block.sections for line in each.lines if line.id is not None}
    hits = [hit for hit in found if hit.id in sections]
    beside = sections.keys() - {hit.id for hit in hits}
    draft = Draft(
        scope=asking.scope,
        at=asking.now,
        request=request,
        seen=seen,
        hits=hits,
        sections=sections,
        others=[(section, id_) for id_, section in sections.items() if id_ in beside],
        left_out=[each for each in left if each[0] not in sections],
    )
    return replace(block, receipt=asking.keep(draft))


async def _with_recent(asking: Asking, prompt: str, *, session: str | None, as_of: AsOf) -> str:
    """Return a follow-up prompt, preceded by the latest turns of its conversation; "" if there are none."""
    if session is None or as_of is not None:
        return ""
    filter_ = Filter(shelves=ALL_EPISODES, session=session)

    def read(snapshot: Snapshot) -> list[str]:
        turns = snapshot.nodes.page(asking.scope, filter_, now=asking.now, before_key=None, limit=_RECENT + 1)
        shown = as_shown(snapshot, {node.key: node for node in turns if node.content.strip() != prompt})
        return [shown[key].content[:_RECENT_CHARS] for key in sorted(shown)][-_RECENT:]

    recent = [asked for text in await asking.read(read) if (asked := asked_in(text)) and not follows_up(asked)]
    return " ".join([*recent, prompt]) if recent else ""


def without_echoes(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits without assistant turns that repeat another hit. Pure."""
    said = {hit.id: frozenset(question_terms(hit.content)) for hit in hits}
    own = [hit for hit in hits if hit.role != "assistant"]
    return [
        hit
        for hit in hits
        if hit.role != "assistant"
        or not said[hit.id]
        or not any(len(said[hit.id] & said[other.id]) >= _ECHO * len(said[hit.id]) for other in own)
    ]


def _extras(
    snapshot: Snapshot,
    scope: Scope,
    prompt: str,
    hits: Sequence[Hit],
    keys: Mapping[str, int],
    *,
    now: int,
    is_of_people: bool,
    needed: Set[str],
) -> Extras:
    """Return what a context shows besides some hits, given with their keys by id.

    Args:
        needed: the ids of facts that must not be missed. The prompt is not about the people who need it.
    """
    facts = [hit for hit in hits if hit.type != "episodic"]
    (before, sources), profiles, people, replies = snapshot.together(
        lambda: _behind(snapshot, scope, {hit.id: keys[hit.id] for hit in facts}),
        lambda: _profiles(snapshot, scope, prompt, [hit for hit in facts if hit.id not in needed], facts, now=now),
        lambda: present_people(snapshot, scope, most=_PEOPLE) if is_of_people else (),
        lambda: _replies(snapshot, scope, hits, keys),
    )
    return Extras(before=before, profiles=profiles, people=people, sources=sources, replies=replies)


def _behind(snapshot: Snapshot, scope: Scope, facts: Mapping[str, int]) -> tuple[dict[str, Node], tuple[Node, ...]]:
    """Return the earlier values of facts by id, and what the facts were derived from."""
    found = snapshot.together(
        *(partial(snapshot.nodes.replaced, key) for key in facts.values()),
        *(partial(snapshot.nodes.sources, key, most=_SOURCES_EACH) for key in facts.values()),
    )
    former = {id: versions[0] for id, versions in zip(facts, found, strict=False) if versions}
    keys = list(dict.fromkeys(chain.from_iterable(found[len(facts) :])))
    replaced, rested_on = snapshot.together(
        lambda: snapshot.nodes.by_key(scope, former.values()),
        lambda: as_shown(snapshot, snapshot.nodes.by_key(scope, keys)),
    )
    before = {id: replaced[key] for id, key in former.items() if key in replaced}
    return before, tuple(rested_on[key] for key in keys if key in rested_on)


def _replies(snapshot: Snapshot, scope: Scope, hits: Sequence[Hit], keys: Mapping[str, int]) -> dict[str, Node]:
    """Return the replies to turns that end in a question, by the ids of these turns, except replies that are hits. A
    nod or a laugh is no reply: the turns after it are read instead.
    """
    asking = [hit for hit in hits if hit.type == "episodic" and hit.content.rstrip().endswith(QUESTION_MARKS)]
    left = {keys[hit.id]: hit for hit in asking}
    shown = {hit.id for hit in hits}
    found: dict[str, Node] = {}
    for _ in range(_REPLIES_READ):
        after = snapshot.nodes.next_turns(left) if left else {}
        replies = as_shown(snapshot, snapshot.nodes.by_key(scope, after.values())) if after else {}
        asked, left = left, {}
        for key, reply in after.items():
            if (node := replies.get(reply)) is None or node.id in shown:
                continue
            if is_nod(node.content, intent_of(asked[key].content)):
                left[reply] = asked[key]
            else:
                found[asked[key].id] = node
    return found


def _subjects(hits: Iterable[Hit]) -> list[str]:
    """Return the folded names of what the facts among some hits are about."""
    return [folded_name(name) for hit in hits if hit.type != "episodic" for name in hit.about]


def _profiles(
    snapshot: Snapshot, scope: Scope, prompt: str, facts: Sequence[Hit], hits: Sequence[Hit], *, now: int
) -> tuple[Profile, ...]:
    """Return profiles of the entities that the prompt names, then of those the facts are about. Of one that a hit is
    about, they tell only what they like or must not have.
    """
    keys = [key for naming in namings(snapshot, scope, prompt) for key in naming.entities]
    subjects = _subjects(facts)
    named, about = snapshot.together(
        lambda: snapshot.entities.by_key(scope, keys),
        lambda: snapshot.entities.by_folded_names(scope, subjects) if subjects else [],
    )
    chosen = {each.id: each for each in (*named, *about) if each.merged_into is None and each.closed_at is None}
    limit = _FACTS_READ + len(facts)
    described = list(chosen.values())[:_PROFILES]
    profiles = snapshot.together(*(partial(profile_of, snapshot, scope, e, now=now, limit=limit) for e in described))
    may_matter = not asks_for_one_value(prompt)
    return tuple(_with_what_matters(each, may_matter) if _is_told_of(each, hits) else each for each in profiles)


def _is_told_of(profile: Profile, hits: Iterable[Hit]) -> bool:
    names = {folded_name(name) for name in (profile.name, *profile.aliases)}
    return any(
        not names.isdisjoint(map(folded_name, hit.about)) or any(name in folded_name(hit.content) for name in names)
        for hit in hits
    )


def _with_what_matters(profile: Profile, may_matter: bool) -> Profile:
    kept = (node for node in profile.facts if may_matter and node.category == "preference")
    return replace(profile, facts=tuple(kept))


def drafted(
    hits: Sequence[Hit], extras: Extras, *, session: str | None, now: int, zone: ZoneInfo, owner: str
) -> dict[ContextName, list[ContextLine]]:
    """Return all possible lines, the best of each section first. Pure."""

    def quotable(nodes: Sequence[Node]) -> list[Hit]:
        given: dict[str, Any] = {"score": 0.0, "shares": (), "terms": (), "now": now, "zone": zone}
        found = (hit_of(node, notice=node.notice, **given) for node in nodes)
        seen = (as_own(hit, owner) for hit in found)
        return [hit for hit in seen if may_be_quoted(hit)]

    shown = {hit.id for hit in hits}
    quoted_by = {(id, *raw_words(hit.content)) for hit in hits for id in hit.evidence}
    other = [
        node
        for node in extras.sources
        if node.id not in shown
        and (session is None or node.session != session)
        and (node.id, *raw_words(node.content)) not in quoted_by
    ]
    before = {id: quoted[0].excerpt for id, node in extras.before.items() if (quoted := quotable([node]))}
    said_above = {hit.content for hit in hits}
    described = (
        _person(
            each, quotable([node for node in each.facts if node.id not in shown]), said=said_above, now=now, zone=zone
        )
        for each in extras.profiles
    )
    who = [line for line in described if line is not None]
    listed = [(each.name, each.relation) for each in extras.people]
    replies = {id: quoted[0] for id, node in extras.replies.items() if (quoted := quotable([node]))}
    said = [each for hit in hits if hit.type == "episodic" for each in (hit, replies.get(hit.id)) if each is not None]
    return {
        "facts": [fact_line(hit, before=before.get(hit.id), reader=owner) for hit in hits if hit.type != "episodic"],
        "people": [*who, *([people_line(listed)] if listed else [])],
        "timeline": said_lines([each for each in said if not each.place]),
        "documents": [said_line(each) for each in said if each.place],
        "evidence": [said_line(hit) for hit in quotable(other)],
    }


def _person(
    found: Profile, others: Sequence[Hit], *, said: Collection[str], now: int, zone: ZoneInfo
) -> ContextLine | None:
    """Return the line of an entity, with facts that the lines above (`said`) do not state; None for a person if it
    would tell only the name.
    """
    is_new = found.summary and found.summary not in said and not reasons(found.summary)
    facts = [(found.summary, "")] if found.summary and is_new else []
    facts += [
        (f"{hit.excerpt[:_FACT_CHARS]}{f' ({hit.notice})' if hit.notice else ''}{caveat(hit)}", hit.handle)
        for hit in others[:_FACTS_EACH]
    ]
    what = [found.relation] if found.relation else [found.type]
    what += [f"also {alias}" for alias in found.aliases if alias != found.name][:3]
    if what == ["person"] and not facts:
        return None
    times = format_times(to_ms(found.last_seen), now=now, zone=zone)
    when = f"{times.local[:10]}, {times.relative}"
    return person_line(found.name, what=what, facts=facts, when=when, id=found.id, handle=handle_of(found.id))
