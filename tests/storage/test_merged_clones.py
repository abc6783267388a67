"""Two clones of a folder that git has merged: what each of them wrote is there afterwards."""

from __future__ import annotations

import contextlib
import shutil
import subprocess

import pytest
from tests.storage.histories import OPTIONS
from tests.storage.making import failing

from ricordo import Memory

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "memories"


def opened(folder):
    return Memory.open(f"{folder}/", **{**OPTIONS, "embedder": None})


def git(folder, *arguments):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)


def committed(folder):
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "more")


def cloned(folder):
    committed(folder)
    other = folder.with_name("other")
    git(folder.parent, "clone", "-q", str(folder), str(other))
    return other


def merged(folder, other):
    """Commit both clones, and pull the other one. Conflicts stay as git leaves them."""
    committed(folder)
    committed(other)
    with contextlib.suppress(subprocess.CalledProcessError):
        git(folder, "pull", "-q", "--no-rebase", str(other), "HEAD")


async def about(memory):
    return {node.content: node.about for node in (await memory.list(limit=100)).nodes}


def known(profile):
    return {node.content for node in profile.facts}


async def named(memory, content):
    return next(node for node in (await memory.list(limit=100)).nodes if content in node.content)


async def test_every_fact_keeps_its_subjects(folder):
    async with opened(folder) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
    other = cloned(folder)
    async with opened(folder) as memory:
        await memory.remember("Anna has a cat", about=["Anna"])
        await memory.remember("Dan has a boat", about=["Dan"])
    async with opened(other) as memory:
        await memory.remember("Eve is a pilot", about=["Eve"], tags=["work"])
        await memory.remember("Dan lives in Rome", about=["Dan"])
        await memory.remember("Anna plays chess", about=["Anna"])
        await memory.add("We sailed to Elba", session="river")
    merged(folder, other)
    wanted = {
        "Anna likes tea": ("Anna",),
        "Anna has a cat": ("Anna",),
        "Dan has a boat": ("Dan",),
        "Eve is a pilot": ("Eve",),
        "Dan lives in Rome": ("Dan",),
        "Anna plays chess": ("Anna",),
        "We sailed to Elba": (),
    }
    async with opened(folder) as memory:
        assert await about(memory) == wanted
        assert failing(await memory.doctor()) == set()
        assert [each.name for each in await memory.people()].count("Dan") == 1
        found = (await memory.search("boat Rome", entity="Dan")).hits
        assert {hit.content for hit in found} == {"Dan has a boat", "Dan lives in Rome"}
        assert known(await memory.entity("Dan")) == {"Dan has a boat", "Dan lives in Rome"}
        assert (await named(memory, "pilot")).tags == ("work",)
        assert [each.id for each in await memory.sessions()] == ["river"]
    committed(folder)
    git(other, "pull", "-q", str(folder), "HEAD")
    async with opened(other) as memory:
        assert await about(memory) == wanted
        assert failing(await memory.doctor()) == set()
        await memory.remember("Eve has a bicycle", about=["Eve"])
    async with opened(folder) as memory:
        await memory.remember("Eve speaks Greek", about=["Eve"])
    merged(folder, other)
    async with opened(folder) as memory:
        more = {"Eve has a bicycle": ("Eve",), "Eve speaks Greek": ("Eve",)}
        assert await about(memory) == wanted | more
        assert failing(await memory.doctor()) == set()
        before = len(await memory.log(100))
        await memory.rebuild_index()
    async with opened(folder) as memory:
        assert await about(memory) == wanted | more
        assert len(await memory.log(100)) == before
    assert not any("Eve" in path.read_text() for path in folder.glob("set-aside-*"))


async def test_names_and_relations_of_both_are_there_once(folder):
    async with opened(folder) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
    other = cloned(folder)
    async with opened(folder) as memory:
        await memory.remember("My brother Tom has a car")
    async with opened(other) as memory:
        await memory.remember("My brother Tom has a dog")
        await memory.update_entity("Tom", aliases=["Tommy"])
        await memory.update_entity("Anna", aliases=["Annie"], attributes={"town": "Bonn"})
        await memory.add_entity("Acme", type="organization")
        await memory.relate("Acme", "employer", source="Anna")
    merged(folder, other)
    async with opened(folder) as memory:
        tom = await memory.entity("Tommy")
        assert tom.name == "Tom"
        assert known(tom) >= {"My brother Tom has a car", "My brother Tom has a dog"}
        relations = [(each.source, each.predicate, each.target) for each in tom.relations]
        assert len(relations) == 1
        anna = await memory.entity("Annie")
        assert (anna.name, anna.attributes["town"]) == ("Anna", "Bonn")
        assert [each.predicate for each in anna.relations] == ["employer"]
        await memory.forget((await named(memory, "car")).id)
        assert len((await memory.entity("Tom")).relations) == 1  # the other fact still says so
        assert failing(await memory.doctor()) == set()


async def test_each_field_of_a_memory_takes_the_change_of_either(folder):
    async with opened(folder) as memory:
        await memory.remember("Pay the rent", category="task", tags=["home"])
        await memory.remember("Call the plumber", category="task")
        await memory.remember("Buy a lamp", category="task", tags=["home"])
        await memory.remember("Water the ferns", category="task")
        await memory.remember("Sell the sofa", category="task")
        await memory.update((await named(memory, "plumber")).id, done=True)
    other = cloned(folder)
    async with opened(folder) as memory:
        await memory.update((await named(memory, "rent")).id, done=True)
        await memory.update((await named(memory, "lamp")).id, tags=["home", "dark"])
        await memory.forget((await named(memory, "ferns")).id)
        await memory.update((await named(memory, "sofa")).id, done=True)
    async with opened(other) as memory:
        await memory.update((await named(memory, "rent")).id, tags=["money"])
        await memory.update((await named(memory, "plumber")).id, done=False)
        await memory.update((await named(memory, "lamp")).id, tags=["home", "bright"])
        await memory.update((await named(memory, "ferns")).id, tags=["garden"])
    merged(folder, other)
    async with opened(folder) as memory:
        found = {node.content: node for node in (await memory.list(limit=100)).nodes}
        rent, lamp = found["Pay the rent"], found["Buy a lamp"]
        assert (rent.attributes.get("done"), rent.tags) == (True, ("money",))
        assert not found["Call the plumber"].attributes.get("done")
        assert {*lamp.tags} == {"home", "bright", "dark"}
        assert "Water the ferns" not in found
        assert found["Sell the sofa"].attributes.get("done") is True
        (forgotten,) = (await memory.archive()).nodes
        assert forgotten.closed_reason == "forgotten"
        assert failing(await memory.doctor()) == set()


async def test_reviews_and_their_decisions_are_there(folder):
    async with opened(folder) as memory:
        await memory.remember("Anna lives in Rome", about=["Anna"])
        await memory.remember("Boris lives in Rome", about=["Boris"])
        await memory.remember("Boris lives in Bonn", about=["Boris"], origin="import")
        assert await memory.review()
    other = cloned(folder)
    async with opened(folder) as memory:
        await memory.remember("We bought a kayak")
    async with opened(other) as memory:
        for each in await memory.review():
            await memory.resolve(each, decision="keep both")
        await memory.remember("Anna lives in Bonn", about=["Anna"], origin="import")
        wanted = {(each.kind, each.newer.content, each.older.content) for each in await memory.review()}
        assert wanted
    merged(folder, other)
    async with opened(folder) as memory:
        found = {(each.kind, each.newer.content, each.older.content) for each in await memory.review()}
        assert found == wanted
        assert failing(await memory.doctor()) == set()


async def test_people_that_one_clone_merged_take_what_the_other_wrote_about_them(folder):
    async with opened(folder) as memory:
        await memory.remember("Daniel has a boat", about=["Daniel"])
        await memory.remember("Mr Smith lives in Rome", about=["Mr Smith"])
        await memory.remember("Eve is a pilot", about=["Eve"])
        await memory.remember("Evelyn has a dog", about=["Evelyn"])
    other = cloned(folder)
    async with opened(folder) as memory:
        await memory.remember("Mr Smith likes figs", about=["Mr Smith"])
        await memory.merge("Eve", "Evelyn")
    async with opened(other) as memory:
        await memory.merge("Daniel", "Mr Smith")
        await memory.remember("Evelyn speaks Greek", about=["Evelyn"])
    merged(folder, other)
    async with opened(folder) as memory:
        daniel, eve = await memory.entity("Daniel"), await memory.entity("Eve")
        assert known(daniel) == {"Daniel has a boat", "Mr Smith lives in Rome", "Mr Smith likes figs"}
        assert known(eve) == {"Eve is a pilot", "Evelyn has a dog", "Evelyn speaks Greek"}
        assert failing(await memory.doctor()) == set()


async def test_what_one_clone_took_back_is_gone(folder):
    async with opened(folder) as memory:
        await memory.remember("Anna likes tea", about=["Anna"])
        kept = await memory.remember("Boris sold the bicycle", about=["Boris"])
    other = cloned(folder)
    async with opened(folder) as memory:
        await memory.remember("We bought a kayak")
        await memory.update(kept.id, tags=["money"])
    async with opened(other) as memory:
        await memory.undo(1)
        await memory.undo(2)
    merged(folder, other)
    async with opened(folder) as memory:
        # One clone has changed what the other one took back: it stays.
        assert {*await about(memory)} == {"We bought a kayak", "Boris sold the bicycle"}
        assert failing(await memory.doctor()) == set()


@pytest.mark.parametrize("writes", [0, 4])
async def test_what_either_clone_forgot_is_not_told_from_its_message(folder, writes):
    async with opened(folder) as memory:
        await memory.add("Anna hates olives.", session="lunch")
        await memory.add("Boris hates celery.", session="lunch")
    other = cloned(folder)
    async with opened(folder) as memory:
        for number in range(writes):
            await memory.remember(f"We own boat {number}")
        await memory.forget((await memory.remember("Anna hates olives.", about=["Anna"])).id)
    async with opened(other) as memory:
        await memory.remember("Carl hates figs.", about=["Carl"])
        await memory.forget((await memory.remember("Boris hates celery.", about=["Boris"])).id)
    merged(folder, other)
    async with opened(folder) as memory:
        assert [hit.content for hit in (await memory.search("Who hates what?")).hits] == ["Carl hates figs."]
        assert failing(await memory.doctor()) == set()
        await memory.rebuild_index()
        assert [hit.content for hit in (await memory.search("Who hates what?")).hits] == ["Carl hates figs."]
        assert failing(await memory.doctor()) == set()
        for node in (await memory.archive()).nodes:
            await memory.restore(node.id)
        found = [hit.content for hit in (await memory.search("Who hates what?")).hits]
        both = ["Anna hates olives."] * 2 + ["Boris hates celery."] * 2
        assert sorted(found) == [*both, "Carl hates figs."]


async def test_commits_of_another_clone_are_no_cut_file(folder):
    async with opened(folder) as memory:
        await memory.remember("The piano was tuned in May")
        await memory.remember("The attic key hangs behind the clock")
    other = cloned(folder)
    async with opened(folder) as memory:
        await memory.forget((await named(memory, "piano")).id)
    async with opened(other) as memory:
        for number in range(5):
            await memory.add(f"We painted fence {number}", session="fences")
        expected = sorted(node.content for node in (await memory.list(type="any", limit=100)).nodes)
    store = folder / "store.jsonl"
    assert store.stat().st_size > (other / "store.jsonl").stat().st_size
    for file in folder.glob("*.jsonl"):
        if (other / file.name).exists():
            file.write_bytes((other / file.name).read_bytes())  # in place: git often reuses the inodes
        else:
            file.unlink()
    for file in other.glob("*.jsonl"):
        (folder / file.name).write_bytes(file.read_bytes())
    async with opened(folder) as memory:
        assert sorted(node.content for node in (await memory.list(type="any", limit=100)).nodes) == expected
        assert (await memory.doctor()).ok
    assert all((folder / file.name).read_bytes() == file.read_bytes() for file in other.glob("*.jsonl"))
