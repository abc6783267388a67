"""Background work is asked of the store, so that a crash loses none of it; leases say who does it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from ricordo.clock import from_ms, to_ms
from ricordo.language import ScriptedModel
from ricordo.model import Change, Edge, Entity, Given, LeftOut, Receipt, Relation, Run, RunItem, Scope, Share
from ricordo.storage.values import Usage
from tests.contract.backends import open_backend
from tests.contract.histories import answer
from tests.storage.making import ME, NOON, WHY, closing, commit, fact, said

LATER = NOON + timedelta(days=1)
ANNA = Entity(id="anna", type="person", name="Anna", aliases=("Annie",), first_seen=NOON, last_updated=NOON, owner="me")


async def key_of(store, node):
    return (await store.read(lambda tx: tx.nodes.get(ME, node.id))).key


async def test_what_was_not_searched_for_names_is_a_question_to_the_store(store):
    first, second = said("Anna came", speaker="Bob"), said("It rained")
    await commit(store, add=(first, second))
    assert await store.read(lambda tx: tx.mentions.spaces_with_names()) == []
    await commit(store, entities=(ANNA,))
    (space,) = await store.read(lambda tx: tx.mentions.spaces_with_names())
    left = await store.read(lambda tx: tx.mentions.unlinked(space, 9))
    assert [text.text for text in left] == ["Bob: Anna came", "It rained"]
    assert await store.read(lambda tx: tx.mentions.owner_of(space)) == "me"
    await store.derive(lambda tx: tx.mentions.mark_linked(space, left[0].key))
    assert [text.text for text in await store.read(lambda tx: tx.mentions.unlinked(space, 9))] == ["It rained"]


async def test_new_names_and_relations_are_noted_until_they_are_done(store):
    await commit(store, entities=(ANNA,))
    names = await store.read(lambda tx: tx.mentions.new_names())
    assert [(folded, name, made) for _, folded, name, _, made in names] == [("anna", "Anna", 1), ("annie", "Annie", 1)]
    await store.derive(lambda tx: tx.mentions.mark_names(1))
    assert await store.read(lambda tx: tx.mentions.new_names()) == []
    wife = Relation(id="r", predicate="wife", target="anna", created_at=NOON, owner="me")
    await commit(store, relations=(wife,))
    ((space, predicate, note),) = await store.read(lambda tx: tx.mentions.new_relations())
    assert predicate == "wife"
    (holder,) = await store.read(lambda tx: tx.mentions.holders_of(space))
    assert (holder.predicate, holder.start, holder.end) == ("wife", None, None)
    await store.derive(lambda tx: tx.mentions.mark_relations(note))
    assert await store.read(lambda tx: tx.mentions.new_relations()) == []


async def test_a_changed_text_is_searched_again_and_a_note_made_meanwhile_is_not_lost(store):
    node = said("Anna came")
    await commit(store, entities=(ANNA,), add=(node,))
    key = await key_of(store, node)
    entity = (await store.read(lambda tx: tx.entities.by_id(ME, "anna"))).key
    await store.derive(lambda tx: tx.mentions.put_links([(key, entity), (key + 99, entity)]))
    assert await store.read(lambda tx: tx.mentions.mentions_of(entity)) == [(key, "Anna came")]
    await commit(store, put=(replace(node, content="Nobody came"),))
    (space,) = await store.read(lambda tx: tx.mentions.spaces_to_link())
    noted = await store.read(lambda tx: tx.mentions.to_link(space, 9))
    await commit(store, put=(replace(node, content="Somebody came"),))
    await store.derive(lambda tx: tx.mentions.put_links_again([note for note, _ in noted], [key], []))
    assert await store.read(lambda tx: tx.mentions.mentions_of(entity)) == []
    left = await store.read(lambda tx: tx.mentions.to_link(space, 9))
    assert [each for _, each in left] == [key] and left[0][0] > noted[-1][0]


async def test_texts_are_found_by_all_of_their_words(store):
    nodes = [said("the red bicycle of Anna"), said("a red kite"), said("nothing", speaker="Bicycle Red")]
    await commit(store, add=tuple(nodes), entities=(ANNA,))
    (space,) = await store.read(lambda tx: tx.mentions.spaces_with_names())
    found = await store.read(lambda tx: tx.mentions.texts_with(space, "red bicycles", 99))
    assert sorted(text.text for text in found) == ["Bicycle Red: nothing", "the red bicycle of Anna"]


async def test_a_lease_is_taken_by_one_renewed_given_back_and_runs_out(store):
    async def take(holder, now, gone=()):
        return await store.derive(
            lambda tx: tx.leases.take("job", holder, now=now, until=now + 10, is_gone=lambda other: other in gone)
        )

    assert await take("one", 0)
    assert not await take("two", 5)
    assert await take("one", 9)
    assert not await take("two", 12)
    assert await take("two", 20)
    assert await take("three", 21, gone=("two",))
    await store.derive(lambda tx: tx.leases.drop("job", "two"))
    assert not await take("one", 22)
    await store.derive(lambda tx: tx.leases.drop("job", "three"))
    assert await take("one", 22)


async def test_what_waits_to_become_knowledge_leaves_when_it_has(store):
    first, second = said("hello", session="s"), said("bye", session="s", minutes=1)
    alone = said("to nobody", minutes=2)
    await commit(store, add=(first, second, alone))
    waiting = await store.read(lambda tx: tx.runs.waiting(ME))
    assert [(each.session, each.messages) for each in waiting] == [("s", 2), (None, 1)]
    assert await store.read(lambda tx: tx.runs.latest_waiting()) == [(("me", ""), None), (("me", ""), "s")]
    episodes = await store.read(lambda tx: tx.runs.waiting_episodes(ME, ("me", ""), "s"))
    assert [node.content for node in episodes] == ["hello", "bye"]
    await commit(store, consolidated=(first.id,))
    episodes = await store.read(lambda tx: tx.runs.waiting_episodes(ME, ("me", ""), "s"))
    assert [node.content for node in episodes] == ["bye"]
    everything = await store.read(lambda tx: tx.runs.session_episodes(ME, ("me", ""), "s"))
    assert [node.content for node in everything] == ["hello", "bye"]


async def test_a_run_comes_back_as_it_was_and_speaks_of_what_is_still_there(store):
    node, other = fact("likes tea"), said("I like tea", session="b")
    await commit(store, add=(node, other, said("x", session="a")))
    items = (
        RunItem(what="added", id=node.id, reason="said", evidence=(other.id,)),
        RunItem(what="looked", evidence=(other.id,)),
    )
    run = Run(
        id="run-12345678",
        kind="consolidation",
        state="done",
        model="m",
        prompt="1",
        started_at=NOON,
        ended_at=NOON,
        sessions=("a", "b"),
        tokens_in=3,
        tokens_out=4,
        cost=0.5,
        items=items,
        owner="me",
    )
    await commit(store, runs=(run,))
    kept = await store.read(lambda tx: tx.runs.get(ME, run.id))
    assert replace(kept, key=0) == replace(run, items=(replace(items[0], text="likes tea"), items[1]))
    assert [each.id for each in await store.read(lambda tx: tx.runs.listed(ME, most=9))] == [run.id]
    await commit(store, runs=(replace(run, tokens_in=30, model="other"),))
    again = await store.read(lambda tx: tx.runs.get(ME, run.id))
    assert (again.tokens_in, again.model, again.key) == (30, "m", kept.key)
    assert await store.read(lambda tx: tx.runs.get(Scope(owner="eve"), run.id)) is None


async def test_the_sessions_of_a_run_keep_their_order_when_the_store_is_opened_again(where):
    """A database collects statistics when it is closed, and joins in another order from then on."""
    names = tuple(f"s{number}" for number in (3, 1, 4, 5, 9, 2, 6))
    run = Run(
        id="run", kind="consolidation", state="done", model="m", prompt="1", started_at=NOON, ended_at=NOON, owner="me"
    )
    for number in range(3):
        store = open_backend(where)
        turns = tuple(said("x", session=name) for name in sorted(names))
        await commit(store, add=turns, runs=(replace(run, id=f"run {number}", sessions=names),))
        kept = [await store.read(lambda tx, n=n: tx.runs.get(ME, f"run {n}").sessions) for n in range(number + 1)]
        assert kept == [names] * (number + 1)
        await asyncio.to_thread(store.close)


async def test_failures_use_and_proposals_are_remembered(store):
    await commit(store, add=(said("hello", session="s"),))
    place = ("me", "")
    for session in ("s", "s", None):
        await store.derive(lambda tx, s=session: tx.runs.note_failure(place, s, at=5, reason="no answer"))
    failures = await store.read(lambda tx: tx.runs.failures(ME))
    assert sorted((each.session or "", each.tries) for each in failures) == [("", 1), ("s", 2)]
    await store.derive(lambda tx: tx.runs.forget_failures(place, "s"))
    assert [each.session for each in await store.read(lambda tx: tx.runs.failures(ME))] == [None]
    space = await store.read(lambda tx: tx.space("me", ""))
    await store.derive(lambda tx: tx.proposals.put("run-12345678", space=space, at=0, body="{}"))
    asked = [(ME, "run-12345678"), (ME, "12345678"), (ME, "run-1"), (ME, "2345"), (Scope(owner="eve"), "run-12345678")]
    found = [await store.read(lambda tx, each=each: tx.proposals.body(*each)) for each in asked]
    assert found == ["{}", "{}", "{}", None, None]
    await store.derive(lambda tx: tx.proposals.drop(["run-12345678", "unknown"]))
    assert await store.read(lambda tx: tx.proposals.body(ME, "run-12345678")) is None


async def test_calls_of_models_are_counted_by_day_and_owner_and_tell_how_a_run_ended(store):
    await commit(store, add=(said("hello", session="s"), replace(said("hi", session="t"), owner="eve")))
    day, cost = "2026-01-02", {"tokens_in": 90, "tokens_out": 11}

    async def call(run, session, *, most=0, used=cost, day=day):
        begin = {"day": day, "at": 5, "tokens": 40, "most": most}
        number = await store.derive(lambda tx: tx.runs.begin_call(run, session, **begin))
        if number is not None and used:
            await store.derive(lambda tx: tx.runs.end_call(number, **used, cost=0.5))
        return number

    run = Run(
        id="r1",
        kind="consolidation",
        state="failed",
        model="m",
        prompt="p",
        started_at=from_ms(5),
        ended_at=from_ms(5),
        owner="me",
        reason="no answer",
    )
    await call(run, "s", day="2026-01-01")
    await call(run, "s")
    assert await call(run, "s", most=101) is None, "today's tokens are used up"
    eve = replace(run, id="r2", owner="eve", state="undone")
    assert await call(eve, "t", most=101, used=None) is not None, "another owner has tokens of their own"
    uses = await store.read(lambda tx: tx.runs.model_use(None, since="2026-01-01"))
    assert [(use.day, use.owner, use.calls, use.tokens_in, use.tokens_out, use.cost, use.runs) for use in uses] == [
        ("2026-01-02", "eve", 1, 40, 0, None, 1),
        ("2026-01-02", "me", 1, 90, 11, 0.5, 1),
        ("2026-01-01", "me", 1, 90, 11, 0.5, 1),
    ]
    assert await store.read(lambda tx: tx.runs.model_use(ME, since=day)) == [uses[1]]
    (left,) = await store.read(lambda tx: tx.runs.listed(ME, most=5))
    assert (left.id, left.state, left.tokens_in, left.sessions) == ("r1", "failed", 180, ("s",))
    assert left.reason.startswith("interrupted")
    await store.derive(lambda tx: tx.runs.note_outcome(run, "s", day=day, at=6))
    await store.derive(lambda tx: tx.runs.note_outcome(run, None, day=day, at=6))
    (ended,) = await store.read(lambda tx: tx.runs.listed(ME, most=5))
    assert (ended.reason, ended.cost) == ("no answer", 1.0)
    assert [(item.text, item.reason) for item in ended.items] == [("s", "no answer")]
    await store.derive(lambda tx: tx.runs.note_outcome(eve, "t", day=day, at=6))
    assert (await store.read(lambda tx: tx.runs.get(Scope(owner="eve"), "r2"))).state == "undone"
    assert await store.read(lambda tx: tx.runs.get(ME, "r2")) is None


async def test_what_models_used_for_a_conversation_still_counts_when_it_is_erased_or_undone(open_memory):
    async with open_memory(model=ScriptedModel(answer)) as memory:
        await memory.add("Anna likes tea", session="erased")
        await memory.add("Bo plays chess", session="undone")
        undone = (await memory.log(1))[0].seq
        await memory.consolidate()

        async def used():
            return await memory._opened.store.read(lambda tx: tx.runs.model_use(ME, since="2026-01-01"))

        before = await used()
        assert before[0].calls >= 2
        await memory.erase(session="erased")
        assert await used() == before
        await memory.undo(undone, with_later=True)
        assert await used() == before
        assert (await memory.doctor()).ok


async def test_how_often_a_memory_was_shown_adds_up_and_goes_with_it(store):
    node = fact("likes tea")
    await commit(store, add=(node,))
    key = await key_of(store, node)
    for shown, at in ((2, 50), (1, 40)):
        await store.derive(lambda tx, u=Usage(shown, at): tx.graph.put_usage({key: u, key + 99: u}))
    assert await store.read(lambda tx: tx.graph.usage([key, key + 99])) == {key: Usage(3, 50)}
    (vital,) = await store.read(lambda tx: tx.lifecycle.vitals(ME, [key], often=0))
    assert (vital.shown, vital.last_access) == (3, 50)


async def test_what_decides_how_long_a_memory_is_kept(store):
    protected = replace(ANNA, protected=True)
    own, drawn, theirs = fact("likes tea"), fact("drawn", origin="extraction", confidence=0.9), fact("x", origin="web")
    words = said("I like tea", origin="conversation")
    await commit(
        store,
        entities=(protected,),
        add=(own, drawn, theirs, words),
        subjects=((theirs.id, "anna"),),
        link=(Edge(source=drawn.id, target=words.id, type="derived_from"),),
    )
    keys = [await key_of(store, node) for node in (own, drawn, theirs, words)]
    vitals = await store.read(lambda tx: tx.lifecycle.vitals(ME, keys, often=0))
    assert [each.is_said for each in vitals] == [True, True, False, True]
    assert [each.is_inferred for each in vitals] == [False, True, False, False]
    assert [each.is_protected for each in vitals] == [False, False, True, False]
    assert [each.rate for each in vitals] == [0.1, 0.1, 0.1, 0.0]
    assert await store.read(lambda tx: tx.lifecycle.knowledge(ME)) == keys[:3]
    assert await store.read(lambda tx: tx.lifecycle.size(ME)) == (3, len("likes tea" + "drawn" + "x"))
    assert not await store.read(lambda tx: tx.lifecycle.vitals(Scope(owner="eve"), keys, often=0))


async def test_models_take_over_when_nothing_lacks_a_vector(store):
    first = await store.derive(lambda tx: tx.models.adopt(name="one", dimension=4, spec="one"))
    second = await store.derive(lambda tx: tx.models.adopt(name="two", dimension=4, spec="two"))
    assert (first.state, second.state) == ("active", "coming")
    node = fact("likes tea")
    await commit(store, add=(node,))
    assert not await store.derive(lambda tx: tx.models.switch(second.key))
    await commit(store, close=(closing(node),))
    assert await store.derive(lambda tx: tx.models.switch(second.key))
    known = await store.read(lambda tx: tx.models.known())
    assert [(each.name, each.state) for each in known] == [("one", "retiring"), ("two", "active")]
    while await store.derive(lambda tx: tx.models.drop_retired()):
        pass
    assert [each.name for each in await store.read(lambda tx: tx.models.known())] == ["two"]


async def test_memories_that_proved_useful_together_are_tied_more_each_time(store):
    one, two = fact("one", reinforced_at=NOON), fact("two", reinforced_at=NOON)
    await commit(store, add=(one, two))
    keys = [await key_of(store, node) for node in (one, two)]
    weights = []
    for _ in range(2):
        change = Change(associates=((one.id, two.id),))
        await store.write(lambda _, change=change: (change, None), scope=ME, reason=WHY, at=NOON)
        (step,) = await store.read(lambda tx: tx.graph.associates(ME, keys[:1], each=9))
        weights.append((step.key, round(step.weight, 6)))
    assert weights == [(keys[1], 0.3), (keys[1], 0.51)]
    at = int(NOON.timestamp() * 1_000)
    assert await store.read(lambda tx: tx.graph.reinforced_with("me", "", one.id, at=at)) == [two.id]
    assert await store.read(lambda tx: tx.graph.reinforced_with("me", "", one.id, at=at + 60_001)) == []


async def test_sessions_are_listed_with_their_live_messages(store):
    first, gone = said("hello", session="s"), said("bye", session="s")
    later = replace(said("hi", session="t"), event_time=NOON + timedelta(days=1))
    await commit(store, add=(first, gone, later, replace(said("hm", session="x"), owner="eve")))
    await commit(store, close=(closing(gone),))
    listed = await store.read(lambda tx: tx.sessions.listed(ME, most=9))
    assert [(each.id, each.messages, each.last_at) for each in listed] == [("t", 1, later.event_time), ("s", 1, NOON)]
    nodes = await store.read(lambda tx: tx.nodes.by_key(ME, [each.key for each in listed]))
    assert [nodes[each.key].content for each in listed] == ["hi", "hello"]
    assert await store.read(lambda tx: tx.sessions.listed(ME, most=1)) == listed[:1]
    assert await store.read(lambda tx: tx.sessions.listed(ME, most=9, session_id="s")) == listed[1:]
    assert await store.read(lambda tx: tx.sessions.listed(ME, most=9, session_id="x")) == []


def receipt(id_: str, *given: str, owner: str = "me", chat: str = "", text: str = "what is it") -> Receipt:
    why = (Share(strategy="words", rank=1, raw=0.5, share=0.25),)
    return Receipt(
        id=id_,
        at=NOON,
        verb="search",
        question=text,
        owner=owner,
        chat=chat,
        trust="user",
        commit=1,
        asked={"limit": 3},
        setup={"embedder": "none"},
        given=tuple(Given(id=each, score=0.25, why=why) for each in given),
        left_out=(LeftOut(id=given[0], reason="ranked below"),) if given else (),
    )


async def test_receipts_are_kept_for_their_caller_alone(store):
    hello, secret = said("hello"), replace(said("secret"), owner="eve")
    await commit(store, add=(hello, secret))
    kept = [receipt("r1-000001", hello.id), receipt("r2-000002", chat="pub"), receipt("r3", secret.id, owner="eve")]
    kept.append(receipt("r4", owner="", chat="pub"))
    for each in [*kept, kept[0]]:
        await store.derive(lambda tx, each=each: tx.receipts.put(each))
    by_caller = {
        ME: [kept[1], kept[0]],
        Scope(owner="me", chat="pub"): [kept[1], kept[0]],
        Scope(owner="eve", chat="pub"): [kept[2]],
        Scope(owner="", chat="pub"): [kept[3]],
        Scope(owner="nobody"): [],
    }
    for caller, mine in by_caller.items():
        assert await store.read(lambda tx, c=caller: tx.receipts.listed(c, before=None, most=9)) == mine
        assert await store.read(lambda tx, c=caller: tx.receipts.get(c, "r1-000001")) == (
            kept[0] if kept[0] in mine else None
        )
    assert await store.read(lambda tx: tx.receipts.listed(ME, before="r2-000002", most=9)) == [kept[0]]
    assert await store.read(lambda tx: tx.receipts.get(ME, "2-000002")) == kept[1]
    assert await store.read(lambda tx: tx.history.seen(ME)) == 1
    assert await store.read(lambda tx: tx.history.seen(Scope(owner="nobody"))) == 0
    space = await store.read(lambda tx: tx.space("me", ""))
    asked = {id_: rest for id_, *rest in await store.read(lambda tx: tx.receipts.asked(space))}
    assert asked.keys() == {"r1-000001", "r2-000002"} and hello.id in asked["r1-000001"][1]
    await store.derive(lambda tx: tx.receipts.blank(["r2-000002"]))
    assert await store.read(lambda tx: tx.receipts.get(ME, "r2-000002")) == replace(kept[1], question=None, asked={})
    assert await store.derive(lambda tx: tx.receipts.expire(ME, before=to_ms(NOON))) == 0
    assert await store.derive(lambda tx: tx.receipts.expire(ME, before=to_ms(NOON) + 1)) == 2
    assert await store.read(lambda tx: tx.receipts.listed(Scope(owner="eve"), before=None, most=9)) == [kept[2]]


async def test_a_receipt_names_nothing_that_the_store_no_longer_holds(store):
    hello = said("hello")
    await commit(store, add=(hello,))
    await store.derive(lambda tx: tx.receipts.put(receipt("r1", hello.id)))
    await store.derive(lambda tx: tx.receipts.put(receipt("r2", hello.id, "gone")))
    await store.derive(lambda tx: tx.receipts.sweep())
    whole, cut = [await store.read(lambda tx, i=i: tx.receipts.get(ME, i)) for i in ("r1", "r2")]
    assert whole == receipt("r1", hello.id)
    assert (cut.question, cut.asked, [each.id for each in cut.given]) == (None, {}, [hello.id])


async def test_a_standing_question_is_no_other_receipt_and_stays_until_it_is_dropped(store):
    hello = said("hello")
    await commit(store, add=(hello,))
    kept = [replace(receipt(id_), verb="standing", setup={}, given=(), left_out=()) for id_ in ("q1-000001", "q2")]
    for each in (receipt("r1"), *kept, replace(kept[0], id="q3", owner="eve")):
        await store.derive(lambda tx, each=each: tx.receipts.put(each))
    assert await store.read(lambda tx: tx.receipts.standing(ME)) == kept
    assert await store.read(lambda tx: tx.receipts.listed(ME, before=None, most=9)) == [receipt("r1")]
    assert await store.read(lambda tx: tx.receipts.get(ME, "q1-000001")) is None
    assert await store.derive(lambda tx: tx.receipts.expire(ME, before=to_ms(NOON) + 1)) == 1

    answered = replace(kept[0], at=LATER, commit=1, setup={"answer": "yes"}, given=(Given(id=hello.id),))
    assert await store.derive(lambda tx: tx.receipts.answer(answered))
    assert await store.read(lambda tx: tx.receipts.standing(ME)) == [answered, kept[1]]
    late = replace(answered, given=(Given(id=hello.id), Given(id="gone")))
    assert await store.derive(lambda tx: tx.receipts.answer(late))
    assert await store.read(lambda tx: tx.receipts.standing(ME)) == [replace(answered, setup={}), kept[1]]

    space = await store.read(lambda tx: tx.space("me", ""))
    assert await store.derive(lambda tx: tx.receipts.answer(answered))
    await store.derive(lambda tx: tx.receipts.sweep())
    assert (await store.read(lambda tx: tx.receipts.standing(ME)))[0] == answered
    await store.derive(lambda tx: tx.receipts.unanswer(space))
    assert (await store.read(lambda tx: tx.receipts.standing(ME)))[0] == replace(answered, setup={})

    await store.derive(lambda tx: tx.receipts.blank(["q1-000001"]))
    assert not await store.derive(lambda tx: tx.receipts.answer(answered)), "it was dropped"
    assert await store.read(lambda tx: tx.receipts.standing(ME)) == [kept[1]]
    assert await store.derive(lambda tx: tx.receipts.expire(ME, before=to_ms(LATER) + 1)) == 1
