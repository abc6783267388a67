"""Statements that share a word, but not what they are about."""

from __future__ import annotations

from typing import Any

import pytest


async def _outdated(memory: Any, older: str, newer: str) -> list[tuple[str, bool]]:
    """Return what a statement replaces or may make out of date, and whether that is closed."""
    await memory.remember(older)
    return [(each.content, each.is_closed) for each in (await memory.remember(newer)).outdates]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("my phone is a pixel 6", "we got two rats, pixel and bit"),
        ("my car is a golf", "we got two tickets for golf on sunday"),
        ("my laptop is a thinkpad", "got a new bag for the thinkpad"),
        ("mein auto is ein golf", "wir haben zwei karten fuer golf am sonntag gekriegt"),
        ("Mein Auto ist ein Golf", "Wir haben zwei Hasen bekommen, Golf und Polo"),
        ("mi coche es un ibiza", "hemos comprado dos billetes para ibiza"),
        ("ma voiture est une clio", "on a adopté deux chats, clio et pacha"),
        ("la mia macchina è una panda", "abbiamo comprato due biglietti per panda"),
        ("o meu carro é um polo", "comprei dois bilhetes para o polo"),
        ("моя машина лада", "купили два билета на ладу"),
        ("мой телефон пиксель", "мы завели двух крыс, пиксель и бит"),
    ],
)
async def test_getting_something_else_does_not_change_what_has_the_same_name(
    memory: Any, older: str, newer: str
) -> None:
    assert await _outdated(memory, older, newer) == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("my car is a golf", "we got a new golf"),
        ("my car is a golf", "bought a kia, the golf went to my brother"),
        ("my phone is a pixel 6", "i got myself an iphone 15"),
        ("mein auto is ein golf", "den golf haben wir verkauft"),
        ("Телефон Ани 555-01-82", "У Ани новый номер: 555-77-41"),
    ],
)
async def test_getting_another_one_does(memory: Any, older: str, newer: str) -> None:
    assert [content for content, _ in await _outdated(memory, older, newer)] == [older]
