"""What notes say about their author, and what they only quote or clip."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ricordo import Memory
from tests.portability.conftest import opened


async def imported(memory: Memory, folder: Path, notes: Mapping[str, str]) -> None:
    for name, text in notes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    await memory.import_(folder)


async def pairs_in_review(tmp_path: Path, notes: Mapping[str, str]) -> list[tuple[str, str]]:
    async with opened(tmp_path / "memory.db") as memory:
        await imported(memory, tmp_path / "vault", notes)
        found = await memory.review(limit=20)
    return [(each.newer.content, each.older.content if each.older else "") for each in found]


def dated(line: str) -> str:
    return f"---\ndate: 2025-03-05\n---\n- {line}\n"


CHANGED = [
    ("Health/Thyroid.md", "I take levothyroxine 50 mcg every morning.", "I take levothyroxine 75 mcg every morning."),
    ("Home/Flat.md", "I live in Dublin.", "I live in Porto."),
    ("Home/Contracts.md", "My car insurance is with Allianz.", "My car insurance is with Fidelidade."),
    ("Home/Contracts.md", "Internet costs 39 euros a month.", "Internet costs 31 euros a month."),
    ("Wohnen/Wohnung.md", "Ich wohne in Köln.", "Ich wohne in Berlin."),
    ("Santé/Médecins.md", "Mon dentiste est le Dr Martin.", "Mon dentiste est la Dre Lefèvre."),
    ("Trabajo/Empresa.md", "Trabajo en Telefónica.", "Trabajo en Iberdrola."),
    ("Casa/Affitto.md", "Vivo a Torino.", "Vivo a Bologna."),
    ("Banco/Contas.md", "O meu banco é o BPI.", "O meu banco é o Novobanco."),
    ("Дом/Квартира.md", "Я живу в Казани.", "Я живу в Москве."),
    ("2025-03-05.md", "My dentist is Dr. Walsh.", "My dentist is Dra. Sousa."),
]


@pytest.mark.parametrize(("note", "old", "new"), CHANGED)
async def test_a_daily_note_changes_what_a_note_on_a_topic_says(note: str, old: str, new: str, tmp_path: Path) -> None:
    [(newer, older)] = await pairs_in_review(tmp_path, {note: dated(old), "Daily/2026-10-01.md": f"- {new}\n"})
    assert newer == new
    assert older.endswith(old)


OF_TWO_THINGS = [
    ("Careline.md", "Phone is 555 1234.", "TransDouro.md", "Phone is 555 9999."),
    ("Chalet.md", "The rent is 900 euros.", "Flat.md", "The rent is 980 euros."),
    ("People/Anna.md", "I owe her 20 euros.", "People/Rosa.md", "I owe her 35 euros."),
    ("Aurora.md", "We use PostgreSQL.", "Borealis.md", "We use MySQL."),
    ("Piso.md", "El wifi es Casa123.", "Oficina.md", "El wifi es Ofi999."),
    ("Проект Альфа.md", "Срок — 5 мая.", "Проект Бета.md", "Срок — 8 июня."),
]


@pytest.mark.parametrize(("note", "old", "other", "new"), OF_TWO_THINGS)
async def test_notes_on_two_things_do_not_change_each_other(
    note: str, old: str, other: str, new: str, tmp_path: Path
) -> None:
    assert await pairs_in_review(tmp_path, {note: dated(old), other: dated(new).replace("2025", "2026")}) == []


@pytest.mark.parametrize(
    "said",
    ["My dentist is Dra. Sousa.", "My vet is Dott. Verdi.", "My doctor is Frau Dr. Klein.", "My boss is Sig.ra Neri."],
)
async def test_a_title_of_another_language_is_no_name(said: str, tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        await imported(memory, tmp_path / "vault", {"2025-03-05.md": f"- {said}\n"})
        known = {each.name for each in await memory.people()}
    assert not known & {"Dra", "Dott", "Frau", "Sig", "Sig.ra", "Frau Dr."}


CLIP = "---\nsource: https://example.org/cats\nauthor: Jane Roe\n---\n"
QUOTED = [
    (
        "Cat kidney diet.md",
        f"{CLIP}I live in Melbourne and drive a Tesla.\n",
        "What car do I drive?",
        "I drive a Fiat.",
    ),
    ("Clippings/Cats.md", "My mother lives in Rome.\n", "Where does my mother live?", "My mother lives in Cuneo."),
    ("2026-10-01.md", "> I live in Melbourne, says Jane.\n", "Where do I live?", "I live in Porto."),
    ("Ausschnitte/Autos.md", "Ich fahre einen Audi.\n", "Welches Auto fahre ich?", "Ich fahre einen Fiat."),
    ("2026-10-02.md", "> J'habite à Nantes.\n", "Où est-ce que j'habite ?", "J'habite à Lyon."),
    ("Ritagli/Treni.md", "Vivo a Bologna.\n", "Dove vivo?", "Vivo a Torino."),
    ("Recortes/Casa.md", "Vivo en Cádiz.\n", "¿Dónde vivo?", "Vivo en Madrid."),
    ("Recortes/Carro.md", "Eu moro em Braga.\n", "Onde é que eu moro?", "Eu moro no Porto."),
    ("Вырезки/Город.md", "Я живу в Москве.\n", "Где я живу?", "Я живу в Казани."),
]


@pytest.mark.parametrize(("note", "text", "question", "own"), QUOTED)
async def test_what_is_clipped_or_quoted_is_not_the_users_own(
    note: str, text: str, question: str, own: str, tmp_path: Path
) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        await imported(memory, tmp_path / "vault", {"2025-03-05.md": f"- {own}\n", note: text})
        found = await memory.search(question, limit=3)
        stored = (await memory.list(limit=20)).nodes
        asked = await memory.review()
    assert found[0].content == own
    assert [each.category for each in stored if own != each.content] == ["knowledge"]
    assert asked == []


async def test_a_box_of_obsidian_is_the_users_own(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        await imported(memory, tmp_path / "vault", {"2025-03-05.md": "> [!note] Trip\n> I am allergic to nuts.\n"})
        [stored] = (await memory.list(limit=20)).nodes
    assert "“" not in stored.content


async def test_marks_of_obsidian_stay_out_of_facts_and_passages(tmp_path: Path) -> None:
    note = (
        "# Kiln\n\n- Fires at ==1,220 degrees== with cone 6 ^heat\n- x ^2 and a==b or c==d\n\n"
        "> [!warning]- Wiring\n> The thermocouple is loose\n> - [ ] order a new one\n\n> [!tip]\n> Wear gloves\n\n"
        "> [!quote] Leach\n> I throw left-handed\n\n1. Wedge the clay[^1]\n\n[^1]: for ten minutes\n\n"
        "```\n==raw==[^1]\n```\n"
    )
    async with opened(tmp_path / "memory.db") as memory:
        await imported(memory, tmp_path / "vault", {"Kiln.md": note})
        stored = {each.content.removeprefix("Kiln: ") for each in (await memory.list(limit=20)).nodes}
    assert stored == {
        "Fires at 1,220 degrees with cone 6",
        "x ^2 and a==b or c==d",
        "Wiring: The thermocouple is loose",
        "order a new one",
        "Wear gloves",
        "“I throw left-handed — Leach”",
        "Wedge the clay (for ten minutes)",
        "Kiln:\n```\n==raw==[^1]\n```",
    }
    async with opened(tmp_path / "documents.db") as memory:
        await memory.add_document(tmp_path / "vault" / "Kiln.md")
        text = "\n".join(each.content for each in (await memory.list(limit=20)).nodes)
    assert "1,220 degrees with cone 6" in text and "Wiring: The thermocouple" in text
    assert "clay (for ten minutes)" in text and "[!" not in text


@pytest.mark.parametrize("title", ["Me", "Ich", "Я", "Yo", "Moi", "Io", "Eu"])
async def test_a_note_or_heading_about_oneself_is_about_the_owner(title: str, tmp_path: Path) -> None:
    notes = {
        f"{title}.md": "- vegetarian\n",
        "People.md": f"# People\n\n## Sarah\n- vegan\n\n## {title}\n- left-handed\n",
    }
    async with opened(tmp_path / "memory.db") as memory:
        await imported(memory, tmp_path / "vault", notes)
        stored = {each.content: each.about for each in (await memory.list(limit=20)).nodes}
    assert stored == {"vegetarian": (), "vegan": ("Sarah",), "left-handed": ()}
