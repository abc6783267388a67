"""The memory as an extension, and a third-party one: sessions, contexts, tools, schedules."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ricordo import Memory, Scope, Settings
from ricordo.errors import InvalidError, UnavailableError
from ricordo.host import (
    Conversation,
    ConversationKey,
    Host,
    HostServices,
    Manifest,
    MemoryExtension,
    Models,
    Patience,
    PlannedJob,
    Prompt,
    Utterance,
)
from ricordo.host.extension import in_order
from ricordo.interfaces.tools import agent_tools
from ricordo.language import ScriptedModel
from ricordo.ports import Turn
from tests.flows.conftest import ConfirmingModel
from tests.host.conftest import MINUTE, HandClock

ME = ConversationKey(owner="me")
SETTINGS = Settings(durability="process", time_zone="Europe/Berlin")
HASTY = Patience(poll_s=0.02, first_wait_ms=1_000)
HALF_HOUR = 31 * MINUTE


def extracting(*texts: str):
    """A model that extracts these sentences and counts its calls."""
    asked: list = []

    def script(turns, schema):
        asked.append(turns)
        facts = [
            {
                "text": text,
                "kind": "fact",
                "category": "knowledge",
                "about": [],
                "slot": "",
                "evidence": ["e1"],
                "said": True,
                "confidence": 0.9,
            }
            for text in texts
        ]
        if schema["title"] == "Verdicts":
            return {"verdicts": []}
        return {"facts": facts, "entities": [], "relations": [], "causes": [], "summary": "A talk."}

    model = ConfirmingModel(script)
    model.asked = asked
    return model


@pytest.fixture
async def memory(tmp_path: Path, clock: HandClock) -> AsyncIterator[Memory]:
    model = extracting("The user has a parrot named Coco")
    async with Memory.open(
        tmp_path / "me.db", embedder="hashing", model=model, clock=clock, settings=SETTINGS
    ) as opened:
        opened.model = model
        yield opened


def hosted(tmp_path: Path, clock: HandClock, *extensions, **options) -> Host:
    return Host(tmp_path / "me.db", extensions, settings=SETTINGS, clock=clock, patience=HASTY, tick_s=1_000, **options)


def said(text: str, session: str, **more) -> Utterance:
    return Utterance(text=text, role="user", place=ME, session=session, **more)


async def test_a_silent_session_is_consolidated_exactly_once(tmp_path, memory, clock):
    async with hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS)) as host:
        routed = await host.router.route(ME)
        await host.hear(said("I have a parrot, Coco.", routed.session))
        clock.ms += HALF_HOUR
        await host.tick()  # noticed by polling
        await host.tick()
        again = await host.router.route(ME)  # and by the next message
        assert again.session != routed.session
        explicit = {"owner": "me", "chat": "", "session": routed.session}
        await host.bus.publish("session.completed", explicit)  # by an event
        await host.bus.drain(10)
        clock.ms += 20 * 60 * MINUTE
        await host.tick()  # and by night
        await host.bus.drain(10)
        assert [list(run.sessions) for run in await memory.runs()] == [[routed.session]]
        assert len(memory.model.asked) == 1
        assert [node.content for node in (await memory.list(type="semantic", category="knowledge")).nodes] == [
            "The user has a parrot named Coco"
        ]


async def test_an_unavailable_model_is_retried_later(tmp_path, clock):
    answers = [UnavailableError("no network"), UnavailableError("no network")]

    def script(turns, schema):
        if answers:
            raise answers.pop()
        return {"facts": [], "entities": [], "relations": [], "causes": [], "summary": "A talk."}

    async with (
        Memory.open(
            tmp_path / "me.db", embedder=None, model=ScriptedModel(script), clock=clock, settings=SETTINGS
        ) as memory,
        hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS)) as host,
    ):
        routed = await host.router.route(ME)
        await host.hear(said("I have a parrot, Coco.", routed.session))
        await host.router.complete(ME)
        for waits in (0, 1_000, 4_000):
            assert (await memory.stats()).last_consolidation is None
            clock.ms += waits
            host.bus.wake()
            await host.bus.drain(5)
        assert (await memory.stats()).last_consolidation is not None
        assert await host.bus.dead_letters() == ()


async def test_nightly_upkeep_runs_on_time_and_is_made_up_for(tmp_path, memory, clock, caplog):
    extension = MemoryExtension(memory, SETTINGS)
    begun = []
    original = extension.run_schedule

    async def noted(name):
        begun.append(name.split()[0])
        await original(name)

    extension.run_schedule = noted
    async with hosted(tmp_path, clock, extension) as host:
        clock.ms += 16 * 60 * MINUTE  # 03:00 in Berlin
        await host.tick()
        await host.bus.drain(10)
        assert begun == ["maintain"]
        clock.ms += 60 * MINUTE
        await host.tick()
        await host.bus.drain(10)
        assert begun == ["maintain", "prune"]
    clock.ms += 5 * 24 * 60 * MINUTE
    async with hosted(tmp_path, clock, extension) as host:
        await host.bus.drain(10)
        assert sorted(begun[2:]) == ["maintain", "prune"]


async def test_only_a_host_for_all_owners_handles_other_owners(tmp_path, memory, clock):
    bob = ConversationKey(owner="bob")
    await memory.scoped(Scope(owner="bob")).add("I have a parrot, Coco.", session="s")
    async with hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS)) as host:
        await host.router.route(bob, session="s")
        await host.router.complete(bob)
        await host.bus.drain(10)
        assert memory.model.asked == []
    async with hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS, all_owners=True)) as host:
        await host.router.route(bob, session="s")
        await host.router.complete(bob)
        await host.bus.drain(10)
        assert len(memory.model.asked) == 1


class Weather:
    """A third-party extension: it imports only `ricordo.host`."""

    manifest = Manifest(
        name="weather", version="1.0", needs=("memory",), schedules=(PlannedJob(name="fetch", cron="*/10 * * * *"),)
    )
    context_priority = 70

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.fetched = 0
        self.ended: list[str] = []
        self.life: list[str] = []

    async def start(self, around: HostServices) -> None:
        self.life.append("start")
        await around.bus.subscribe("weather", "session.completed", self._over)

    async def stop(self) -> None:
        self.life.append("stop")

    async def _over(self, event) -> None:
        self.ended.append(event.payload["session"])

    def tools(self):
        return (Forecast(),)

    async def context(self, prompt: Prompt) -> str | None:
        return "It rains in Bergen." if "rain" in prompt.text else None

    async def hear(self, message: Utterance) -> None:
        self.heard.append(message.text)

    async def run_schedule(self, name: str) -> None:
        assert name == "fetch"
        self.fetched += 1


class Forecast:
    name, description, parameters = "forecast", "The weather of tomorrow.", {"type": "object", "properties": {}}

    async def __call__(self, arguments) -> str:
        return "rain"


async def test_a_second_extension_has_tools_context_plans_events_and_messages(tmp_path, memory, clock):
    weather = Weather()
    known = MemoryExtension(memory, SETTINGS, tools=agent_tools(memory))
    await memory.remember("The user hates rain")
    async with hosted(tmp_path, clock, weather, known) as host:
        assert [each.manifest.name for each in host.extensions] == ["memory", "weather"]
        tools = {each.name: each for each in host.tools()}
        assert {"search_memory", "remember_fact", "forecast"} <= tools.keys()
        assert await tools["forecast"]({}) == "rain"
        assert "rain" in await tools["search_memory"]({"query": "what does the user hate?"})

        told = await host.context(Prompt(text="Do I like rain?", place=ME, session="s"))
        assert told.text.index("hates rain") < told.text.index("Bergen")  # priority 50 comes before 70

        routed = await host.router.route(ME)
        assert await host.hear(said("hello", routed.session)) == ()
        assert weather.heard == ["hello"]
        await host.router.complete(ME)
        clock.ms += 10 * MINUTE
        await host.tick()
        await host.bus.drain(10)
        assert (weather.ended, weather.fetched) == ([routed.session], 1)
    assert weather.life == ["start", "stop"]


async def test_a_failing_extension_is_skipped_and_reported(tmp_path, memory, clock, caplog):
    caplog.set_level(logging.CRITICAL)
    weather = Weather()

    async def breaks(_):
        raise KeyError("x")

    weather.context = weather.hear = breaks
    await memory.remember("The user hates rain")
    async with hosted(tmp_path, clock, weather, MemoryExtension(memory, SETTINGS)) as host:
        told = await host.context(Prompt(text="Do I like rain?", place=ME, session="s"))
        assert "hates rain" in told.text and told.missing == ("weather",)
        assert await host.hear(said("hello", "s")) == ("weather: KeyError",)
        assert [turn.text for turn in await host.recent(ME, "s")] == ["hello"]


def test_incompatible_extensions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="weather needs memory"):
        in_order([Weather()])
    with pytest.raises(InvalidError, match="weather is listed twice"):
        in_order([Weather(), Weather()])
    one, two = Weather(), Weather()
    one.manifest = Manifest(name="a", version="1", needs=("b",))
    two.manifest = Manifest(name="b", version="1", needs=("a",))
    with pytest.raises(InvalidError, match="depend on each other"):
        in_order([one, two])


def test_a_manifest_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "manifest.toml"
    file.write_text('name = "weather"\nversion = "1.0"\nneeds = ["memory"]\n[schedules]\nfetch = "0 6 * * *"\n')
    assert Manifest.read(file) == Manifest(
        name="weather", version="1.0", needs=("memory",), schedules=(PlannedJob(name="fetch", cron="0 6 * * *"),)
    )
    for wrong in ('name = "x"', 'name = "x"\nversion = "1"\ncolour = 1', "???"):
        file.write_text(wrong)
        with pytest.raises(InvalidError, match="not a valid manifest"):
            Manifest.read(file)


async def talk(conversation: Conversation, text: str) -> str:
    return "".join([piece async for piece in conversation.say(text)])


async def test_a_conversation_recalls_streams_records_and_does_not_learn_what_it_recalled(tmp_path, memory, clock):
    await memory.remember("The user hates rain")
    prompts: list[list[Turn]] = []

    def script(turns, schema):
        prompts.append(turns)
        return f"I see:\n{turns[0].text[turns[0].text.find('<rec') :]}\nSo you hate it."

    async with hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS)) as host:
        conversation = Conversation(host, ScriptedModel(script), ME)
        answer = await talk(conversation, "Do I like rain?")
        assert "hates rain" in prompts[0][0].text and "hates rain" in answer
        assert conversation.last.ended == "done" and conversation.last.problems == ()
        await talk(conversation, "And snow?")
        assert [turn.role for turn in prompts[1]] == ["system", "user", "assistant", "user"]
        await host.router.complete(ME)
        await host.bus.drain(10)
    (asked,) = memory.model.asked
    learnt_from = "\n".join(turn.text for turn in asked)
    assert "So you hate it." in learnt_from and "The user hates rain" not in learnt_from


async def test_a_new_process_continues_the_session_and_keeps_partial_answers(tmp_path, memory, clock):
    prompts: list[list[Turn]] = []

    def script(turns, schema):
        prompts.append(turns)
        return "One two three."

    for text in ("first", "second"):
        async with hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS)) as host:
            saying = Conversation(host, ScriptedModel(script), ME).say(text)
            async for _ in saying:
                break
            await saying.aclose()
    assert [(turn.role, turn.text) for turn in prompts[1][1:]] == [
        ("user", "first"),
        ("assistant", "One"),
        ("user", "second"),
    ]
    nodes = (await memory.list(type="episodic", where={"is_cut": True})).nodes
    assert [node.content for node in nodes] == ["One", "One"]


async def test_off_the_record_messages_are_known_only_to_the_conversation(tmp_path, memory, clock):
    async with hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS)) as host:
        model = ScriptedModel(lambda turns, schema: f"I heard {len(turns)} turns.")
        conversation = Conversation(host, model, ME)
        await host.router.off_record(ME, True)
        assert await talk(conversation, "My secret is mine") == "I heard 2 turns."
        assert await talk(conversation, "Do you remember?") == "I heard 4 turns."
        assert (await memory.list(type="any")).nodes == ()
        await host.router.complete(ME)
        await host.bus.drain(10)
        assert memory.model.asked == []
        await host.router.off_record(ME, False)
        await talk(conversation, "hello")
    assert len((await memory.list(type="episodic")).nodes) == 2


async def test_a_failing_model_keeps_the_message(tmp_path, memory, clock):
    async with hosted(tmp_path, clock, MemoryExtension(memory, SETTINGS)) as host:
        conversation = Conversation(host, ScriptedModel([UnavailableError("no network")]), ME)
        with pytest.raises(UnavailableError):
            await talk(conversation, "I have a parrot")
    assert [node.content for node in (await memory.list(type="episodic")).nodes] == ["I have a parrot"]


def test_models_are_chosen_by_configuration() -> None:
    chat, other = ScriptedModel([]), ScriptedModel([])
    assert Models(Settings()).chat() is None
    assert Models(Settings(), consolidation=other).chat() is other
    assert Models(Settings(), chat=chat, consolidation=other).chat() is chat
    configured = Models(Settings(model="ollama:big", chat_model="ollama:small"))
    assert (configured.consolidation, configured.chat().name) == ("ollama:big", "ollama:small")
    assert Models(Settings(model="ollama:big")).chat().name == "ollama:big"
    assert Models(Settings(model="none")).chat() is None
