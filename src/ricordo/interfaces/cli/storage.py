"""Commands for the complete store: statistics, log, check, clean-up, backup, import and export."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ricordo.errors import InvalidError, RicordoError, StoreError
from ricordo.interfaces.cli import agents, projects
from ricordo.interfaces.cli.options import CommandContext, command, exit_status, view
from ricordo.interfaces.cli.terminal import (
    Output,
    counts,
    dim,
    minute,
    one_line,
    progress_bar,
    safe,
    short_id,
    table,
    wait_for_embeddings,
)
from ricordo.interfaces.serialize import deed_in_words
from ricordo.model import (
    ArchiveReport,
    Commit,
    Document,
    DocumentReport,
    ExportReport,
    Finding,
    ImportPart,
    ImportReport,
    ImportSpeaker,
    MaintenanceReport,
    Report,
    Scope,
    Stats,
    SyncReport,
)
from ricordo.ports import Progress
from ricordo.text.sentences import plural

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from ricordo.interfaces.watch import Step as WatchStep
    from ricordo.memory import Memory

_MAX_ITEMS = 20
_MOVES_MOST = 2
_MANY_REFUSED = 3


# statistics and log


@view("stats")
def _show_stats(ctx: CommandContext, found: Stats) -> None:
    waiting = f", {found.embedding_missing:,} waiting" if found.embedding_missing else ""
    embedded = f"{found.embedded:,} with {found.embedder}{waiting}" if found.embedder else "none, search by words only"
    if found.next_embedder:
        embedded += f"; {found.next_embedded:,} so far with {found.next_embedder}, which replaces it"
    still = "not read by a language model" if ctx.model is None else "waiting to become knowledge"
    derived = {
        "where": ctx.location,
        "memories": _totals(found.nodes) or "none",
        "kinds": _totals(found.categories),
        "waiting": f", {found.sessions_waiting:,} {still}" if found.sessions_waiting else "",
        "links": _links(found),
        "embeddings": embedded,
    }
    ctx.out.print(ctx.labelled(found, derived))


def _links(found: Stats) -> str:
    alone = f"; {plural(found.orphans, 'memory', 'memories')} without links" if found.orphans else ""
    each = f", {found.edges_per_node:.1f} per memory" if found.edges else ""
    return f"{_totals(found.edges) or 'none'}{each}{alone}"


def _totals(found: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in found.items())


@view("undo")
def _show_undo(ctx: CommandContext, commit: Commit) -> None:
    is_done = commit.seq > 0
    done = Text("Undone: " if is_done else "Would be undone: ", "green" if is_done else "bold")
    ctx.out.print(done.append(safe(commit.words or "the change, which altered the text of no memory"), ""))
    if is_done:
        ctx.out.print(dim(f"{ctx.command(f'undo {commit.seq}')} reverses this."))


_NOBODY = {"sync": "(automatic)", "replay": "(automatic)"}
"""Who made a change without an author, by its reason. Other changes have lost their author to an erasure."""


@view("log")
def _show_log(ctx: CommandContext, commits: Sequence[Commit]) -> None:
    if not commits:
        ctx.out.print("There are no changes yet.")
        return
    lines = table("change", "when", "by", "what")
    for commit in commits:
        nobody = _NOBODY.get(commit.reason, "(erased)")
        who, what = one_line(commit.author, most=50) or nobody, one_line(deed_in_words(commit))
        lines.add_row(str(commit.seq), minute(commit.at, ctx.zone), Text(who), Text(what))
    ctx.out.print(lines)


# check and repair


@view("doctor", "verify-backup")
def _show_report(ctx: CommandContext, report: Report) -> None:
    """Print one line for each check, with a remedy for each problem."""
    lines = Table.grid(padding=(0, 2))
    for finding in report.findings:
        mark = Text("ok", style="green") if finding.ok else Text("PROBLEM", style="bold red")
        remedy = f"\n{finding.remedy}" if finding.remedy else ""
        lines.add_row(mark, finding.check, Text(safe(finding.detail + remedy), style="dim" if finding.ok else ""))
    ctx.out.print(lines)
    ctx.out.print()
    ctx.out.print(ctx.spec["well"] if report.ok else ctx.spec["ill"])


@command
async def doctor(ctx: CommandContext, fix: bool = False) -> Report:
    may_move = fix and "://" not in ctx.location and _lies_on_writable_disk(ctx)
    done: list[Finding] = []
    with ctx.waiting():
        while True:
            may_move &= len(done) < _MOVES_MOST
            try:
                async with ctx.open(create=bool(done)) as memory:
                    report = await memory.doctor(fix=fix)
                if not may_move or not _is_beyond_repair(report):
                    return Report(findings=(*report.findings, *done))
            except StoreError:
                if not may_move:
                    raise
            moved, kept = await _salvaged(ctx)
            detail = f"{', '.join(moved) or 'nothing'} moved aside; {plural(kept, 'memory', 'memories')} kept of it"
            done.append(Finding(check="damaged file", ok=True, detail=detail, remedy=""))


def _is_beyond_repair(report: Report) -> bool:
    """Return whether rows, pages or commits are damaged in a way that only a backup can repair."""
    return any(not each.ok and each.check not in ("permissions", "who can read", "notes") for each in report.findings)


def _lies_on_writable_disk(ctx: CommandContext) -> bool:
    return bool(os.access(Path(ctx.location).expanduser().absolute().parent, os.W_OK))


async def _salvaged(ctx: CommandContext) -> tuple[list[str], int]:
    """Move a damaged store aside; store its readable memories again. Return the moved files and the number stored."""
    from ricordo.storage.key import key_of
    from ricordo.storage.registry import move_damaged_aside

    moved, remains = await asyncio.to_thread(move_damaged_aside, ctx.location, key_of(ctx.settings().key))
    kept = 0
    async with ctx.open(create=True) as memory:
        for each in remains:
            given = dict(each)
            owner, chat, text = given.pop("owner"), given.pop("chat"), given.pop("content")
            scoped = memory.scoped(Scope(owner=owner or ctx.owner, chat=chat or None))
            with suppress(RicordoError):  # a damaged memory may be invalid
                if "role" in given:
                    await scoped.add(text, **given)
                else:
                    await scoped.remember(text, shared=bool(chat and not owner), **given)
                kept += 1
    return [str(path) for path in moved], kept


@command
async def rebuild_index(ctx: CommandContext, memory: Memory, progress: Progress) -> Output:
    lines = await memory.rebuild_index(progress=progress)
    done = f"Rebuilt the index from {plural(lines, 'line')}."
    return Output(data={"lines": lines}, show=lambda out: out.print(done))


# clean-up


@view("gc", "prune")
def _show_archived(ctx: CommandContext, done: ArchiveReport) -> None:
    """Print the number of archived memories by reason, and the first of them."""
    if done.archived:
        verb = "would be archived" if done.dry_run else "archived"
        left = f"{plural(done.live, 'memory remains', 'memories remain')}."
        ctx.out.print(Text(f"{_totals(done.archived)}: {verb}. {left}"))
        lines = table("id", "why", "memory")
        for item in done.items[:_MAX_ITEMS]:
            why, content = one_line(item.why, most=60), one_line(item.node.content)
            lines.add_row(short_id(item.node.id), Text(why), Text(content))
        ctx.out.print(lines)
        if (more := sum(done.archived.values()) - _MAX_ITEMS) > 0:
            ctx.out.print(dim(f"and {more:,} more; --json lists up to 1,000"))
    else:
        ctx.out.print(f"Nothing to archive among {plural(done.live, 'memory', 'memories')}.")
    if not done.fits:
        ctx.out.print(Text("There are still more than the settings allow; run `gc` and `prune`.", style="yellow"))
    for run in done.runs[:1] if done.archived else ():
        ctx.hint(f"{ctx.command(f'undo {run}')} brings all of them back, {ctx.command('restore ID')} one.")


@view("maintain")
def _show_steps(ctx: CommandContext, done: MaintenanceReport) -> None:
    for step in done.steps:
        mark = ("ok      ", "green") if step.ok else ("FAILED  ", "bold red")
        would = "would do: " if done.dry_run and step.report is not None and step.report.archived else ""
        ctx.out.print(Text.assemble(mark, (f"{step.name:10}", "bold"), f"{would}{one_line(step.detail)}"))


# notes


@command
def notes(ctx: CommandContext) -> Output:
    folder = Path(ctx.location).expanduser()
    if not (ctx.location.endswith(("/", "\\")) or folder.is_dir()):
        hint = "`ricordo migrate memories/` makes one; then: ricordo --store memories/ notes"
        raise InvalidError(f"{ctx.location} is a single file; notes belong to a folder store", hint=hint)
    place = folder / "notes"
    if folder.is_dir() and not place.exists():  # a vault is refused before it gets a folder
        asyncio.run(_settled(ctx))
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "make the folder writable, or copy it to another disk"
        raise StoreError(f"{place} cannot be created: {error.strerror}", hint=hint) from error
    asyncio.run(_settled(ctx))
    files = sum(1 for path in place.rglob("*.md") if not path.name.startswith("."))
    done = f"{plural(files, 'note')} in {place}. Edit them with any editor, or open the folder in Obsidian."
    return Output(data={"path": str(place), "notes": files}, show=lambda out: out.print(Text(done), soft_wrap=True))


async def _settled(ctx: CommandContext) -> None:
    async with ctx.open(create=True) as memory:
        await memory.settle()


# copies of the store


def _without_password(location: str) -> str:
    """Return a location without the password that a URL may contain."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1@", location)


@command
async def migrate(ctx: CommandContext, memory: Memory, path: str) -> Output:
    await memory.migrate(path)
    target, source = _without_password(path), _without_password(ctx.location)
    done = Text(f"Copied to {safe(target)}. {safe(source)} is unchanged.")
    return Output(data={"path": target}, show=lambda out: out.print(done, soft_wrap=True))


@command
async def backup(ctx: CommandContext, memory: Memory, path: str, verify: bool) -> Output:
    with ctx.status("Copying…"):
        made = await memory.backup(path)
    with ctx.status("Verifying…"):
        report = await memory.verify_backup(path, key=ctx.settings().key or None) if verify else None

    from ricordo.interfaces.http.tokens import tokens_file

    tokens = tokens_file(ctx.location)
    if tokens.exists():
        ctx.notice(f"The server's tokens are not in it. To keep them, copy {tokens} as well.")
    notes = Path(ctx.location) / "notes"
    if made.kind == "file" and notes.is_dir():
        ctx.notice(
            f"What you wrote in {notes} besides facts is not in it. To keep it, back up to a path that ends in /."
        )

    def show(out: Console) -> None:
        contents = f"{plural(made.commits, 'change')}, {plural(sum(made.rows.values()), 'row')}"
        out.print(Text(f"Copied to {safe(path)}, {made.size / 1_000_000:.1f} MB: {contents}."), soft_wrap=True)
        if report is not None:
            _show_report(ctx, report)

    verified = {"ok": report.ok, "findings": report.findings} if report else {}
    data = {"path": path, "bytes": made.size, "manifest": made, **verified}
    return Output(data=data, show=show, exit_status=exit_status(report))


@command
async def verify_backup(ctx: CommandContext, path: Path) -> Report:
    from ricordo.memory import Memory  # imports numpy: `--help` should not wait for it

    with ctx.waiting():
        return await Memory.verify_backup(path, key=ctx.settings().key or None)


@command
async def restore_backup(ctx: CommandContext, path: Path, replace: bool) -> Output:
    from ricordo.memory import Memory  # as above

    with ctx.status("Verifying and copying…"):
        done = await Memory.restore_backup(path, ctx.location, replace=replace, key=ctx.settings().key or None)
    from ricordo.interfaces.http.tokens import tokens_file

    if not (tokens := tokens_file(ctx.location)).exists():
        ctx.notice(f"A backup has no server tokens. To keep the old ones, copy their file to {tokens}.")
    else:
        ctx.notice(f"The server's tokens in {tokens} are unchanged and open the restored store.")

    def show(out: Console) -> None:
        out.print(Text(f"Restored {safe(done.location)} from {safe(str(path))}."), soft_wrap=True)
        if done.kept is not None:
            out.print(Text(f"The previous store is kept as {safe(done.kept)}."), soft_wrap=True)
        if done.returned is None:
            out.print(
                "It cannot be read, so what was erased in it is not known: erase again what the backup brought back."
            )
        elif done.returned:
            count = plural(len(done.returned), "memory is back that was", "memories are back that were")
            out.print(Text(f"{count} erased for good. Erase each again:"))
            whose = {each: (done.scopes[each].owner, done.scopes[each].chat or "") for each in done.returned}
            again = (ctx.command(f"erase {each}", owner=owner, chat=chat) for each, (owner, chat) in whose.items())
            out.print(Text("\n".join(f"  {each.strip('`')}" for each in again)), soft_wrap=True)

    returned = None if done.returned is None else list(done.returned)
    return Output(
        data={"path": str(path), "location": done.location, "kept": done.kept, "returned": returned}, show=show
    )


# the key


@command
async def rekey(ctx: CommandContext, to: str) -> Output:
    from ricordo.memory import Memory  # as above
    from ricordo.storage.key import is_encrypted

    ctx.require_store()
    is_closed = await asyncio.to_thread(is_encrypted, Path(ctx.location))
    key = ctx.settings().key if is_closed else ""
    new = None if to == "none" else to
    with ctx.status("Writing again…"):
        done = await Memory.rekey(ctx.location, key=key or None, new_key=new)

    def show(out: Console) -> None:
        what = "Encrypted" if done.is_encrypted else "Decrypted"
        out.print(Text(f"{what} {safe(done.location)}.").append(_advice(to)), soft_wrap=True)
        if done.left:
            out.print(Text("As they were before; delete them if you do not need them:", style="yellow"))
            for path in done.left:
                out.print(Text(f"  {safe(path)}"), soft_wrap=True)

    return Output(data=done, show=show)


def _advice(to: str) -> str:
    place = to if re.match(r"(file|keyring|env):", to) else "..."
    return "" if to == "none" else f" From now on: ricordo config set key {place}, or RICORDO_KEY."


# documents


@view("document-add", "document-remove")
def _show_document_change(ctx: CommandContext, report: DocumentReport) -> None:
    pages = f", {plural(report.document.pages, 'page')}" if report.document.pages else ""
    ctx.out.print(Text(f"{safe(report.document.title)}{pages}"), soft_wrap=True)
    ctx.out.print(counts(report, ("added", "kept", "moved", "removed", "knowledge", "redacted")))
    for line in report.left_out:
        ctx.out.print(Text(f"Not read: {one_line(line)}", style="yellow"), soft_wrap=True)


@view("document")
def _show_document(ctx: CommandContext, found: Document) -> None:
    version = f", version {found.version}" if found.version else ""
    ctx.out.print(Text(f"{safe(found.title)}{safe(version)}", style="bold"), soft_wrap=True)
    for passage in found.text:
        ctx.out.print(dim(f"{passage.attributes.get('place', '')}  {short_id(passage.id)}"))
        ctx.out.print(Text(safe(passage.content)), soft_wrap=True)


@command
async def watch(
    ctx: CommandContext, memory: Memory, folders: Sequence[Path], once: bool = False, name: str | None = None
) -> Output:
    from ricordo.interfaces.watch import Watch, watched

    ignores = partial(projects.is_private, home=Path.home())
    watches = [Watch(memory, folder, name=name, ignores=ignores) for folder in folders]
    if len({each.name for each in watches}) < len(watches):
        raise InvalidError("folders: two folders have the same name", hint="watch each on its own, with another --name")
    steps: list[WatchStep] = []
    if once:
        with progress_bar(ctx.err, "Reading") as progress:
            for each in watches:
                steps += await each.catch_up(progress)
    else:
        ctx.notice(f"Watching {', '.join(safe(str(each.folder)) for each in watches)}. Press Ctrl-C to stop.")
        if await asyncio.to_thread(_has_notes, ctx.location):
            ctx.notice("The memory's own notes are kept in step, too.")
        with suppress(asyncio.CancelledError):
            async for step in watched(watches):
                _show_step(ctx.err, step)
    await wait_for_embeddings(ctx.err, memory)

    def show(out: Console) -> None:
        for each in steps:
            _show_step(out, each, sums_up=True)

    return Output(data={"steps": steps}, show=show)


def _has_notes(location: str) -> bool:
    return (Path(location).expanduser() / "notes").is_dir()


def _show_step(out: Console, step: WatchStep, *, sums_up: bool = False) -> None:
    for what in ("added", "changed", "moved", "removed", "imported"):
        for path in getattr(step, what):
            out.print(Text(f"{what:<9}{safe(path)}"), soft_wrap=True)
    for path in step.erased:
        out.print(dim(f"erased before, not stored: {safe(path)}"), soft_wrap=True)
    paths = groupby(sorted(step.refused, key=step.refused.__getitem__), key=step.refused.__getitem__)
    for reason, same in ((reason, list(same)) for reason, same in paths):
        which = plural(len(same), "file") if len(same) > _MANY_REFUSED else ", ".join(map(safe, same))
        out.print(Text(f"{'refused':<9}{which}: {one_line(reason, most=200)}", style="yellow"), soft_wrap=True)
    for path, reason in step.left_out.items():
        out.print(Text(f"not read {safe(path)}: {one_line(reason, most=200)}", style="yellow"), soft_wrap=True)
    if step.redacted:
        keep = "to keep them, `ricordo document-remove` the file, and watch again with RICORDO_SECRETS=keep"
        out.print(Text(f"{plural(step.redacted, 'credential')} redacted; {keep}.", style="yellow"), soft_wrap=True)
    if sums_up:
        waiting = f", {plural(step.waiting, 'file')} still being written" if step.waiting else ""
        skipped = f", {plural(step.skipped, 'file')} skipped" if step.skipped else ""
        out.print(dim(f"{'In step' if not step else 'Done'}{waiting}{skipped}{':' if skipped else '.'}"))
        for reason, names in step.skipped_files.items():
            out.print(dim(f"  {reason}: {one_line(', '.join(map(safe, names)), most=300)}"), soft_wrap=True)


# import and export


@command
async def import_(
    ctx: CommandContext, path: Path, own: bool, dry_run: bool, format: str | None = None, me: Sequence[str] = ()
) -> Output:
    if format is not None and format in agents.agents() and ctx.chat is None:
        report = await agents.import_logs(ctx, path, format, own=own, dry_run=dry_run)
        return Output(data=report, show=lambda out: _show_import(out, report, own=own, zone=ctx.zone))
    stored = ""
    try:
        async with ctx.open(create=not dry_run, creator=None) as memory:
            with progress_bar(ctx.err, "Reading") as shown:

                def progress(done: int, total: int) -> None:
                    nonlocal stored
                    stored = f"{done:,} of {plural(total, 'record')}"
                    shown(done, total)

                report = await memory.import_(path, format=format, own=own, me=me, dry_run=dry_run, progress=progress)
            if not dry_run:
                await wait_for_embeddings(ctx.err, memory)
                if report.sessions and report.added:
                    ctx.hint("`ricordo consolidate` turns finished conversations into knowledge.")
    except asyncio.CancelledError:
        done = f"{stored} were stored" if stored and not dry_run else "Nothing was stored yet"
        ctx.notice(f"Stopped. {done}; run the same command again to continue.")
        raise
    return Output(data=report, show=lambda out: _show_import(out, report, own=own, zone=ctx.zone))


@view("export")
def _show_export(ctx: CommandContext, report: ExportReport) -> None:
    size = f"{report.bytes / 1e6:.1f} MB" if report.bytes >= 1e6 else f"{report.bytes / 1e3:.1f} kB"
    ctx.out.print(Text(f"Written to {safe(report.path)}, {size}."), soft_wrap=True)
    ctx.out.print(counts(report, ("facts", "messages", "closed", "people", "relations", "commits")))


@view("sync")
def _show_sync(ctx: CommandContext, report: SyncReport) -> None:
    would = "would be " if report.dry_run else ""
    parts = [f"{plural(report.sent, 'commit')} {would}sent", f"{report.received:,} {would}received"]
    parts += [f"{report.to_review:,} to review"] if report.to_review else []
    parts += [f"{report.erased:,} erased"] if report.erased else []
    chats = f" Your memory and {plural(len(report.chats), 'chat')}." if report.chats else ""
    ctx.out.print(Text(f"{', '.join(parts)}.{chats}"), soft_wrap=True)
    if report.left_out:
        ctx.out.print(Text(f"Left out ({len(report.left_out):,}):", style="yellow"))
        for line in report.left_out:
            ctx.out.print(Text(f"  {one_line(line, most=200)}"), soft_wrap=True)


_SHOWN_SKIPPED = 5


_SHOWN_NAMES = 20


def _speakers(named: Sequence[ImportSpeaker]) -> str:
    return ", ".join(f"{one_line(each.name)} ({plural(each.messages, 'message')})" for each in named)


def _days(read: ImportReport | ImportPart, zone: ZoneInfo) -> str:
    """Return the days on which what was read was said: "2015-01-19 to 2025-11-14"; "" if it has no dates."""
    if read.first_at is None or read.last_at is None:
        return ""
    first, last = (each.astimezone(zone).date().isoformat() for each in (read.first_at, read.last_at))
    return first if first == last else f"{first} to {last}"


def _show_import(out: Console, report: ImportReport, *, own: bool, zone: ZoneInfo) -> None:
    kinds = ("messages", "facts", "passages", "people", "relations", "links")
    is_plain = report.format in ("chat", "locomo") and not any(getattr(report, each) for each in kinds[1:])
    what = plural(report.added, "message") if is_plain else plural(report.added, "memory", "memories")
    known = f", {report.known:,} already known" if report.known else ""
    known += f" (of these, {plural(report.completed, 'task')} done now)" if report.completed else ""
    sessions = f", {plural(report.sessions, 'conversation')}" if report.sessions else ""
    into = f" to {safe(report.chat)}, whose members can read them" if report.chat else ""
    out.print(Text(f"{what} {'would be added' if report.dry_run else 'added'}{into}{known}{sessions}."), soft_wrap=True)
    if report.format == "markdown" and report.known and report.facts:
        advice = "to follow them, `undo` the imports, which `log` lists, and `watch` the folder"
        text = f"Imported in part before. Lines that changed since stand beside the old ones; {advice}."
        out.print(Text(text, style="yellow"), soft_wrap=True)
    details = counts(report, () if is_plain else kinds)
    if details.row_count:
        out.print(dim("Of these:" if report.parts else f"Read as {report.format}:"))
        out.print(details)
    if report.speakers and (report.dry_run or not report.me):
        others = len(report.speakers) - _SHOWN_NAMES
        rest = f" and {others:,} more" if others > 0 else ""
        out.print(Text(f"Speakers: {_speakers(report.speakers[:_SHOWN_NAMES])}{rest}."), soft_wrap=True)
        if not report.me:
            out.print(dim("If one of them is you, import with --me NAME."))
    if mine := [each for each in report.me if each.messages]:
        out.print(Text(f"Taken as you: {_speakers(mine)}."), soft_wrap=True)
    if report.named_before:
        names = _speakers(report.named_before)
        undo = " and ".join(f"`ricordo undo {number}`" for number in report.earlier) or "`ricordo undo NUMBER`"
        text = f"Imported before without --me, and not changed: {names}. {undo} and this import again take them as you."
        out.print(Text(text, style="yellow"), soft_wrap=True)
    if report.not_found:
        names = ", ".join(map(one_line, report.not_found))
        out.print(Text(f"Nobody in it is called {names}; --me changed nothing there.", style="yellow"), soft_wrap=True)
    if report.redacted:
        would = "would be " if report.dry_run else ""
        keep = "import" if report.dry_run else "undo the import, and repeat it"
        text = (
            f"{plural(report.redacted, 'credential')} {would}redacted; to keep them, {keep} with RICORDO_SECRETS=keep."
        )
        out.print(Text(text, style="yellow"), soft_wrap=True)
    if report.undecided_dates:
        text = "No date of the file decides whether the day or the month comes first. Read:"
        out.print(Text(text, style="yellow"), soft_wrap=True)
        for line in report.undecided_dates:
            out.print(Text(f"  {one_line(line, most=200)}"), soft_wrap=True)
    if days := _days(report, zone):
        out.print(dim(f"Said {days}."))
    if report.time_zone:
        out.print(dim(f"Times without a time zone are read in {report.time_zone}; RICORDO_TIME_ZONE sets another."))
    if report.parts:
        out.print(dim("Read:"))
        files = Table.grid(padding=(0, 2))
        for part in report.parts:
            files.add_row(Text(f"{part.read:>9,}"), dim(part.format), Text(one_line(part.name)), dim(_days(part, zone)))
        out.print(files)
    if report.format == "jsonl" and not own:
        out.print(dim("Read as somebody else's. To move your own store, import the export into a new one with --own."))
    if report.skipped:
        out.print(dim("Left out, as they hold nothing to remember:"))
        for line in report.skipped[:_SHOWN_SKIPPED]:
            out.print(dim(f"  {one_line(line, most=200)}"), soft_wrap=True)
        if len(report.skipped) > _SHOWN_SKIPPED:
            out.print(dim(f"  and in {plural(len(report.skipped) - _SHOWN_SKIPPED, 'more file')}"))
    if report.refused_count:
        out.print(Text(f"Not imported ({report.refused_count:,}):", style="yellow"))
        for line in report.refused:
            out.print(Text(f"  {one_line(line.removeprefix('not imported: '), most=200)}"), soft_wrap=True)
        if report.refused_count > len(report.refused):
            more = report.refused_count - len(report.refused)
            out.print(dim(f"  and {more:,} more; correct these, and import again to see the next ones"))
