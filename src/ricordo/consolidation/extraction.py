"""Learn from messages: ask a model (or apply rules), check its answer, compare it with similar memories.

A conversation can be read while it continues: new messages are read once, and the conversation keeps waiting. A later
reading of the complete conversation does not repeat what was learnt here. Temporary facts are skipped. Each
conversation has one run that grows with it. The commit that stores the facts also records which messages were read, so
a crash loses nothing and reads nothing twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from ricordo.clock import from_ms
from ricordo.consolidation.apply import Compared, Draft, Transcript, add_items, learn
from ricordo.consolidation.context import (
    MAX_PROMPT_TOKENS,
    ConsolidationContext,
    Spent,
    as_shown,
    ask_model,
    batches,
    failure_reason,
    model_name,
    new_run,
    note_outcome,
    prompt_room,
    require_model,
    with_cost,
)
from ricordo.consolidation.evidence import NEW_VALUE, is_plain_relation, new_values
from ricordo.consolidation.judge import (
    NOT_STATED,
    Accepted,
    Judged,
    Refused,
    clean_handle,
    combine,
    judge,
    scaled,
    without_unfounded,
)
from ricordo.consolidation.prompts import (
    CHECK,
    EXTRACT,
    VERSION,
    Page,
    check,
    extraction,
    lines_of,
    pages,
    verification,
)
from ricordo.consolidation.proposed import Check, Checks, Proposal, Verdicts, propose
from ricordo.consolidation.resolve import rivals_of
from ricordo.errors import NotFoundError, RicordoError
from ricordo.model import Assertion, Change, Introduction, Node, Run, RunItem, Scope
from ricordo.models.language import AnswerError
from ricordo.storage import Snapshot
from ricordo.storage.values import Waiting
from ricordo.text.canonical import canonical

MOMENTARY = frozenset(("context", "observation"))
"""Categories of temporary facts, which are not stored while a conversation continues."""

BUSY = "another process is consolidating it"
MALFORMED = "does not have the form that was asked for"

_BEFORE = 2
_PAIRS = 20
_PAIR_CHARS = 400
_CANDIDATES = 3
_RESTING = 10


def transcript(snapshot: Snapshot, place: tuple[str, str], session: str | None, episodes: Sequence[Node]) -> Transcript:
    """Return some messages of a conversation as a transcript, in the given order."""
    return Transcript(place=place, session=session, episodes=tuple(episodes), shown=as_shown(snapshot, episodes))


def prompt_pages(
    context: ConsolidationContext, shown: Sequence[Node], *, prompt: str, before: Sequence[Node] = ()
) -> list[Page]:
    """Cut messages into pages that fit a prompt of the model.

    Args:
        before: the messages before the first one, as context that must not be used as evidence.
    """
    model = context.model
    room = MAX_PROMPT_TOKENS if model is None else prompt_room(model, context.tokens, prompt)
    found = pages(shown, room=room, tokens=context.tokens)
    return [replace(found[0], before=lines_of(before)), *found[1:]] if found and before else found


async def make_draft(
    context: ConsolidationContext, said: Transcript, spent: Spent, *, before: Sequence[Node] = (), replays: str = ""
) -> Draft:
    """Return what a model, or the rules, learn from messages: checked, and compared with similar memories.

    A page without a usable answer is skipped, and its messages are not part of the draft.

    Args:
        replays: the id of the replayed run, if any; then every page is required, and nothing is compared.

    Raises:
        AnswerError: no page has a usable answer; in a replay, any page lacks one.
        RicordoError: the model cannot be reached.
    """
    judged, failed, answers = list[Judged](), dict[str, str](), list[str]()
    found = prompt_pages(context, said.shown, prompt=EXTRACT, before=before)
    for number, page in enumerate(found, start=1):
        try:
            answer, key = await _judged_page(context, said, page, spent, replays=replays)
            judged.append(answer)
            answers += [key] if key else []
        except AnswerError as error:
            if replays or (not judged and number == len(found)):
                raise
            where = f"page {number} of {len(found)}: " if len(found) > 1 else ""
            failed |= {node.id: f"{where}{error.message}" for node in page.episodes.values()}
    by_rule = context.model is None
    draft = Draft(
        said=_without(said, failed),
        judged=combine(judged),
        waits_on=by_rule,
        is_verbatim=by_rule,
        failed=failed,
        answers=tuple(answers),
    )
    if by_rule or replays:
        return draft
    compared, failed_because = await _compare(context, draft, spent)
    return replace(draft, compared=compared, not_compared=failed_because)


def _without(said: Transcript, failed: Mapping[str, str]) -> Transcript:
    if not failed:
        return said
    left = tuple(node for node in said.episodes if node.id not in failed)
    return replace(said, episodes=left, shown=tuple(node for node in said.shown if node.id not in failed))


async def _judged_page(
    context: ConsolidationContext, said: Transcript, page: Page, spent: Spent, *, replays: str
) -> tuple[Judged, str]:
    """Return the accepted items of the answer for a page, and the key under which the answer is stored, or "".

    An answer is stored until its conversation is learnt, so that each page is paid for once even if a later page fails.

    Raises:
        AnswerError: there is no usable answer, or no item in it is supported by the messages.
        RicordoError: the model cannot be reached.
    """
    if context.model is None:
        return judge(propose(page), page, context.rules), ""
    turns = extraction(page.lines, before=page.before, day=page.day)
    parts = (context.model.name, VERSION, replays, *(turn.text for turn in turns))
    key = "page:" + blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
    kept = await context.store.read(lambda tx: tx.proposals.body(said.scope, key))
    lost = spent.lost
    proposal = await ask_model(context, turns, Proposal, spent) if kept is None else Proposal.model_validate_json(kept)
    malformed = (Refused(text="", reason=MALFORMED),) * (spent.lost - lost)
    judged = await _verified(context, judge(proposal, page, context.rules), page, spent)
    judged = replace(judged, refused=(*judged.refused, *malformed))
    if judged.is_unfounded:  # otherwise the messages would no longer be found, and nothing would replace them
        raise AnswerError("the conversation supports nothing in the model's answer")
    if kept is None and spent.run.state != "dry":
        body, at = proposal.model_dump_json(), context.now()
        await context.store.derive(lambda tx: _keep_answer(tx, said, key, body, at=at))
    return judged, key


async def _verified(context: ConsolidationContext, judged: Judged, page: Page, spent: Spent) -> Judged:
    """Ask the model whether the doubtful facts of a page are supported by their evidence.

    Confirmed facts are no longer doubtful. Facts that contradict their evidence are refused, and so are unconfirmed
    facts without a common word. The rest stays doubtful and is held back for review.
    """
    doubtful = [fact for fact in judged.facts if fact.doubt]
    relations = _relations_to_check(judged, page)
    claims = [(fact.content, fact.evidence) for fact in doubtful] + [(text, nodes) for text, nodes, _ in relations]
    checks = await _checks(context, claims, page, spent) if claims else []
    outcomes = {id(fact): found for fact, found in zip(doubtful, checks, strict=False)}
    unstated = [
        (text, each)
        for (text, _, each), found in zip(relations, checks[len(doubtful) :], strict=True)
        if not _is_stated(context, found)
    ]
    judged = _without_relations(judged, unstated)
    facts, refused = list[Accepted](), list[Refused]()
    told = [*page.before, *page.lines]
    for fact in judged.facts:
        found = outcomes.get(id(fact))
        if _is_stated(context, found):
            fact = replace(fact, doubt=NEW_VALUE if new_values(fact.content, told) else "")
        elif fact.doubt and found is not None and found.is_ == "otherwise":
            refused.append(Refused(text=fact.content, reason="its evidence says otherwise"))
            continue
        facts.append(fact)
    return without_unfounded(replace(judged, facts=tuple(facts), refused=(*judged.refused, *refused)))


async def _checks(
    context: ConsolidationContext, claims: Sequence[tuple[str, Sequence[Node]]], page: Page, spent: Spent
) -> list[Check | None]:
    """Return the model's check of each statement against its messages; None if there is no usable answer."""
    room, tokens = prompt_room(require_model(context), context.tokens, CHECK), context.tokens
    asked = [
        (f"c{number}", text[:_PAIR_CHARS], *_lines_of(page, evidence))
        for number, (text, evidence) in enumerate(claims, start=1)
    ]
    found: dict[str, Check] = {}
    for part in batches(asked, _check_text, room=room, most=_PAIRS, tokens=tokens):
        with contextlib.suppress(AnswerError):  # unconfirmed facts are held back
            answer = await ask_model(context, check(part), Checks, spent)
            found |= {clean_handle(each.claim): each for each in answer.checks}
    return [found.get(handle) for handle, *_ in asked]


def _is_stated(context: ConsolidationContext, found: Check | None) -> bool:
    return found is not None and found.is_ == "stated" and scaled(found.confidence) >= context.rules.min_confidence


Claimed = Introduction | Assertion


def _relations_to_check(judged: Judged, page: Page) -> list[tuple[str, Sequence[Node], Claimed]]:
    """Return the relations of a page that are not stated directly: as a sentence, with their evidence."""
    nodes = {node.id: node for node in page.episodes.values()}
    found = list[tuple[str, Sequence[Node], Claimed]]()
    for each in judged.entities:
        evidence = [nodes[id] for id in each.evidence]
        names = (each.name, *each.aliases)
        if each.relation and not any(is_plain_relation(each.relation, name, evidence) for name in names):
            found.append((f"{each.name} is the {each.relation} of the speaker", evidence, each))
    for said in judged.relations:
        evidence = [nodes[id] for id in said.evidence]
        found.append((f"{said.target} is the {said.predicate} of {said.source}", evidence, said))
    return found


def _without_relations(judged: Judged, unstated: Sequence[tuple[str, Claimed]]) -> Judged:
    """Remove relations that were not confirmed."""
    gone = [each for _, each in unstated]
    refused = (Refused(text=text, reason=NOT_STATED) for text, _ in unstated)
    return replace(
        judged,
        entities=tuple(replace(each, relation=None) if each in gone else each for each in judged.entities),
        relations=tuple(each for each in judged.relations if each not in gone),
        refused=(*judged.refused, *refused),
    )


def _check_text(claim: tuple[str, str, Sequence[str], Sequence[str]]) -> str:
    return "\n".join((claim[1], *claim[2], *claim[3]))


def _lines_of(page: Page, evidence: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Return the lines before the evidence of a claim, and the evidence, both without handles."""
    said, cited = [line.partition(" ")[2] for line in page.lines], {node.id for node in evidence}
    places = [place for place, node in enumerate(page.episodes.values()) if node.id in cited]
    before = {near for place in places for near in range(max(0, place - _BEFORE), place)} - set(places)
    earlier = page.before if 0 in places else ()
    return [*earlier, *(said[place] for place in sorted(before))], [said[place] for place in places]


def _keep_answer(snapshot: Snapshot, said: Transcript, key: str, body: str, *, at: int) -> None:
    space = snapshot.space(*said.place)
    if space is not None:
        snapshot.proposals.put(key, space=space, at=at, body=body)


async def _compare(context: ConsolidationContext, draft: Draft, spent: Spent) -> tuple[tuple[Compared, ...], str]:
    """Ask the model how each fact relates to similar memories. If there are none, ask nothing.

    Returns:
        The verdicts, and why some pairs got none, or "". The rules still compare those pairs.
    """
    pairs: dict[str, tuple[int, Node]] = {}
    for index, fact in enumerate(draft.judged.facts):
        for old in await _similar(context, draft, fact):
            pairs[f"p{len(pairs) + 1}"] = index, old
    found, problem = list[Compared](), ""
    for start in range(0, len(pairs), _PAIRS):
        part = dict(list(pairs.items())[start : start + _PAIRS])
        shown = [
            (handle, draft.judged.facts[index].content[:_PAIR_CHARS], old.content[:_PAIR_CHARS])
            for handle, (index, old) in part.items()
        ]
        try:
            answer = await ask_model(context, verification(shown), Verdicts, spent)
        except AnswerError as error:
            problem = failure_reason(error)
            continue
        for verdict in answer.verdicts:
            pair = part.get(clean_handle(verdict.pair))
            if pair and verdict.is_ in ("same", "contradicts"):
                index, old = pair
                found.append(Compared(fact=index, old=old, says=verdict.is_, confidence=scaled(verdict.confidence)))  # type: ignore[arg-type]  # just checked
    return tuple(found), problem


async def _similar(context: ConsolidationContext, draft: Draft, fact: Accepted) -> list[Node]:
    """Return the few memories that a fact may repeat or contradict."""
    found = await context.similar(draft.said.scope, fact.content, fact.type, fact.about)
    place = draft.said.place
    near = [node for node in found if (node.owner, node.chat) == place and node.content != fact.content][:_CANDIDATES]
    form = canonical(fact.content, about=fact.about, slot=fact.slot)
    resting = await context.store.read(lambda tx: _learnt_from_same(tx, draft.said.scope, fact))
    rivals = await context.store.read(lambda tx: rivals_of(tx, place, form))
    other = [node for node in rivals if node.type == fact.type and node.content != fact.content]
    return list({node.id: node for node in (*near, *other, *resting)}.values())


def _learnt_from_same(snapshot: Snapshot, scope: Scope, fact: Accepted) -> list[Node]:
    """Return facts learnt earlier from a fact's own evidence, which may state the same in other words."""
    keys = snapshot.evidence.resting_on([node.id for node in fact.evidence], most=_RESTING)
    found = snapshot.nodes.by_key(scope, keys).values()
    return [node for node in found if node.type == fact.type and node.content != fact.content]


# ---- conversations in progress


async def extract(context: ConsolidationContext, session: str | None, *, dry_run: bool = False) -> Run:
    """Learn from messages since the last reading, in one conversation or in all that wait.

    Raises:
        NotFoundError: there is no such session.
    """
    waiting = await context.store.read(lambda tx: waiting_conversations(tx, context.scope, session))
    run = new_run(context, "extraction", prompt=VERSION, dry_run=dry_run)
    for each in waiting:
        part = await extract_one(context, (each.owner, each.chat), each.session, dry_run=dry_run)
        run = _combined(run, part)
        if part.state == "failed" and part.reason and not part.sessions:
            break  # an unreachable provider fails for every conversation
    return replace(run, ended_at=from_ms(context.now()))


def waiting_conversations(snapshot: Snapshot, scope: Scope, session: str | None) -> list[Waiting]:
    """Return the waiting conversations, oldest first, or only one session.

    Raises:
        NotFoundError: there is no such session.
    """
    if session is not None and snapshot.sessions.get(scope, session) is None:
        raise NotFoundError(f"there is no session {session!r}", hint="a session begins with its first message")
    return [each for each in snapshot.runs.waiting(scope) if session in (None, each.session)]


def _combined(run: Run, part: Run) -> Run:
    """Merge the runs of several conversations. The run of a single one is returned unchanged."""
    if not run.items:
        return part if part.items else run
    failed = run.state == "failed" and part.state == "failed"
    return replace(
        run,
        state="failed" if failed else "dry" if run.state == "dry" else "done",
        sessions=(*run.sessions, *part.sessions),
        items=(*run.items, *part.items),
        tokens_in=run.tokens_in + part.tokens_in,
        tokens_out=run.tokens_out + part.tokens_out,
        cost=None if run.cost is None or part.cost is None else run.cost + part.cost,
    )


async def extract_one(
    context: ConsolidationContext, place: tuple[str, str], session: str | None, *, dry_run: bool = False
) -> Run:
    """Read the new messages of one conversation, unless another process does. A failure changes nothing."""
    run = new_run(context, "extraction", prompt=VERSION, dry_run=dry_run)
    if not dry_run:
        growing = await context.store.read(lambda tx: tx.runs.extraction_of(place, session, model=run.model))
        run = replace(run, id=growing or run.id)
    spent = Spent(run=run, session=session)
    try:
        async with context.conversation(place, session, dry_run=dry_run) as is_ours:
            if not is_ours:
                return replace(run, items=(RunItem(what="left", text=session or "", reason=BUSY),))
            done = await _read(context, place, session, run, spent, dry_run=dry_run)
    except RicordoError as error:
        reason = failure_reason(error)
        known = (session,) if session and isinstance(error, AnswerError) else ()
        failed = RunItem(what="failed", text=session or "", reason=reason)
        done = replace(run, state="failed", reason=reason, sessions=known, items=(failed,))
    if spent.calls or done.state == "failed":
        await note_outcome(context, done, session)
    return done


async def _read(
    context: ConsolidationContext, place: tuple[str, str], session: str | None, run: Run, spent: Spent, *, dry_run: bool
) -> Run:
    found = await context.store.read(lambda tx: _unread(tx, context, place, session))
    if found is None:
        return run
    said, before = found
    draft = await make_draft(context, said, spent, before=before)
    draft = replace(draft, judged=_lasting(draft.judged, lists=context.model is not None), waits_on=True)
    if dry_run:
        return await context.store.read(lambda tx: _learn(tx, context, draft, run, spent)[1])
    done = await context.write(
        "extract", lambda tx: _learn(tx, context, draft, run, spent), run_id=run.id, scope=said.scope
    )
    await context.store.derive(lambda tx: tx.proposals.drop(draft.answers))
    return done


def _unread(
    snapshot: Snapshot, context: ConsolidationContext, place: tuple[str, str], session: str | None
) -> tuple[Transcript, tuple[Node, ...]] | None:
    """Return the messages since the last reading, and the last ones before; None without a person's message."""
    waiting = snapshot.runs.waiting_episodes(context.scope, place, session)
    read = snapshot.runs.read_by(place, session, model=model_name(context.model), among=waiting)
    fresh = [node for node in waiting if node.key not in read]
    if not any(node.role == "user" for node in fresh):
        return None
    first = waiting.index(fresh[0])
    return transcript(snapshot, place, session, fresh), as_shown(snapshot, waiting[max(0, first - _BEFORE) : first])


def _lasting(judged: Judged, *, lists: bool) -> Judged:
    """Drop temporary facts. The rules find the same ones each time, so `lists` omits their refusals."""
    kept = tuple(fact for fact in judged.facts if fact.category not in MOMENTARY)
    gone = [fact for fact in judged.facts if fact.category in MOMENTARY]
    refused = tuple(Refused(text=fact.content, reason="holds only for the moment") for fact in gone)
    return replace(judged, facts=kept, summary="", refused=(*judged.refused, *refused) if lists else ())


def _learn(
    snapshot: Snapshot, context: ConsolidationContext, draft: Draft, run: Run, spent: Spent
) -> tuple[Change, Run]:
    """Learn from new messages under the growing run. Return the run with only its new items."""
    before = snapshot.runs.get(draft.said.scope, run.id)
    base = run if before is None else replace(before, state=run.state)
    run = with_cost(base, spent, context.limits)
    change, done = learn(snapshot, draft, context.learning, run=run, now=context.now())
    if context.model is None:
        return change, replace(done, items=done.items[len(base.items) :])
    present = (snapshot.nodes.get(draft.said.scope, node.id) for node in draft.said.episodes)
    there = [node.id for node in present if node is not None and node.is_live]
    seen = RunItem(what="looked", reason=f"{len(there)} messages", evidence=tuple(there))
    whole = add_items(done, [seen], at=from_ms(context.now()), session=draft.said.session)
    return replace(change, runs=(whole,)), replace(whole, items=whole.items[len(base.items) :])
