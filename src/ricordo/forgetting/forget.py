"""Reverse changes: forget a memory, restore it, undo a commit or a run.

An undo resets every affected row to its earlier state, in a new commit that can itself be undone. It contains no
table-specific code: rows, their versions and their references come from the store's ledger.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from ricordo.clock import handle_of, to_ms
from ricordo.errors import ConflictError, InvalidError, NotFoundError
from ricordo.model import SUMMARY_MEMORY, Change, Closing, Commit, Node, Relation, RowId, RowState, Run, Scope, Session
from ricordo.storage import Snapshot
from ricordo.storage.groups import Ledger
from ricordo.storage.values import Image, content, evidence_in, with_evidence
from ricordo.text.lifetimes import expiring
from ricordo.text.names import folded_name, name_words, relations_in
from ricordo.text.relation_forms import may_state_relation
from ricordo.text.sentences import plural, shortened

InWords = Callable[[Snapshot, Scope, Sequence[Commit]], Sequence[Commit]]
"""Returns commits with excerpts of what they touched, as far as the caller may see it."""

_CLOSED_BY_UPKEEP = frozenset(("expired", "decayed", "pruned", "evicted"))
_REPLACED = frozenset(("superseded", "merged"))
# Rows that many commits share. They stay while any row refers to them.
_SHARED = frozenset(("sessions", "entities"))
# Rows that connect others. They go with either side, no matter whose change connected them.
_LINKS = frozenset(("edges", "subjects", "aliases", "reviews"))

# What background work writes on its own, and can write again.
_LEARNING = frozenset(
    ("consolidate", "extract", "summarise", "reflect", "enrich", "infer causes", "upkeep", "gc", "prune")
)
# Changes that state what they touch, unless they close it.
_STATING = frozenset(("import", "remember", "add", "resolve"))
# Changes that may close a memory that an undo removes: what they state stands without it.
_BESIDE = _LEARNING | _STATING | {"undo"}

_STILL_REPLACED = (
    "A newer version has replaced it, so it is back in the archive; answers may quote it with that version."
)
_FOUND_AGAIN = "What it may have made out of date is still remembered, and found again"
_ERASURES = "erasures"
_LISTED = 20
_REVIEWS = 20
_SHOWN_CHARS = 80
_EXAMPLES = 3
_QUOTED = re.compile(r"(?= “|(?<=\w) a memory in)")
_BEGINNING = 100


def forget(node: Node, *, at: datetime) -> Change:
    """Return the change that closes a node as forgotten, even one closed for another reason, and suppresses its
    sentences in their sources. Pure.

    Raises:
        ConflictError: it is in quarantine.
    """
    if node.is_live:
        return Change(close=(Closing(id=node.id, at=at, reason="forgotten"),), withhold=(node.id,))
    if node.closed_reason == "forgotten":
        return Change()
    if node.closed_reason == "quarantined":
        raise ConflictError(f"{node.id} is held in quarantine", hint="`review` lists it, `resolve` refuses it")
    return Change(put=(replace(node, closed_at=at, closed_reason="forgotten"),), withhold=(node.id,))


def closed(node: Node, change: Change) -> Node:
    """Return a node as it is after a change."""
    closing = next((each for each in change.close if each.id == node.id), None)
    if closing is None:
        return next((each for each in change.put if each.id == node.id), node)
    return replace(node, closed_at=closing.at, closed_reason=closing.reason)


def with_older(snapshot: Snapshot, scope: Scope, node: Node, *, same: Sequence[Node] = ()) -> Node:
    """Return a node that is forgotten with a notice of the facts that say the same, and of the older ones that it may
    have made outdated: they alone are left, and would come back as true.
    """
    reviews = snapshot.reviews.listed(scope, most=_REVIEWS, kind="conflict", node=node.key)
    left = [each.older for each in reviews if each.newer.id == node.id and each.older and each.older.is_live]
    notices = [
        f"{what}: {', '.join(f'“{each.content[:_SHOWN_CHARS]}” [id:{handle_of(each.id)}]' for each in nodes)}"
        for what, nodes in (("The same is still remembered", same), (_FOUND_AGAIN, left))
        if nodes
    ]
    return replace(node, notice=". ".join(notices)) if notices else node


def with_conclusions(
    snapshot: Snapshot, scope: Scope, nodes: Sequence[Node], change: Change, *, at: datetime
) -> Change:
    """Extend a change that forgets nodes: close the reflections and summaries based on them, which can be remade, and
    the relations that nothing else states.
    """
    if change.is_empty:
        return change
    going = {node.id for node in nodes}
    keys = {key for node in nodes for key in snapshot.nodes.concluded_from(node.key)}
    resting = [*snapshot.nodes.by_key(scope, sorted(keys)).values(), *_told_in(snapshot, scope, nodes)]
    ended = {each.id: each for each in resting if each.id not in going}
    summaries = [each for each in (*nodes, *ended.values()) if each.category == "summary"]
    entities = {
        entity.id: entity
        for each in summaries
        for entity_id in snapshot.nodes.subjects(each.key)
        if (entity := snapshot.entities.by_id(scope, entity_id)) is not None
        and entity.attributes.get(SUMMARY_MEMORY) == each.id
    }
    closings = tuple(Closing(id=each, at=at, reason="expired") for each in ended)
    put = tuple(
        replace(each, summary=None, attributes={k: v for k, v in each.attributes.items() if k != SUMMARY_MEMORY})
        for each in entities.values()
    )
    sessions = _sessions_without(snapshot, scope, [each for each in summaries if each.session])
    closed_relations, altered = _relations_without(snapshot, scope, nodes, at=at)
    return replace(
        change,
        close=(*change.close, *closings),
        put_entities=put,
        sessions=sessions,
        rows=(*change.rows, *closed_relations),
        put_relations=(*change.put_relations, *altered),
    )


def _relations_without(
    snapshot: Snapshot, scope: Scope, nodes: Sequence[Node], *, at: datetime
) -> tuple[list[RowState], list[Relation]]:
    """Return the relations that only these nodes and their sources state, as closed rows, and the others without this
    evidence. What a source says of them is withheld from now on.
    """
    stating = [node for node in nodes if may_state_relation(node.content)]
    sources = snapshot.nodes.evidence(scope, [node.key for node in stating]) if stating else {}
    going, stated = {*(node.id for node in nodes), *chain.from_iterable(sources.values())}, dict[str, Relation]()
    for node in stating:
        stated |= _stated_in(snapshot, scope, node, sources=sources.get(node.key, ()))
    closed, altered, ledger = list[RowState](), list[Relation](), snapshot.history.ledger()
    for relation in stated.values():
        found = (snapshot.nodes.get(scope, id_) for id_ in relation.evidence)  # a source may be another member's
        evidence = sorted((node for node in found if node is not None), key=lambda node: node.created_at)
        is_told = any(node.is_live and node.id not in going for node in evidence)
        is_by_hand = any(relation.created_at < node.created_at for node in evidence[:1])  # it was there before
        row = RowId(table="relations", key=(relation.key,))
        if is_told or is_by_hand:
            rest = tuple(id_ for id_ in relation.evidence if id_ not in going)
            altered.append(replace(relation, evidence=rest))
        elif (image := ledger.current(row)) is not None:
            closed.append(RowState(row=row, values={**image, "closed_at": to_ms(at)}))
    return closed, altered


def _stated_in(snapshot: Snapshot, scope: Scope, node: Node, *, sources: Sequence[str]) -> dict[str, Relation]:
    """Return the relations by id that rest on a node, or on its sources if the node states them, too."""
    said, words = relations_in(node.content), set(name_words(node.content))
    names = [folded_name(name) for name in snapshot.nodes.names(node.key)]
    about = (snapshot.entities.by_id(scope, id_) for id_ in snapshot.nodes.subjects(node.key))
    linked = [*snapshot.entities.by_folded_names(scope, names), *(each for each in about if each is not None)]
    found = [each for key in {entity.key for entity in linked} for each in snapshot.entities.relations(key)]
    found += [each for predicate in said for each in snapshot.entities.open_relations(scope, predicate)]

    def is_stated(relation: Relation) -> bool:
        if node.id in relation.evidence:
            return True
        is_said = relation.predicate in said and not words.isdisjoint(name_words(relation.target_name))
        return is_said and not set(relation.evidence).isdisjoint(sources)

    return {each.id: each for each in found if is_stated(each)}


def _told_in(snapshot: Snapshot, scope: Scope, nodes: Sequence[Node]) -> list[Node]:
    """Return the summaries of the conversations that facts were learnt from, because they may contain these facts."""
    evidence = snapshot.nodes.evidence(scope, [node.key for node in nodes])
    messages = (
        snapshot.nodes.get(scope, id_) for id_ in dict.fromkeys(id_ for ids in evidence.values() for id_ in ids)
    )
    keys = {key for each in messages if each is not None for key in snapshot.nodes.concluded_from(each.key)}
    found = snapshot.nodes.by_key(scope, sorted(keys)).values()
    return [each for each in found if each.category == "summary" and each.session is not None]


def _sessions_without(snapshot: Snapshot, scope: Scope, summaries: Iterable[Node]) -> tuple[Session, ...]:
    """Return the sessions of some summaries, with the text of these summaries removed."""
    found: dict[str, Session] = {}
    for each in summaries:
        session = found.get(each.session or "") or snapshot.sessions.get(scope, each.session or "")
        if session is not None and session.summary:
            left = " ".join(session.summary.replace(each.content, " ").split())
            found[session.id] = replace(session, summary=left or None)
    return tuple(found.values())


def restore(snapshot: Snapshot, node: Node, *, at: datetime) -> tuple[Change, Node]:
    """Return the change that reopens a closed node, and the resulting node. A version that was forgotten after it had
    been replaced is a replaced one again.

    A memory closed by upkeep counts as fresh from `at`; otherwise upkeep would close it again.

    Raises:
        ConflictError: a newer version replaced it, or it is in quarantine.
    """
    if node.is_live:
        return Change(), node
    if node.closed_reason == "forgotten" and (was := _when_forgotten(snapshot, node)).closed_reason in _REPLACED:
        back = replace(node, closed_at=was.closed_at, closed_reason=was.closed_reason)
        return Change(put=(back,)), replace(back, notice=_STILL_REPLACED)
    if node.closed_reason == "quarantined":
        raise ConflictError(f"{node.id} is held in quarantine", hint="`review` lists it, `resolve` approves it")
    if node.closed_reason in _REPLACED:
        raise ConflictError(f"{node.id} was {node.closed_reason}", hint="correct its successor instead")
    back = replace(node, closed_at=None, closed_reason=None)
    is_over = back.expires_at is not None and back.expires_at <= at
    if is_over or (back.expires_at is None and node.closed_reason == "expired"):
        back = expiring(back, None)
    if node.closed_reason in _CLOSED_BY_UPKEEP:
        back = replace(back, reinforced_at=at)
    return Change(put=(back,)), back


def _when_forgotten(snapshot: Snapshot, node: Node) -> Node:
    """Return a forgotten node as it was before."""
    versions = (version for version, _ in reversed(snapshot.history.versions(node)))
    return next((each for each in versions if each.closed_reason != "forgotten"), node)


def undo(
    snapshot: Snapshot, scope: Scope, commit_or_run: int | str, *, with_later: bool, in_words: InWords
) -> tuple[Change, str]:
    """Return the change that undoes a commit, or all commits of a run, and its effect in words. With an import goes
    what was learnt from it. What others need or state as well stays.

    Raises:
        InvalidError: the argument is neither a commit number nor a run id.
        NotFoundError: the caller can see no such commit or run.
        ConflictError: later commits depend on it (`commits` lists them), or nothing is left to undo.
    """
    ledger = snapshot.history.ledger()
    asked = _asked(snapshot, scope, commit_or_run)
    wanted, because = set(asked), dict[int, RowId]()
    while True:
        if found := snapshot.history.erasures(wanted):
            raise ConflictError(
                f"change {found[0]} is an erasure, which cannot be undone", hint="erased data cannot be restored"
            )
        undoing = _Undoing(snapshot, ledger, wanted)
        depending = undoing.blocking or (set() if undoing.states() else undoing.kept_for)
        if not depending:
            break
        because = undoing.because | because
        wanted |= depending
    states = undoing.states()
    later = sorted((wanted | undoing.learnt_in) - set(asked))
    if later or not states:
        _check_not_undone(snapshot, ledger, asked, commit_or_run)
    if not states:
        raise ConflictError(f"nothing is left of {commit_or_run} to undo", hint="erased data cannot be restored")
    mine = sorted(ledger.visible(scope, later))
    if len(mine) < len(later):  # for example a private memory about a member of the group
        raise ConflictError(
            f"{commit_or_run} cannot be undone: later changes by other callers depend on it", commits=tuple(mine)
        )
    is_import = all(each.origin == "import" for each in _commits(snapshot, asked))
    told = [each for each in _commits(snapshot, later) if not (is_import and each.origin in _LEARNING)]
    lines = _in_lines(snapshot, scope, in_words(snapshot, scope, told[:_LISTED]), because)
    lines += [f"and {len(told) - _LISTED:,} more"] if len(told) > _LISTED else []
    if told and not with_later:
        raise _refused(commit_or_run, lines, tuple(each.seq for each in told))
    change = Change(rows=states)
    words = effect(snapshot, change, kept=undoing.kept)
    return change, f"takes back {', '.join(lines)}; {words}" if lines else words


def rolled_back(snapshot: Snapshot, *, to: int) -> Change:
    """Return the change that resets every row of the store, of all owners, to its state right after a commit. Erased
    data stays erased.
    """
    ledger = snapshot.history.ledger()
    later = range(to + 1, snapshot.history.next_commit())
    rows = dict.fromkeys(row for commit in later for row in ledger.touched(commit))
    states = {row: ledger.state(row, to) for row in rows}
    return Change(
        rows=tuple(
            RowState(row=row, values=then)
            for row, then in states.items()
            if row.table != _ERASURES and content(ledger.current(row)) != content(then)
        )
    )


def effect(snapshot: Snapshot, change: Change, *, kept: Sequence[Image] = ()) -> str:
    """Describe the effect of an undo on memories, people and things. Of many, count them and name a few."""
    ledger = snapshot.history.ledger()
    gone = [
        image
        for each in change.rows
        if each.row.table == "entities" and each.values is None and (image := ledger.current(each.row)) is not None
    ]
    decided = sum(
        each.row.table == "reviews"
        and each.values is None
        and (ledger.current(each.row) or {}).get("decision") is not None
        for each in change.rows
    )
    people = [image for image in kept if "canonical_name" in image]
    told = [image for image in kept if "content" in image]
    parts = (
        _memories_in_words(ledger, change),
        _decisions_in_words(ledger, change),
        _named("removes", gone, ""),
        f"removes {plural(decided, 'decision')} about what goes" if decided else "",
        _named("keeps", people, ", as other memories need"),
        _quoted_kept(told),
    )
    return "; ".join(part for part in parts if part)


def _named(verb: str, entities: Sequence[Image], why: str) -> str:
    """Count people and things, and name a few."""
    if not entities:
        return ""
    names = ", ".join(f"“{_beginning(image['canonical_name'])}”" for image in entities[:_EXAMPLES])
    if len(entities) == 1:
        return f"{verb} the {entities[0]['type']} {names}{why and f'{why} it'}"
    such = " such as" if len(entities) > _EXAMPLES else ":"
    return f"{verb} {len(entities):,} people or things{why and f'{why} them'}{such} {names}"


def _quoted_kept(nodes: Sequence[Image]) -> str:
    if not nodes:
        return ""
    texts = ", ".join(f"“{_beginning(image['content'])}”" for image in nodes[:_EXAMPLES])
    such = " such as" if len(nodes) > _EXAMPLES else ""
    return f"keeps {plural(len(nodes), 'memory', 'memories')} that others state as well{such or ':'} {texts}"


def _memories_in_words(ledger: Ledger, change: Change) -> str:
    told = [
        words
        for each in change.rows
        if each.row.table == "nodes" and (words := _effect(ledger.current(each.row), each.values))
    ]
    if len(told) <= _LISTED:
        return "; ".join(told)
    kinds = Counter(_QUOTED.split(words)[0].strip() for words in told)
    counted = ", ".join(f"{kind} {plural(count, 'memory', 'memories')}" for kind, count in kinds.items())
    examples = (words.removeprefix(_QUOTED.split(words)[0]).strip() for words in told[:_EXAMPLES])
    return f"{counted}, such as {', '.join(examples)}"


def _effect(now: Image | None, after: Mapping[str, Any] | None) -> str:
    """Describe the effect of an undo on one memory. Text in quarantine is not quoted."""
    texts = [_quoted(image) for image in (now, after) if image is not None]
    if after is None:
        return f"removes {texts[0]}" if texts else ""
    if now is None or (now["closed_at"] is not None and after["closed_at"] is None):
        return f"brings back {texts[-1]}"
    if now["closed_at"] is None and after["closed_at"] is not None:
        return f"archives {texts[0]}"
    return f"turns {texts[0]} into {texts[1]}" if now["content"] != after["content"] else f"resets {texts[0]}"


def _quoted(image: Image) -> str:
    return "a memory in quarantine" if image["closed_reason"] == "quarantined" else f"“{_beginning(image['content'])}”"


def _decisions_in_words(ledger: Ledger, change: Change) -> str:
    """Name the decisions that an undo takes back or makes again, with the memories they are about."""
    told: list[str] = []
    for each in change.rows:
        now, after = ledger.current(each.row) if each.row.table == "reviews" else None, each.values
        if now is None or after is None or now["decision"] == after["decision"]:
            continue
        keys = [key for key in (now["newer"], now["older"]) if key is not None]
        nodes = filter(None, (ledger.current(RowId(table="nodes", key=(key,))) for key in keys))
        deed = "takes back" if now["decision"] else "decides again"
        about = " and ".join(map(_quoted, nodes))
        told.append(f"{deed} “{now['decision'] or after['decision']}”{about and f' about {about}'}")
    more = f" and {len(told) - _EXAMPLES:,} more decisions" if len(told) > _EXAMPLES else ""
    return "; ".join(told[:_EXAMPLES]) + more


def _beginning(text: str) -> str:
    return shortened(" ".join(text.split()), _BEGINNING)


def undone_runs(snapshot: Snapshot, scope: Scope, change: Change) -> list[Run]:
    """Return the runs that an undo removes from the store, marked as undone."""
    ledger = snapshot.history.ledger()
    images = (ledger.current(each.row) for each in change.rows if each.row.table == "runs" and each.values is None)
    found = (snapshot.runs.get(scope, image["id"]) for image in images if image is not None)
    return [replace(run, state="undone", reason="") for run in found if run is not None]


def _asked(snapshot: Snapshot, scope: Scope, commit_or_run: int | str) -> list[int]:
    """Return the commits with a number or run id; for one of an import, all of the same file. Another owner's commit is
    treated as absent.
    """
    ledger = snapshot.history.ledger()
    if isinstance(commit_or_run, bool) or not isinstance(commit_or_run, int | str):
        raise InvalidError(f"commit_or_run: {commit_or_run!r} is not a commit number or a run id")
    if isinstance(commit_or_run, str) and not (commit_or_run.isascii() and commit_or_run.isdigit()):
        found = ledger.commits_of_run(scope, commit_or_run) if commit_or_run.isprintable() else []
    else:
        number = int(commit_or_run) if len(str(commit_or_run)) < 19 else 0
        found = sorted(ledger.visible(scope, [number]))
        commit = snapshot.history.get(number) if found else None
        if commit is not None and commit.origin == "import" and commit.run_id is not None:
            found = ledger.commits_of_run(scope, commit.run_id)
    if not found:
        raise NotFoundError(f"there is no change {commit_or_run}", hint="`log` lists them")
    return found


def _commits(snapshot: Snapshot, numbers: Iterable[int]) -> list[Commit]:
    found = map(snapshot.history.get, numbers)
    return [commit for commit in found if commit is not None]


def _in_lines(snapshot: Snapshot, scope: Scope, told: Sequence[Commit], because: Mapping[int, RowId]) -> list[str]:
    """Describe each change by its number and words, and by the memory for which it depends on another change."""
    lines, ledger = list[str](), snapshot.history.ledger()
    for each in told:
        line = f"{each.seq} {each.origin}" + (f" “{_beginning(each.words)}”" if each.words else "")
        image = ledger.state(because[each.seq], each.seq - 1) if each.seq in because else None
        node = snapshot.nodes.get(scope, image["id"]) if image is not None and "content" in image else None
        text = _beginning(node.content) if node is not None and node.closed_reason != "quarantined" else ""
        lines.append(f"{line}, which changed “{text}”" if text and text not in line else line)
    return lines


def _refused(commit_or_run: int | str, lines: Sequence[str], later: tuple[int, ...]) -> ConflictError:
    """Return the error for a change on which later ones depend, with a line for each of those."""
    built = f"{len(later):,} later changes depend on it" if len(later) > 1 else "a later change depends on it"
    return ConflictError(
        "\n  ".join([f"{commit_or_run} cannot be undone alone: {built}:", *lines]),
        hint=f"undo all of them together: `ricordo undo {commit_or_run} --with-later` (with_later=True in Python)",
        commits=later,
    )


def _check_not_undone(snapshot: Snapshot, ledger: Ledger, asked: Iterable[int], commit_or_run: int | str) -> None:
    """Raise ConflictError if an undo took every memory of these commits back, and no later undo took that back.

    A change after the undo may have moved on from there, so the present state of the rows does not tell. What a commit
    made beside its memories, such as a person, stays if a later one needs it.
    """
    by: set[int] = set()
    for commit in asked:
        touched = ledger.touched(commit)
        for row in [row for row in touched if row.table == "nodes"] or touched:
            undone = _undone_by(snapshot, ledger, row, commit)
            if undone is None:
                return
            by.add(undone)
    if not by:  # its rows were erased
        return
    last = max(by)
    hint = f"`undo` of change {last} brings it back" if last else "undo the undo to redo it"
    raise ConflictError(f"{commit_or_run} is already undone" + (f", by change {last}" if last else ""), hint=hint)


def _undone_by(snapshot: Snapshot, ledger: Ledger, row: RowId, commit: int) -> int | None:
    """Return the undo that took a commit back in one row: 0 if there is none and the row is as before it; None if the
    commit is in force.
    """
    found = None
    touches = ledger.touches(row)
    for place, seq in enumerate(touches):
        if seq > commit and _is_undo(snapshot, seq):
            then = content(ledger.state(row, seq))
            earlier = (each for each in reversed(touches[:place]) if content(ledger.state(row, each)) == then)
            found = seq if next(earlier, 0) < commit else None
    before = ledger.state(row, commit - 1)
    is_as_before = content(ledger.current(row)) == content(before) or (before is None and row.table in _SHARED)
    return 0 if found is None and is_as_before else found


def _is_undo(snapshot: Snapshot, seq: int) -> bool:
    commit = snapshot.history.get(seq)
    return commit is not None and commit.origin == "undo"


def _ending(image: Image) -> tuple[object, object]:
    return image["closed_at"], image["merged_into"]


def _without(now: Image, *, before: Image, after: Image) -> dict[str, Any]:
    """Return the values of a row without those that a change gave it, unless they have changed again since."""
    return {**now, **{name: before[name] for name in before if now[name] == after[name]}}


class _Undoing:
    """The state of rows after undoing commits, last first. `blocking` are later commits that depend on them, each
    `because` of a row; `learnt_in` are those that only lose what they learnt from removed memories; `kept_for` are
    those that need or state a row as well, such as a person, so that it stays.
    """

    def __init__(self, snapshot: Snapshot, ledger: Ledger, wanted: Iterable[int]) -> None:
        self._snapshot = snapshot
        self._ledger = ledger
        self._wanted = frozenset(wanted)
        self._states: dict[RowId, Image | None] = {}
        self._altered: dict[RowId, list[int]] = {}
        self._changed_since: dict[RowId, list[int]] = {}
        self.blocking: set[int] = set()
        self.because: dict[int, RowId] = {}
        self.learnt_in: set[int] = set()
        self.kept_for: set[int] = set()
        self._kept: dict[RowId, Image] = {}
        stated = list[RowId]()
        for commit in sorted(self._wanted, reverse=True):
            for row in ledger.touched(commit):
                self._take_back(row, commit, stated)
        self._coming: dict[RowId, list[RowId]] = {}
        for row, image in self._states.items():
            for parent in () if image is None else ledger.parents(row, image):
                self._coming.setdefault(parent, []).append(row)
        gone = self._drop_links()
        self._reopen_replaced(gone)
        for row, later in self._changed_since.items():
            if self._now(row) is not None:
                self._block(later, row)
        self._keep_links(stated)
        self._keep_relations(stated)
        self._keep_shared()
        for row in list(self._states):
            self._keep_references(row)

    def states(self) -> tuple[RowState, ...]:
        """Return the rows that change."""
        return tuple(
            RowState(row=row, values=image)
            for row, image in self._states.items()
            if content(image) != content(self._ledger.current(row))
        )

    @property
    def kept(self) -> list[Image]:
        """Return the people, things and memories that stay because others need or state them."""
        return [image for row, image in self._kept.items() if self._now(row) is not None]

    def _now(self, row: RowId) -> Image | None:
        return self._states[row] if row in self._states else self._ledger.current(row)

    def _take_back(self, row: RowId, commit: int, stated: list[RowId]) -> None:
        after, before = self._ledger.state(row, commit), self._ledger.state(row, commit - 1)
        now = self._now(row)
        if content(now) == content(after):
            if before is not None or now is None or not self._keep_stated(row, now, ()):
                self._states[row] = before
            else:
                stated.append(row)
            return
        if row.table == "runs" or (before is None and now is None):  # a run goes on without one of its commits
            return
        touches = self._ledger.touches(row)
        later = [seq for seq in touches if seq > commit and seq not in self._wanted]
        if now is None or after is None:
            self._block(later, row)
        elif (
            before is not None and row.table == "entities" and len({_ending(each) for each in (before, after, now)}) < 2
        ):
            self._states[row] = _without(now, before=before, after=after)
        elif row.table == "relations":
            self._take_back_evidence(row, before, after, now)
        elif row.table in _LINKS or (before is not None and row.table == "nodes"):
            if touches[0] not in self._wanted or row.table != "nodes":  # the commit that made it decides
                self._changed_since[row] = later
        elif before is not None:
            self._block(later, row)
        elif row.table in _SHARED:
            self._states[row] = None
            self._altered[row] = later
        elif row.table != "nodes":
            self._block(later, row)
        elif self._keep_stated(row, now, later):
            stated.append(row)
        elif own := self._in_force(row, later):
            self._block(own, row)
        else:
            self._states[row] = None

    def _keep_stated(self, row: RowId, now: Image, later: Sequence[int]) -> bool:
        """Keep a fact that later commits state, too, and return whether any do."""
        states = self._stating(row, later) if later or (row.table == "nodes" and now["type"] != "episodic") else set()
        self.kept_for |= states
        if states and now["closed_at"] is None:
            self._kept[row] = now
        return bool(states)

    def _take_back_evidence(self, row: RowId, before: Image | None, after: Image, now: Image) -> None:
        """Take back what a change stated of a relation. It stays while others state it."""
        others = () if before is None else evidence_in(before)
        stated = set(evidence_in(after)).difference(others)
        left = [each for each in evidence_in(now) if each not in stated]
        if before is None and not left:
            self._states[row] = None
        else:
            mine = now if before is None else _without(now, before=before, after=after)
            self._states[row] = with_evidence(mine, left)

    def _keep_relations(self, stated: Iterable[RowId]) -> None:
        """Keep the relations that a memory states which stays."""
        ids = {image["id"] for row in stated if (image := self._now(row)) is not None}
        for row, image in self._states.items():
            now = self._ledger.current(row) if row.table == "relations" else None
            if now is None:
                continue
            told = ids.intersection(evidence_in(now))
            if told:
                others = () if image is None else evidence_in(image)
                left = [each for each in evidence_in(now) if each in told or each in others]
                self._states[row] = with_evidence(image or now, left)
            elif image is None:
                self._block(self._in_force(row, self._ledger.touches(row)), row)

    def _in_force(self, row: RowId, commits: Iterable[int]) -> list[int]:
        """Return those of some commits that somebody made of their own accord, and that were not undone since."""
        found = [each.seq for each in _commits(self._snapshot, commits) if each.origin not in _BESIDE]
        return [seq for seq in found if _undone_by(self._snapshot, self._ledger, row, seq) is None]

    def _closes(self, row: RowId, commit: int) -> bool:
        before, after = self._ledger.state(row, commit - 1), self._ledger.state(row, commit)
        if before is None or after is None:
            return False
        return before["closed_at"] is None and after["closed_at"] is not None

    def _stating(self, row: RowId, later: Sequence[int]) -> set[int]:
        """Return the later commits that state a memory, too: in words, or with evidence of their own."""
        found = [each.seq for each in _commits(self._snapshot, later) if each.origin in _STATING]
        ledger = self._ledger
        said = {
            seq for seq in found if not self._closes(row, seq) and _undone_by(self._snapshot, ledger, row, seq) is None
        }
        for child in self._ledger.children(row):
            image = self._ledger.current(child)
            if child.table == "edges" and image is not None and image["relation_type"] == "derived_from":
                source = RowId(table="nodes", key=(image["target"],))
                if source != row and self._wanted.isdisjoint(self._ledger.touches(source)[:1]):
                    said |= set(self._ledger.touches(child)[:1])
        return said - self._wanted

    def _drop_links(self) -> list[RowId]:
        """Remove what connects removed memories to others, and what was learnt from them alone. Return all that go."""
        gone = [row for row, image in self._states.items() if image is None and row.table == "nodes"]
        for row in gone:
            for child in [*self._ledger.children(row), *self._coming.get(row, ())]:
                image = self._now(child) or self._ledger.current(child)  # also one that goes with its own commit
                if image is None or child.table not in _LINKS:
                    continue
                if child.table == "edges" and image["relation_type"] == "derived_from":
                    source = RowId(table="nodes", key=(image["source"],))
                    fact = self._now(source)
                    if fact is not None and self._has_evidence(source):
                        self._kept |= {source: fact} if fact["closed_at"] is None else {}
                    elif fact is not None and self._is_learnt(source):
                        self._take_learnt(source)
                        gone.append(source)
                    elif fact is not None:
                        continue
                self._states[child] = None
        return gone

    def _is_learnt(self, row: RowId) -> bool:
        """Return whether a memory was learnt from its evidence, or stated by an import that gave it the evidence."""
        made = _commits(self._snapshot, self._ledger.touches(row)[:1])
        return all(each.origin in _LEARNING or each.origin == "import" for each in made)

    def _take_learnt(self, row: RowId) -> None:
        """Remove a memory that was learnt, with the people and things that came with it."""
        made, *later = self._ledger.touches(row)
        self._block(self._in_force(row, later), row)
        self.learnt_in |= {each.seq for each in _commits(self._snapshot, [made]) if each.origin in _LEARNING}
        subjects = (self._ledger.current(each) for each in self._ledger.children(row) if each.table == "subjects")
        for entity in [RowId(table="entities", key=(image["entity"],)) for image in subjects if image is not None]:
            touches = self._ledger.touches(entity)
            is_summary = made in touches and (self._now(row) or {}).get("category") == "summary"
            if touches[:1] == [made] or is_summary:
                self._take_back(entity, made, [])
            for child in self._ledger.children(entity) if self._now(entity) is None else ():
                if child.table == "aliases" and self._ledger.touches(child)[:1] == [made]:
                    self._states[child] = None
        self._states[row] = None

    def _reopen_replaced(self, gone: Iterable[RowId]) -> None:
        """Reopen the memories that were closed in favour of removed ones, by a decision or by what was learnt."""
        for row in gone:
            for child in self._ledger.children(row):
                image = self._ledger.current(child) or {}
                if child.table == "reviews" and image["decision"] == "keep old":
                    self._reopen(RowId(table="nodes", key=(image["newer"],)), "retracted")
                elif (
                    child.table == "edges" and image["relation_type"] == "supersedes" and row.key[0] == image["source"]
                ):
                    replaced = RowId(table="nodes", key=(image["target"],))
                    if not self._is_replaced(replaced, set()):
                        self._reopen(replaced, "superseded")

    def _is_replaced(self, row: RowId, seen: set[RowId]) -> bool:
        """Return whether a memory that stays replaced another one, or what had replaced that."""
        seen.add(row)
        images = (self._ledger.current(child) or {} for child in self._ledger.children(row) if child.table == "edges")
        by = {
            RowId(table="nodes", key=(image["source"],))
            for image in images
            if image["relation_type"] == "supersedes" and image["target"] == row.key[0]
        }
        return any(self._now(each) is not None or self._is_replaced(each, seen) for each in by - seen)

    def _reopen(self, row: RowId, reason: str) -> None:
        """Reopen a memory that was closed for a reason, and keep what has changed in it since."""
        now = self._now(row)
        if now is None or now["closed_reason"] != reason:
            return
        for seq in reversed(self._ledger.touches(row)):
            before, after = self._ledger.state(row, seq - 1), self._ledger.state(row, seq)
            if before is not None and after is not None and self._closes(row, seq):
                self._states[row] = _without(now, before=before, after=after)
                return

    def _has_evidence(self, row: RowId) -> bool:
        """Return whether a memory has a source that stays."""
        images = (self._now(child) for child in self._ledger.children(row) if child.table == "edges")
        return any(
            image["relation_type"] == "derived_from"
            and image["source"] == row.key[0]
            and self._now(RowId(table="nodes", key=(image["target"],))) is not None
            for image in images
            if image is not None
        )

    def _keep_links(self, rows: Iterable[RowId]) -> None:
        """Keep what came with rows that stay: the names of a person, the subjects and sources of a memory."""
        for row in rows:
            made = self._ledger.touches(row)[:1]
            for child in self._ledger.children(row):
                image = self._ledger.current(child)
                if child.table not in _LINKS or image is None or self._ledger.touches(child)[:1] != made:
                    continue
                others = (each for each in self._ledger.parents(child, image) if each.table == "nodes")
                if self._states.get(child, image) is None and all(self._now(each) is not None for each in others):
                    del self._states[child]

    def _keep_shared(self) -> None:
        """Keep the shared rows that others need."""
        while kept := {row: users for row in self._states if (users := self._users_of_shared(row))}:
            for row, users in kept.items():
                if row.table == "entities" and (image := self._ledger.current(row)) is not None:
                    self._kept[row] = image
                del self._states[row]
                self.kept_for |= {seq for user in users for seq in self._referring(user, row)} - self._wanted
            self._keep_links(kept)
        for row, later in self._altered.items():
            if row in self._states:
                self._block(self._in_force(row, later), row)

    def _users_of_shared(self, row: RowId) -> list[RowId]:
        if row.table not in _SHARED or self._states[row] is not None:
            return []
        return self._needed([*self._ledger.children(row), *self._coming.get(row, ())], row)

    def _referring(self, user: RowId, row: RowId) -> list[int]:
        """Return the commit that made a row refer to another."""
        made = self._ledger.touches(row)[0]
        return [seq for seq in self._ledger.touches(user) if seq >= made][:1]

    def _block(self, commits: Iterable[int], row: RowId) -> None:
        """Note commits that must be undone as well, and the row because of which they must."""
        found = set(commits) - self._wanted
        self.blocking |= found
        self.because = dict.fromkeys(found, row) | self.because

    def _keep_references(self, row: RowId) -> None:
        """Keep references intact: no row may refer to a removed or missing row."""
        image = self._states[row]
        if image is None:
            for user in self._needed([*self._ledger.children(row), *self._coming.get(row, ())], row):
                self._block(self._referring(user, row), user)
            return
        for parent in self._ledger.parents(row, image):
            if self._now(parent) is not None:
                continue
            gone = self._ledger.touches(parent)[-1:]
            self._block(gone, parent)
            if not gone:  # the parent was erased, and its rows are not restored
                del self._states[row]
                return
        for rival in self._ledger.rivals(row, image):
            if self._now(rival) is not None:
                self._block(self._ledger.touches(rival)[:1], rival)

    def _needed(self, children: Iterable[RowId], row: RowId) -> list[RowId]:
        """Return the rows that will refer to a given row."""
        images = ((child, self._now(child)) for child in dict.fromkeys(children))
        return [child for child, image in images if image is not None and row in self._ledger.parents(child, image)]
