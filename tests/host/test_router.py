"""A session ends by silence, by another name or explicitly; each end is published once."""

from __future__ import annotations

from ricordo.host.bus import Bus, Patience
from ricordo.host.journal import Journal
from ricordo.host.router import SESSION_COMPLETED, ConversationKey, ConversationState, Router, turn
from tests.host.conftest import MINUTE, START, HandClock

ANN = ConversationKey(owner="ann")
HALF_HOUR = 30 * MINUTE


def test_routing_of_a_message_to_a_session() -> None:
    standing = ConversationState(session="s1", last_at=START)

    def after(minutes: float, named: str | None = None, before: ConversationState | None = standing):
        now = START + int(minutes * MINUTE)
        return turn(before, named=named, fresh="new", now=now, timeout_ms=HALF_HOUR)

    assert after(30) == (ConversationState(session="s1", last_at=START + HALF_HOUR), "")
    assert after(30.01)[0].session == "new" and after(30.01)[1] == "inactivity"
    assert after(1, "s2") == (ConversationState(session="s2", last_at=START + MINUTE), "another session began")
    assert after(500, "s1")[1] == ""  # naming a session continues it
    assert after(-500) == (standing, "")  # a clock set back is no silence
    assert after(0, before=None) == (ConversationState(session="new", last_at=START), "")


async def _routing(journal: Journal, clock: HandClock) -> tuple[Router, Bus, list]:
    heard: list = []

    async def handle(event) -> None:
        heard.append((event.payload["owner"], event.payload["session"], event.payload["reason"]))

    bus = Bus(journal, clock, Patience(poll_s=0.02))
    await bus.subscribe("listener", SESSION_COMPLETED, handle)
    await bus.start()
    return Router(journal, bus, clock, timeout_s=1_800), bus, heard


async def test_a_session_ends_once_by_silence_name_or_command(journal, clock) -> None:
    router, bus, heard = await _routing(journal, clock)
    first = await router.route(ANN)
    assert first.is_new and first.completed is None
    clock.ms += 10 * MINUTE
    assert (await router.route(ANN)).session == first.session
    clock.ms += 31 * MINUTE
    second = await router.route(ANN)
    assert (second.completed, second.is_new) == (first.session, True)
    third = await router.route(ANN, session="mine")
    assert (third.session, third.completed) == ("mine", second.session)
    assert await router.complete(ANN) == "mine"
    assert await router.complete(ANN) is None
    assert await router.sweep() == []
    await bus.drain(5)
    assert heard == [
        ("ann", first.session, "inactivity"),
        ("ann", second.session, "another session began"),
        ("ann", "mine", "it was ended"),
    ]
    await router.route(ANN, session="mine")  # it is continued, so it ends again
    clock.ms += 31 * MINUTE
    assert await router.sweep() == ["mine"]
    assert await router.sweep() == []
    await bus.drain(5)
    assert heard[3:] == [("ann", "mine", "inactivity")]
    await bus.stop()


async def test_conversations_are_separate_and_survive_a_restart(journal, clock) -> None:
    router, bus, heard = await _routing(journal, clock)
    ann = await router.route(ANN)
    bob = await router.route(ConversationKey(owner="bob"))
    assert ann.session != bob.session
    again = Router(journal, bus, clock, timeout_s=1_800)
    assert (await again.route(ANN)).session == ann.session
    clock.ms += 31 * MINUTE
    assert (await again.route(ANN)).completed == ann.session
    await bus.drain(5)
    assert heard == [("ann", ann.session, "inactivity")]
    assert await again.standing(ConversationKey(owner="bob")) == ConversationState(session=None, last_at=START)
    await bus.drain(5)
    assert heard[1:] == [("bob", bob.session, "inactivity")]
    await bus.stop()


async def test_off_the_record_lasts_across_sessions(journal, clock) -> None:
    router, bus, _ = await _routing(journal, clock)
    await router.route(ANN)
    await router.off_record(ANN, True)
    clock.ms += 31 * MINUTE
    routed = await router.route(ANN)
    assert routed.is_new and routed.is_off_record
    await router.complete(ANN)
    assert (await router.route(ANN)).is_off_record
    await router.off_record(ANN, False)
    assert not (await router.route(ANN)).is_off_record
    await bus.stop()
