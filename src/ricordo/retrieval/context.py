"""A block of what is worth knowing before an agent speaks. Pure: lines in, markdown out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ricordo.model import Context, ContextLine, ContextName, ContextSection, Hit
from ricordo.ports import TokenCounter
from ricordo.retrieval.provenance import mark, visible
from ricordo.text.recalled import BEGIN, END, NOTE, TAG

SECTIONS: Mapping[ContextName, tuple[str, float]] = {
    "facts": ("Known facts", 0.40),
    "people": ("People and things", 0.25),
    "timeline": ("Said in conversation", 0.25),
    "evidence": ("What that rests on", 0.10),
}
"""Each section's title and its share of the budget; what one leaves over goes to the others."""

_SPEAKING: tuple[ContextName, ...] = ("facts", "timeline")
"""Who somebody is matters beside something to say, not by itself."""

_BY_COMPLEXITY = {"simple": 0.5, "complex": 1.5}


class EstimatedTokens:
    """A token for every four Latin characters, or for every two of other scripts: within a fifth of real tokenizers."""

    def count(self, text: str) -> int:
        plain = sum(char < "\u0250" for char in text)
        return -(-plain // 4) + -(-(len(text) - plain) // 2)


def budget_for(complexity: str, *, usual: int) -> int:
    """How many tokens a block may have: half of what is usual for a simple prompt, half more for a complex one."""
    return int(usual * _BY_COMPLEXITY[complexity])


def assemble(
    drafts: Mapping[ContextName, Sequence[ContextLine]], *, budget: int, tokens: TokenCounter, complexity: str
) -> Context:
    """The lines that fit, the first of each section being its best; no text where none of them says anything.

    Args:
        budget: the most tokens the whole block may have.
    """
    left = budget - tokens.count(f"{BEGIN}\n{NOTE}\n{END}")
    heads = {name: tokens.count(f"## {title}\n") for name, (title, _) in SECTIONS.items()}
    taken: dict[ContextName, list[int]] = {name: [] for name in SECTIONS}
    used = 0
    rooms = [(name, int(left * share)) for name, (_, share) in SECTIONS.items()]
    for name, room in [*rooms, *((name, left) for name in SECTIONS)]:  # by its share first, then of what is left over
        costs = [tokens.count(line.text) + 1 for line in drafts.get(name, ())]
        mine = sum(costs[place] for place in taken[name]) + heads[name]
        for place, cost in enumerate(costs):
            more = cost if taken[name] else cost + heads[name]
            if place not in taken[name] and mine + cost <= room and used + more <= left:
                taken[name].append(place)
                mine, used = mine + cost, used + more
    sections = tuple(
        ContextSection(name=name, title=SECTIONS[name][0], lines=_in_order(name, drafts[name], places))
        for name, places in taken.items()
        if places
    )
    if not any(section.name in _SPEAKING for section in sections):
        return Context(text=None, tokens=0, budget=budget, complexity=complexity)
    parts = [part for each in sections for part in (f"## {each.title}", *(line.text for line in each.lines))]
    text = "\n".join([BEGIN, NOTE, *parts, END])
    return Context(text=text, tokens=tokens.count(text), budget=budget, complexity=complexity, sections=sections)


def _in_order(name: ContextName, lines: Sequence[ContextLine], places: Sequence[int]) -> tuple[ContextLine, ...]:
    """As they are read: what was said by when it was said, all else the best first."""
    chosen = [lines[place] for place in sorted(places)]
    return tuple(sorted(chosen, key=lambda line: line.at) if name == "timeline" else chosen)


def fact_line(hit: Hit, *, before: str | None) -> ContextLine:
    """Return the line of a fact: its subject, since when, and its previous value."""
    about = f" (about {', '.join(map(_tame, hit.about))})" if hit.about else ""
    former = f" (before: “{_tame(before)}”)" if before else ""
    return _line(f"{_tame(hit.excerpt)}{about}{former} [{_when(hit)}]{mark(hit)}", hit)


def said_line(hit: Hit) -> ContextLine:
    """What somebody said, and when."""
    speaker = _tame(hit.speaker or hit.role or "someone")
    return _line(f"{speaker} ({_when(hit)}){mark(hit)}: “{_tame(hit.excerpt)}”", hit)


def person_line(
    name: str, *, what: Sequence[str], facts: Sequence[str], when: str, id: str, handle: str
) -> ContextLine:
    """Who or what somebody is, with what else is known of them."""
    known = f": {'; '.join(_tame(fact) for fact in facts)}" if facts else ""
    described = f" ({_tame(', '.join(what))})" if what else ""
    return ContextLine(text=f"- {_tame(name)}{described}{known} [{when}] [id:{handle}]", id=id)


def people_line(people: Sequence[tuple[str, str | None]]) -> ContextLine:
    """The people there are, each with what they are to the owner."""
    named = (f"{_tame(name)} ({_tame(relation)})" if relation else _tame(name) for name, relation in people)
    return ContextLine(text=f"- Known people: {', '.join(named)}")


def _line(text: str, hit: Hit) -> ContextLine:
    return ContextLine(text=f"- {text} [id:{_tame(hit.handle)}]", id=hit.id, at=hit.event_time_iso)


def _when(hit: Hit) -> str:
    return f"{hit.event_time_local[:10]}, {hit.event_time_relative}"


def _tame(text: str) -> str:
    """A text on one line in which nothing can close the block, begin a heading or pass for a line's end."""
    joined = (
        " ".join(visible(text).split()).replace("<", "‹").replace(">", "›").replace(f"{TAG}", TAG.replace("-", "‑"))
    )
    return joined.replace("[id:", "[id‑")
