"""Commands that connect other programs: mcp, serve and token."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console
from rich.text import Text

from ricordo.errors import InvalidError, UnavailableError
from ricordo.interfaces.call import Caller, StoreConfig
from ricordo.interfaces.cli.options import CommandContext, command
from ricordo.interfaces.cli.terminal import Output, dim
from ricordo.interfaces.http.tokens import Token, Tokens, checked_trust, tokens_file
from ricordo.interfaces.mcp.clients import ClientName, Plan, clients, make_plan, start_entry, write_plan


def _caller(ctx: CommandContext) -> Caller:
    """The caller behind this process, with the owner and chat of its command line or environment."""
    return Caller(owner=ctx.owner, chat=ctx.chat)


def _config(ctx: CommandContext) -> StoreConfig:
    return StoreConfig(location=ctx.location, embedder=ctx.embedder, model=ctx.model, settings=ctx.settings())


def _nothing() -> Output:
    return Output(data=None, show=lambda out: None)


# servers


@command()
async def mcp(
    ctx: CommandContext,
    action: Literal["serve", "install"] = "serve",
    profile: str = "core",
    client: ClientName | None = None,
    name: str = "ricordo",
    config_file: Path | None = None,
    yes: bool = False,
    dry_run: bool = False,
) -> Output:
    """Serve an agent over MCP on standard input and output, or configure a client to do so."""
    if action == "install":
        return _install(ctx, _plan(ctx, client, config_file, name=name, profile=profile), yes=yes, dry_run=dry_run)
    try:
        from ricordo.interfaces.mcp.server import serve_stdio
    except ImportError as error:
        hint = 'pip install "ricordo[mcp]"'
        raise UnavailableError("MCP needs a package that is not installed", hint=hint) from error
    await serve_stdio(_config(ctx), caller=_caller(ctx), profile=profile)
    return _nothing()


@command()
async def serve(
    ctx: CommandContext,
    host: str = "127.0.0.1",
    port: int = 7411,
    socket: Path | None = None,
    profile: str = "core",
    rate: float = 100.0,
    allow_host: list[str] | None = None,
    allow_origin: list[str] | None = None,
) -> Output:
    """Serve REST, JSON-RPC and MCP over HTTP, on this machine only unless --host is given."""
    from ricordo.interfaces.http.server import AccessRules, Address, serve

    if not -1 <= port <= 65_535:
        raise InvalidError("port must be from -1 to 65,535")
    rules = AccessRules(
        hosts=frozenset(each.lower() for each in allow_host or ()),
        origins=frozenset(each.lower() for each in allow_origin or ()),
        rate=max(1.0, rate),
        profile=profile,
    )
    await serve(
        _config(ctx),
        caller=replace(_caller(ctx), trust="user", name="socket"),
        address=Address(host=host, port=None if port < 0 else port, socket_path=socket),
        rules=rules,
        notify=lambda text: ctx.err.print(Text(text), soft_wrap=True),
    )
    return _nothing()


# tokens


@command()
async def token(
    ctx: CommandContext,
    action: Literal["add", "list", "revoke"],
    name: str | None = None,
    access: str = "read,write",
    trust: str = "user",
) -> Output:
    """Manage HTTP access tokens. Each is bound to --owner and --chat and has its own permissions."""
    tokens = Tokens(tokens_file(ctx.location))
    if action == "list":
        return _token_list(tokens.all())
    if name is None:
        raise InvalidError("the token's name is required", hint=f"ricordo token {action} NAME")
    if action == "revoke":
        revoked = tokens.revoke(name)
        return Output(data=_public(revoked), show=lambda out: out.print(Text(f'Token "{name}" revoked.')))
    tokens.file.parent.mkdir(parents=True, exist_ok=True)
    fresh, secret = tokens.add(
        name,
        owner=ctx.owner,
        chat=ctx.chat,
        trust=checked_trust(trust),
        access=[each.strip() for each in access.split(",") if each.strip()],
    )

    def show(out: Console) -> None:
        out.print(Text(secret), soft_wrap=True)
        ctx.notice("It is shown only once. Send it as `Authorization: Bearer TOKEN`.")

    return Output(data={**_public(fresh), "token": secret}, show=show)


def _public(token: Token) -> dict[str, object]:
    return {name: value for name, value in token.plain().items() if name != "digest"}


def _token_list(tokens: list[Token]) -> Output:
    def show(out: Console) -> None:
        for each in tokens:
            owner = each.owner + (f" in {each.chat}" if each.chat else "")
            out.print(Text(f"{each.name}: {owner}; {', '.join(sorted(each.access))}; trust {each.trust}"))
        if not tokens:
            out.print("There are no tokens; `ricordo serve` creates the first.")

    return Output(data=[_public(each) for each in tokens], show=show)


# the configuration of MCP clients


def _plan(ctx: CommandContext, client: ClientName | None, config_file: Path | None, *, name: str, profile: str) -> Plan:
    from ricordo.interfaces.catalog import tools
    from ricordo.storage.registry import is_folder

    if client is None:
        raise InvalidError("`--client` is required", hint=f"--client {' | '.join(clients(Path(), {}))}")
    tools(profile)  # raises for an unknown one
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidError(f"name: {name!r} may contain only letters, digits, - and _")
    known = clients(Path.home(), os.environ)[client]
    known = known if config_file is None else replace(known, file=config_file.expanduser())
    path = Path(ctx.location).expanduser().resolve()
    store = f"{path}/" if is_folder(ctx.location) else path
    entry = start_entry(store, owner=ctx.owner, chat=ctx.chat, profile=profile, embedder=ctx.options.embedder)
    return make_plan(known, entry, name=name)


def _install(ctx: CommandContext, plan: Plan, *, yes: bool, dry_run: bool) -> Output:
    """Show the change, ask, write it."""
    client, file = plan.client, plan.client.file
    if plan.changes and not ctx.options.as_json:
        ctx.err.print(f"This is added to {file}; everything else in it stays:\n")
        ctx.err.print(Text(plan.ours))
    writes = plan.changes and not dry_run and (yes or _confirm(ctx))
    backup = write_plan(plan, stamp=f"{datetime.now(UTC):%Y%m%d-%H%M%S}") if writes else None
    data = {
        "client": client.name,
        "file": str(file),
        "entry": plan.ours,
        "written": writes,
        "backup": str(backup) if backup else None,
    }

    def show(out: Console) -> None:
        if not plan.changes:
            out.print(f"{client.title} is already configured: {file}", soft_wrap=True)
        elif not writes:
            out.print("Nothing was written.")
        else:
            out.print(Text.assemble(("Written: ", "green"), str(file)), soft_wrap=True)
            if backup:
                out.print(dim(f"Backup of the old file: {backup}"), soft_wrap=True)
            out.print(dim(f"Restart {client.title} to use it."))

    return Output(data=data, show=show)


def _confirm(ctx: CommandContext) -> bool:
    if not sys.stdin.isatty() or ctx.options.as_json:
        raise InvalidError("this needs a confirmation, and there is no terminal", hint="use --yes, or --dry-run")
    return typer.confirm("Write it?", err=True)
