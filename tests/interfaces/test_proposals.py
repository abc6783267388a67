"""What is only proposed is called so at every door, with who proposed it, and is decided at every door."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.interfaces.conftest import RUN, Cli, clean_environment
from tests.interfaces.serving import Served, house, served
from tests.interfaces.test_mcp import connected

from ricordo import DeniedError, Memory, NotFoundError, Scope, sync

THIN = "import sys; from ricordo.interfaces.sandbox_client import main; sys.exit(main())"
PROPOSES = ("read", "propose")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served")) as running:
        yield running


def run(code: str, server: Served, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**clean_environment(), "RICORDO_STORE": str(server.store), "RICORDO_URL": server.url, **environment}
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(command, env=known, capture_output=True, text=True, timeout=60)


def token(server: Served, name: str, *options: str) -> str:
    added = run(RUN, server, "token", "add", name, "--owner", "me", *options)
    assert added.returncode == 0, added.stderr
    return added.stdout.strip()


@pytest.fixture(scope="module")
def agent(server: Served) -> str:
    return token(server, "agent", "--trust", "agent", "--access", "read,propose")


def test_the_client_command_says_what_waits_and_where_it_is_decided(server: Served, agent: str) -> None:
    with server.client() as client:
        kept = client.post("/v1/remember", json={"content": "Ben drinks tea"}).json()
    gone = run(THIN, server, "memory", "delete", kept["id"], RICORDO_TOKEN=agent).stdout
    assert gone.startswith(f"not deleted {kept['id']}: proposal ") and "waits for approval" in gone
    assert "`ricordo quarantine`" in gone
    added = run(THIN, server, "memory", "add", "Anna is a nurse", RICORDO_TOKEN=agent).stdout
    assert added.startswith("not stored yet: ") and "waits for approval" in added
    assert "tea" in run(THIN, server, "memory", "list", RICORDO_TOKEN=agent).stdout
    mine = run(THIN, server, "memory", "delete", kept["id"], RICORDO_TOKEN=server.token).stdout
    assert mine == f"deleted {kept['id']}\n"


def test_the_client_command_says_that_nothing_is_stored_off_the_record(server: Served) -> None:
    with server.client() as client:
        client.post("/v1/off_record", json={})
        said = run(THIN, server, "memory", "add", "Anna has a secret", RICORDO_TOKEN=server.token).stdout
        client.post("/v1/on_record", json={})
    assert said.startswith("not stored: Anna has a secret (off the record")


def test_an_outbox_says_what_was_delivered_and_waits(server: Served, agent: str, tmp_path: Path) -> None:
    away = {"RICORDO_OUTBOX": str(tmp_path / "box"), "RICORDO_TOKEN": agent, "RICORDO_URL": server.url}
    kept = run(THIN, server, "memory", "add", "Cem rows", **{**away, "RICORDO_SOCKET": str(tmp_path / "no.sock")})
    assert "Kept for later" in kept.stderr
    (file,) = (tmp_path / "box").glob("*.json")
    file.write_text(file.read_text().replace(str(tmp_path / "no.sock"), server.url))
    sent = run(THIN, server, "outbox", "send", **away)
    assert sent.stdout == "1 delivered (1 not stored yet: approval is needed), 0 waiting.\n"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("remember", {"content": "Anna is a vet"}),
        ("remember_many", {"facts": [{"content": "Anna is a pilot"}]}),
        ("correct", {"content": "Ben drinks coffee"}),
        ("update", {"tags": ["drinks"]}),
        ("forget", {"reason": "he does not"}),
    ],
)
async def test_every_answer_about_a_proposal_says_that_it_waits(
    tmp_path: Path, name: str, given: dict[str, object]
) -> None:
    async with house(tmp_path / "me.db") as at:
        bot = at.client(at.secret("bot", owner="me", trust="agent", access=PROPOSES))
        user = at.client(at.secret("me"))
        kept = (await user.post("/v1/remember", json={"content": "Ben drinks tea"})).json()
        assert kept["notice"] == ""
        about = {} if name.startswith("remember") else {"id": kept["id"]}
        told = (await bot.post(f"/v1/{name}", json={**about, **given})).json()
        told = told[0] if isinstance(told, list) else told
        assert "waits for approval" in told["notice"] and told["closed_reason"] == "quarantined"
        assert (await user.post("/v1/get", json={"id": kept["id"]})).json()["content"] == "Ben drinks tea"


async def test_what_was_refused_before_does_not_wait_again(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder=None) as memory:
        held = await memory.remember("The museum opens at ten", origin="web")
        assert "waits for approval" in held.notice
        assert "waits for approval" in (await memory.remember("The museum opens at ten", origin="web")).notice
        await memory.refuse((await memory.review())[0])
        assert "was refused before" in (await memory.remember("The museum opens at ten", origin="web")).notice


async def test_the_page_does_not_say_that_a_proposal_is_done(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        user = at.client(at.secret("me"))
        kept = (await user.post("/v1/remember", json={"content": "Ben drinks tea"})).json()
        secret = at.secret("bot", owner="me", access=PROPOSES)
        visitor = at.client(None)
        await visitor.post("/page/enter", headers={"Authorization": f"Bearer {secret}"})
        shown = (await visitor.get("/page/memory", params={"id": kept["id"]})).text
        csrf = shown.split('name="csrf" value="')[1].split('"')[0]
        given = {"csrf": csrf, "id": kept["id"]}
        done = await visitor.post("/page/memory/forget", data=given, headers={"Origin": "http://127.0.0.1:7411"})
        page = (await visitor.get(done.headers["location"])).text
        assert "Nothing changes until it is approved" in page and "no answer contains it" not in page


async def team(memory: Memory) -> tuple[Memory, Memory]:
    """Return a space as its keeper sees it, and as an agent sees it that only proposes there."""
    await memory.scoped(Scope(owner="ann")).create_space("team", members=["bot"])
    keeper = memory.scoped(Scope(owner="ann", chat="team"))
    return keeper, memory.scoped(Scope(owner="bot", chat="team", trust="agent", propose=True))


@pytest.fixture(params=["me.db", "notes/"])
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / request.param, embedder=None, scope=Scope(owner="ann")) as memory:
        yield memory


async def test_an_approved_change_names_its_author_and_its_approver(opened: Memory) -> None:
    keeper, bot = await team(opened)
    kept = await keeper.remember("Anna is a nurse", shared=True)
    tea = await keeper.remember("Ben drinks tea", shared=True)
    await bot.correct(kept.id, "Anna is a doctor")
    await bot.update(tea.id, tags=["drinks"])
    fresh = await bot.remember("Dan plays the cello", shared=True)
    await keeper.approve([each.id for each in await keeper.staged()])
    (commit,) = await keeper.log(1)
    assert (commit.actor, commit.proposed_by) == ("ann", ("bot (agent)",))
    assert commit.author == "bot (agent), approved by ann"
    for id in (kept.id, tea.id, fresh.id):
        last = (await keeper.history(id))[-1].commit
        assert last is not None and last.author == "bot (agent), approved by ann"
        first = (await keeper.history(id))[0].commit
        assert first is not None and first.proposed_by == ()
    hits = {hit.content: hit.writer for hit in (await keeper.search("Anna Ben Dan nurse doctor tea cello")).hits}
    assert hits == {"Anna is a doctor": "bot", "Ben drinks tea": "ann", "Dan plays the cello": "bot"}
    made = (await keeper.explain((await keeper.history(kept.id))[-1].node.id)).made
    assert made is not None and made.author == "bot (agent), approved by ann"
    await keeper.undo(commit.seq)
    assert (await keeper.log(1))[0].proposed_by == ()
    assert len(await keeper.staged()) == 3


async def test_of_several_proposers_each_memory_names_its_own(opened: Memory) -> None:
    keeper, bot = await team(opened)
    await keeper.set_member("team", "eva", "writer")
    eva = opened.scoped(Scope(owner="eva", chat="team", propose=True))
    one, two = [await keeper.remember(each, shared=True) for each in ("Anna is a nurse", "Ben drinks tea")]
    await bot.correct(one.id, "Anna is a doctor")
    await eva.correct(two.id, "Ben drinks coffee")
    await keeper.approve([each.id for each in await keeper.staged()])
    assert set((await keeper.log(1))[0].proposed_by) == {"bot (agent)", "eva"}
    for id, who in ((one.id, "bot (agent)"), (two.id, "eva")):
        last = (await keeper.history(id))[-1].commit
        assert last is not None and last.proposed_by == (who,)
    hits = {hit.content: hit.writer for hit in (await keeper.search("Anna doctor Ben coffee")).hits}
    assert hits == {"Anna is a doctor": "bot", "Ben drinks coffee": "eva"}


async def test_what_waits_shows_its_target_its_changes_and_its_author(opened: Memory) -> None:
    keeper, bot = await team(opened)
    kept = await keeper.remember("Anna is a nurse", shared=True)
    await bot.correct(kept.id, "Anna is a doctor")
    await bot.update(kept.id, tags=["work"], expires="2099-01-01")
    await bot.forget(kept.id, "she left")
    await bot.remember("Dan plays the cello", shared=True)
    fact, forgotten, updated, corrected = await keeper.staged()
    assert {each.by for each in await keeper.staged()} == {"bot (agent)"}
    assert (fact.older, fact.changes) == (None, ())
    for each in (forgotten, updated, corrected):
        assert each.older is not None and each.older.id == kept.id
    told = [[(each.field, each.old, each.new) for each in review.changes] for review in (forgotten, updated, corrected)]
    assert told[0] == [("closed_reason", "", "forgotten")]
    assert told[1][0] == ("tags", "", "work") and told[1][1][2].startswith("2099-01-01")
    assert told[2] == [("content", "Anna is a nurse", "Anna is a doctor")]


async def test_the_log_says_what_was_proposed_to_those_who_may_read_it(opened: Memory) -> None:
    keeper, bot = await team(opened)
    kept = await keeper.remember("Anna is a nurse", shared=True)
    await bot.correct(kept.id, "Anna is a doctor")
    await bot.forget(kept.id, "she left")
    await bot.remember("Dan plays the cello", shared=True)
    fact, forgotten, _ = await keeper.staged()
    await keeper.refuse([fact.id, forgotten.id])
    words = [commit.words for commit in await keeper.log()]
    assert words[0].endswith("and 1 more, proposed by bot (agent)") and words[0].startswith("refuse: ")
    assert words[1:4] == [
        "proposed: Dan plays the cello",
        "forget “Anna is a nurse” (she left)",
        "correct “Anna is a nurse” to “Anna is a doctor”",
    ]
    said = str([commit.words for commit in await bot.log()])
    assert "correct “Anna is a nurse”" in said and "proposed: a new fact" in said
    assert "doctor" not in said and "cello" not in said and "she left" not in said


async def test_the_log_of_another_owner_has_nothing_of_a_proposal(opened: Memory) -> None:
    keeper, bot = await team(opened)
    await bot.remember("I like the violin")
    (mine,) = [each for each in await bot.log() if each.origin == "remember"]
    assert mine.words == "proposed: a new fact"
    assert "violin" not in str(await keeper.log()) and await keeper.staged() == []


async def test_proposals_are_listed_and_decided_over_http(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        bot = at.client(at.secret("bot", owner="me", trust="agent", access=PROPOSES))
        user = at.client(at.secret("me"))
        kept = (await user.post("/v1/remember", json={"content": "Ben drinks tea"})).json()
        await bot.post("/v1/correct", json={"id": kept["id"], "content": "Ben drinks coffee"})
        gone = (await bot.post("/v1/remember", json={"content": "Dan plays the cello"})).json()
        await bot.post("/v1/forget", json={"id": kept["id"]})
        seen = (await user.post("/v1/staged", json={})).json()
        assert [each["by"] for each in seen] == ["me (agent)"] * 3
        assert seen[2]["changes"] == [{"field": "content", "old": "Ben drinks tea", "new": "Ben drinks coffee"}]
        own = await bot.post("/v1/staged", json={})
        assert "coffee" not in own.text and "cello" not in own.text and len(own.json()) == 3
        for name in ("approve", "refuse"):
            refused = await bot.post(f"/v1/{name}", json={"ids": seen[0]["id"]})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "denied")
        (done,) = (await user.post("/v1/approve", json={"ids": [seen[2]["id"][-8:]]})).json()
        assert (done["decision"], done["newer"]["content"]) == ("approve", "Ben drinks coffee")
        (done,) = (await user.post("/v1/refuse", json={"ids": gone["id"]})).json()  # the id that the agent was given
        assert done["decision"] == "refuse"
        assert (await user.post("/v1/log", json={"limit": 2})).json()[1]["proposed_by"] == ["me (agent)"]
        assert (await user.post("/v1/approve", json={"ids": "nothing"})).status_code == 404


def test_the_client_command_lists_and_decides(server: Served, agent: str) -> None:
    with server.client() as client:
        for each in client.post("/v1/staged", json={}).json():
            client.post("/v1/refuse", json={"ids": each["id"]})
        kept = client.post("/v1/remember", json={"content": "Cem rows at dawn"}).json()
        given = {"id": kept["id"], "content": "Cem rows at noon"}
        told = {"Authorization": f"Bearer {agent}"}
        held = client.post("/v1/correct", json=given, headers=told).json()
    shown = run(THIN, server, "memory", "staged", RICORDO_TOKEN=server.token).stdout.splitlines()
    assert f"correct {kept['id']} Cem rows at dawn" in shown[0] and shown[0].endswith("[me (agent)]")
    assert shown[1] == "    content: Cem rows at dawn → Cem rows at noon"
    refused = run(THIN, server, "memory", "approve", held["id"], RICORDO_TOKEN=agent)
    assert refused.returncode == 5 and "only proposes" in refused.stderr
    done = run(THIN, server, "memory", "approve", held["id"], RICORDO_TOKEN=server.token).stdout
    assert done.startswith("approved: ") and "Cem rows at noon" in done
    assert run(THIN, server, "memory", "staged", RICORDO_TOKEN=server.token).stdout == ""


def test_the_command_line_shows_what_waits_and_what_was_decided(cli: Cli) -> None:
    kept = cli("remember", "Anna is a nurse", "--json").json
    tea = cli("remember", "Ben drinks tea", "--json").json
    with sync.Memory.open(cli.store, embedder="hashing") as memory:
        bot = memory.scoped(Scope(owner="me", trust="agent", propose=True))
        held = bot.correct(kept["id"], "Anna is a doctor")
        gone = bot.forget(tea["id"], "he stopped")
        again = bot.forget(kept["id"])
    for shown in (cli("quarantine").out, cli("review").out):
        assert "Anna is a nurse" in shown and "→ Anna is a doctor" in shown and "→ forgotten (he stopped)" in shown
        assert "me (agent)" in shown
    assert kept["id"][-8:] in cli("quarantine").out
    shown = cli("quarantine", "show", held.id).out
    assert "→ Anna is a doctor" in shown and kept["id"] in shown and "me (agent)" in shown
    assert "no answer contains it any more: Ben drinks tea" in cli("quarantine", "approve", gone.id).out
    assert "it stays as it is: Anna is a nurse" in cli("quarantine", "refuse", again.id).out
    assert "me (agent), approved by me" in cli("log").out
    cli("forget", kept["id"])
    blocked = cli("quarantine").out
    assert f"{kept['id'][-8:]} was forgotten" in blocked and kept["id"] not in blocked and "was forgotten (`" in blocked


async def test_the_page_shows_who_proposed_what(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        bot = at.client(at.secret("bot", owner="me", trust="agent", access=PROPOSES))
        mine = at.secret("me")
        user = at.client(mine)
        kept = (await user.post("/v1/remember", json={"content": "Ben drinks tea"})).json()
        await bot.post("/v1/update", json={"id": kept["id"], "expires": "2099-01-01"})
        visitor = at.client(None)
        await visitor.post("/page/enter", headers={"Authorization": f"Bearer {mine}"})
        shown = (await visitor.get("/page/inbox")).text
        assert "me (agent)" in shown and "2099-01-01" in shown
        await user.post("/v1/resolve_many", json={"decision": "approve"})
        for path in ("/page/changes", f"/page/memory?id={kept['id']}"):
            assert "me (agent), approved by me" in (await visitor.get(path)).text


def test_a_long_text_is_cut_between_words(cli: Cli) -> None:
    cli("remember", "Anna " + "remembers everything " * 30)
    listed = cli("log", "--json").json["commits"][0]["words"]
    assert listed.endswith((" remembers…", " everything…")) and len(listed) <= 160


async def test_a_reader_of_a_space_may_propose_and_no_more(opened: Memory) -> None:
    keeper, bot = await team(opened)
    kept = await keeper.remember("Anna is a nurse", shared=True)
    await keeper.set_member("team", "bot", "reader")
    await bot.correct(kept.id, "Anna is a doctor")
    await bot.update(kept.id, tags=["work"])
    await bot.forget(kept.id)
    held = await bot.remember("Dan plays the cello", shared=True, session="monday")
    assert {node.content for node in (await keeper.list()).nodes} == {"Anna is a nurse"}
    for change in (bot, opened.scoped(Scope(owner="bot", chat="team"))):
        with pytest.raises(DeniedError):
            await change.resolve(held.id, decision="approve")
    direct = opened.scoped(Scope(owner="bot", chat="team"))
    with pytest.raises(DeniedError, match="a reader of the space 'team' may not change anything in it"):
        await direct.correct(kept.id, "Anna is a vet")
    await keeper.approve(held.id)
    assert "Dan plays the cello" in {node.content for node in (await bot.list()).nodes}
    await keeper.remove_member("team", "bot")
    with pytest.raises(NotFoundError, match="not a member"):
        await bot.remember("Eve sings", shared=True)


async def test_a_token_that_may_only_read_learns_that_it_may_propose(tmp_path: Path) -> None:
    async with house(tmp_path / "me.db") as at:
        reader = at.client(at.secret("reader", access=("read",)))
        refused = (await reader.post("/v1/remember", json={"content": "Ben drinks tea"})).json()["error"]
        assert refused["message"] == "this needs the permission 'write', or 'propose' to have it approved"
        assert (await reader.post("/v1/add", json={"text": "Hi"})).json()["error"]["message"].endswith("'write'")


def test_a_new_token_that_proposes_needs_the_role_of_a_reader_only(cli: Cli) -> None:
    cli("--owner", "ann", "space-create", "team")
    options = ("--owner", "bot", "--chat", "team")
    assert "space-member team bot reader" in cli("token", "add", "a", *options, "--access", "read,propose").err
    assert "space-member team bot writer" in cli("token", "add", "b", *options).err


async def test_a_models_list_of_reviews_names_target_and_proposer_without_the_words(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "me.db", embedder="hashing") as memory:
        kept = await memory.remember("Ben drinks tea")
        bot = memory.scoped(Scope(trust="agent", propose=True))
        await bot.correct(kept.id, "Ben drinks coffee")
        await bot.remember("Dan plays the cello")
    async with connected(tmp_path / "me.db", profile="full") as client:
        told = (await client.call_tool("list_reviews", {})).content[0].text
    assert "proposed: correct [id:" in told and "Ben drinks tea" in told and told.count("by me agent") == 2
    assert "coffee" not in told and "cello" not in told
