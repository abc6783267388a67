"""Ten tasks of a person who has never seen the page: only what can be read on it is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="the extra `server` is not installed")

from tests.page.browsing import Site, Watched, chromium, demo_config, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def site(tmp_path: Path, browser: Any) -> Iterator[Site]:
    with serving(demo_config(tmp_path)) as served:
        yield served


class Person:
    """Somebody who reads the page and clicks on what it says."""

    def __init__(self, window: Watched) -> None:
        self.page = window.page

    def asks(self, question: str) -> str:
        self.page.get_by_role("link", name="Search").first.click()
        self.page.get_by_role("searchbox").fill(question)
        self.page.get_by_role("button", name="Search").click()
        return self.reads()

    def opens(self, text: str) -> str:
        self.page.get_by_role("link", name=text).first.click()
        return self.reads()

    def presses(self, text: str) -> str:
        self.page.get_by_role("button", name=text, exact=True).first.click()
        return self.reads()

    def types(self, label: str, text: str) -> None:
        self.page.get_by_label(label).first.fill(text)

    def reads(self) -> str:
        self.page.wait_for_load_state()
        return str(self.page.inner_text("main"))


@pytest.fixture
def person(browser: Any, site: Site) -> Iterator[Person]:
    window = Watched(browser, site, viewport={"width": 1280, "height": 860})
    yield Person(window)
    window.said = [text for text in window.said if "409" not in text]  # the page that lists what builds on a change
    window.check()
    window.close()


@pytest.mark.parametrize("question", ("where does Vera live", "Vera Hamburg", "lives in Hamburg"))
def test_find_out_why_it_thinks_she_lives_in_hamburg_and_put_it_right(person: Person, question: str) -> None:
    assert "Vera lives in Hamburg" in person.asks(question)
    assert "the user" in person.opens("Vera lives in Hamburg") and "Recorded by" in person.reads()
    person.page.get_by_text("Correct", exact=True).click()
    person.types("What is right instead", "Vera lives in Altona")
    assert "Corrected" in person.presses("Save the correction")
    assert "Vera lives in Altona" in person.asks(question)


@pytest.mark.parametrize("run", (0, 1))
def test_undo_what_a_run_did_to_sarah(person: Person, run: int) -> None:
    assert "Sarah" in person.asks("what does Sarah eat")
    person.opens("Runs")
    person.page.get_by_role("link", name="Consolidation").nth(run).click()
    assert "Sarah" in person.reads()
    said = person.presses("Undo the whole run")
    assert "Undone" in said or "Later changes build on it" in said
    if "Later changes" in said:
        assert "Undone" in person.presses("Undo all of them")
    person.opens("Runs")
    assert "undone" in person.reads()


@pytest.mark.parametrize("time", ("2026-03-01", "2026-03-15", "1 March 2026", "2026-03-31T12:00", "in March 2026"))
def test_what_did_it_know_in_march(person: Person, time: str) -> None:
    person.opens("Timeline")
    person.page.locator("#as_of").fill(time)
    person.presses("Go there")
    said = person.asks("where does Vera live")
    assert "Leipzig" in said and "lives in Hamburg" not in said
    person.presses("Back to now")
    assert "lives in Hamburg" in person.asks("where does Vera live")


@pytest.mark.parametrize("decision", ("Newer holds", "Older holds", "Keep both"))
def test_settle_a_contradiction(person: Person, decision: str) -> None:
    before = person.opens("Inbox").count("Newer")
    person.page.locator("[data-review] button", has_text=decision).first.click()
    assert person.reads().count("Newer") < before


@pytest.mark.parametrize("decision", ("Approve", "Refuse"))
def test_decide_on_what_a_web_page_said(person: Person, decision: str) -> None:
    assert "U+202E" in person.opens("Inbox")
    person.page.locator("[data-review] button", has_text=decision).first.click()
    assert "Quarantine" not in person.reads()


@pytest.mark.parametrize(
    "question", ("hazelnut allergy", "which medicine must Vera not get", "who looks after the cat")
)
def test_read_the_conversation_behind_an_answer(person: Person, question: str) -> None:
    person.asks(question)
    person.page.locator(".hit", has=person.page.locator(".meta b")).first.locator("a.text").click()
    person.page.locator("dl a").first.click()
    assert "Messages:" in person.reads()


def test_forget_something_and_bring_it_back(person: Person) -> None:
    person.asks("which book does Vera read")
    person.opens("Vera reads The Summer Book")
    person.presses("Forget")
    assert "Vera reads The Summer Book" not in person.asks("which book does Vera read").replace("I've started", "")
    person.opens("Archive")
    assert "The Summer Book" in person.reads()
    person.opens("Vera reads The Summer Book")
    assert "Restored" in person.presses("Restore")


def test_erase_something_for_good(person: Person) -> None:
    person.asks("landlord in Altona")
    person.opens("Herr Petersen is the landlord")
    person.opens("Erase for good")
    person.types("To confirm, type", "Herr Petersen is")
    assert "Erased" in person.presses("Erase for good")
    assert "Herr Petersen is the landlord" not in person.asks("landlord in Altona")


@pytest.mark.parametrize("name", ("Vera", "Jonas", "Miriam"))
def test_find_out_who_somebody_is(person: Person, name: str) -> None:
    person.opens("People and things")
    assert "Known facts" in person.opens(name)
    person.opens("See it in the graph")
    assert name in person.reads()


@pytest.mark.parametrize("title", ("Fading", "Health"))
def test_see_what_will_be_lost_and_whether_all_is_well(person: Person, title: str) -> None:
    said = person.opens(title)
    if title == "Fading":
        assert "Sound men never check their shirt pockets" in said
        person.page.locator(".row", has_text="Sound men").get_by_role("button", name="Confirm").click()
        assert "Confirmed" in person.reads()
    else:
        assert "✓" in person.presses("Check now") and "✗" not in person.reads()
