"""Commands that read: search, query, context, show, timeline and archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from ricordo.errors import InvalidError
from ricordo.interfaces.cli import hits, nodes
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim, minute, one_line, safe, table
from ricordo.interfaces.serialize import too_small, without_tail
from ricordo.model import ClosedReason, Receipt, ReceiptReplay, Results, StaleReason, StandingQuestion
from ricordo.text.sentences import plural

if TYPE_CHECKING:
    from ricordo.memory import Memory

_LIMIT = 10


@command
async def search(
    ctx: CommandContext,
    memory: Memory,
    text: str,
    trace: bool = False,
    why_not: str | None = None,
    limit: int | None = None,
    **given: Any,
) -> Output:
    _check_asked(text, "search")
    results = await memory.search(
        text, trace=True, judge=True, why_not=why_not, limit=_LIMIT if limit is None else limit, **given
    )
    traced = trace or why_not is not None
    return _results(ctx, text, results, traced=traced, whole=trace, shortened=limit is None and not traced)


@command
async def query(ctx: CommandContext, memory: Memory, keywords: str, **given: Any) -> Output:
    _check_asked(keywords, "query")
    return _results(ctx, keywords, await memory.query(keywords, **given), traced=False)


def _check_asked(text: str, verb: str) -> None:
    """Raise InvalidError for an empty question, such as from an unset variable of a shell."""
    if not text.strip():
        raise InvalidError(f"{verb}: the text is empty", hint=f'ricordo {verb} "..."')


def _results(
    ctx: CommandContext, question: str, results: Results, *, traced: bool, whole: bool = True, shortened: bool = False
) -> Output:
    """Show hits, with the complete trace or only the reason why an expected memory is missing.

    Args:
        shortened: show a few of the hits at the end that are probably irrelevant, and say how many are left out.
    """
    _tell_receipt(ctx, results.receipt)
    for part in results.degraded:
        if not part.startswith("as_of: "):  # every command says that the memory was empty then
            ctx.notice(f"Part of the search was not available: {safe(part)}")

    def show(out: Console) -> None:
        shown, left_out = without_tail(results) if shortened else (results, 0)
        hits.listing(out, question, shown, left_out=left_out)
        if traced and results.trace is not None:
            if whole:
                hits.trace(out, results, results.trace)
            hits.absence(out, results, results.trace)
        elif results.trace is not None and results.hits:
            ctx.tip("Why these? Add --trace.")

    return Output(data=results if traced else replace(results, trace=None), show=show)


@command
async def context(ctx: CommandContext, memory: Memory, prompt: str, **given: Any) -> Output:
    parts = await memory.context_parts(prompt, **given)
    _tell_receipt(ctx, parts.receipt)

    def show(out: Console) -> None:
        if parts.text is None:
            ctx.notice(too_small(parts, "`--budget`") or "Nothing in the memory is relevant to this.")
        else:
            click.echo(safe(parts.text))
            ctx.hint(f"About {parts.tokens} of at most {parts.budget} tokens.")

    shown = {
        name: getattr(parts, name) for name in ("tokens", "budget", "complexity", "sections", "receipt", "left_out")
    }
    return Output(data={"context": parts.text, **shown}, show=show)


@command
async def brief(ctx: CommandContext, memory: Memory, **given: Any) -> Output:
    found = await memory.brief_parts(**given)
    for part in found.degraded:
        ctx.notice(f"Not available: {safe(part)}")
    if found.cut:
        ctx.notice(f"Lines removed because no memory supports them: {found.cut}.")

    def show(out: Console) -> None:
        if found.text is None:
            ctx.notice(too_small(found, "`--budget`") or "There is nothing to brief about yet.")
        else:
            click.echo(safe(found.text))
            ctx.hint(f"About {found.tokens} of at most {found.budget} tokens. Next time: --since {found.seq}")

    shown = {name: getattr(found, name) for name in ("tokens", "budget", "seq", "sections", "model", "cut", "left_out")}
    return Output(data={"briefing": found.text, **shown}, show=show)


@command
async def ask(ctx: CommandContext, memory: Memory, question: str, **given: Any) -> Output:
    _check_asked(question, "ask")
    answer = await memory.ask(question, **given)
    _tell_receipt(ctx, answer.receipt)
    for part in answer.degraded:
        ctx.notice(f"Not available: {safe(part)}")
    if answer.cut:
        ctx.notice(f"Sentences removed because no memory supports them: {answer.cut}.")
    elif answer.known and answer.model is None:
        ctx.tip("These passages answer best; a language model (--model) would answer in a sentence.")
    elif not answer.known:
        await _tell_archived(ctx, memory, question)
    return Output(data=answer, show=lambda out: hits.answer(out, question, answer))


async def _tell_archived(ctx: CommandContext, memory: Memory, question: str) -> None:
    """Say how many memories that expired, were replaced or forgotten match a question that nothing live answers."""
    found = await memory.search(question, archived=True, only_relevant=True, receipt=False)
    if found.hits:
        match = f"{plural(len(found), 'closed memory matches', 'closed memories match')}"
        ctx.notice(f"{match} (expired, replaced or forgotten): `ricordo search --archived` shows them.")


def _tell_receipt(ctx: CommandContext, id: str | None) -> None:
    if id is not None:
        ctx.hint(f"Receipt {id[-8:]}: `ricordo receipts {id[-8:]}` shows it.")


@command
async def receipts(
    ctx: CommandContext,
    memory: Memory,
    limit: int,
    id: str | None = None,
    before: str | None = None,
    replay: bool = False,
) -> Output:
    if id is None:
        if replay:
            raise InvalidError("replay: the receipt's id is required", hint="`ricordo receipts` lists them")
        listed = await memory.receipts(limit, before=before)
        return Output(data={"receipts": listed}, show=lambda out: _list_receipts(ctx, out, listed))
    if not replay:
        found = await memory.receipt(id)
        return Output(data=found, show=lambda out: _show_receipt(ctx, out, found))
    replayed = await memory.replay_receipt(id)
    return Output(data=replayed, show=lambda out: _show_replay(ctx, out, replayed))


def _list_receipts(ctx: CommandContext, out: Console, listed: Sequence[Receipt]) -> None:
    if not listed:
        ctx.notice("There are no receipts. --receipt stores one; the setting `receipts` stores one for each answer.")
        return
    lines = table("receipt", "when", "by", "asked", "given")
    for each in listed:
        asked = "(erased)" if each.question is None else one_line(each.question, most=60)
        who = " ".join(filter(None, (each.owner, each.chat)))
        lines.add_row(
            each.id[-8:], minute(each.at, ctx.zone), safe(who), safe(f"{each.verb}: {asked}"), str(len(each.given))
        )
    out.print(lines)


def _show_receipt(ctx: CommandContext, out: Console, found: Receipt) -> None:
    asked = "(its question was erased)" if found.question is None else found.question
    out.print(safe(f"{found.verb}: {asked}"), style="bold")
    caller = " ".join(filter(None, (found.owner, found.chat)))
    out.print(dim(safe(f"{minute(found.at, ctx.zone)}, {caller}, trust {found.trust}, after change {found.commit}")))
    for rank, each in enumerate(found.given, 1):
        why = ", ".join(f"{share.strategy} {share.share:.3f}" for share in each.why if abs(share.share) >= 0.0005)
        score = "" if each.score is None else f"{each.score:.3f}  "
        out.print(safe(f"{rank:3}  {each.id[-8:]}  {score}{each.section}{why}"))
    for left in found.left_out:
        out.print(dim(safe(f"  –  {left.id[-8:]}  {left.reason}")))


def _show_replay(ctx: CommandContext, out: Console, found: ReceiptReplay) -> None:
    _show_receipt(ctx, out, found.receipt)
    for title, differing in (("As of then", found.differs_from_receipt), ("Today", found.differs_today)):
        out.print(f"{title}: {'differs' if differing else 'the same'}", style="bold")
        for each in differing:
            ranks = " → ".join("–" if rank is None else str(rank) for rank in (each.rank_before, each.rank_after))
            out.print(safe(f"     {each.id[-8:]}  {each.what}  {ranks}  {', '.join(each.shares)}"))
    for reason in found.reasons:
        out.print(dim(safe(f"     {reason}")))
    for commit in found.commits:
        out.print(safe(f"  change {commit.seq}  {minute(commit.at, ctx.zone)}  {commit.origin}: {commit.reason}"))


@command
async def questions(ctx: CommandContext, memory: Memory, id: str | None = None) -> Output:
    if id is not None:
        found = await memory.question(id)
        return Output(data=found, show=lambda out: _show_question(ctx, out, found))
    listed = await memory.questions()
    return Output(data={"questions": listed}, show=lambda out: _list_questions(ctx, out, listed))


@command
async def question_keep(ctx: CommandContext, memory: Memory, question: str, **given: Any) -> Output:
    kept = await memory.keep_question(question, **given)
    return Output(data=kept, show=lambda out: _show_question(ctx, out, kept))


@command
async def question_renew(ctx: CommandContext, memory: Memory, **given: Any) -> Output:
    renewed = await memory.renew_questions(**given)

    def show(out: Console) -> None:
        if not renewed:
            ctx.notice("No answer is stale.")
        for each in renewed:
            _show_question(ctx, out, each)

    return Output(data={"questions": renewed}, show=show)


def _list_questions(ctx: CommandContext, out: Console, listed: Sequence[StandingQuestion]) -> None:
    if not listed:
        ctx.notice("There are no standing questions. `ricordo question-keep` creates one.")
        return
    lines = table("question", "asked", "answer", "answered", "state")
    for each in listed:
        answer = _answer_line(each)
        state = "fresh" if each.is_fresh else "stale: " + ", ".join(dict.fromkeys(one.why for one in each.stale))
        lines.add_row(
            each.id[-8:],
            safe(one_line(each.question, most=40)),
            safe(one_line(answer, most=60)),
            minute(each.answered_at, ctx.zone),
            state,
        )
    out.print(lines)


def _answer_line(question: StandingQuestion) -> str:
    if question.answer is None:
        return "(none yet)"
    return question.answer.text if question.answer.known else "(nothing in the memory answers)"


_WHY_STALE = {
    "changed": "{id} was changed",
    "new": "{id} is new or changed, and may answer, too",
    "hidden": "{id} may not be shown any more",
    "unanswered": "there is no answer: it was not answered yet, or something was erased",
    "time": "the period that the question names has moved on",
    "model": "no language model wrote this answer; one can now",
}


def _why_stale(reason: StaleReason) -> str:
    text = _WHY_STALE.get(reason.why, f"{{id}} is {reason.why}").format(id=(reason.id or "")[-8:])
    return text if reason.commit is None else f"{text} (change {reason.commit})"


def _show_question(ctx: CommandContext, out: Console, found: StandingQuestion) -> None:
    out.print(safe(found.question), style="bold")
    for each in () if found.answer is None else found.answer.sentences:
        out.print(safe(f"  {each.text} [{', '.join(id[-8:] for id in each.ids)}]"))
    if found.answer is None or not found.answer.known:
        out.print(f"  {_answer_line(found)}")
    at = "" if found.answered_at is None else f"answered {minute(found.answered_at, ctx.zone)}, "
    out.print(dim(f"  question {found.id[-8:]}, {at}{'fresh' if found.is_fresh else 'stale'}"))
    for reason in found.stale:
        out.print(dim(safe(f"  – {_why_stale(reason)}")))
    if not found.is_fresh:
        ctx.hint(f"`ricordo question-renew {found.id[-8:]}` answers it again.")


@command
async def show(ctx: CommandContext, memory: Memory, **given: Any) -> Output:
    why = await memory.explain(**given)
    return Output(data=why.node, show=lambda out: nodes.card(ctx, why))


@command
async def timeline(ctx: CommandContext, memory: Memory, limit: int, **given: Any) -> Output:
    events = await memory.timeline(limit=limit, **given)

    def show(out: Console) -> None:
        nodes.timeline(out, events, zone=ctx.zone)
        if len(events) == limit:
            ctx.hint(f"There may be earlier ones: add --before {events[0].event_time.isoformat()}")

    return Output(data={"events": events}, show=show)


@command
async def archive(
    ctx: CommandContext, memory: Memory, limit: int, question: str | None = None, reason: ClosedReason | None = None
) -> Output:
    if question is None:
        listed = await memory.archive(limit, reason=reason)
        return Output(data=listed, show=lambda out: nodes.archive(ctx, listed.nodes, totals=listed.counts))
    results = await memory.search(question, archived=True, limit=limit)
    found = [await memory.get(hit.id) for hit in results.hits]
    kept = [node for node in found if reason in (None, node.closed_reason)]
    return Output(data={"nodes": kept}, show=lambda out: nodes.archive(ctx, kept))
