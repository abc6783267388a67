"""Shared spaces and tokens at the command line: what would shut somebody out, or does nothing, is said."""

from __future__ import annotations

from pathlib import Path

from tests.interfaces.conftest import Cli
from tests.interfaces.serving import house


def test_a_chat_in_use_becomes_a_space_only_with_its_people(cli: Cli) -> None:
    cli("--owner", "ann", "--chat", "team", "remember", "--shared", "The team meets on Tuesdays")
    cli("--owner", "dora", "--chat", "team", "token", "add", "dora")
    refused = cli("space-create", "team")
    assert refused.status == 4 and "only its members could read it" in refused.err
    made = cli("--owner", "ann", "space-create", "team", "--member", "dora", "--member", "benn", "--member", "fay")
    assert made.err.count("No memory and no token yet: benn, fay. To give a token: `ricordo token add") == 1
    assert "`ricordo token add NAME --owner benn --chat team`" in made.err and "dora" not in made.err
    assert "Tuesdays" in cli("--owner", "dora", "search", "when do we meet?").out
    joined = cli("--owner", "fay", "token", "add", "fay", "--chat", "team")
    assert "There is no memory" not in joined.err and "Did you mean" not in joined.err
    assert "no token yet: eva" in cli("--owner", "ann", "space-member", "team", "eva", "reader").err
    outside = cli("--owner", "eli", "--chat", "team", "token", "add", "eli")
    assert "`ricordo space-member team eli writer`" in outside.err
    assert "not a member" not in cli("--owner", "dora", "--chat", "team", "token", "add", "dora-2").err
    assert 'what "me" said' in cli("space-create", "garden").err


def test_a_mistyped_space_chat_or_owner_is_named_with_those_like_it(cli: Cli) -> None:
    cli("--owner", "annika", "space-create", "climbers")
    cli("--owner", "annika", "--chat", "kitchen", "remember", "--shared", "The oven is on")
    made = cli("--owner", "annika", "--chat", "climers", "token", "add", "one")
    assert made.status == 0 and "no chat, project or space 'climers' yet. Did you mean climbers?" in made.err
    assert "`ricordo token revoke one`" in made.err
    assert "Did you mean kitchen?" in cli("--owner", "annika", "--chat", "kitchn", "search", "oven").err
    assert "token of anika yet. Did you mean annika?" in cli("--owner", "anika", "token", "add", "two").err
    assert "did you mean climbers?" in cli("--owner", "annika", "space-member", "climer", "benn", "reader").err
    for chat in ("climbers", "kitchen"):
        assert "There is no" not in cli("--owner", "annika", "--chat", chat, "token", "add", f"of {chat}").err
    assert "Did you mean" not in cli("--owner", "annika", "--chat", "zoo", "token", "add", "three").err


def test_a_fact_is_shared_later_and_made_private_again(cli: Cli) -> None:
    ann, dora = ("--owner", "ann", "--chat", "team"), ("--owner", "dora", "--chat", "team")
    kept = cli("--json", *ann, "remember", "The team meets on Tuesdays").json
    assert "Tuesdays" not in cli(*dora, "search", "when do we meet?").out
    assert "no chat or space" in cli("--owner", "ann", "update", kept["id"], "--shared").err
    shared = cli(*ann, "update", kept["id"], "--shared")
    assert shared.out.startswith("Shared with team: The team meets on Tuesdays")
    assert "Tuesdays" in cli(*dora, "search", "when do we meet?").out
    (found,) = cli("--json", *dora, "search", "when do we meet?").json["hits"]
    refused = cli(*dora, "update", found["id"], "--private")
    assert refused.status == 5 and "ann wrote this" in refused.err
    assert cli(*ann, "update", found["id"], "--private").out.startswith("Private: The team meets on Tuesdays")
    assert "Tuesdays" not in cli(*dora, "search", "when do we meet?").out
    assert cli(*ann, "update", kept["id"], "--private", "--shared").status == 2


async def test_over_http_too(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        ann, dora = (at.client(at.secret(owner, chat="team")) for owner in ("ann", "dora"))
        kept = (await ann.post("/v1/remember", json={"content": "The team meets on Tuesdays"})).json()
        for shared, found in ((True, 1), (False, 0)):
            kept = (await ann.post("/v1/update", json={"id": kept["id"], "shared": shared})).json()
            hits = (await dora.post("/v1/search", json={"text": "when do we meet?"})).json()["hits"]
            assert len(hits) == found
        refused = await at.client(at.secret("weak", owner="ann", chat="team", trust="agent")).post(
            "/v1/update", json={"id": kept["id"], "shared": True}
        )
        assert refused.status_code == 403


def test_somebody_leaves_for_good(cli: Cli) -> None:
    cli("--owner", "ann", "space-create", "team", "--member", "eli")
    cli("--owner", "eli", "--chat", "team", "remember", "--shared", "The monitors are ordered")
    cli("--owner", "eli", "remember", "I like tea")
    cli("--owner", "ann", "space-leave", "team", "--who", "eli")
    assert "monitors" not in cli("--owner", "eli", "search", "monitors").out
    assert cli("--owner", "eli", "erase", "--everything", "--yes").status == 0
    log = cli("--owner", "ann", "--chat", "team", "log").out
    assert "remove member (eli)" in log and "(erased)" in log


def test_a_backup_and_its_restoring_name_the_file_of_the_tokens(cli: Cli, tmp_path: Path) -> None:
    cli("remember", "Ann likes tea")
    assert "tokens" not in cli("backup", str(tmp_path / "one.db")).err
    cli("token", "add", "ann")
    assert f"{cli.store}.tokens.json" in cli("backup", str(tmp_path / "two.db")).err
    again = cli("restore-backup", str(tmp_path / "two.db"), "--replace").err
    assert f"{cli.store}.tokens.json are unchanged and open the restored store" in again
    fresh = tmp_path / "fresh.db"
    assert f"{fresh}.tokens.json" in cli("--store", str(fresh), "restore-backup", str(tmp_path / "two.db")).err


def test_tokens_are_listed_as_a_table(cli: Cli) -> None:
    cli("--owner", "ann", "--chat", "team", "token", "add", "laptop", "--access", "read")
    head, row = cli("token", "list").out.splitlines()
    assert head.split() == ["token", "owner", "chat", "trust", "since", "access"]
    name, owner, chat, trust, _, access = row.split()
    assert (name, owner, chat, trust, access) == ("laptop", "ann", "team", "user", "read")
