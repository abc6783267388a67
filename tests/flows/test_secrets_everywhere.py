"""Credentials are screened wherever text comes in, and the owner can keep one on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from ricordo import DeniedError, Fact, InvalidError, Memory, Scope, Settings
from tests.flows.conftest import HandClock, Place

SECRETS = [
    "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8",
    "AKIAIOSFODNN7EXAMPLQ",
    "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0",
    "Authorization: Bearer A1b2C3d4E5f6G7h8I9j0K1l2",
]


@pytest.mark.parametrize("secret", SECRETS)
async def test_no_field_stores_a_credential(memory: Any, secret: str) -> None:
    await memory.add("hello", speaker=secret, session=secret, attributes={"header": secret, secret: [{"deep": secret}]})
    await memory.end_session(secret)
    await memory.remember("Anna likes tea", about=[secret], tags=[secret], attributes={"note": secret}, session=secret)
    fact = await memory.remember("Ben likes tea")
    await memory.update(fact.id, tags=[secret], attributes={"note": secret})
    await memory.add_entity(f"Key {secret}", aliases=[secret])
    key = secret.split()[-1]
    found = [node for kind in ("episodic", "semantic") for node in (await memory.list(type=kind)).nodes]
    assert len(found) == 3
    assert key not in repr(found) + repr(await memory.people())
    assert [hit.tags for hit in (await memory.query(key)).hits if key in str(hit)] == []


async def test_a_key_announces_the_value_of_an_attribute(memory: Any) -> None:
    node = await memory.remember("The router", attributes={"password": "hunter2!", "room": "hall", "port": 8080})
    assert node.attributes == {"password": "[redacted: password]", "room": "hall", "port": 8080}


async def test_the_setting_refuses_or_keeps_credentials_in_every_field(place: Place, clock: HandClock) -> None:
    secret = SECRETS[0]
    refusing = Settings(durability="process", secrets="refuse")
    async with Memory.open(place.location, embedder=None, clock=clock, settings=refusing) as memory:
        for fields in ({"tags": [secret]}, {"attributes": {"a": secret}}, {"about": [secret]}, {"session": secret}):
            with pytest.raises(InvalidError, match="holds a credential"):
                await memory.remember("Anna likes tea", **fields)
        with pytest.raises(InvalidError, match="speaker holds a credential"):
            await memory.add("hello", speaker=secret)
    keeping = Settings(durability="process", secrets="keep")
    async with Memory.open(place.location, embedder=None, clock=clock, settings=keeping) as memory:
        await memory.add("hello", session=secret)
        await memory.end_session(secret)
        assert (await memory.remember("Anna likes tea", tags=[secret])).tags == (secret,)


async def test_a_message_added_without_waiting_is_screened_before_it_is_stored(place: Place, clock: HandClock) -> None:
    async with Memory.open(place.location, embedder=None, clock=clock) as memory:
        node = memory.add_nowait("hello", speaker=SECRETS[0], session=SECRETS[1], attributes={"a": SECRETS[2]})
        await memory.settle(600)
        assert not [secret for secret in SECRETS if secret in repr(await memory.get(node))]


@pytest.mark.parametrize(
    "text",
    [
        "The password is correct horse battery staple",
        "my wifi passphrase: violet tractor window lemon",
        "Mein Passwort ist blume traktor fenster zitrone",
        "Мой пароль: фиалка трактор окошко лимон",
    ],
)
async def test_a_passphrase_without_quotes_is_a_password(memory: Any, text: str) -> None:
    assert "[redacted: password]" in (await memory.remember(text)).content


@pytest.mark.parametrize(
    "text",
    [
        "The password is stored in the safe in the hall",
        "My password is too long and hard to type",
        "The password is known only to Anna and Ben",
        "Das Passwort ist leider schon wieder abgelaufen",
        "Пароль хранится в сейфе у директора",
    ],
)
async def test_a_remark_about_a_password_is_none(memory: Any, text: str) -> None:
    assert (await memory.remember(text)).content == text


async def test_the_owner_keeps_a_code_on_purpose(memory: Any) -> None:
    assert "4711" not in (await memory.remember("The door code is 4711")).content
    kept = await memory.remember("The door code of the cellar is 4712", tags=["code 4712"], keep_secrets=True)
    assert (kept.content, kept.tags) == ("The door code of the cellar is 4712", ("code 4712",))
    assert kept.id in (await memory.search("What is the door code of the cellar?")).ids
    (other,) = await memory.remember_many([Fact(content="The alarm PIN is 9471", keep_secrets=True)])
    assert "9471" in other.content
    agent = memory.scoped(Scope(trust="agent"))
    with pytest.raises(DeniedError, match="keep_secrets"):
        await agent.remember("The door code is 4713", keep_secrets=True)
