"""The briefing for the beginning of a session: who the user is, valid decisions, current work, open questions, changes.

There is no question to rank by, so each section takes the most confirmed and latest memories of its kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ricordo.clock import handle_of, to_ms
from ricordo.errors import InvalidError
from ricordo.model import Briefing, Category, ContextLine, ContextName, ContextSection, Hit, Node, Scope
from ricordo.ports import TokenCounter
from ricordo.retrieval.context import EstimatedTokens, doubt, fact_line, fenced, fitted, left_out, people_line, when
from ricordo.retrieval.hits import as_own, as_shown, caveat, hit_of, may_be_quoted, newer_in_doubt, writers
from ricordo.retrieval.inspection import known_people
from ricordo.retrieval.owner import is_always_useful, most_telling, own_facts
from ricordo.retrieval.query import ALL_EPISODES, KNOWLEDGE
from ricordo.retrieval.service import Asking
from ricordo.retrieval.states import latest_statements
from ricordo.storage import Snapshot
from ricordo.storage.values import Filter
from ricordo.text.analyzer import QUESTION_MARKS, index_terms
from ricordo.text.canonical import canonical, is_owner
from ricordo.text.change import topics
from ricordo.text.entity_recognition import entities_named
from ricordo.text.filing import is_about_user
from ricordo.text.languages import all_languages, cached
from ricordo.text.prompt_text import reasons, safe_line
from ricordo.text.statement import subject_of
from ricordo.text.tasks import is_open_task
from ricordo.text.work import statements_of_work

SECTIONS: Mapping[ContextName, tuple[str, float]] = {
    "who": ("Who", 0.20),
    "decisions": ("Decisions and rules that hold", 0.28),
    "under_way": ("Under way", 0.18),
    "open": ("Open ends", 0.14),
    "how": ("How things are done", 0.10),
    "changed": ("New or changed since last time", 0.10),
}
"""Each section's title and its share of the budget. A memory that fits several sections is shown in the first."""

NamesOf = Callable[[Snapshot], Sequence[str]]
USUAL_TOKENS = 800
_SAFE = 0.95  # for languages whose tokens are underestimated, such as German
_LATEST_TURNS = 120
_DAY_MS = 86_400_000  # allowance for device clocks that are ahead
_SESSIONS = 4
_SAID_CHARS = 220
_CANDIDATES = 120
_EACH = 40
_RECENT = 250
_SHOWN_BEFORE = 12
_STALE_MS = 14 * _DAY_MS
"""Tasks are hidden if their conversation is this much older than the latest one: most are done by then."""
_SAID = {"document": {"exists": False}}
"""Matches conversations, not documents."""
_WHO: tuple[Category, ...] = ("identity", "relationship", "preference")
_ABOUT = 12
_FIRST = 8
"""How many facts about the user may use the whole budget."""
_FACTS_FIRST = {"who": 4, "open": 6}
"""How many facts about the user stand before the line of their people, and tasks before what is not decided."""
_PEOPLE = 8
_REVIEWS, _REVIEWS_READ, _FEW = 5, 50, 2
_BEGINNING_WORDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The candidates for a briefing: hits by section, best first, and lines that are not hits.

    Attributes:
        seq: the number of the latest commit.
        reader: the owner who gets the briefing.
        always_useful: ids of facts about the user that are shown before everything else.
    """

    hits: Mapping[ContextName, Sequence[Hit]]
    lines: Mapping[ContextName, Sequence[ContextLine]]
    before: Mapping[str, str]
    talks: Sequence[Hit]
    seq: int
    reader: str
    always_useful: Sequence[str] = ()

    def by_id(self) -> dict[str, Hit]:
        """Return all hits by id."""
        return {hit.id: hit for hits in (*self.hits.values(), self.talks) for hit in hits}

    def in_order(self) -> list[tuple[str, str]]:
        """Return (section, id) of all hits, by section."""
        found = [(str(name), hit.id) for name, hits in self.hits.items() for hit in hits]
        return [*found, *(("under_way", hit.id) for hit in self.talks)]


async def gather(
    asking: Asking, *, since: int | None, as_commit: int | None, session: str | None, names: NamesOf
) -> Gathered:
    """Read the candidates for a briefing in one snapshot.

    Args:
        since: what counts as changed, in Unix milliseconds; by default, since the start of the latest conversation or,
            where none is recorded, the latest day on which anything was remembered.
        as_commit: a commit number instead of `since`.
        session: the current conversation, which is excluded.
        names: returns the owner's names.
    """
    return await asking.store.read(lambda tx: _Reading(tx, asking, names(tx)).gathered(since, as_commit, session))


def compose(found: Gathered, *, budget: int) -> Briefing:
    """Return the lines that fit into a budget of tokens. Pure."""
    drafts: dict[ContextName, list[ContextLine]] = {name: list(found.lines.get(name, ())) for name in SECTIONS}
    for name in SECTIONS:
        hits = found.hits.get(name, ())
        facts = [fact_line(hit, before=found.before.get(hit.id), reader=found.reader) for hit in hits]
        first = max(_FACTS_FIRST.get(name, 0), sum(hit.id in found.always_useful for hit in hits))
        drafts[name] = [*facts[:first], *drafts[name], *facts[first:]]
    room, tokens = int(budget * _SAFE), EstimatedTokens()
    sections = fitted(drafts, SECTIONS, budget=room, tokens=tokens, first=found.always_useful)
    return briefing_of(sections, budget, found.seq, left_out=left_out(drafts, sections))


def briefing_of(sections: tuple[ContextSection, ...], budget: int, seq: int, **more: Any) -> Briefing:
    """Return a briefing with these sections; its text is None if there are none."""
    text = fenced(sections) if sections else None
    tokens: TokenCounter = EstimatedTokens()
    return Briefing(
        text=text, tokens=0 if text is None else tokens.count(text), budget=budget, seq=seq, sections=sections, **more
    )


def rewritten(
    found: Gathered, lines: Sequence[tuple[str, str, tuple[str, ...]]], *, budget: int, **more: Any
) -> Briefing:
    """Return a briefing with lines that a model wrote.

    Args:
        lines: (section, text, ids of the source memories). Each line gets the label of its least trusted source.
        more: further fields of the briefing.
    """
    hits = found.by_id()
    drafts: dict[ContextName, list[ContextLine]] = {name: [] for name in SECTIONS}
    for part, text, ids in lines:
        marks = dict.fromkeys(mark(hits[id]) for id in ids if id in hits for mark in (doubt, caveat))
        cited = " ".join(f"[id:{safe_line(hits[id].handle)}]" for id in ids if id in hits)
        name: ContextName = next((each for each in SECTIONS if each == part), "changed")
        drafts[name].append(ContextLine(text=f"- {safe_line(text)}{''.join(marks)} {cited}", id=ids[0]))
    sections = fitted(drafts, SECTIONS, budget=int(budget * _SAFE), tokens=EstimatedTokens())
    return briefing_of(sections, budget, found.seq, **more)


def checked_budget(budget: int | None) -> int:
    """Return the budget of a briefing in tokens.

    Raises:
        InvalidError: it is not a positive number.
    """
    if budget is None:
        return USUAL_TOKENS
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise InvalidError(f"budget: {budget!r} is not a positive number of tokens")
    return budget


@cached()
def _cue_terms() -> tuple[str, ...]:
    """Return the index terms of words that state decisions and rules, in all languages."""
    words = all_languages().words(lambda each: (*each.work.decided, *each.work.rules))
    return tuple(sorted({term for word in words for term in index_terms(word)}))


class _Reading:
    """Reads one snapshot for one briefing. Each memory is returned once."""

    def __init__(self, tx: Snapshot, asking: Asking, names: Sequence[str]) -> None:
        self._tx = tx
        self._names = names
        self._asking = asking
        self._scope = asking.scope
        self._now = asking.now
        self._given: set[int] = set()

    def gathered(self, since: int | None, as_commit: int | None, session: str | None) -> Gathered:
        talks = self._latest_talks(session)
        start = self._start(since, as_commit, talks)
        under_way, spoken = self._under_way(talks)
        who, always_useful = self._about_user()
        hits: dict[ContextName, list[Hit]] = {"who": who}
        hits["decisions"] = self._decisions()
        recent = self._recent()
        hits["open"] = self._best(node for node in recent if is_open_task(node) and not _is_stale(node, talks))
        hits["how"] = self._best(node for node in recent if node.type == "procedural")
        known = [node for node in recent if node.category != "summary"]
        start = _last_written(known) if start is None else start
        if start is None:  # there is no last time to compare with
            fresh = [node for node in known[:_EACH] if self._tx.nodes.replaced(node.key)]
        else:
            fresh = [node for node in known if to_ms(node.created_at) >= start][:_EACH]
        hits["changed"] = self._hits(fresh)
        hits["who"] += self._hits([each for each in known if _is_of_user(each)][: _ABOUT - len(who)])
        undecided = self._undecided()
        if since is None and as_commit is None and not (under_way or undecided or any(hits.values())):
            hits["changed"] = self._hits(known[:_EACH])
        lines: dict[ContextName, list[ContextLine]] = {"under_way": under_way, "open": undecided, "who": self._people()}
        latest = self._tx.history.commits(self._scope, before=None, most=1)
        seq = latest[0].seq if latest else 0
        before = self._before(fresh[:_SHOWN_BEFORE])
        return Gathered(
            hits=hits,
            lines=lines,
            before=before,
            talks=spoken,
            seq=seq,
            reader=self._scope.owner,
            always_useful=always_useful,
        )

    def _start(self, since: int | None, as_commit: int | None, talks: Mapping[str, Sequence[Node]]) -> int | None:
        """Return the time after which something is new, in Unix milliseconds; None if there was no conversation yet."""
        if as_commit is not None:
            before = self._tx.history.commits(self._scope, before=as_commit + 1, most=1)
            return to_ms(before[0].at) + 1 if before else 0
        if since is not None:
            return since
        return min((to_ms(turn.created_at) for turn in next(iter(talks.values()), ())), default=None)

    # ---- conversations

    def _latest_talks(self, session: str | None) -> dict[str, list[Node]]:
        """Return the latest turns by conversation, the latest conversation first, its turns in order."""
        wanted, end = Filter(shelves=ALL_EPISODES, where=_SAID), self._now + _DAY_MS
        keys = self._tx.nodes.within(self._scope, wanted, after=0, before=end, most=_LATEST_TURNS)
        turns = self._tx.nodes.by_key(self._scope, keys.tolist()).values()
        found: dict[str, list[Node]] = {}
        for turn in sorted(turns, key=lambda turn: (turn.event_time, turn.key), reverse=True):
            if turn.session is not None and turn.session != session:
                found.setdefault(turn.session, []).insert(0, turn)
        return found

    def _under_way(self, talks: Mapping[str, Sequence[Node]]) -> tuple[list[ContextLine], list[Hit]]:
        """Return a line for each of the user's latest conversations, and the turns that the lines quote.

        An imported conversation is a record, and what others said in a group is theirs.
        """
        lines, spoken = list[ContextLine](), list[Hit]()
        present = [(name, turns) for name, turns in talks.items() if turns[-1].origin != "import"]
        for name, turns in present[:_SESSIONS]:
            shown = self._hits(turns, once=False)
            summary = self._summary(name)
            asked = next((hit for hit in shown if hit.role == "user" and self._is_own(hit)), None)
            last = next((hit for hit in reversed(shown) if hit.role == "assistant"), None)
            if summary or asked or last:
                lines.append(_session_line(summary, asked, last))
                spoken += [hit for hit in (asked, last) if hit is not None]
        return lines, spoken

    def _is_own(self, hit: Hit) -> bool:
        """Return whether the owner said it, or anybody if the memory has no owner."""
        return hit.speaker is None or not self._scope.owner or is_owner(hit.speaker, self._scope.owner)

    def _summary(self, session: str) -> str | None:
        known = self._tx.sessions.get(self._scope, session)
        return None if known is None or reasons(known.summary or "") else known.summary

    # ---- knowledge

    def _hits(self, nodes: Iterable[Node], *, once: bool = True) -> list[Hit]:
        """Return quotable memories as hits, without forgotten sentences. `once` skips memories returned before."""
        chosen = {node.key: node for node in nodes if not (once and node.key in self._given)}
        shown = as_shown(self._tx, chosen)
        doubted = newer_in_doubt(self._tx, self._scope, shown, now=self._now)
        wrote = writers(self._tx, shown.values())
        given: dict[str, Any] = {"score": 0.0, "shares": (), "terms": (), "now": self._now, "zone": self._asking.zone}
        hits = {
            key: hit_of(node, author=wrote.get(key), doubted_by=doubted.get(key, ()), **given)
            for key, node in shown.items()
        }
        kept = {key: as_own(hit, self._scope.owner) for key, hit in hits.items() if may_be_quoted(hit)}
        if once:
            self._given.update(kept)
        return [kept[key] for key in chosen if key in kept]

    def _about_user(self) -> tuple[list[Hit], list[str]]:
        """Return who the user is: their own facts, the most telling first, then other facts of such categories.

        Also return the ids of those that are useful in every conversation.
        """
        own = [each for each in own_facts(self._tx, self._scope, now=self._now) if each.category != "task"]
        ranked = most_telling(own, self._names)
        latest = self._latest(own)
        telling = list({node.key: node for node in (latest.get(each.key, each) for each in ranked)}.values())[:_ABOUT]
        useful = {latest.get(each.key, each).id for each in ranked if is_always_useful(each, self._names)}
        hits = self._hits(telling)
        self._given.update(latest)
        first = [node.id for node in telling[:_FIRST] if node.id in useful]
        wanted = Filter(shelves=(KNOWLEDGE,), categories=_WHO)
        found = self._tx.nodes.page(self._scope, wanted, now=self._now, before_key=None, limit=_CANDIDATES)
        others = [node for node in found if node.key not in self._given and (node.chat or node.speaker is None)]
        return [*hits, *self._best(others, most=_ABOUT - len(hits))], first

    def _latest(self, own: Sequence[Node]) -> dict[int, Node]:
        """Return the latest statement of its kind in place of each older one, unless a review shows the two."""
        doubted = newer_in_doubt(self._tx, self._scope, {node.key: node for node in own}, now=self._now)
        until = time.monotonic() + self._asking.deadline_s
        found = latest_statements(self._tx, self._scope, own, until=until)
        return {older: newer for older, newer in found.items() if older not in doubted}

    def _decisions(self) -> list[Hit]:
        """Return live facts worded like a decision or a rule, from any source."""
        keys: set[int] = set()
        for owner, chat in _places(self._tx, self._scope):
            keys.update(self._tx.nodes.facts_with(owner, chat, [_cue_terms()], most=_CANDIDATES))
        found = self._tx.nodes.by_key(self._scope, sorted(keys)).values()
        return self._best(node for node in found if self._holds(node) and _is_of_work(node))

    def _holds(self, node: Node) -> bool:
        ends = [at for at in (node.expires_at, node.valid_until) if at is not None]
        return node.is_live and all(to_ms(at) > self._now for at in ends)

    def _best(self, nodes: Iterable[Node], *, most: int = _EACH) -> list[Hit]:
        """Return the most confirmed memories first, then the latest."""
        ordered = sorted(nodes, key=lambda node: (-max(node.score, 0.0), -to_ms(node.event_time), -node.key))
        return self._hits(ordered[:most])

    def _recent(self) -> list[Node]:
        """Return the latest knowledge, last recorded first."""
        wanted = Filter(shelves=(KNOWLEDGE,))
        return self._tx.nodes.page(self._scope, wanted, now=self._now, before_key=None, limit=_RECENT)

    def _before(self, nodes: Sequence[Node]) -> dict[str, str]:
        """Return the text that each memory replaced, by the id of the memory."""
        found: dict[str, str] = {}
        for node in nodes:
            replaced = self._tx.nodes.by_key(self._scope, self._tx.nodes.replaced(node.key)[:1])
            found.update((node.id, hit.excerpt) for hit in self._hits(replaced.values(), once=False))
        return found

    def _undecided(self) -> list[ContextLine]:
        """Return a line for each contradiction that is not yet reviewed, unless the older fact has a line itself.

        The first line tells how many there are, if there are many.
        """
        listed = self._tx.reviews.listed(self._scope, most=_REVIEWS_READ, kind="conflict")
        found = [each for each in listed if each.newer.category != "task"]  # two tasks do not contradict each other
        lines = []
        for each in found:
            if each.older is not None and each.older.key in self._given:
                continue
            pair = self._hits([each.newer, *([each.older] if each.older else [])], once=False)
            if len(pair) == 2 and each.newer.is_live:
                lines.append(_undecided_line(*pair, review=each.id))
        shown = lines[:_REVIEWS]
        return [_count_line(len(found)), *shown] if len(found) > _FEW else shown

    def _people(self) -> list[ContextLine]:
        people = [each for each in known_people(self._tx, self._scope, most=_PEOPLE) if each.relation]
        return [people_line([(each.name, each.relation) for each in people])] if people else []


def _last_written(known: Sequence[Node]) -> int | None:
    """Return a day before the latest of some memories was recorded, in Unix milliseconds; None if none is older.

    Args:
        known: last recorded first.
    """
    start = to_ms(known[0].created_at) - _DAY_MS if known else 0
    return start if any(to_ms(node.created_at) < start for node in known) else None


def _belongs_elsewhere(node: Node) -> bool:
    """Return whether a fact has its own section, or is about somebody's life ("I moved to Rome")."""
    return node.category == "task" or node.type == "procedural" or (not node.chat and _is_of_life(node))


def _is_of_work(node: Node) -> bool:
    """Return whether a fact states a decision or a rule. A word for one is not enough: "Only one rat is left"."""
    if _belongs_elsewhere(node):
        return False
    if node.chat:  # a project's memory is about work
        return True
    kinds = {each.kind for each in statements_of_work(node.content)}
    if kinds:
        return not kinds.isdisjoint(("decision", "rule"))
    begins = index_terms(" ".join(node.content.split(maxsplit=_BEGINNING_WORDS)[:_BEGINNING_WORDS]))
    return not frozenset(_cue_terms()).isdisjoint(begins)


def _is_of_life(node: Node) -> bool:
    if any(each.kind == "rule" for each in statements_of_work(node.content)):
        return False
    return _is_move(node.content) or is_about_user(node.content, category=node.category)


def _is_move(text: str) -> bool:
    """Return whether a fact says that somebody moves: to a place, or a person that it names as its subject."""
    named = entities_named([text])
    if canonical(text).slot == "home" and any(each.type == "place" for each in named):
        return True
    subject = subject_of(text) or ()
    is_of_person = any(each.type == "person" and each.name.split()[0].lower() in subject for each in named)
    return is_of_person and topics(text).mentions("home")


def _is_of_user(node: Node) -> bool:
    """Return whether a private fact is about the user, though it does not say who they are: their car, a habit."""
    return not node.chat and node.category != "task" and is_about_user(node.content, category=node.category)


def _is_stale(node: Node, talks: Mapping[str, Sequence[Node]]) -> bool:
    """Return whether a task was left by a conversation long before the latest one."""
    latest = next((turns[-1] for turns in talks.values()), None)
    is_said = node.origin in ("conversation", "extraction", "consolidation", "import")
    return is_said and latest is not None and to_ms(latest.event_time) - to_ms(node.event_time) > _STALE_MS


def _places(tx: Snapshot, scope: Scope) -> list[tuple[str, str]]:
    """Return the (owner, chat) pairs of the memories that a caller may see. Rights are checked when they are read."""
    joined = [name for name in tx.members.joined(scope.owner) if scope.spaces is None or name in scope.spaces]
    chats = dict.fromkeys(([scope.chat] if scope.chat else []) + joined)
    return [*([(scope.owner, "")] if scope.owner else []), *(("", chat) for chat in chats)]


# ---- lines that are not a single fact


def _session_line(summary: str | None, asked: Hit | None, last: Hit | None) -> ContextLine:
    """Return the line of a conversation: its summary or the user's first message, and the last answer."""
    told = next(hit for hit in (last, asked) if hit is not None) if last or asked else None
    parts = [f"in short: {safe_line(summary)}"] if summary else []
    if asked is not None and not summary:
        verb = "asked" if asked.content.rstrip().endswith(QUESTION_MARKS) else "said"
        parts.append(f"{verb}{caveat(asked)}: “{_beginning(asked.excerpt)}”")
    if last is not None:
        parts.append(f"answered last{caveat(last)}: “{_end(last.excerpt)}”")
    if told is None:
        return ContextLine(text=f"- {'; '.join(parts)}")
    text = f"- {when(told)}: {'; '.join(parts)} [id:{safe_line(told.handle)}]"
    return ContextLine(text=text, id=told.id, at=told.event_time_iso)


def _beginning(text: str) -> str:
    text = " ".join(safe_line(text).split())
    return text if len(text) <= _SAID_CHARS else f"{text[:_SAID_CHARS].rsplit(' ', 1)[0]} …"


def _end(text: str) -> str:
    """Return the end of a text, where an answer names the next step, and its beginning if there is room."""
    text = " ".join(safe_line(text).split())
    if len(text) <= 2 * _SAID_CHARS:
        return text
    return f"{text[:_SAID_CHARS].rsplit(' ', 1)[0]} … {text[-_SAID_CHARS:].split(' ', 1)[-1]}"


def _count_line(pairs: int) -> ContextLine:
    many = f"{pairs}" if pairs < _REVIEWS_READ else f"{pairs} or more"
    return ContextLine(text=f"- {many} pairs of facts contradict each other and wait for a decision (review)")


def _undecided_line(newer: Hit, older: Hit, *, review: str) -> ContextLine:
    """Return the line of two contradicting facts that are not yet reviewed."""
    both = " or ".join(
        f"“{_beginning(hit.excerpt)}”{caveat(hit)} [id:{safe_line(hit.handle)}]" for hit in (newer, older)
    )
    return ContextLine(
        text=f"- Not decided [review:{safe_line(handle_of(review))}]: {both}", id=newer.id, at=newer.event_time_iso
    )
